// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statements that the store sends, and the tables and functions behind them (schema.sql).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::store::postgres {

/// Format of the tables and of what the functions take and give. Another one is refused.
inline constexpr int schema_format = 2;

enum class statement : std::uint8_t {
    execute,
    acquire_one,
    release_one,
    step_some,
    list,
    watch,
    unwatch,
    purge,
    ping,
    numbers,
    settle_locks
};
inline constexpr std::size_t statement_count = 11;
/// Those that a session keeps prepared.
inline constexpr std::array kept_statements{statement::execute,
                                            statement::acquire_one,
                                            statement::release_one,
                                            statement::step_some};

/// Their texts for one schema.
class statements {
  public:
    /// `sessions`: the steps of advisory locks (advisory/session.sql).
    explicit statements(const std::string& quoted_schema, bool sessions = false);

    [[nodiscard]] const std::string& text(statement which) const noexcept {
        return texts_[static_cast<std::size_t>(which)];
    }
    /// Under which a session keeps it prepared; null: it does not.
    [[nodiscard]] static const char* name(statement which) noexcept;

  private:
    std::array<std::string, statement_count> texts_;
};

/// What makes the tables and functions, without the schema itself.
[[nodiscard]] std::string schema_text(const std::string& quoted_schema);
/// The short ways: of lone entries (acquire_one.sql, release_one.sql), and of batches (step_some.sql).
[[nodiscard]] std::string acquire_one_text(const std::string& quoted_schema);
[[nodiscard]] std::string release_one_text(const std::string& quoted_schema);
[[nodiscard]] std::string step_some_text(const std::string& quoted_schema);
/// The same of advisory locks (advisory/acquire_one.sql and so on).
[[nodiscard]] std::string session_acquire_one_text(const std::string& quoted_schema);
[[nodiscard]] std::string session_release_one_text(const std::string& quoted_schema);
[[nodiscard]] std::string session_step_some_text(const std::string& quoted_schema);
/// What advisory locks need beside it; `hash`: sha256 or hashtext.
[[nodiscard]] std::string session_text(const std::string& quoted_schema, std::string_view hash);

}  // namespace dibs::store::postgres
