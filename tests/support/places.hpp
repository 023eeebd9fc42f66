// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where programs and files of this build lie. Each target defines those that it uses, by dibs_places() of places.cmake:
// a path on the command line of the compiler would make every folder's build one of its own to the compiler cache.

namespace dibs::tests::places {

extern const char* const source_folder;      ///< the repository
extern const char* const histories;          ///< known good and bad ones
extern const char* const peers;              ///< programs of tests/interop
extern const char* const node_modules;       ///< where the packages of those are installed
extern const char* const postgres_template;  ///< a folder of data that servers begin with

extern const char* const command;  ///< dibs
extern const char* const child_program;
extern const char* const clock_shim;
extern const char* const library_peer;
extern const char* const server_clock_shim;
extern const char* const sqlite_peer;

}  // namespace dibs::tests::places
