// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters and results in the server's binary form.

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::postgres {

struct freeing {
    void operator()(PGresult* result) const noexcept { ::PQclear(result); }
    void operator()(PGconn* connection) const noexcept { ::PQfinish(connection); }
};
using result_ptr = std::unique_ptr<PGresult, freeing>;

/// What a statement is sent with. Built once, in the order of its parameters.
class parameters {
  public:
    enum class kind : std::uint32_t { number = 20, text = 25, bytes = 17 };

    /// Begins an array; `count` elements follow.
    void array(kind of, std::size_t count);
    void element(std::int64_t number);
    void element(std::string_view bytes);
    void null_element();

    void number(std::int64_t value);
    void text(std::string_view value);
    void truth(bool value);
    void integer(std::int32_t value);
    void null();

    struct view {
        std::vector<const char*> values;
        std::vector<int> lengths;
        std::vector<int> formats;
    };
    [[nodiscard]] view seen() const;
    [[nodiscard]] std::size_t size() const noexcept { return begins_.size(); }

  private:
    void begin(bool is_null = false);

    std::string bytes_;
    std::vector<std::size_t> begins_;
    std::vector<bool> nulls_;
};

/// A row of a result in binary form.
class row {
  public:
    row(const PGresult& of, int number) noexcept : of_(of), number_(number) {}

    [[nodiscard]] bool null(int column) const noexcept;
    /// Of a bigint; 0 for null.
    [[nodiscard]] std::int64_t number(int column) const noexcept;
    [[nodiscard]] bool truth(int column) const noexcept;
    [[nodiscard]] std::string_view bytes(int column) const noexcept;
    /// Of a bigint[].
    [[nodiscard]] std::vector<std::int64_t> numbers(int column) const;
    /// Of a text[].
    [[nodiscard]] std::vector<std::string_view> texts(int column) const;

  private:
    const PGresult& of_;
    int number_;
};

}  // namespace dibs::store::postgres
