// SPDX-License-Identifier: Apache-2.0
#pragma once
// The protocol of Redis, RESP2 and RESP3: commands to bytes, bytes to replies. No I/O. Strict: what
// the protocol does not allow is an error of the connection, never guessed at; sizes, counts and
// depth are limited; nothing recurses.
//
// Source: the RESP specification, redis.io/docs/reference/protocol-spec.
// Thread safety: none.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::redis {

enum class kind : std::uint8_t {
    simple,    ///< text
    error,     ///< text
    integer,   ///< number
    bulk,      ///< text
    null,      ///< of any form
    boolean,   ///< number is 0 or 1
    floating,  ///< text, as it came
    big,       ///< text
    array,     ///< children; sets too
    map,       ///< children: two per pair
    push,      ///< children; belongs to no request
};

struct node {
    kind what = kind::null;
    std::int64_t number = 0;
    std::string_view text;
    std::uint32_t children = 0;  ///< they follow, each with its own
};

/// A reply as its nodes, parents before children. Points into the reader.
using reply = std::vector<node>;

struct reply_limits {
    std::size_t bytes = std::size_t{256} << 20U;  ///< of one reply
    std::size_t nodes = std::size_t{1} << 20U;    ///< of one reply
    std::size_t depth = 16;
};

class reply_reader {
  public:
    explicit reply_reader(reply_limits limits = {}) noexcept : limits_(limits) {}

    /// Room for at least `size` bytes to be received into; then `received` says how many came.
    [[nodiscard]] std::span<char> room(std::size_t size);
    void received(std::size_t size) noexcept { end_ += size; }
    void feed(std::string_view bytes);

    enum class state : std::uint8_t {
        complete,  ///< `current` holds one, until the next call of anything here
        partial,   ///< more bytes are needed
        broken,    ///< this is not the protocol; `fault` says why. Stays so
    };
    [[nodiscard]] state next();

    [[nodiscard]] const reply& current() const noexcept { return current_; }
    /// Of the reply that is complete, in bytes.
    [[nodiscard]] std::size_t size() const noexcept { return at_; }
    [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

  private:
    struct spot {
        kind what;
        std::int64_t number;
        std::size_t at;  // of the text, from the start of the reply
        std::size_t size;
        std::uint32_t children;
    };
    enum class outcome : std::uint8_t { done, partial, broken };

    [[nodiscard]] outcome read_node();
    [[nodiscard]] outcome read_blob(kind what, std::string_view head);
    [[nodiscard]] outcome read_aggregate(kind what, std::string_view head, std::uint32_t per_item);
    [[nodiscard]] outcome read_attribute(std::string_view head);
    [[nodiscard]] outcome complain(std::string what);
    void add(spot found);
    void open(std::uint32_t children);
    void start_over() noexcept;

    reply_limits limits_;
    std::string bytes_;
    std::size_t begin_ = 0;   // of the reply that is being read
    std::size_t at_ = 0;      // next byte to look at, from begin_
    std::size_t end_ = 0;     // of what was received
    std::size_t looked_ = 0;  // from begin_: no end of line before it
    std::vector<spot> spots_;
    std::vector<std::uint32_t> open_;  // children still to come, per level
    std::vector<std::size_t> asides_;  // levels of `open_` at which an attribute began
    std::vector<std::size_t> aside_spots_;
    bool complete_ = false;
    bool broken_ = false;
    std::string fault_;
    reply current_;
};

/// Appends commands. The number of words must be told before them.
class command_writer {
  public:
    explicit command_writer(std::string& out) noexcept : out_(out) {}

    void begin(std::size_t words);
    void word(std::string_view text);
    void word(std::int64_t number);

  private:
    std::string& out_;
};

/// One whole command.
void write_command(std::string& out, std::span<const std::string_view> words);
void write_command(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace dibs::store::redis
