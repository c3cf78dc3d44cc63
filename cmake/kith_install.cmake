# make install: program, libraries, headers, recipes, pkg-config file, CMake package, man page.
install(TARGETS kith_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS kith_shared kith_static LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(kith_has_cuda)
  # `make test` does not build it and installs the rest into a folder of its own. What was asked for must be there.
  set(may_be_missing "")
  if(KITH_CUDA STREQUAL AUTO)
    set(may_be_missing OPTIONAL)
  endif()
  install(TARGETS kith_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kith ${may_be_missing})
endif()
foreach(name IN ITEMS heif hub postgres mpi)
  if(kith_has_${name})
    install(TARGETS kith_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kith)
  endif()
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/kith DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/kith)
# The model `general` with its card, where the tree has it. Without it kith asks for --model.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/kith OPTIONAL
        FILES_MATCHING PATTERN "*.safetensors" PATTERN "*.md")

# What a static link needs beside libkith.a is what kith_objects links to, so that a library added
# there is not forgotten here. These are the shared ones: Requires.private would also ask for what
# their static forms need, down to the Fortran runtime.
set(pc_libs "")
get_target_property(linked kith_objects LINK_LIBRARIES)
foreach(library IN LISTS linked)
  if(library MATCHES "^PkgConfig::(.+)$")
    list(APPEND pc_libs ${${CMAKE_MATCH_1}_LDFLAGS})
  endif()
endforeach()
set(cmake_libs "${pc_libs}")
list(JOIN pc_libs " " pc_libs)
# The file finds its prefix from its own location: --prefix at install time and DESTDIR both work.
string(REGEX REPLACE "[^/]+" ".." pc_up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(${CMAKE_SOURCE_DIR}/cmake/kith.pc.in ${CMAKE_BINARY_DIR}/kith.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kith.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(kith). Before 1.0 another minor version is another library.
string(REGEX REPLACE "[^/]+" ".." cmake_up "${CMAKE_INSTALL_LIBDIR}/cmake/kith")
include(CMakePackageConfigHelpers)
configure_file(${CMAKE_SOURCE_DIR}/cmake/kith-config.cmake.in ${CMAKE_BINARY_DIR}/kith-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kith-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kith-config.cmake ${CMAKE_BINARY_DIR}/kith-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kith)

# The man page's list of commands is src/cli/table.def.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/table.def)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/cli/table.def rows REGEX "^X\\(")
set(man_commands "")
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^X\\(([a-z_]+), *\"(.*)\"\\)$" ".TP\n.B \\1\n\\2\n" entry "${row}")
  string(REPLACE "-" "\\-" entry "${entry}")
  string(APPEND man_commands "${entry}")
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/docs/kith.1 ${CMAKE_BINARY_DIR}/kith.1 @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kith.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# Completion scripts, made from the program's option tables.
set(scripts bash/kith zsh/_kith fish/kith.fish)
list(TRANSFORM scripts PREPEND ${CMAKE_BINARY_DIR}/completions/)
add_custom_command(OUTPUT ${scripts}
  COMMAND ${CMAKE_COMMAND} -DKITH=$<TARGET_FILE:kith_program> -DOUT=${CMAKE_BINARY_DIR}/completions
          "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -P ${CMAKE_SOURCE_DIR}/cmake/kith_completions.cmake
  DEPENDS kith_program ${CMAKE_SOURCE_DIR}/cmake/kith_completions.cmake
  VERBATIM)
add_custom_target(kith_completions ALL DEPENDS ${scripts})
add_dependencies(kith_host kith_completions) # make install builds no more than that
install(FILES ${CMAKE_BINARY_DIR}/completions/bash/kith DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completions/zsh/_kith DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_BINARY_DIR}/completions/fish/kith.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
