// SPDX-License-Identifier: Apache-2.0
#pragma once
// A prepared statement that is used again and again by one thread at a time.
// Thread safety: none; the connection's user guards it.

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace dibs::store::sqlite {

class statement {
  public:
    statement() = default;

    [[nodiscard]] int prepare(sqlite3* db, std::string_view text) noexcept {
        sqlite3_stmt* made = nullptr;
        const int code = sqlite3_prepare_v3(db,
                                            text.data(),
                                            static_cast<int>(text.size()),
                                            SQLITE_PREPARE_PERSISTENT,
                                            &made,
                                            nullptr);
        raw_.reset(made);
        return code;
    }

    // Texts and blobs are not copied: they must live until the statement is reset.
    void bind(int at, std::int64_t value) noexcept { sqlite3_bind_int64(raw(), at, value); }
    void bind(int at, std::uint64_t value) noexcept { bind(at, static_cast<std::int64_t>(value)); }
    void bind(int at, std::string_view text) noexcept {
        sqlite3_bind_text64(raw(),
                            at,
                            text.data() != nullptr ? text.data() : "",
                            text.size(),
                            SQLITE_STATIC,
                            SQLITE_UTF8);
    }
    void bind(int at, std::span<const std::byte> bytes) noexcept {
        sqlite3_bind_blob64(raw(),
                            at,
                            bytes.data() != nullptr ? static_cast<const void*>(bytes.data()) : "",
                            bytes.size(),
                            SQLITE_STATIC);
    }
    void bind_null(int at) noexcept { sqlite3_bind_null(raw(), at); }

    [[nodiscard]] int step() noexcept { return sqlite3_step(raw()); }
    void reset() noexcept { sqlite3_reset(raw()); }

    /// For statements without rows: runs it, and makes it ready for the next time.
    [[nodiscard]] int run() noexcept {
        const int code = step();
        reset();
        return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
    }

    [[nodiscard]] std::int64_t integer(int column) noexcept {
        return sqlite3_column_int64(raw(), column);
    }
    [[nodiscard]] std::uint64_t number(int column) noexcept {
        return static_cast<std::uint64_t>(integer(column));
    }
    [[nodiscard]] bool null(int column) noexcept {
        return sqlite3_column_type(raw(), column) == SQLITE_NULL;
    }
    /// Lives until the next step or reset.
    [[nodiscard]] std::string_view text(int column) noexcept {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(raw(), column));
        const auto size = sqlite3_column_bytes(raw(), column);
        return bytes == nullptr ? std::string_view{}
                                : std::string_view{bytes, static_cast<std::size_t>(size)};
    }

  private:
    struct finalize {
        void operator()(sqlite3_stmt* made) const noexcept { sqlite3_finalize(made); }
    };
    [[nodiscard]] sqlite3_stmt* raw() const noexcept { return raw_.get(); }

    std::unique_ptr<sqlite3_stmt, finalize> raw_;
};

/// Makes a statement ready for its next use on every way out.
class resetting {
  public:
    explicit resetting(statement& used) noexcept : used_(used) {}
    ~resetting() { used_.reset(); }
    resetting(const resetting&) = delete;
    resetting& operator=(const resetting&) = delete;

  private:
    statement& used_;
};

}  // namespace dibs::store::sqlite
