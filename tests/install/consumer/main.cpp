// SPDX-License-Identifier: Apache-2.0
// Goal: an installed library works for a stranger. Method: take, see refused, give back, take
// again, on both stores.

#include <dibs/dibs.hpp>

#include <chrono>
#include <cstdio>
#include <string>

namespace {

bool works_on(const std::string& url) {
    dibs::client one{url};
    auto first = one.try_acquire("key", {.ttl = std::chrono::seconds{10}});
    if (!first || !first->held()) {
        std::fprintf(stderr, "%s: a free key was not given\n", url.c_str());
        return false;
    }
    const auto fence = first->fence();
    if (one.try_acquire("key")) {
        std::fprintf(stderr, "%s: a held key was given\n", url.c_str());
        return false;
    }
    if (first->release() != dibs::release_outcome::released) {
        std::fprintf(stderr, "%s: the lease was not ours at its release\n", url.c_str());
        return false;
    }
    const auto second = one.try_acquire("key");
    if (!second || second->fence() <= fence) {
        std::fprintf(stderr, "%s: the fence did not rise\n", url.c_str());
        return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: consumer FILE\n");
        return 64;
    }
    return works_on("memory:") && works_on("sqlite:" + std::string(argv[1])) ? 0 : 1;
}
