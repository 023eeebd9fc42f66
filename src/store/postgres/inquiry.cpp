// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/inquiry.hpp"

#include "store/postgres/requests.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace dibs::store::postgres {

namespace {

using namespace std::chrono_literals;

constexpr core::nanoseconds patience = 5s;

struct exchange {
    std::mutex lock;
    std::condition_variable changed;
    bool told = false;
    heard answer;
};

}  // namespace

heard rows_of(const reply* told, const trouble& why) {
    heard answer;
    const auto fault = told == nullptr ? why : fault_of(*told, "");
    if (fault.error) {
        answer.fault = fault.detail.starts_with(": ") ? fault.detail.substr(2) : fault.detail;
        return answer;
    }
    const auto& result = *told->result;
    for (int row = 0; row < ::PQntuples(&result); ++row) {
        auto& values = answer.rows.emplace_back();
        for (int column = 0; column < ::PQnfields(&result); ++column) {
            values.emplace_back(::PQgetvalue(&result, row, column));
        }
    }
    return answer;
}

heard ask(engine& through, core::environment env, const std::string& sql) {
    auto between = std::make_shared<exchange>();
    through.submit(urgency::look,
                   std::make_unique<plain_request>(
                       as_in_our_sessions + sql,
                       env.time.now() + patience,
                       [between](const reply* told, const trouble& why, request::outcome) {
                           auto answer = rows_of(told, why);
                           const std::lock_guard held{between->lock};
                           between->answer = std::move(answer);
                           between->told = true;
                           between->changed.notify_all();
                       }));
    std::unique_lock held{between->lock};
    if (!between->changed.wait_for(held, patience + 1s, [&] { return between->told; })) {
        return {"the server did not answer", {}};
    }
    return std::move(between->answer);
}

}  // namespace dibs::store::postgres
