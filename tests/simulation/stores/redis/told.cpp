// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/redis/told.hpp"

namespace dibs::simulation::redis {

namespace {

void write_line(std::string& out, char kind, std::string_view text) {
    out += kind;
    out += text;
    out += "\r\n";
}

}  // namespace

void write(std::string& out, const told& what) {
    switch (what.what) {
        case told::form::nothing:
            out += "$-1\r\n";
            break;
        case told::form::integer:
            write_line(out, ':', std::to_string(what.number));
            break;
        case told::form::text:
            write_line(out, '$', std::to_string(what.text.size()));
            out += what.text;
            out += "\r\n";
            break;
        case told::form::status:
            write_line(out, '+', what.text);
            break;
        case told::form::error:
            write_line(out, '-', what.text);
            break;
        case told::form::array:
            write_line(out, '*', std::to_string(what.items.size()));
            for (const auto& one : what.items) {
                write(out, one);
            }
            break;
    }
}

}  // namespace dibs::simulation::redis
