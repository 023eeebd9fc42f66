// SPDX-License-Identifier: Apache-2.0
#include "simulation/workloads/guarded_counter.hpp"

#include <utility>

namespace dibs::simulation {

struct guarded_counter::turn {
    client_process& by;
    std::unique_ptr<held_lease> lease;
    core::nanoseconds think_most;
    done then;
    std::uint64_t call = 0;
    std::int64_t found = 0;
};

guarded_counter::guarded_counter(scene& on, const std::string& key)
    : scene_(on), key_(key), value_(on, key + ".value", true) {}

void guarded_counter::increment(client_process& by,
                                std::unique_ptr<held_lease> under,
                                core::nanoseconds think_most,
                                done then) {
    auto mine =
        std::make_shared<turn>(turn{by, std::move(under), think_most, std::move(then), 0, 0});
    by.self().post([this, mine] { show_fence(mine); });
}

void guarded_counter::show_fence(const turn_ptr& mine) {
    if (!mine->lease->held()) {
        mine->then(std::move(mine->lease));
        return;
    }
    mine->call = scene_.history.new_id();
    call_line(mine->by, "increment", "inv", mine->call, value_.name())
        .number("fence", mine->lease->fence())
        .number("amount", 1);
    value_.claim(mine->by, mine->lease->fence(), [this, mine](const target::answer& given) {
        if (given.stale) {
            end(mine, "fail", "stale");
        } else {
            mine->by.self().post([this, mine] { read(mine); });
        }
    });
}

void guarded_counter::read(const turn_ptr& mine) {
    value_.read(mine->by, [this, mine](const target::answer& given) {
        mine->found = given.value.empty() ? 0 : given.value.front();
        const auto length = scene_.chance.skewed(core::microseconds{10}, mine->think_most);
        mine->by.self().post_in(length, [this, mine] {
            if (!mine->lease->held()) {
                end(mine, "fail", "the lease was lost");
                return;
            }
            // A pause may fall between the look at the handle and the write: the fence is for that.
            mine->by.self().post([this, mine] { write(mine); });
        });
    });
}

void guarded_counter::write(const turn_ptr& mine) {
    ++unsure_;
    value_.write(mine->by,
                 mine->lease->fence(),
                 {mine->found + 1},
                 [this, mine](const target::answer& given) {
                     --unsure_;
                     sure_ += given.stale ? 0 : 1;
                     end(mine, given.stale ? "fail" : "ok", given.stale ? "stale" : "");
                 });
}

void guarded_counter::end(const turn_ptr& mine, std::string_view phase, std::string_view error) {
    {
        auto told = call_line(mine->by, "increment", phase, mine->call, value_.name());
        if (!error.empty()) {
            told.text("error", error);
        }
    }
    mine->by.self().post([mine] { mine->then(std::move(mine->lease)); });
}

void guarded_counter::judge() {
    const auto total = value_.value().empty() ? 0 : value_.value().front();
    // Read by somebody who has nothing to do with the lock.
    const auto call = scene_.history.new_id();
    const auto line = [&](std::string_view phase) {
        auto begun = scene_.history.event("count", phase);
        begun.number("call", call)
            .text("proc", "reader")
            .time("local_ns", scene_.world.now())
            .text("key", value_.name());
        return begun;
    };
    line("inv");
    line("ok").number("value", total);
    // Of two with one fence the checker tells which updates that accounts for (C5).
    if (total < sure_ && !scene_.laws.fences_excused()) {
        scene_.complain(std::to_string(sure_ - total) + " updates were lost behind the fence");
    } else if (total > sure_ + unsure_) {
        scene_.complain("the counter of " + key_ + " went further than anybody");
    }
}

}  // namespace dibs::simulation
