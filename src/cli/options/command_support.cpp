// SPDX-License-Identifier: Apache-2.0
#include "cli/options/command_support.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "core/key.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace dibs::cli {

bool helped(const command_syntax& syntax, const arguments& found) {
    if (!found.has("help")) {
        return false;
    }
    deliver(help_text(syntax));
    return true;
}

std::string key_given(const command_syntax& syntax, const arguments& found) {
    const auto* flag = found.value("key");
    if (flag == nullptr && found.operands.empty()) {
        throw usage_error("KEY is missing; see dibs " + std::string(syntax.name) + " --help");
    }
    if (flag != nullptr && !found.operands.empty()) {
        throw usage_error("the key was given twice: as --key and as " +
                          as_given(found.operands.front()));
    }
    const auto& key = flag != nullptr ? *flag : found.operands.front();
    if (is_handle(key)) {
        throw usage_error("KEY: this is a handle; dibs renew and dibs release take one");
    }
    if (const auto fault = core::fault_of_key(key); !fault.empty()) {
        throw usage_error("KEY: " + std::string(fault));
    }
    return key;
}

std::chrono::milliseconds duration_value(const arguments& found, std::string_view name) {
    const auto& text = *found.value(name);
    try {
        return parse_duration(text);
    } catch (const std::invalid_argument& fault) {
        throw usage_error("--" + std::string(name) + " " + as_given(text) + ": " + fault.what());
    }
}

void check_ttl(const store_in_use& store, const arguments& found, std::chrono::milliseconds ttl) {
    const auto info = store.through.store();
    if (info.ttl_min <= ttl && ttl <= info.ttl_max) {
        return;
    }
    const auto limits = "must be from " + show_duration(info.ttl_min) + " to " +
                        show_duration(info.ttl_max) + " (store " + store.shown + ")";
    if (const auto* flag = found.value("ttl")) {
        throw usage_error("--ttl " + as_given(*flag) + ": " + limits);
    }
    if (!store.file.ttl) {
        throw usage_error("--ttl is needed here: it is " + show_duration(ttl) +
                          " without it, and " + limits);
    }
    throw configuration_error(store.file.path + ": ttl " + limits);
}

std::uint64_t fence_value(const arguments& found, std::string_view name) {
    const auto& text = *found.value(name);
    std::uint64_t fence = 0;
    const auto* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, fence);
    if (fault != std::errc{} || at != end || fence == 0) {
        throw usage_error("--" + std::string(name) + " " + as_given(text) +
                          ": must be the number of a fence, as dibs show tells it");
    }
    return fence;
}

int held_code_value(const std::string& text) {
    int code = -1;
    const auto* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, code);
    if (fault != std::errc{} || at != end || code < 0 || code > 255) {
        throw usage_error("--held-code " + as_given(text) + ": must be a number from 0 to 255");
    }
    return code;
}

namespace {

struct settled_store {
    file_settings file;
    store_choice choice;

    [[nodiscard]] store_in_use opened(client through) && {
        return {std::move(through), std::move(file), choice.url, redact_url(choice.url)};
    }
};

settled_store settled(const global_options& global, const arguments& found, store_use use) {
    auto file = find_settings(real_surroundings());
    const auto* flag = found.value("store") != nullptr ? found.value("store") : global.store;
    auto choice = settle_store(flag, file, found.has("quiet"), use);
    return {std::move(file), std::move(choice)};
}

}  // namespace

store_in_use use_store(const global_options& global,
                       const arguments& found,
                       const std::string& command,
                       store_use use) {
    auto store = settled(global, found, use);
    auto through = open_client(store.choice, command);
    return std::move(store).opened(std::move(through));
}

std::optional<store_in_use> use_awaited_store(const global_options& global,
                                              const arguments& found,
                                              const std::string& command,
                                              const store_wait& terms,
                                              const std::stop_token& stop) {
    auto store = settled(global, found, store_use::make);
    auto through = open_awaited(store.choice, command, terms, stop);
    if (!through) {
        return std::nullopt;
    }
    return std::move(store).opened(std::move(*through));
}

failure store_failure(const std::error_code& error,
                      const std::string& message,
                      const store_in_use& store) {
    if (message.empty()) {
        return {status_of(error), error.message() + " (store " + store.shown + ")"};
    }
    // What std::system_error adds to its text says nothing new.
    const auto added = ": " + error.message();
    const bool ends_so = message.size() > added.size() && message.ends_with(added);
    return {status_of(error), ends_so ? message.substr(0, message.size() - added.size()) : message};
}

dibs::record look_at(store_in_use& store, const std::string& key) {
    try {
        auto found = store.through.inspect(key);
        if (!found) {
            found.emplace();
            found->key = key;
        }
        return std::move(*found);
    } catch (const std::system_error& error) {
        throw store_failure(error.code(), error.what(), store);
    }
}

const dibs::holder* holder_with(const dibs::record& record, std::uint64_t fence) {
    const auto found =
        std::find_if(record.holders.begin(), record.holders.end(), [&](const dibs::holder& who) {
            return who.fence <= fence && fence <= who.fence_last;
        });
    return found == record.holders.end() ? nullptr : &*found;
}

std::string describe_state(const dibs::record& record) {
    if (!record.holders.empty()) {
        return "is held by " + describe_holder(record.holders.front());
    }
    if (record.blocked_for.count() > 0) {
        return "is on hold " + describe_hold(record.blocked_reason, record.blocked_for);
    }
    return "is free";
}

}  // namespace dibs::cli
