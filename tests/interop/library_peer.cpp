// SPDX-License-Identifier: Apache-2.0
// The C++ library as one more peer (see peer_process.hpp). usage: dibs_library_peer PORT KEY

#include <dibs/dibs.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

void work(const std::string& folder) {
    const auto inside = folder + "/inside";
    const int mine = ::open(inside.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (mine < 0) {
        std::ofstream{folder + "/overlaps", std::ios::app} << "the library beside another\n";
    }
    long count = 0;
    std::ifstream{folder + "/count"} >> count;
    std::this_thread::sleep_for(milliseconds{1});
    std::ofstream{folder + "/count"} << count + 1;
    if (mine >= 0) {
        ::close(mine);
        ::unlink(inside.c_str());
    }
}

class peer {
  public:
    peer(const std::string& port, std::string key)
        : client_("redis://127.0.0.1:" + port), key_(std::move(key)) {}

    std::string obey(const std::string& line) {
        std::istringstream words{line};
        std::string verb;
        words >> verb;
        long first = 0;
        words >> first;
        if (verb == "acquire") {
            lease_ = client_.try_acquire(key_, {.ttl = milliseconds{first}, .renew = false});
            return lease_ ? "granted" : "held";
        }
        if (verb == "renew") {
            std::error_code error;
            lease_->renew(milliseconds{first}, error);
            return !error ? "renewed" : error == dibs::condition::lease_lost ? "not_held" : "error";
        }
        if (verb == "release") {
            return lease_->release() == dibs::release_outcome::released ? "released" : "not_held";
        }
        if (verb == "contend") {
            long ttl_ms = 0;
            std::string folder;
            words >> ttl_ms >> folder;
            return contend(first, milliseconds{ttl_ms}, folder);
        }
        return "error: what is " + verb + "?";
    }

  private:
    std::string contend(long rounds, milliseconds ttl, const std::string& folder) {
        for (long round = 0; round < rounds; ++round) {
            auto lease = client_.acquire(key_, {.ttl = ttl, .wait = dibs::forever});
            if (!lease) {
                return "not granted";
            }
            work(folder);
            if (lease->release() != dibs::release_outcome::released) {
                return "lost";
            }
        }
        return "done";
    }

    dibs::client client_;
    std::string key_;
    std::optional<dibs::lease> lease_;
};

}  // namespace

int main(int count, char** words) {
    if (count != 3) {
        return 64;
    }
    try {
        peer one{words[1], words[2]};
        std::cout << "ready" << std::endl;
        for (std::string line; std::getline(std::cin, line);) {
            std::cout << one.obey(line) << std::endl;
        }
    } catch (const std::exception& fault) {
        std::cout << "error " << fault.what() << std::endl;
        return 1;
    }
    return 0;
}
