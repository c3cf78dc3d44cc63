/* Which kith this is. The build, the pkg-config file and the CMake package take the number from here. */
#ifndef KITH_VERSION_H
#define KITH_VERSION_H

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The headers a program is compiled with. */
#define KITH_VERSION "0.2.0"
#define KITH_VERSION_MAJOR 0
#define KITH_VERSION_MINOR 2
#define KITH_VERSION_PATCH 0
/* One number to compare: 200 for 0.2.0, 10203 for 1.2.3. */
#define KITH_VERSION_NUMBER (KITH_VERSION_MAJOR * 10000 + KITH_VERSION_MINOR * 100 + KITH_VERSION_PATCH)

/* The library that runs, in the same forms. It fits the headers if it is not older than they are and has the same
 * minor version (before 1.0; from then on the same major version): kith_version_check. */
KITH_API const char *kith_version(void);
KITH_API int kith_version_number(void);

/* Does the library fit a program compiled with `number`? kith_version_check(KITH_VERSION_NUMBER, &err) is
 * KITH_EUNSUPPORTED when it does not, and the error names both versions. */
KITH_API kith_status kith_version_check(int number, kith_error *err);

/* The commit it was built from, followed by "-dirty" if files had been changed; "" outside a checkout. */
KITH_API const char *kith_commit(void);

/* Bytes of a public struct in the library that runs, by its name ("kith_array"); 0: there is none of that name. For bindings
 * of other languages, which lay structs out by themselves, to check at the start. Options (structs that begin with their size)
 * may differ: see KITH_OPTIONS. */
KITH_API size_t kith_struct_bytes(const char *name);

#ifdef __cplusplus
}
#endif
#endif
