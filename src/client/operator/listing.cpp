// SPDX-License-Identifier: Apache-2.0
#include "client/operator/listing.hpp"

#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/shown_records.hpp"
#include "core/key.hpp"

#include <dibs/error.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace dibs {

namespace {

constexpr std::size_t records_per_page = 500;

core::page one_page(detail::client_core& core,
                    std::string prefix,
                    std::string after,
                    std::size_t limit) {
    core::page page;
    core.run([&](core::task done) {
        if (core.closed()) {
            auto refusal = core.refusal();
            page.error = refusal.error;
            page.detail = std::move(refusal.detail);
            done();
            return;
        }
        core.store().list(std::move(prefix),
                          std::move(after),
                          limit,
                          [&page, done = std::move(done)](core::page read) mutable {
                              page = std::move(read);
                              done();
                          });
    });
    return page;
}

bool each_record(const std::shared_ptr<detail::client_core>& core,
                 std::string_view prefix,
                 const std::function<void(record&&)>& take,
                 std::error_code& error,
                 std::string& message) {
    if (!core) {
        error = errc::closed;
        return false;
    }
    std::string after;
    for (bool more = true; more;) {
        auto page = one_page(*core, std::string(prefix), after, records_per_page);
        if (page.error) {
            error = page.error;
            message = "listing (store " + core->store().location() + "): " + page.detail;
            return false;
        }
        more = page.more && !page.records.empty();
        if (more) {
            after = page.records.back().key;
        }
        for (auto& one : page.records) {
            take(detail::shown(std::move(one)));
        }
    }
    return true;
}

std::vector<record> all_records(const std::shared_ptr<detail::client_core>& core,
                                std::string_view prefix,
                                std::error_code& error,
                                std::string& message) {
    std::vector<record> all;
    const auto keep = [&all](record&& one) { all.push_back(std::move(one)); };
    return each_record(core, prefix, keep, error, message) ? all : std::vector<record>{};
}

}  // namespace

bool detail::for_each_record(client& of,
                             std::string_view prefix,
                             const std::function<void(record&&)>& take,
                             std::error_code& error,
                             std::string& message) {
    error.clear();
    return each_record(lease_access::core(of), prefix, take, error, message);
}

std::vector<record> client::list(std::string_view prefix, std::error_code& error) noexcept {
    error.clear();
    std::string message;
    return all_records(core_, prefix, error, message);
}

std::vector<record> client::list(std::string_view prefix) {
    std::error_code error;
    std::string message;
    auto all = all_records(core_, prefix, error, message);
    if (error) {
        throw dibs::error(error, message);
    }
    return all;
}

namespace {

/// `why` says more than the error, if the store does.
std::optional<record> record_of(const std::shared_ptr<detail::client_core>& core,
                                std::string_view key,
                                std::error_code& error,
                                std::string& why) {
    error.clear();
    if (!core) {
        error = errc::closed;
        return std::nullopt;
    }
    if (!core::fault_of_key(key).empty()) {
        error = errc::invalid_key;
        return std::nullopt;
    }
    auto page = one_page(*core, std::string(key), {}, 1);
    error = page.error;
    why = std::move(page.detail);
    if (page.records.empty() || page.records.front().key != key) {
        return std::nullopt;
    }
    return detail::shown(std::move(page.records.front()));
}

}  // namespace

std::optional<record> client::inspect(std::string_view key, std::error_code& error) noexcept {
    std::string why;
    return record_of(core_, key, error, why);
}

std::optional<record> client::inspect(std::string_view key) {
    std::error_code error;
    std::string why;
    auto found = record_of(core_, key, error, why);
    if (error) {
        throw dibs::error(error,
                          detail::complaint(key,
                                            core_ ? core_->store().location() : "none",
                                            why.empty() ? error.message() : why));
    }
    return found;
}

namespace detail {

namespace {

/// One key after the other.
struct several_looks : std::enable_shared_from_this<several_looks> {
    std::shared_ptr<client_core> core;
    std::vector<std::string> keys;
    std::function<void(std::vector<record>)> told;
    std::vector<record> found;

    void go_on() {
        while (found.size() < keys.size() && keys[found.size()].empty()) {
            found.emplace_back();
        }
        if (core->closed()) {
            return;
        }
        if (found.size() == keys.size()) {
            told(std::move(found));
            return;
        }
        core->store().list(keys[found.size()], {}, 1, [self = shared_from_this()](core::page page) {
            if (page.error) {
                self->told({});
                return;
            }
            const auto& key = self->keys[self->found.size()];
            const bool there = !page.records.empty() && page.records.front().key == key;
            self->found.push_back(there ? shown(std::move(page.records.front())) : record{});
            self->go_on();
        });
    }
};

}  // namespace

void look_at_keys(client& of,
                  std::vector<std::string> keys,
                  std::function<void(std::vector<record>)> told) noexcept {
    const auto& core = lease_access::core(of);
    if (!core) {
        return;
    }
    const auto looks = std::make_shared<several_looks>();
    looks->core = core;
    looks->keys = std::move(keys);
    looks->told = std::move(told);
    core->post([looks] { looks->go_on(); });
}

void look_for_trouble(client& of, std::string key, std::function<void(std::string)> told) noexcept {
    const auto& core = lease_access::core(of);
    if (!core) {
        return;
    }
    core->post([core, key = std::move(key), told = std::move(told)] {
        if (core->closed()) {
            return;
        }
        auto found = core->mutex().trouble_with(key);
        told(found.error && found.detail.empty() ? found.error.message() : std::move(found.detail));
    });
}

}  // namespace detail

}  // namespace dibs
