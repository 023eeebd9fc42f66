// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/guarded_row.hpp"

#include "cli/output/speech.hpp"
#include "store/sqlite/plain_sql.hpp"

namespace dibs::cli {

using store::sqlite::plain_sql;

guarded_row::guarded_row(const demo_round& round) : file_(round.data()) {
    plain_sql(
        file_,
        "CREATE TABLE plain(body TEXT); INSERT INTO plain VALUES('-');"
        "CREATE TABLE guarded(body TEXT, fence INTEGER); INSERT INTO guarded VALUES('-', 0);");
}

bool guarded_row::write(const std::string& who, std::uint64_t fence) const {
    const auto number = std::to_string(fence);
    plain_sql(file_, "UPDATE plain SET body = '" + who + "'");
    const bool taken = plain_sql(file_,
                                 "UPDATE guarded SET body = '" + who + "', fence = " + number +
                                     " WHERE fence <= " + number)
                           .changed == 1;
    tell(who,
         "writes both rows, fence " + number + ": plain row accepted, guarded row " +
             (taken ? "accepted" : "REFUSED"));
    return taken;
}

bool guarded_row::shows_who_was_last(const std::string& of_plain,
                                     const std::string& of_guarded) const {
    const auto plain = plain_sql(file_, "SELECT body FROM plain").value;
    const auto guarded = plain_sql(file_, "SELECT body FROM guarded").value;
    deliver("\n  plain row:   written last by " + plain + " (should be B)\n" +
            "  guarded row: written last by " + guarded + " (should be B)\n");
    return plain == of_plain && guarded == of_guarded;
}

}  // namespace dibs::cli
