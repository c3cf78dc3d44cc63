/* Which kith this is. The build and the pkg-config file take the number from here. */
#ifndef KITH_VERSION_H
#define KITH_VERSION_H

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_VERSION "0.1.0"

/* The version of the library that runs; KITH_VERSION is that of the headers compiled against. */
KITH_API const char *kith_version(void);
/* The commit it was built from, "-dirty" behind it when files had been changed; "" outside a checkout. */
KITH_API const char *kith_commit(void);

#ifdef __cplusplus
}
#endif
#endif
