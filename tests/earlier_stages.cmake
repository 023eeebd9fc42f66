# SPDX-License-Identifier: Apache-2.0
# Read by CTest when it starts. Adds a test that fails for each stage of .ci/run that failed before the tests, and one
# for each test that failed in it, so that CTest's summary names them all.
if("$ENV{DIBS_FAILED_STAGES}" STREQUAL "")
  return()
endif()

string(REPLACE " " ";" failed_stages "$ENV{DIBS_FAILED_STAGES}")
foreach(stage ${failed_stages})
  set(log "${CMAKE_CURRENT_LIST_DIR}/../build/ci/${stage}.log")
  add_test("ci.${stage}" "${CMAKE_CURRENT_LIST_DIR}/earlier_stage_failed" "${log}")
  set_tests_properties("ci.${stage}" PROPERTIES LABELS ci)
  if(EXISTS "${log}")
    file(STRINGS "${log}" ends REGEX "Test +#[0-9]+: .*[*][*][*](Failed|Timeout|Exception|Bad_Command)")
    foreach(end ${ends})
      string(REGEX REPLACE "^.*Test +#[0-9]+: ([^ ]+) .*$" "\\1" name "${end}")
      add_test("ci.${stage}.${name}" "false")
      set_tests_properties("ci.${stage}.${name}" PROPERTIES LABELS ci)
    endforeach()
  endif()
endforeach()
