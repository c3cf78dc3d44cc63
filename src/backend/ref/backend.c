/* The record of the reference backend: host memory, no layout of its own. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/alloc.h"
#include "device/host_queue.h"

static kith_status backend_open(const ki_backend_options *options, ki_backend **ret_backend,
                                kith_error *err) {
    if (options->device != 0)
        return ki_fail(err, KITH_EINVAL, "backend ref has device 0 only, found %d", options->device);
    ki_backend *backend = NULL;
    KI_TRY(ki_zalloc_or(&backend, 1, sizeof *backend, "a backend", err));
    backend->type = &ki_backend_ref;
    *ret_backend = backend;
    return KITH_OK;
}

static void backend_close(ki_backend *backend) { ki_free(backend); }

static kith_status memory_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    (void)backend;
    return ki_alloc_or(ret_ptr, bytes, 1, "device memory", err);
}

static void memory_free(ki_backend *backend, void *ptr) {
    (void)backend;
    ki_free(ptr);
}

static kith_status memory_upload(ki_backend *backend, void *dst, const void *host, size_t bytes,
                                 kith_error *err) {
    (void)backend, (void)err;
    if (bytes) memcpy(dst, host, bytes);
    return KITH_OK;
}

static kith_status memory_download(ki_backend *backend, const void *src, void *host, size_t bytes,
                                   kith_error *err) {
    (void)backend, (void)err;
    if (bytes) memcpy(host, src, bytes);
    return KITH_OK;
}

static kith_status memory_zero(ki_backend *backend, void *dst, size_t bytes, kith_error *err) {
    (void)backend, (void)err;
    if (bytes) memset(dst, 0, bytes);
    return KITH_OK;
}

static kith_status stream_sync(ki_backend *backend, kith_error *err) {
    (void)backend, (void)err;
    return KITH_OK;
}

static size_t edge_bytes(const ki_backend *backend, const ki_shape *shape, ki_layout layout) {
    (void)backend, (void)layout;
    size_t bytes = 0;
    const int64_t n = ki_shape_count(shape);
    return n > 0 && ki_mul_size((size_t)n, sizeof(ki_real), &bytes) ? bytes : 0;
}

static kith_status edge_import(ki_backend *backend, const ki_edge *edge, void *dst, const ki_real *host,
                               kith_error *err) {
    backend->n_reorders++;
    return memory_upload(backend, dst, host, edge->bytes, err);
}

static kith_status edge_export(ki_backend *backend, const ki_edge *edge, const void *src, ki_real *host,
                               kith_error *err) {
    backend->n_reorders++;
    return memory_download(backend, src, host, edge->bytes, err);
}

static const ki_kernel_type *const kernels[KI_N_OPS] = {
#define X(NAME, name) [KI_OP_##NAME] = &ki_ref_##name,
#include "device/op.def"
#undef X
};

const ki_backend_type ki_backend_ref = {
    .name = "ref",
    .summary = "plain loops on the CPU: slow, exact, the judge of the others",
    .version = KI_BACKEND_VERSION,
    .is_host = true,
    .open = backend_open,
    .close = backend_close,
    .memory = {.alloc = memory_alloc,
               .free = memory_free,
               .upload = memory_upload,
               .download = memory_download,
               .zero = memory_zero,
               .sync = stream_sync,
               .edge_bytes = edge_bytes,
               .import = edge_import,
               .export = edge_export},
    .queues = &ki_host_queues,
    .kernels = {.of = kernels, .join = ki_ref_join, .linear_grad = ki_ref_linear_grad},
    .optimizers = {.update = ki_ref_optim, .sum_squares = ki_ref_sum_squares},
};
