// SPDX-License-Identifier: Apache-2.0
// Fifty requests find that the access token has run out. One of them fetches a new one, the others get the same; and
// when the provider refuses it all the same (401), one newer token is fetched for all who say so.
//
//   08_shared_token STORE-URL
//
// Two clients stand for two processes: what they share is in the store. On a server, give cached_options keys that
// encrypt it there (docs/guides/shared-tokens.md).

#include <dibs/dibs.hpp>

#include <chrono>
#include <iostream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

/// An identity provider of somebody else's. A refresh token can be used once; a second use of it counts as theft.
class provider {
  public:
    dibs::fetched<> refresh(std::string_view refresh_token) {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        const std::lock_guard held(mutex_);
        // The first one comes from a login.
        const auto presented = refresh_token.empty() ? "r0" : std::string{refresh_token};
        if (presented != "r" + std::to_string(refreshes_)) {
            throw dibs::fetch_failure("invalid_grant: " + presented + " was used before").refused();
        }
        ++refreshes_;
        const auto number = std::to_string(refreshes_);
        return {.value = "t" + number, .life = std::chrono::hours{1}, .successor = "r" + number};
    }
    int refreshes() {
        const std::lock_guard held(mutex_);
        return refreshes_;
    }

  private:
    std::mutex mutex_;
    int refreshes_ = 0;
};

struct process {
    process(const char* store, provider& from)
        : client(store), token(client, "oauth:crm", [&from](const dibs::fetch_context& with) {
              return from.refresh(with.successor);
          }) {}

    dibs::client client;
    dibs::cached_value<std::string> token;
};

/// All at once, half of them in each process; `refused`: what the API has answered 401 to.
std::set<std::string> fifty_requests(process& one, process& other, const std::string& refused) {
    std::mutex mutex;
    std::set<std::string> seen;
    {
        std::vector<std::jthread> requests;
        for (int number = 0; number < 50; ++number) {
            requests.emplace_back([&, number] {
                auto& mine = number % 2 == 0 ? one : other;
                if (!refused.empty()) {
                    mine.token.reject(refused);
                }
                auto bearer = mine.token.get();
                const std::lock_guard held(mutex);
                seen.insert(std::move(bearer));
            });
        }
    }
    return seen;
}

void say(std::string_view what, const std::set<std::string>& tokens, provider& from) {
    std::cout << what << ": " << tokens.size() << " token, " << *tokens.begin() << ", after "
              << from.refreshes() << " refresh" << (from.refreshes() == 1 ? "" : "es")
              << " in all\n";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 08_shared_token STORE-URL\n";
        return 64;
    }
    try {
        provider somebody;
        process one{argv[1], somebody};
        process other{argv[1], somebody};
        one.token.forget();  // what an earlier run of this example has left
        const auto first = fifty_requests(one, other, "");
        say("50 requests without a token", first, somebody);
        say("50 more", fifty_requests(one, other, ""), somebody);
        say("50 answered by 401", fifty_requests(one, other, *first.begin()), somebody);
    } catch (const std::exception& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
