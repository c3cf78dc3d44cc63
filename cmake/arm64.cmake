# Builds for 64-bit ARM on another machine, with Debian's cross compiler and its libraries for that architecture:
#   dpkg --add-architecture arm64; apt-get update
#   apt-get install crossbuild-essential-arm64 qemu-user-static libdnnl-dev:arm64 … (test/long/arm64.sh has the list)
#   cmake --preset arm64 && cmake --build build/arm64
# What the build itself runs, such as the program that prints its completions, runs under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig)
find_program(qemu NAMES qemu-aarch64-static qemu-aarch64 NO_CACHE)
if(qemu)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${qemu})
endif()
