/* The registration table: the only file that includes a backend. */
#include "core/backend.h"
#include "core/option.h"
#include "core/text.h"
#include "knn/device.h"
#include "objective/engine.h"

#include <limits.h>
#include <string.h>

extern const ki_backend_type ki_backend_ref;
extern const ki_backend_type ki_backend_cpu;
extern const ki_backend_type ki_backend_cuda;

static const ki_backend_type *const types[] = {
#ifndef KITH_ONLY_REF
    &ki_backend_cpu,
#endif
    &ki_backend_ref,
#ifdef KITH_CUDA
    &ki_backend_cuda,
#endif
};
enum { N_TYPES = sizeof types / sizeof types[0] };

const ki_backend_type *ki_backend_type_at(int i) { return i >= 0 && i < N_TYPES ? types[i] : NULL; }

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

/* NULL in *ret_type: cuda, in a build without it. */
static kith_status find_type(const char *name, const ki_backend_type **ret_type, kith_error *err) {
    const char *names[N_TYPES + 1];
    size_t n = 0;
    *ret_type = NULL;
    for (int i = 0; i < N_TYPES; i++) {
        names[n++] = types[i]->name;
        if (strcmp(types[i]->name, name) != 0) continue;
        *ret_type = types[i];
        return KITH_OK;
    }
#ifndef KITH_CUDA
    names[n++] = "cuda";
#endif
    return strcmp(name, "cuda") == 0 ? KITH_OK : ki_fail_unknown(err, "device", name, names, n);
}

kith_status ki_backend_check_name(const char *given, kith_error *err) {
    char name[LONGEST_NAME];
    int number = 0;
    const ki_backend_type *type = NULL;
    KI_TRY(split_number(given, name, &number, err));
    return find_type(name, &type, err);
}

kith_status ki_backend_open(const char *given, const ki_backend_options *options, ki_backend **ret_backend,
                            kith_error *err) {
    ki_backend_options o = options ? *options : (ki_backend_options){0};
    char name[LONGEST_NAME];
    const ki_backend_type *type = NULL;
    KI_TRY(split_number(given, name, &o.device, err));
    KI_TRY(find_type(name, &type, err));
    if (type) return open_type(type, &o, ret_backend, err);
    ki_fail(err, KITH_EUNSUPPORTED, "this kith was built without CUDA");
    return ki_hint(err, KITH_EUNSUPPORTED, "build it with 'cmake --preset cuda', or use device cpu");
}

void ki_backend_close(ki_backend *backend) {
    if (backend) backend->type->close(backend);
}

const ki_engine_type *ki_engine_of(const ki_backend *backend) {
#ifdef KITH_CUDA
    extern const ki_engine_type ki_engine_cuda;
    if (backend->type == &ki_backend_cuda) return &ki_engine_cuda;
#endif
    (void)backend;
    return NULL;
}

const ki_knn_device_type *ki_knn_device_of(const ki_backend *backend) {
#ifdef KITH_CUDA
    extern const ki_knn_device_type ki_knn_cuda;
    if (backend->type == &ki_backend_cuda) return &ki_knn_cuda;
#endif
    (void)backend;
    return NULL;
}
