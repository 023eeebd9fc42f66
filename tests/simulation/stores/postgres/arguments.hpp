// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parameters of the store's statements, read as a server reads them.

#include "core/verbs.hpp"
#include "store/postgres/wire.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::simulation::postgres {

class arguments {
  public:
    explicit arguments(const store::postgres::parameters& of) : seen_(of.seen()) {}

    [[nodiscard]] bool null(std::size_t at) const { return seen_.values.at(at) == nullptr; }
    [[nodiscard]] std::string_view text(std::size_t at) const;
    [[nodiscard]] std::int64_t number(std::size_t at) const;
    [[nodiscard]] bool truth(std::size_t at) const { return text(at).at(0) != 0; }
    [[nodiscard]] std::vector<std::optional<std::string_view>> array(std::size_t at) const;

  private:
    store::postgres::parameters::view seen_;
};

/// What lease_execute_1 is asked for.
struct batch {
    struct entry {
        core::verb what;
        bool simple = false;
    };
    std::vector<entry> entries;
    std::string process;
    std::string who;
    bool alone = false;
    std::int64_t longest = 0;
};

[[nodiscard]] batch batch_of(const arguments& given);

/// What acquire_one.sql and release_one.sql are asked for.
struct one_step {
    core::verb what;
    std::string process;
    std::string who;  ///< empty: it does not matter
};

/// What step_some.sql is asked for: simple entries.
struct some_steps {
    std::vector<core::verb> all;
    std::string process;
    std::string who;
};

[[nodiscard]] some_steps some_of(const arguments& given);
[[nodiscard]] one_step acquire_one_of(const arguments& given);
[[nodiscard]] one_step release_one_of(const arguments& given);

}  // namespace dibs::simulation::postgres
