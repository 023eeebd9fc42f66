// SPDX-License-Identifier: Apache-2.0
// A request that comes twice: the work is done once, and the second one gets the first one's answer.
//
//   07_idempotent STORE-URL

#include <dibs/dibs.hpp>

#include <iostream>
#include <string>

namespace {

/// A payment service of somebody else's. It takes an idempotency key, too: after a crash it is asked
/// again, and must not charge again.
std::string charge(const std::string& request, const std::string& idempotency_key) {
    std::cout << "charging for " << idempotency_key << '\n';
    if (request.find("-5") != std::string::npos) {
        throw dibs::kept_failure("declined: a negative amount");  // an answer like any other
    }
    return R"({"paid": true})";
}

std::string answer(dibs::client& client, const std::string& key, const std::string& request) {
    try {
        const auto told = client.idempotent(
            key, request, [&] { return charge(request, key); }, {.wait = std::chrono::seconds{5}});
        switch (told.how) {
            case dibs::idempotent_result::outcome::done:
                return "done: " + told.answer;
            case dibs::idempotent_result::outcome::replayed:
                return "as before: " + told.answer;
            case dibs::idempotent_result::outcome::in_flight:
                return "still at it, ask again (409)";
        }
    } catch (const dibs::kept_failure& failure) {
        return failure.what();
    } catch (const dibs::error& trouble) {
        if (trouble.code() == dibs::errc::fingerprint_differs) {
            return "another request under the same key (422)";
        }
        throw;
    }
    return {};
}

void say(const std::string& which, const std::string& answer) {
    std::cout << which << ": " << answer << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 07_idempotent STORE-URL\n";
        return 64;
    }
    try {
        dibs::client client{argv[1]};
        const std::string request = R"({"amount": 5})";
        say("first", answer(client, "order-4711", request));
        say("again", answer(client, "order-4711", request));
        say("other", answer(client, "order-4711", R"({"amount": 6})"));
        say("wrong", answer(client, "order-4712", R"({"amount": -5})"));
        say("wrong", answer(client, "order-4712", R"({"amount": -5})"));
    } catch (const dibs::error& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
