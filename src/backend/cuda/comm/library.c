/* Loading NCCL. */
#include "backend/cuda/comm/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#if !defined KI_EMULATE_HEADERS && __has_include(<nccl.h>)
#include <nccl.h>
_Static_assert(sizeof(ncclUniqueId) == sizeof(ki_nccl_id), "ncclUniqueId");
_Static_assert((int)ncclInt8 == KI_NCCL_BYTE && (int)ncclFloat32 == KI_NCCL_FLOAT, "ncclDataType_t");
_Static_assert((int)ncclSum == KI_NCCL_SUM && (int)ncclSuccess == KI_NCCL_OK, "ncclSum, ncclSuccess");
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclComm_t) == sizeof(void *), "ncclComm_t");
#endif

static ki_nccl found;
static bool is_settled;
static kith_error failure; /* status KITH_OK: found */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static kith_status look(kith_error *err) {
    static const struct {
        const char *name;
        size_t at;
    } calls[] = {
        {"ncclGetVersion", offsetof(ki_nccl, get_version)},
        {"ncclGetUniqueId", offsetof(ki_nccl, get_id)},
        {"ncclCommInitRank", offsetof(ki_nccl, init)},
        {"ncclCommDestroy", offsetof(ki_nccl, destroy)},
        {"ncclCommAbort", offsetof(ki_nccl, abort)},
        {"ncclAllReduce", offsetof(ki_nccl, all_reduce)},
        {"ncclAllGather", offsetof(ki_nccl, all_gather)},
        {"ncclBroadcast", offsetof(ki_nccl, broadcast)},
        {"ncclGroupStart", offsetof(ki_nccl, group_start)},
        {"ncclGroupEnd", offsetof(ki_nccl, group_end)},
        {"ncclGetErrorString", offsetof(ki_nccl, error_text)},
    };
    static const char hint[] =
        "KITH_NCCL names the file (NVIDIA's package libnccl2; PyTorch has it in nvidia/nccl/lib); "
        "KITH_COMM=host does without";
    const char *told = secure_getenv("KITH_NCCL");
    const bool is_told = told && *told;
    ki_snprintf(found.path, sizeof found.path, "%s", is_told ? told : "libnccl.so.2");
    void *library = dlopen(found.path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        ki_fail(err, KITH_EUNSUPPORTED, "NCCL%s: %.300s", is_told ? " (KITH_NCCL)" : "",
                why ? why : found.path);
        return ki_hint(err, KITH_EUNSUPPORTED, "%s", hint);
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *symbol = dlsym(library, calls[i].name);
        if (!symbol) {
            ki_fail(err, KITH_EUNSUPPORTED, "%.200s has no %s: it is not NCCL, or too old", found.path,
                    calls[i].name);
            return ki_hint(err, KITH_EUNSUPPORTED, "%s", hint);
        }
        memcpy((char *)&found + calls[i].at, &symbol, sizeof symbol);
    }
    if (found.get_version(&found.version) != KI_NCCL_OK) found.version = 0;
    if (found.version >= KI_NCCL_LEAST) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "%.200s is NCCL version %d; wanted %d (2.9) or later", found.path,
            found.version, KI_NCCL_LEAST);
    return ki_hint(err, KITH_EUNSUPPORTED, "%s", hint);
}

kith_status ki_nccl_load(const ki_nccl **ret_nccl, kith_error *err) {
    pthread_mutex_lock(&lock);
    if (!is_settled) failure.status = look(&failure);
    is_settled = true;
    pthread_mutex_unlock(&lock);
    if (failure.status != KITH_OK) {
        if (err) *err = failure;
        return failure.status;
    }
    *ret_nccl = &found;
    return KITH_OK;
}

kith_status ki_nccl_fail(const ki_nccl *nccl, int error, const char *call, kith_error *err) {
    ki_fail(err, KITH_EBACKEND, "NCCL: %.200s (%s)", nccl->error_text(error), call);
    return ki_hint(err, KITH_EBACKEND, "NCCL_DEBUG=WARN makes NCCL say more; KITH_COMM=host does without it");
}
