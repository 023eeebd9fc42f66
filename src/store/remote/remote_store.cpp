// SPDX-License-Identifier: Apache-2.0
#include "store/remote/remote_store.hpp"

#include "core/key.hpp"
#include "store/refusing.hpp"

#include <dibs/error.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <utility>

namespace dibs::store::remote {

std::string draw_process(core::entropy& random) {
    std::array<std::byte, 8> bytes{};
    random.fill(bytes);
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const auto byte : bytes) {
        text += digits[std::to_integer<unsigned>(byte) >> 4U];
        text += digits[std::to_integer<unsigned>(byte) & 15U];
    }
    return text;
}

std::unique_ptr<store> opened(const std::function<std::unique_ptr<store>(trouble&)>& make,
                              std::error_code& error,
                              std::string& detail) {
    trouble why;
    std::unique_ptr<store> made;
    try {
        made = make(why);
    } catch (const std::exception& thrown) {
        made.reset();
        why = {errc::store_unreachable,
               std::string{"cannot be opened: "} + core::printable(thrown.what())};
    }
    if (why.error) {
        made.reset();
    }
    error = why.error;
    detail = std::move(why.detail);
    return made;
}

remote_store::remote_store(core::environment env, std::string location)
    : env_(env), location_(std::move(location)), box_(std::make_shared<mailbox>(env.exec)) {}

announcements remote_store::announce() {
    return {[this](std::string key, watch_book::stay which, std::error_code outcome) {
                return core::task{[this, key = std::move(key), which, outcome] {
                    book_.entered(key, which, outcome);
                }};
            },
            [this](std::string key, wake_by whose) {
                return core::task{[this, key = std::move(key), whose] { book_.wake(key, whose); }};
            },
            [this] {
                return core::task{[this] {
                    if (doubts_) {
                        doubts_();
                    }
                }};
            }};
}

core::answer remote_store::why_not() const {
    return usable() ? core::refused(errc::invalid_argument, "too many entries in a batch")
                    : unusable(forked());
}

void remote_store::execute(lane which, std::vector<core::entry> batch, batch_completion done) {
    if (!usable() || batch.size() > max_batch_entries || batch.empty()) {
        refuse(env_, batch.size(), why_not(), std::move(done));
        return;
    }
    submit(which == lane::renewals ? urgency::renewal : urgency::other,
           std::move(batch),
           std::move(done));
}

watch_id remote_store::watch(std::string_view key, watch_completion ready, wake_callback wake) {
    if (!usable()) {
        refuse(env_, why_not(), std::move(ready));
        return 0;
    }
    if (!caps().wakes) {
        refuse(env_,
               core::refused(errc::unsupported, "the way to the server passes no wake-ups on"),
               std::move(ready));
        return 0;
    }
    const auto made = book_.add(key, std::move(ready), std::move(wake));
    if (made.ready_now) {
        box_->send([this, id = made.id] { book_.ready(id); });
    } else if (made.begins != 0) {
        subscribe(std::string{key}, made.begins);
    }
    return made.id;
}

void remote_store::unwatch(watch_id id) {
    if (!usable()) {
        return;
    }
    if (const auto left = book_.remove(id); !left.empty()) {
        unsubscribe(left);
    }
    if (notices_.erase(id) != 0 && notices_.empty()) {
        expect_notices(false);
    }
}

watch_id remote_store::await_notices(std::string_view key, wake_callback wake) {
    if (!usable() || !caps().notifies) {
        return 0;
    }
    const auto id = book_.add_listener(key, std::move(wake));
    notices_.insert(id);
    if (notices_.size() == 1) {
        expect_notices(true);
    }
    return id;
}

void remote_store::list(std::string prefix,
                        std::string after,
                        std::size_t limit,
                        page_completion done) {
    if (!usable()) {
        refuse(env_, why_not(), std::move(done));
        return;
    }
    submit({std::move(prefix), std::move(after), limit, std::move(done)},
           env_.time.now() + list_within);
}

void remote_store::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    if (forked()) {
        lead().abandon();
        return;
    }
    book_.clear();
    lead().stop();
    box_->close();
}

}  // namespace dibs::store::remote
