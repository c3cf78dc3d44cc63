/* How functions inside the library fail. See kith/status.h for the contract. */
#ifndef KI_ERROR_H
#define KI_ERROR_H

#include <stddef.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill err (may be NULL) with the formatted line and no hint, and return status. */
kith_status ki_fail(kith_error *err, kith_status status, const char *fmt, ...) KITH_PRINTF(3, 4);

/* Add a hint to an error just filled; returns err's status, so that `return ki_hint(err, …)` works.
 * With err NULL it returns `status`. */
kith_status ki_hint(kith_error *err, kith_status status, const char *fmt, ...) KITH_PRINTF(3, 4);

/* Put "PREFIX: " before the message of a filled error (a file name, a recipe key). */
kith_status ki_prefix(kith_error *err, kith_status status, const char *fmt, ...) KITH_PRINTF(3, 4);

kith_status ki_fail_memory(kith_error *err, size_t bytes, const char *what);

#ifdef __cplusplus
}
#endif

/* Return at once when expr fails; only where nothing is held. */
#define KI_TRY(expr)                            \
    do {                                        \
        const kith_status ki_try_ = (expr);     \
        if (ki_try_ != KITH_OK) return ki_try_; \
    } while (0)

/* Jump to the one cleanup block when expr fails; the function has `kith_status status`. */
#define KI_CHECK(expr)                    \
    do {                                  \
        status = (expr);                  \
        if (status != KITH_OK) goto done; \
    } while (0)

#endif
