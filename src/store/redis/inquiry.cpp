// SPDX-License-Identifier: Apache-2.0
#include "store/redis/inquiry.hpp"

#include "store/redis/requests.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace dibs::store::redis {

namespace {

using namespace std::chrono_literals;

constexpr auto answer_within = 5s;

struct exchange {
    std::mutex lock;
    std::condition_variable changed;
    bool told = false;
    bool left = false;  ///< nobody waits any more
    std::string fault;
};

}  // namespace

std::string ask(engine& through,
                core::environment env,
                std::string bytes,
                std::function<void(const reply&)> take) {
    const auto shared = std::make_shared<exchange>();
    through.submit(urgency::look,
                   std::make_unique<command_request>(
                       std::move(bytes),
                       env.time.now() + answer_within,
                       [shared, take = std::move(take)](
                           const reply* told, const trouble& why, request::outcome) {
                           const std::lock_guard held{shared->lock};
                           if (shared->left) {
                               return;
                           }
                           shared->told = true;
                           if (told == nullptr) {
                               shared->fault = why.detail;
                           } else if (told->front().what == kind::error) {
                               shared->fault = told->front().text;
                           } else {
                               take(*told);
                           }
                           shared->changed.notify_all();
                       }));
    std::unique_lock held{shared->lock};
    shared->changed.wait_for(held, answer_within + 3s, [&] { return shared->told; });
    shared->left = true;
    return shared->told ? shared->fault : "no answer";
}

heard ask(engine& through, core::environment env, std::initializer_list<std::string_view> words) {
    heard what;
    std::string bytes;
    write_command(bytes, words);
    what.fault = ask(through, env, std::move(bytes), [&what](const reply& told) {
        for (const auto& one : told) {
            if (one.children == 0) {
                what.texts.push_back(one.what == kind::integer ? std::to_string(one.number)
                                                               : std::string{one.text});
            }
        }
    });
    return what;
}

}  // namespace dibs::store::redis
