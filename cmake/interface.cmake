# Written at every build, touched only when it changes: generated/kith_interface.h has a hash of every header, which
# shows the library and a plugin that both were built from the same headers.
file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/src/*.h ${SOURCE_DIR}/src/*.def ${SOURCE_DIR}/include/*.h)
list(SORT headers)
set(all "")
foreach(header IN LISTS headers)
  file(SHA256 ${SOURCE_DIR}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 interface "${all}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define KITH_INTERFACE_HASH \"${interface}\"\n#define KITH_LIBDIR \"${LIBDIR}\"\n")
