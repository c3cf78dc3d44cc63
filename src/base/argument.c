/* NULL refused by name; options of older and newer programs. */
#include "base/argument.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "kith/version.h"

void ki_options_init(void *options, size_t size, const void *defaults, size_t bytes) {
    if (!options || size < sizeof size) return;
    memset(options, 0, size);
    memcpy(options, defaults, size < bytes ? size : bytes);
    memcpy(options, &size, sizeof size);
}

kith_status ki_options_take(const void *given, void *options, size_t bytes, const char *type,
                            kith_error *err) {
    size_t size = 0;
    if (!given) return KITH_OK;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size) {
        ki_fail(err, KITH_EINVAL, "%s has size %zu; wanted at least %zu", type, size, sizeof size);
        return ki_hint(err, KITH_EINVAL, "call %s_init first", type);
    }
    for (size_t i = bytes; i < size; i++) {
        if (!((const unsigned char *)given)[i]) continue;
        ki_fail(err, KITH_EINVAL, "%s has %zu bytes, of which kith %s knows %zu, and byte %zu is set", type,
                size, KITH_VERSION, bytes, i);
        return ki_hint(err, KITH_EINVAL, "the program was compiled with a newer kith: install that one");
    }
    memcpy(options, given, size < bytes ? size : bytes);
    memcpy(options, &bytes, sizeof bytes);
    return KITH_OK;
}

/* The i-th of "a, b, c". */
static void name_at(const char *names, size_t i, char *ret, size_t n) {
    for (; i > 0; i--) names += strcspn(names, ",") + 1;
    names += strspn(names, " ");
    const size_t length = strcspn(names, ",");
    ki_snprintf(ret, n, "%.*s", (int)length, names);
}

kith_status ki_need_strings(const char *const *strings, int64_t n, const char *name, kith_error *err) {
    if (n < 0 || (n > 0 && !strings))
        return ki_fail(err, KITH_EINVAL, "%s: %s, %lld of them; wanted a list of 0 or more strings", name,
                       strings ? "strings" : "NULL", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        if (!strings[i]) return ki_fail(err, KITH_EINVAL, "%s[%lld] is NULL", name, (long long)i);
    }
    return KITH_OK;
}

kith_status ki_need_count(int64_t n, const char *function, const char *name, kith_error *err) {
    if (n >= 0) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%s: %s is %lld; wanted at least 0", function, name, (long long)n);
}

kith_status ki_need(const void *const *pointers, size_t n, const char *function, const char *names,
                    kith_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (pointers[i]) continue;
        char name[64];
        name_at(names, i, name, sizeof name);
        return ki_fail(err, KITH_EINVAL, "%s: %s is NULL", function, name);
    }
    return KITH_OK;
}
