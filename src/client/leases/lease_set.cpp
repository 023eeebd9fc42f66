// SPDX-License-Identifier: Apache-2.0
#include "client/client_core.hpp"

#include <dibs/lease_set.hpp>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace dibs {

struct lease_set::contents {
    explicit contents(std::vector<lease> taken) : leases(std::move(taken)) {
        for (const auto& one : leases) {
            on_loss.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(
                one.lost(), [source = lost] { std::stop_source{source}.request_stop(); }));
        }
    }

    std::stop_source lost;
    std::vector<lease> leases;
    // Gone before the leases: a callback that runs meanwhile is waited for, unless it is this thread.
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> on_loss;
};

namespace detail {

lease_set lease_access::make(const std::shared_ptr<client_core>& core,
                             std::vector<recipes::lease_ptr> states) {
    std::vector<lease> leases;
    leases.reserve(states.size());
    for (auto& state : states) {
        leases.push_back(make(core, std::move(state)));
    }
    return lease_set(std::make_unique<lease_set::contents>(std::move(leases)));
}

}  // namespace detail

lease_set::lease_set() noexcept = default;
lease_set::lease_set(std::unique_ptr<contents> held) noexcept : contents_(std::move(held)) {}
lease_set::lease_set(lease_set&& other) noexcept = default;
lease_set& lease_set::operator=(lease_set&& other) noexcept = default;
lease_set::~lease_set() = default;

std::size_t lease_set::size() const noexcept {
    return contents_ ? contents_->leases.size() : 0;
}

lease& lease_set::operator[](std::size_t place) noexcept {
    return contents_->leases[place];
}

const lease& lease_set::operator[](std::size_t place) const noexcept {
    return contents_->leases[place];
}

const lease* lease_set::find(std::string_view key) const noexcept {
    if (!contents_) {
        return nullptr;
    }
    const auto& all = contents_->leases;
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.key() == key; });
    return at == all.end() ? nullptr : &*at;
}

lease* lease_set::find(std::string_view key) noexcept {
    return const_cast<lease*>(std::as_const(*this).find(key));
}

bool lease_set::held() const noexcept {
    return size() > 0 && std::all_of(contents_->leases.begin(),
                                     contents_->leases.end(),
                                     [](const auto& one) { return one.held(); });
}

std::chrono::nanoseconds lease_set::remaining() const noexcept {
    auto least = size() > 0 ? std::chrono::nanoseconds::max() : std::chrono::nanoseconds::zero();
    for (std::size_t at = 0; at < size(); ++at) {
        least = std::min(least, contents_->leases[at].remaining());
    }
    return least;
}

std::uint64_t lease_set::fence(std::string_view key, std::error_code& error) const noexcept {
    if (const auto* one = find(key)) {
        return one->fence(error);
    }
    error = errc::not_held;
    return 0;
}

std::uint64_t lease_set::fence(std::string_view key) const {
    if (const auto* one = find(key)) {
        return one->fence();
    }
    throw dibs::error(errc::not_held, "key " + std::string(key) + ": is none of this set");
}

std::stop_token lease_set::lost() const noexcept {
    return contents_ ? contents_->lost.get_token() : std::stop_token{};
}

release_outcome lease_set::release(std::error_code& error) noexcept {
    error.clear();
    std::vector<std::shared_ptr<detail::lease_handle>> given;
    for (std::size_t at = 0; at < size(); ++at) {
        if (const auto handle = detail::lease_access::handle(contents_->leases[at])) {
            given.push_back(handle);
        }
    }
    if (given.empty() || given.front()->core->closed()) {
        return release_outcome::not_held;
    }
    // One that was moved out, or handed over, is no more reason to keep the others than one that was lost.
    auto outcome = given.size() < size() ? release_outcome::not_held : release_outcome::released;
    given.front()->core->run([&](core::task done) {
        auto& core = *given.front()->core;
        if (core.closed()) {
            outcome = release_outcome::not_held;
            done();
            return;
        }
        // All in one turn, so that they share a batch. The last one first: whoever waits for the first one holds none of
        // the others.
        const auto all_told = std::make_shared<core::task>(std::move(done));
        const auto left = std::make_shared<std::size_t>(given.size());
        for (auto one = given.rbegin(); one != given.rend(); ++one) {
            core.mutex().release((*one)->state,
                                 [&outcome, &error, all_told, left](recipes::release_reply told) {
                                     if (!told.released) {
                                         outcome = release_outcome::not_held;
                                     }
                                     error = error ? error : told.error;
                                     if (--*left == 0) {
                                         (*all_told)();
                                     }
                                 });
        }
    });
    return outcome;
}

release_outcome lease_set::release() {
    std::error_code error;
    const auto outcome = release(error);
    if (error) {
        throw dibs::error(error, "a lease of a set could not be given back; it ends by itself");
    }
    return outcome;
}

}  // namespace dibs
