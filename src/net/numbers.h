/* Lists of numbers in metadata: "104,117,123". */
#ifndef KI_NUMBERS_H
#define KI_NUMBERS_H

#include <stddef.h>

#include "base/error.h"

/* The text as exactly n numbers; `what` names it in the error. */
kith_status ki_numbers_parse(const char *text, int n, double *ret, const char *what, kith_error *err);
/* The reverse, with enough digits to read the same doubles back. */
const char *ki_numbers_text(const double *numbers, int n, char *buf, size_t buf_bytes);

#endif
