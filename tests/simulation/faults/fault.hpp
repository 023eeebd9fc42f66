// SPDX-License-Identifier: Apache-2.0
#pragma once
// What goes wrong in a run. One file per fault; faults/table.cpp names them.
//
// A fault is bounded when every promise holds under it. An unbounded one lifts promises (`excuses`):
// what breaks under it is counted and told, never ignored.

#include "simulation/run/scene.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::simulation {

class fault {
  public:
    virtual ~fault() = default;
    /// Plans its strikes for as long as the first phase lasts.
    virtual void begin() = 0;
    /// Undoes what still lasts. No strike may come after it.
    virtual void heal() {}
};

struct fault_kind {
    std::string_view name;
    std::string_view about;
    /// Of a thousand seeds, in this many.
    unsigned per_mille = 300;
    bool (*suits)(const store_kind& store);
    std::unique_ptr<fault> (*make)(scene& on, random chosen_by);
    bool loses_results = false;
};

[[nodiscard]] const std::vector<fault_kind>& fault_kinds();
[[nodiscard]] const fault_kind* fault_kind_named(std::string_view name);

[[nodiscard]] inline bool suits_all(const store_kind&) {
    return true;
}
[[nodiscard]] inline bool suits_networks(const store_kind& store) {
    return !store.one_host;
}

/// Within this a client has connections again, once the store can be reached.
inline constexpr core::nanoseconds time_to_come_back = core::milliseconds{450};

/// Strikes again and again, with pauses of `least` to `most` between.
class recurring_fault : public fault {
  public:
    recurring_fault(scene& on, random chosen_by, core::nanoseconds least, core::nanoseconds most)
        : scene_(on), random_(chosen_by), least_(least), most_(most) {}

    void begin() override { next(); }

  protected:
    virtual void strike() = 0;

    /// A process that is there, chosen at random.
    [[nodiscard]] seat& some_seat() { return scene_.seats()[random_.below(scene_.seats().size())]; }

    scene& scene_;
    random random_;

  private:
    void next() {
        scene_.world.in(random_.between(least_, most_), [this] {
            if (!scene_.healed()) {
                strike();
                next();
            }
        });
    }
    const core::nanoseconds least_;
    const core::nanoseconds most_;
};

/// Writes into the history that a fault lasts from now for `length`, and returns for how long it may:
/// until the first phase ends.
core::nanoseconds note_lasting(scene& on,
                               std::string_view name,
                               core::nanoseconds length,
                               std::string_view about = {},
                               std::string_view excuses = {});

/// Writes a fault that lasts, until it is told to be over, into the history.
class lasting {
  public:
    lasting(scene& on, std::string_view name, std::string_view proc = {});
    ~lasting() { over(); }
    lasting(const lasting&) = delete;
    lasting& operator=(const lasting&) = delete;
    void over();

  private:
    scene& scene_;
    const std::string name_;
    std::uint64_t id_;
};

/// Writes a fault of an instant.
void note_fault(scene& on,
                std::string_view name,
                std::string_view excuses = {},
                std::string_view proc = {});

}  // namespace dibs::simulation
