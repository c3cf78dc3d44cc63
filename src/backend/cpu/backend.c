/* The cpu backend's record: memory and layout changes. */
#include <string.h>
#include <sys/mman.h>

#include "backend/cpu/cpu.h"
#include "base/blas.h"
#include "device/host_queue.h"

static void cpu_close(ki_backend *backend) {
    cpu_dnnl_close(cpu_dnnl_of(backend));
    ki_free(backend);
}

static kith_status cpu_open(const ki_backend_options *options, ki_backend **ret_backend, kith_error *err) {
    cpu_backend *cpu = NULL;
    if (options->device != 0)
        return ki_fail(err, KITH_EINVAL, "cpu device %d; there is only 0", options->device);
    KI_TRY(ki_zalloc_or(&cpu, 1, sizeof *cpu, "the cpu backend", err));
    cpu->base.type = &ki_backend_cpu;
    kith_status status = ki_blas_prepare(1, err);
    if (status == KITH_OK) status = cpu_dnnl_open(&cpu->dnnl, err);
    if (status == KITH_OK)
        *ret_backend = &cpu->base;
    else
        cpu_close(&cpu->base);
    return status;
}

/* Large pages halve the time spent on address translation in blocks of hundreds of megabytes. */
static kith_status cpu_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    (void)backend;
    char *ptr = NULL;
    KI_TRY(ki_alloc_or(&ptr, 1, bytes, "a network's tensors", err));
    const size_t page = (size_t)2 << 20;
    char *begin = (char *)ki_round_up((size_t)ptr, page);
    if (bytes > 2 * page) madvise(begin, (bytes - (size_t)(begin - ptr)) / page * page, MADV_HUGEPAGE);
    *ret_ptr = ptr;
    return KITH_OK;
}

static void cpu_free(ki_backend *backend, void *ptr) {
    (void)backend;
    ki_free(ptr);
}

/* Bytes of memory that one thread moves: with fewer, calling the others costs more than it saves. */
enum { MOVED_BYTES = 1 << 17 };

typedef struct plain_copy {
    char *dst;
    const char *src;
} plain_copy;

static void copy_range(void *context, int64_t begin, int64_t end) {
    const plain_copy *copy = context;
    memcpy(copy->dst + begin, copy->src + begin, (size_t)(end - begin));
}

/* In parallel, because a batch comes from the caches of the cores that read it. */
static kith_status cpu_copy(ki_backend *backend, void *dst, const void *src, size_t bytes, kith_error *err) {
    (void)backend, (void)err;
    plain_copy copy = {dst, src};
    ki_parallel_for((int64_t)bytes, MOVED_BYTES, copy_range, &copy);
    return KITH_OK;
}

static kith_status cpu_download(ki_backend *backend, const void *src, void *host, size_t bytes,
                                kith_error *err) {
    return cpu_copy(backend, host, src, bytes, err);
}

static void zero_range(void *context, int64_t begin, int64_t end) {
    memset((char *)context + begin, 0, (size_t)(end - begin));
}

static kith_status cpu_zero(ki_backend *backend, void *dst, size_t bytes, kith_error *err) {
    (void)backend, (void)err;
    ki_parallel_for((int64_t)bytes, MOVED_BYTES, zero_range, dst);
    return KITH_OK;
}

static kith_status cpu_sync(ki_backend *backend, kith_error *err) {
    return cpu_dnnl_wait(cpu_dnnl_of(backend), err);
}

static size_t cpu_edge_bytes(const ki_backend *backend, const ki_shape *shape, ki_layout layout) {
    (void)backend;
    ki_shape padded = *shape;
    if (layout == KI_NATIVE) padded.dim[1] = cpu_padded(padded.dim[1]);
    const int64_t n = ki_shape_count(&padded);
    return n > 0 && n < INT64_MAX / 8 ? (size_t)n * sizeof(float) : 0;
}

/* Between a blocked map and a plain one. This is rare (taps of whole maps), so simple loops over rows of
 * pixels are enough. */
typedef struct native_copy {
    int64_t c, hw;
    float *native, *plain;
    bool to_native;
} native_copy;

static void native_copy_images(void *context, int64_t begin, int64_t end) {
    const native_copy *a = context;
    const int64_t c_padded = cpu_padded(a->c), block = cpu_block();
    for (int64_t n = begin; n < end; n++) {
        for (int64_t c = 0; c < c_padded; c++) {
            float *blocked = a->native + cpu_native_at(n, c, 0, c_padded, a->hw);
            if (c >= a->c) {
                for (int64_t i = 0; a->to_native && i < a->hw; i++) blocked[i * block] = 0;
                continue;
            }
            float *row = a->plain + (n * a->c + c) * a->hw;
            if (a->to_native) {
                for (int64_t i = 0; i < a->hw; i++) blocked[i * block] = row[i];
            } else {
                for (int64_t i = 0; i < a->hw; i++) row[i] = blocked[i * block];
            }
        }
    }
}

static void copy_native(const ki_edge *edge, float *native, float *plain, bool to_native) {
    native_copy a = {edge->shape.dim[1], edge->shape.dim[2] * edge->shape.dim[3], native, plain, to_native};
    ki_parallel_for(edge->shape.dim[0], 1, native_copy_images, &a);
}

static kith_status cpu_import(ki_backend *backend, const ki_edge *edge, void *dst, const ki_real *host,
                              kith_error *err) {
    if (edge->layout == KI_PLAIN) return cpu_copy(backend, dst, host, edge->bytes, err);
    backend->n_reorders++;
    float *plain = NULL;
    memcpy(&plain, &host, sizeof plain); /* only read */
    copy_native(edge, dst, plain, true);
    return KITH_OK;
}

static kith_status cpu_export(ki_backend *backend, const ki_edge *edge, const void *src, ki_real *host,
                              kith_error *err) {
    if (edge->layout == KI_PLAIN) return cpu_copy(backend, host, src, edge->bytes, err);
    backend->n_reorders++;
    float *native = NULL;
    memcpy(&native, &src, sizeof native); /* only read */
    copy_native(edge, native, host, false);
    return KITH_OK;
}

static const ki_kernel_type *const kernels[KI_N_OPS] = {
#define X(NAME, name) [KI_OP_##NAME] = &cpu_##name,
#include "device/op.def"
#undef X
};

const ki_backend_type ki_backend_cpu = {
    .name = "cpu",
    .summary = "oneDNN and OpenBLAS on all cores",
    .version = KI_BACKEND_VERSION,
    .is_host = true,
    .open = cpu_open,
    .close = cpu_close,
    .memory = {.alloc = cpu_alloc,
               .free = cpu_free,
               .upload = cpu_copy,
               .download = cpu_download,
               .zero = cpu_zero,
               .sync = cpu_sync,
               .edge_bytes = cpu_edge_bytes,
               .import = cpu_import,
               .export = cpu_export},
    .queues = &ki_host_queues,
    .kernels = {.of = kernels,
                .can_fold_bn = true,
                .can_mask_concat = true,
                .join = cpu_join,
                .linear_grad = cpu_linear_grad},
    .optimizers = {.update = cpu_optim, .sum_squares = cpu_sum_squares},
};
