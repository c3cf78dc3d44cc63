/* The registration table: the only file that knows which backends exist. Those of libkith are rows here; the
 * others are plugins. */
#include "backend/plugin.h"
#include "base/option.h"
#include "base/text.h"
#include "device/backend.h"

#include <limits.h>
#include <string.h>

extern const ki_backend_type ki_backend_ref;
extern const ki_backend_type ki_backend_cpu;

static const ki_backend_type *const types[] = {
#ifndef KITH_ONLY_REF
    &ki_backend_cpu,
#endif
    &ki_backend_ref,
};
enum { N_TYPES = sizeof types / sizeof types[0], MOST_NAMES = 16 };

const char *ki_backend_name_at(int i) {
    return i >= 0 && i < N_TYPES ? types[i]->name : ki_plugin_name_at(i - N_TYPES);
}

static kith_status open_type(const ki_backend_type *type, const ki_backend_options *options,
                             ki_backend **ret_backend, kith_error *err) {
    if (type->version != KI_BACKEND_VERSION)
        return ki_fail(err, KITH_EINTERNAL, "backend %s is written for interface %d, this is %d", type->name,
                       type->version, KI_BACKEND_VERSION);
    if (options->precision == KI_BF16 && !type->has_bf16) {
        ki_fail(err, KITH_EUNSUPPORTED, "precision bf16 on device %s, which computes in float32 only",
                type->name);
        return ki_hint(err, KITH_EUNSUPPORTED, "use precision float32, or device cuda");
    }
    KI_TRY(type->open(options, ret_backend, err));
    (*ret_backend)->options = *options;
    return KITH_OK;
}

enum { LONGEST_NAME = 32 };

/* "cuda:1" is "cuda" and the number 1, which replaces the one in the options. */
static kith_status split_number(const char *given, char ret_name[LONGEST_NAME], int *number,
                                kith_error *err) {
    const size_t n = strcspn(given, ":");
    int64_t found = *number;
    if (n >= LONGEST_NAME ||
        (given[n] && (!ki_parse_int64(given + n + 1, &found) || found < 0 || found > INT_MAX)))
        return ki_fail(err, KITH_EINVAL, "device '%.60s'; wanted a name, or a name and a number as in cuda:1",
                       given);
    memcpy(ret_name, given, n);
    ret_name[n] = '\0';
    *number = (int)found;
    return KITH_OK;
}

kith_status ki_backend_check_name(const char *given, kith_error *err) {
    char name[LONGEST_NAME];
    const char *names[MOST_NAMES];
    int number = 0;
    size_t n = 0;
    KI_TRY(split_number(given, name, &number, err));
    for (; n < MOST_NAMES && (names[n] = ki_backend_name_at((int)n)); n++) {
        if (strcmp(names[n], name) == 0) return KITH_OK;
    }
    return ki_fail_unknown(err, "device", name, names, n);
}

kith_status ki_backend_find(const char *given, const ki_backend_type **ret_type, int *number,
                            kith_error *err) {
    char name[LONGEST_NAME];
    const ki_plugin *plugin = NULL;
    KI_TRY(ki_backend_check_name(given, err));
    KI_TRY(split_number(given, name, number, err));
    for (int i = 0; i < N_TYPES; i++) {
        if (strcmp(types[i]->name, name) == 0) return *ret_type = types[i], KITH_OK;
    }
    KI_TRY(ki_plugin_load(name, &plugin, err));
    *ret_type = plugin->backend;
    return KITH_OK;
}

kith_status ki_backend_open(const char *given, const ki_backend_options *options, ki_backend **ret_backend,
                            kith_error *err) {
    ki_backend_options o = options ? *options : (ki_backend_options){0};
    const ki_backend_type *type = NULL;
    KI_TRY(ki_backend_find(given, &type, &o.device, err));
    return open_type(type, &o, ret_backend, err);
}

void ki_backend_close(ki_backend *backend) {
    if (backend) backend->type->close(backend);
}
