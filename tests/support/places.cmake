# SPDX-License-Identifier: Apache-2.0
# dibs_places(TARGET SCOPE NAME=VALUE...): defines these names of places.hpp in whatever is linked with TARGET.
function(dibs_places target scope)
    set(text "// Written by CMake.\n#include \"support/places.hpp\"\n\nnamespace dibs::tests::places {\n\n")
    foreach(place IN LISTS ARGN)
        string(REGEX REPLACE "^([a-z_]+)=(.*)$" "const char* const \\1 = \"\\2\";\n" line "${place}")
        string(APPEND text "${line}")
    endforeach()
    string(APPEND text "\n}  // namespace dibs::tests::places\n")
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_places.cpp)
    file(GENERATE OUTPUT ${file} CONTENT "${text}")
    target_sources(${target} ${scope} ${file})
    target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/tests)
endfunction()
