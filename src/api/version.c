#include "kith/version.h"

const char *kith_version(void) { return KITH_VERSION; }
