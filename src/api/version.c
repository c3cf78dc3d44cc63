/* kith/version.h: the version and the commit it was built from. */
#include "kith/version.h"

#include "kith_commit.h"

const char *kith_version(void) { return KITH_VERSION; }
const char *kith_commit(void) { return KITH_COMMIT; }
