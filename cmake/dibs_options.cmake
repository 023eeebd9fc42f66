# SPDX-License-Identifier: Apache-2.0
# What every target of this project is compiled with. Consumers of the library inherit none of it but C++20.

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(date 3.0 REQUIRED)
if(DIBS_WITH_REDIS AND DIBS_WITH_TLS)
    find_package(OpenSSL 3.0)
    if(NOT OpenSSL_FOUND)
        message(FATAL_ERROR "OpenSSL 3 is missing: install libssl-dev, or build without rediss:// by -DDIBS_WITH_TLS=OFF")
    endif()
endif()
if(DIBS_WITH_POSTGRES AND NOT PostgreSQL_FOUND)
    message(FATAL_ERROR "libpq is missing: install libpq-dev, or build without PostgreSQL by -DDIBS_WITH_POSTGRES=OFF")
endif()

add_library(dibs_options INTERFACE)
target_compile_features(dibs_options INTERFACE cxx_std_20)
target_compile_options(dibs_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# g++ 12 takes `"text" + std::string` for an overlapping copy when it optimises (GCC bug 105651).
target_compile_options(dibs_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(DIBS_WARNINGS_AS_ERRORS)
    target_compile_options(dibs_options INTERFACE -Werror)
endif()
if(DIBS_SANITIZE)
    target_compile_options(dibs_options INTERFACE -fsanitize=${DIBS_SANITIZE}
                                                  -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
    target_link_options(dibs_options INTERFACE -fsanitize=${DIBS_SANITIZE})
endif()
target_include_directories(dibs_options INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(dibs_options INTERFACE Threads::Threads)

find_program(DIBS_MOLD mold)
if(DIBS_MOLD)
    add_link_options(-fuse-ld=mold)
endif()
find_program(DIBS_CCACHE ccache)
if(DIBS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DIBS_CCACHE})
endif()
