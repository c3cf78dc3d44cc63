/* kith/text.h: the nearest name, numbers from text, text files. */
#include "kith/text.h"

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/redact.h"
#include "base/text.h"

const char *kith_nearest(const char *word, const char *const *names, int64_t n_names) {
    return word && names && n_names > 0 ? ki_nearest(word, names, (size_t)n_names) : NULL;
}

bool kith_parse_real(const char *text, double *ret) {
    if (!text || !ret) return false;
    return ki_parse_double(text, ret);
}
bool kith_parse_int(const char *text, int64_t *ret) {
    if (!text || !ret) return false;
    return ki_parse_int64(text, ret);
}

kith_status kith_text_write(const char *path, const char *text, size_t n, kith_error *err) {
    KI_NEED(err, path, text);
    return ki_file_write(path, text, n, err);
}

kith_status kith_address_take_password(char *address, char **ret_password, kith_error *err) {
    KI_NEED(err, address, ret_password);
    return ki_address_take_password(address, ret_password, err);
}

void kith_string_free(char *text) { ki_free(text); }
