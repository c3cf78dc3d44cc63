#include "kith/text.h"

#include "core/text.h"

const char *kith_nearest(const char *word, const char *const *names, size_t n_names) {
    return ki_nearest(word, names, n_names);
}

bool kith_parse_real(const char *text, double *ret) { return ki_parse_double(text, ret); }
bool kith_parse_int(const char *text, int64_t *ret) { return ki_parse_int64(text, ret); }
