// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/data_layer.hpp"

#include "core/key.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace dibs::store::postgres {

namespace {

using grade = finding::grade;

/// The functions of that name that are there, and are of the schema's owner: others may have put
/// something of their own into a schema that is open, and it would run with this user's rights.
std::vector<std::string> functions_there(const asking& ask, const address& where) {
    const auto told =
        ask("SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE "
            "n.nspname = " +
            where.schema_literal() +
            " AND p.proowner = n.nspowner AND ((p.proname IN ('guard_report', 'guard_gaps') AND "
            "p.pronargs = 0) OR (p.proname = 'guard_refused' AND p.proargtypes::text = '25'))");
    std::vector<std::string> names;
    for (const auto& row : told.rows) {
        names.push_back(row.at(0));
    }
    return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::uint64_t number(const std::string& text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string counted(std::uint64_t count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

finding unreadable(const std::string& fault) {
    return {"guard", grade::warning, "it cannot be asked: " + core::printable(fault), ""};
}

}  // namespace

std::vector<finding> findings_of_data_layer(const asking& ask, const address& where) {
    const auto functions = functions_there(ask, where);
    if (!has(functions, "guard_report")) {
        return {};
    }
    const auto told =
        ask("SELECT relation, refused FROM " + where.quoted_schema() + ".guard_report()");
    if (!told.fault.empty()) {
        return {unreadable(told.fault)};
    }
    std::vector<finding> found;
    std::uint64_t tables = 0;
    std::uint64_t writes = 0;
    std::uint64_t claims = 0;
    for (const auto& row : told.rows) {
        const auto refused = number(row.at(1));
        if (row.at(0).empty()) {
            claims += refused;
            continue;
        }
        ++tables;
        writes += refused;
        if (refused > 0) {
            found.push_back({"guarded table",
                             grade::ok,
                             core::printable(row.at(0)) + ": refused " + counted(refused, "write"),
                             ""});
        }
    }
    found.insert(found.begin(),
                 {"guard",
                  grade::ok,
                  counted(tables, "table") + " protected; refused " + counted(writes, "write") +
                      " and " + counted(claims, "claim"),
                  ""});
    if (!has(functions, "guard_gaps")) {
        found.front().state = grade::warning;
        found.front().advice =
            "it is of an earlier release: dibs guard install brings it up to date";
        return found;
    }
    const auto gaps =
        ask("SELECT relation, place, gap FROM " + where.quoted_schema() + ".guard_gaps()");
    if (!gaps.fault.empty()) {
        found.push_back(unreadable(gaps.fault));
    }
    for (const auto& row : gaps.rows) {
        const bool writes_go_by = row.at(2) == "writes";
        found.push_back(
            {"guarded table",
             grade::warning,
             core::printable(row.at(1)) + ": " +
                 (writes_go_by ? "its writes are not checked, the trigger is disabled or gone"
                               : "TRUNCATE of it by its own name is not checked"),
             "protect " + core::printable(row.at(0)) +
                 " once more, by dibs.protect() with the same words"});
    }
    return found;
}

std::optional<std::uint64_t> refused_by_data_layer(const asking& ask,
                                                   const address& where,
                                                   std::string_view key) {
    if (!has(functions_there(ask, where), "guard_refused")) {
        return std::nullopt;
    }
    // In a form that no setting of the session reads differently.
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string hexadecimal;
    for (const char one : key) {
        const auto byte = static_cast<unsigned char>(one);
        hexadecimal += digits[byte >> 4U];
        hexadecimal += digits[byte & 15U];
    }
    const auto told =
        ask("SELECT " + where.quoted_schema() + ".guard_refused(convert_from(decode('" +
            hexadecimal + "', 'hex'), 'UTF8')::text)");
    if (!told.fault.empty() || told.rows.size() != 1) {
        return std::nullopt;
    }
    return number(told.rows.front().at(0));
}

}  // namespace dibs::store::postgres
