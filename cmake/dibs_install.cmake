# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the library with its headers, so that find_package(dibs) and pkg-config find it,
# and the command.

include(CMakePackageConfigHelpers)

if(TARGET dibs)
    set(dibs_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dibs)
    install(
        TARGETS dibs
        EXPORT dibs-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(
        EXPORT dibs-targets
        NAMESPACE dibs::
        DESTINATION ${dibs_cmake_dir})
    configure_package_config_file(
        packaging/dibs-config.cmake.in ${PROJECT_BINARY_DIR}/packaging/dibs-config.cmake
        INSTALL_DESTINATION ${dibs_cmake_dir})
    # Until 1.0 each minor release may break callers.
    write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/dibs-config-version.cmake
                                     COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/packaging/dibs-config.cmake
                  ${PROJECT_BINARY_DIR}/packaging/dibs-config-version.cmake
            DESTINATION ${dibs_cmake_dir})

    # dibs.pc finds its prefix from where it lies, so that an installed tree can be moved.
    set(dibs_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    file(RELATIVE_PATH dibs_pc_prefix /${dibs_pc_dir} /)
    string(REGEX REPLACE "/$" "" dibs_pc_prefix "${dibs_pc_prefix}")
    set(dibs_pc_requires "")
    if(DIBS_WITH_SQLITE)
        string(APPEND dibs_pc_requires " sqlite3")
    endif()
    if(DIBS_WITH_REDIS AND DIBS_WITH_TLS)
        string(APPEND dibs_pc_requires " libssl libcrypto")
    endif()
    if(DIBS_WITH_POSTGRES)
        string(APPEND dibs_pc_requires " libpq")
    endif()
    # An archive does not say what it needs, so that is not private to it (docs/internals/decisions.md, 6).
    get_target_property(dibs_type dibs TYPE)
    if(dibs_type STREQUAL STATIC_LIBRARY)
        set(dibs_pc_private "")
        set(dibs_pc_libs " -ldate-tz -pthread")
        set(dibs_pc_libs_private "")
    else()
        set(dibs_pc_private .private)
        set(dibs_pc_libs "")
        set(dibs_pc_libs_private " -ldate-tz -pthread")
    endif()
    configure_file(packaging/dibs.pc.in ${PROJECT_BINARY_DIR}/packaging/dibs.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/packaging/dibs.pc DESTINATION ${dibs_pc_dir})
endif()

if(TARGET dibs_cli)
    install(TARGETS dibs_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    set(dibs_texts ${PROJECT_BINARY_DIR}/src/cli/texts)
    install(FILES ${dibs_texts}/dibs.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${dibs_texts}/dibs DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${dibs_texts}/_dibs DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${dibs_texts}/dibs.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
