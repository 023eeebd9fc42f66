// SPDX-License-Identifier: Apache-2.0
// Runs a program on a PostgreSQL server of its own, with the data layer in it. Its last argument is
// the URL.
//
//   with_postgres [--default-settings] PROGRAM [ARGUMENT…]
#include "guarded_server.hpp"

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool durable = !words.empty() && words.front() == "--default-settings";
    if (durable) {
        words.erase(words.begin());
    }
    if (words.empty()) {
        std::cerr << "usage: with_postgres [--default-settings] PROGRAM [ARGUMENT...]\n";
        return 64;
    }
    const dibs::testing::guarded_server server(
        durable ? dibs::testing::postgres_server::words{"fsync=on", "shared_buffers=128MB"}
                : dibs::testing::postgres_server::words{});
    words.push_back(server.socket_url());
    std::vector<char*> raw;
    for (auto& word : words) {
        raw.push_back(word.data());
    }
    raw.push_back(nullptr);
    std::cout.flush();
    const auto child = ::fork();
    if (child == 0) {
        ::execvp(raw[0], raw.data());
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
