/* Which version and which commit this is, and which programs can use it. */
#include "kith/version.h"

#include "base/error.h"
#include "kith_commit.h"

const char *kith_version(void) { return KITH_VERSION; }
int kith_version_number(void) { return KITH_VERSION_NUMBER; }
const char *kith_commit(void) { return KITH_COMMIT; }

kith_status kith_version_check(int number, kith_error *err) {
    /* Before 1.0 a minor version may change anything; its patches only add. */
    const int step = KITH_VERSION_MAJOR == 0 ? 100 : 10000;
    if (number <= 0)
        return ki_fail(err, KITH_EINVAL, "version number %d; wanted KITH_VERSION_NUMBER", number);
    if (number / step == KITH_VERSION_NUMBER / step && number <= KITH_VERSION_NUMBER) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "the program was compiled with kith %d.%d.%d, and the library is %s",
            number / 10000, number / 100 % 100, number % 100, KITH_VERSION);
    return ki_hint(err, KITH_EUNSUPPORTED, "compile it again, or install the library it was compiled with");
}
