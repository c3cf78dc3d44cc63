# kith_flags: what every target of ours is compiled with.
add_library(kith_flags INTERFACE)
target_compile_features(kith_flags INTERFACE c_std_11)
target_compile_definitions(kith_flags INTERFACE _GNU_SOURCE)
target_include_directories(kith_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src
                                                ${CMAKE_BINARY_DIR}/generated)
set(c_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
            -fvisibility=hidden -fno-math-errno)
target_compile_options(kith_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${c_flags}>"
                                            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-fvisibility=hidden>")
if(KITH_WERROR)
  target_compile_options(kith_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
