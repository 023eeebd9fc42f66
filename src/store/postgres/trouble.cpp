// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/trouble.hpp"

#include "core/key.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace dibs::store::postgres {

namespace {

struct meaning {
    std::string_view state;  ///< all of it, or its first two characters: the class
    errc error;
    std::string_view what;    ///< empty: the server's words tell
    std::string_view advice;  ///< what to do
};

/// The first that fits.
constexpr std::array meanings{
    meaning{"28P01",
            errc::permission_denied,
            "authentication failed",
            "check user and password (PGPASSWORD, PGPASSFILE)"},
    meaning{"28",
            errc::permission_denied,
            "authentication failed",
            "check the user, and pg_hba.conf of the server"},
    meaning{"3D000",
            errc::store_refused,
            "there is no such database",
            "create it, or name another one"},
    meaning{"53300",
            errc::store_busy,
            "the server has too many connections",
            "raise max_connections, or put PgBouncer in front of it"},
    meaning{"53100", errc::store_refused, "the server's disk is full", "make room there"},
    meaning{"53200",
            errc::store_refused,
            "the server is out of memory",
            "where leases are advisory locks, its table of locks may be full: raise "
            "max_locks_per_transaction"},
    meaning{"57P03",
            errc::store_unreachable,
            "the server is starting up or shutting down",
            "it may be tried again soon"},
    meaning{"57P01",
            errc::store_unreachable,
            "the server ended the session",
            "it may be tried again"},
    meaning{"57P02", errc::store_unreachable, "a crash of the server ended the session", ""},
    meaning{"57P05", errc::store_unreachable, "the server ended an idle session", ""},
    meaning{"25P03", errc::store_unreachable, "the server ended an idle session", ""},
    meaning{"57014",
            errc::store_busy,
            "the statement was cancelled",
            "see statement_timeout of this user"},
    meaning{
        "25006",
        errc::store_refused,
        "the server is read-only: a standby, or default_transaction_read_only is set",
        "connect to the primary (target_session_attrs=read-write finds it among several hosts)"},
    meaning{"55P03", errc::store_busy, row_is_kept, who_keeps_it},
    meaning{"40001", errc::store_busy, "other transactions were in the way", ""},
    meaning{"40P01", errc::store_busy, "other transactions were in the way", ""},
    meaning{"42501",
            errc::permission_denied,
            "",
            "docs/stores/postgres.md lists the rights that dibs needs"},
    meaning{"42P01",
            errc::store_damaged,
            "",
            "somebody dropped a table of dibs; a program that opens the store anew makes them "
            "again when the whole schema is gone"},
    meaning{"42883",
            errc::store_damaged,
            "",
            "somebody dropped a function of dibs; a program that opens the store anew makes them "
            "again when the whole schema is gone"},
    meaning{"3F000", errc::store_damaged, "", "somebody dropped the schema of dibs"},
    meaning{"DBS01",
            errc::store_refused,
            "",
            "set default_transaction_isolation of this user to read committed"},
    meaning{another_session,
            errc::store_unreachable,
            "the session that had the locks is not there any more",
            "a pooler that lends sessions by transaction (pool_mode) cannot stand in front of the "
            "server"},
};

const meaning* find(std::string_view state) noexcept {
    const auto found = std::find_if(meanings.begin(), meanings.end(), [&](const meaning& one) {
        return one.state == state || (one.state.size() == 2 && state.starts_with(one.state));
    });
    return found == meanings.end() ? nullptr : &*found;
}

bool is_state(std::string_view text) noexcept {
    return text.size() == 5 && std::all_of(text.begin(), text.end(), [](char letter) {
               return std::isdigit(static_cast<unsigned char>(letter)) != 0 ||
                      (letter >= 'A' && letter <= 'Z');
           });
}

/// One line without what only helps to debug the server.
std::string first_line(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.remove_suffix(1);
    }
    const auto location = text.find("\nLOCATION:");
    auto line = std::string{text.substr(0, std::min(location, text.size()))};
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::replace(line.begin(), line.end(), '\t', ' ');
    return core::printable(line, 400);
}

}  // namespace

trouble trouble_of(std::string_view where, std::string_view state, std::string_view told) {
    const auto* known = find(state);
    trouble made;
    made.error = known == nullptr ? errc::store_refused : known->error;
    made.detail = std::string{where} + ": ";
    const auto words = first_line(told);
    if (known == nullptr || known->what.empty()) {
        made.detail += words;
    } else {
        made.detail += std::string{known->what} + " (" + words + ")";
    }
    if (known != nullptr && !known->advice.empty()) {
        made.detail += "; " + std::string{known->advice};
    }
    return made;
}

remedy remedy_for(std::string_view state) noexcept {
    if (state == "40001" || state == "40P01" || state == "55P03") {
        return remedy::retry;
    }
    // Of the server or the session as a whole: no entry alone would fare better.
    constexpr std::array<std::string_view, 8> of_all{
        "08", "25", "28", "3F", "53", "57", "58", "DB"};
    const bool whole = std::any_of(
        of_all.begin(), of_all.end(), [&](auto kind) { return state.starts_with(kind); });
    const bool not_there = state == "42P01" || state == "42883" || state == "42501";
    return whole || not_there ? remedy::none : remedy::split;
}

trouble trouble_of_connecting(std::string_view where, std::string_view told) {
    // Verbose: FATAL:  28P01: password authentication failed … Of several hosts, the last one's.
    std::string_view state;
    std::string_view words = told;
    for (auto at = told.find(":  "); at != std::string_view::npos; at = told.find(":  ", at + 1)) {
        const auto candidate = told.substr(at + 3, 5);
        if (is_state(candidate) && told.substr(at + 8, 2) == ": ") {
            state = candidate;
            words = told.substr(at + 10);
        }
    }
    if (!state.empty()) {
        return trouble_of(where, state, words);
    }
    const bool reached = told.find("no password supplied") != std::string_view::npos;
    const auto line = first_line(told);
    return {reached ? errc::permission_denied : errc::store_unreachable,
            std::string{where} + ": " +
                (line.empty() ? "the connection ended, and nothing was said about why" : line)};
}

}  // namespace dibs::store::postgres
