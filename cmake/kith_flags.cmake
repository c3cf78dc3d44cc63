# A build with a sanitizer differs from the one that is installed in a few places.
string(REGEX MATCHALL "-fsanitize=[^ ]+" sanitizers "${CMAKE_C_FLAGS}")
set(kith_is_sanitized OFF)
if(sanitizers)
  set(kith_is_sanitized ON)
endif()

# kith_flags: what every target of ours is compiled and linked with.
add_library(kith_flags INTERFACE)
target_compile_features(kith_flags INTERFACE c_std_11)
target_compile_definitions(kith_flags INTERFACE _GNU_SOURCE)
target_include_directories(kith_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src
                                                ${CMAKE_BINARY_DIR}/generated)
set(c_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
            -fvisibility=hidden -fno-math-errno -fno-trapping-math)
# Sizes are named by enumerators here, which in C are plain ints. clang 19 warns wherever one meets a floating-point number, as is right for C++.
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  list(APPEND c_flags -Wno-enum-float-conversion)
endif()
# gcc 12 for ARM64 stops with an internal error where it vectorises the search for a largest value (fmax in a loop).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND c_flags -fno-builtin-fmax -fno-builtin-fmaxf -fno-builtin-fmin -fno-builtin-fminf)
endif()
target_compile_options(kith_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${c_flags}>"
                                            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-fvisibility=hidden>")
if(KITH_WERROR)
  target_compile_options(kith_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()

# What is passed on (docs/adr/0130): the same bytes whatever folder it was built in.
if(KITH_RELOCATABLE)
  target_compile_options(kith_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>"
                                              "$<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${CMAKE_BINARY_DIR}=./build>")
endif()

# Hardening: if a file from a stranger causes a memory error, the program should end, and the author of the file should
# not be able to use the error. docs/adr/0007 has the costs; test/house/test_binaries.c checks the results. The flags apply
# only to our own objects: programs that link libkith.a through pkg-config keep their own flags.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(hardening -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND hardening -fcf-protection=full)
endif()
# Checked copies need an optimised build, and a sanitizer has better checks of its own.
if(NOT kith_is_sanitized)
  list(APPEND hardening $<$<NOT:$<CONFIG:Debug,>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug,>>:-D_FORTIFY_SOURCE=2>)
endif()
target_compile_options(kith_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${hardening}>")
target_link_options(kith_flags INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
# A program with C++ in it, such as the emulated device, is linked by the C++ compiler, which has its own flags.
target_link_options(kith_flags INTERFACE ${sanitizers})
