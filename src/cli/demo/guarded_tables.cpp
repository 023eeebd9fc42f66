// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/guarded_tables.hpp"

#include "cli/demo/scene.hpp"
#include "cli/output/speech.hpp"

#include <utility>

namespace dibs::cli {

guarded_tables::guarded_tables(const std::string& url, std::string key)
    : data_(url), key_(std::move(key)) {
    data_.run("CREATE TABLE " + data_.name("plain") + " AS SELECT '-' AS body");
    data_.run("CREATE TABLE " + data_.name("guarded") + " AS SELECT '-' AS body");
    data_.run("SELECT " + data_.name("protect") + "('" + data_.name("guarded") + "')");
}

bool guarded_tables::write(const std::string& who, std::uint64_t fence) const {
    const auto session = data_.open();
    const auto update = [&](const std::string& table) {
        (void)postgres::execute(
            session.raw(), "UPDATE " + data_.name(table) + " SET body = $1", {who});
    };
    update("plain");
    const auto told = "writes both rows, fence " + std::to_string(fence) + ": plain row accepted, ";
    postgres::fence_options here;
    here.schema = data_.schema();
    try {
        postgres::fenced(
            session.raw(), key_, fence, [&] { update("guarded"); }, here);
    } catch (const error& refusal) {
        if (refusal.code() != condition::fenced_off) {
            throw;
        }
        tell(who, told + "guarded row REFUSED");
        return false;
    }
    tell(who, told + "guarded row accepted");
    return true;
}

bool guarded_tables::shows_who_was_last(const std::string& of_plain,
                                        const std::string& of_guarded) const {
    const auto plain = data_.ask("SELECT body FROM " + data_.name("plain"));
    const auto guarded = data_.ask("SELECT body FROM " + data_.name("guarded"));
    deliver("\n  plain row:   written last by " + plain + " (should be B)\n" +
            "  guarded row: written last by " + guarded + " (should be B)\n");
    return plain == of_plain && guarded == of_guarded;
}

}  // namespace dibs::cli
