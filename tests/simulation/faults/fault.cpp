// SPDX-License-Identifier: Apache-2.0
#include "simulation/faults/fault.hpp"

#include <algorithm>
#include <utility>

namespace dibs::simulation {

namespace {

void tell_laws(scene& on, std::string_view excuses) {
    if (excuses.find("C1") != std::string_view::npos) {
        on.laws.excuse_overlaps();
    }
    if (excuses.find("C3") != std::string_view::npos) {
        on.laws.excuse_fences();
    }
    if (excuses.find("C2") != std::string_view::npos) {
        on.laws.excuse_beliefs();
    }
}

}  // namespace

lasting::lasting(scene& on, std::string_view name, std::string_view proc)
    : scene_(on), name_(name), id_(on.history.new_id()) {
    auto told = on.history.event("fault", "begin");
    told.text("name", name_).number("id", id_);
    if (!proc.empty()) {
        told.text("note", proc);
    }
}

void lasting::over() {
    if (const auto id = std::exchange(id_, 0); id != 0) {
        scene_.history.event("fault", "end").text("name", name_).number("id", id);
    }
}

core::nanoseconds note_lasting(scene& on,
                               std::string_view name,
                               core::nanoseconds length,
                               std::string_view about,
                               std::string_view excuses) {
    tell_laws(on, excuses);
    const auto id = on.history.new_id();
    {
        auto told = on.history.event("fault", "begin");
        told.text("name", name).number("id", id);
        if (!about.empty()) {
            told.text("note", about);
        }
        if (!excuses.empty()) {
            told.checks("excuses", excuses);
        }
    }
    const auto left = std::max(on.drawn.faults_for - on.world.now(), core::nanoseconds{0});
    length = std::min(length, left);
    on.world.in(length, [&on, name = std::string{name}, id] {
        on.history.event("fault", "end").text("name", name).number("id", id);
    });
    return length;
}

void note_fault(scene& on, std::string_view name, std::string_view excuses, std::string_view proc) {
    tell_laws(on, excuses);
    auto told = on.history.event("fault", "at");
    told.text("name", name);
    if (!proc.empty()) {
        told.text("note", proc);
    }
    if (!excuses.empty()) {
        told.checks("excuses", excuses);
    }
}

}  // namespace dibs::simulation
