/* The CUDA backend's record: opening a device, copies, layout changes, capture. Plain C: only hand-written
 * kernels need .cu files. */
#include <stdio.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/layout/map.h"
#include "backend/cuda/rows/linear.h"
#include "base/text.h"

static void cuda_close(ki_backend *backend) {
    cuda_backend *cuda = ki_cuda_of(backend);
    (void)cudaSetDevice(cuda->device);
    if (cuda->stream) (void)cudaStreamSynchronize(cuda->stream);
    if (cuda->libraries_close) cuda->libraries_close(cuda);
    ki_cuda_free(backend, cuda->counters);
    ki_cuda_free(backend, cuda->sums);
    ki_cuda_free(backend, cuda->staging);
    if (cuda->late_stream) (void)cudaStreamDestroy(cuda->late_stream);
    if (cuda->copy_stream) (void)cudaStreamDestroy(cuda->copy_stream);
    if (cuda->stream) (void)cudaStreamDestroy(cuda->stream);
    ki_free(cuda);
}

static kith_status open_streams(cuda_backend *cuda, kith_error *err) {
    KI_CUDA(cudaSetDevice(cuda->device));
    KI_CUDA(cudaDeviceGetAttribute(&cuda->n_processors, cudaDevAttrMultiProcessorCount, cuda->device));
    int least = 0, greatest = 0;
    KI_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    KI_CUDA(cudaStreamCreateWithPriority(&cuda->stream, cudaStreamNonBlocking, greatest));
    KI_CUDA(cudaStreamCreateWithPriority(&cuda->late_stream, cudaStreamNonBlocking, least));
    KI_CUDA(cudaStreamCreateWithFlags(&cuda->copy_stream, cudaStreamNonBlocking));
    void *memory = NULL;
    KI_TRY(ki_cuda_alloc(&cuda->base, KI_CUDA_COUNTERS * sizeof *cuda->counters, &memory, err));
    cuda->counters = memory;
    KI_CUDA(cudaMemsetAsync(memory, 0, KI_CUDA_COUNTERS * sizeof *cuda->counters, cuda->stream));
    KI_TRY(ki_cuda_alloc(&cuda->base, KI_CUDA_SUMS * sizeof *cuda->sums, &memory, err));
    cuda->sums = memory;
    return KITH_OK;
}

static kith_status count_devices(int *ret_n, kith_error *err) {
    const cudaError_t found = cudaGetDeviceCount(ret_n);
    if (found == cudaSuccess && *ret_n > 0) return KITH_OK;
    (void)cudaGetLastError();
    ki_fail(err, KITH_EUNSUPPORTED, "no CUDA device: %s", cudaGetErrorString(found));
    return ki_hint(err, KITH_EUNSUPPORTED, "use device cpu, or check the driver with nvidia-smi");
}

static kith_status cuda_describe(char *ret_text, size_t bytes, kith_error *err) {
    int n = 0;
    size_t used = 0;
    KI_TRY(count_devices(&n, err));
    ret_text[0] = '\0';
    for (int i = 0; i < n && used < bytes; i++) {
        struct cudaDeviceProp device;
        KI_CUDA(cudaGetDeviceProperties(&device, i));
        const int wrote = ki_snprintf(ret_text + used, bytes - used, "%s%s, %.1f GiB", i ? "; " : "",
                                      device.name, (double)device.totalGlobalMem / (1 << 30));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return KITH_OK;
}

/* The address on the bus is the same in every process, whatever devices the process may see. */
static kith_status cuda_identify(ki_backend *backend, char *ret_kind, char *ret_which, size_t bytes,
                                 kith_error *err) {
    struct cudaDeviceProp device;
    KI_CUDA(cudaGetDeviceProperties(&device, ki_cuda_of(backend)->device));
    if (ret_kind) ki_snprintf(ret_kind, bytes, "%s", device.name);
    if (ret_which)
        ki_snprintf(ret_which, bytes, "%04x:%02x:%02x", (unsigned)device.pciDomainID,
                    (unsigned)device.pciBusID, (unsigned)device.pciDeviceID);
    return KITH_OK;
}

static kith_status cuda_open(const ki_backend_options *options, ki_backend **ret_backend, kith_error *err) {
    int n_devices = 0;
    cuda_backend *cuda = NULL;
    KI_TRY(count_devices(&n_devices, err));
    if (options->device < 0 || options->device >= n_devices)
        return ki_fail(err, KITH_EINVAL, "CUDA device %d; there are %d, from 0", options->device, n_devices);
    KI_TRY(ki_zalloc_or(&cuda, 1, sizeof *cuda, "the CUDA backend", err));
    cuda->base.type = &ki_backend_cuda;
    cuda->base.options = *options;
    cuda->device = options->device;
    const kith_status status = open_streams(cuda, err);
    if (status == KITH_OK)
        *ret_backend = &cuda->base;
    else
        cuda_close(&cuda->base);
    return status;
}

static kith_status cuda_upload(ki_backend *backend, void *dst, const void *host, size_t bytes,
                               kith_error *err) {
    KI_CUDA(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, ki_cuda_stream(backend)));
    return KITH_OK;
}

static kith_status cuda_download(ki_backend *backend, const void *src, void *host, size_t bytes,
                                 kith_error *err) {
    KI_CUDA(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, ki_cuda_stream(backend)));
    return KITH_OK;
}

static kith_status cuda_zero(ki_backend *backend, void *dst, size_t bytes, kith_error *err) {
    KI_CUDA(cudaMemsetAsync(dst, 0, bytes, ki_cuda_stream(backend)));
    return KITH_OK;
}

static kith_status cuda_sync(ki_backend *backend, kith_error *err) {
    KI_CUDA(cudaStreamSynchronize(ki_cuda_stream(backend)));
    return KITH_OK;
}

int64_t ki_cuda_input_c(const ki_backend *backend, int64_t c) {
    const int64_t n = backend->options.precision == KI_BF16 ? 8 : 4;
    return c <= 4 ? 4 : (c + n - 1) / n * n;
}

ki_cuda_map ki_cuda_map_of(const ki_backend *backend, const ki_edge *edge) {
    const ki_shape *s = &edge->shape;
    const bool is_map = s->n_dims == 4;
    ki_cuda_map m = {.mb = is_map ? s->dim[0] : ki_shape_rows(s),
                     .c = is_map ? s->dim[1] : ki_shape_width(s),
                     .h = is_map ? s->dim[2] : 1,
                     .w = is_map ? s->dim[3] : 1,
                     .is_bf16 = s->n_dims >= 3 && backend->options.precision == KI_BF16};
    m.n = m.mb * m.h * m.w;
    m.pitch = edge->pitch > 0                      ? edge->pitch
              : is_map && edge->layout == KI_PLAIN ? ki_cuda_input_c(backend, m.c)
                                                   : m.c;
    m.row = is_map && m.is_bf16 && edge->layout == KI_PLAIN && m.pitch == 4 ? (m.w + 1) / 2 * 2 : m.w;
    m.element_bytes = m.is_bf16 ? 2 : 4;
    return m;
}

/* Kernels count the channels of a map in 31 bits. */
static size_t cuda_edge_bytes(const ki_backend *backend, const ki_shape *shape, ki_layout layout) {
    const ki_edge edge = {.shape = *shape, .layout = layout};
    const int64_t count = ki_shape_count(shape);
    if (count <= 0 || count >= INT64_MAX / 64) return 0;
    const ki_cuda_map m = ki_cuda_map_of(backend, &edge);
    if (m.n > INT32_MAX || m.pitch > INT32_MAX) return 0;
    return (size_t)(m.mb * m.h * m.row * m.pitch) * m.element_bytes;
}

/* Memory for an edge in plain float on the device; kept for the next one. */
static kith_status staging(cuda_backend *cuda, size_t bytes, float **ret_room, kith_error *err) {
    if (cuda->staging_bytes < bytes) {
        KI_CUDA(cudaStreamSynchronize(cuda->stream));
        ki_cuda_free(&cuda->base, cuda->staging);
        cuda->staging = NULL;
        cuda->staging_bytes = 0;
        KI_TRY(ki_cuda_alloc(&cuda->base, bytes, &cuda->staging, err));
        cuda->staging_bytes = bytes;
    }
    *ret_room = cuda->staging;
    return KITH_OK;
}

/* Maps are, and tokens that are not float: those lie as so many pixels of one-pixel maps. */
static bool is_reordered(const ki_backend *backend, const ki_edge *edge) {
    return edge->shape.n_dims == 4 || ki_cuda_map_of(backend, edge).is_bf16;
}

static kith_status cuda_import(ki_backend *backend, const ki_edge *edge, void *dst, const ki_real *host,
                               kith_error *err) {
    if (!is_reordered(backend, edge)) return cuda_upload(backend, dst, host, edge->bytes, err);
    cuda_backend *cuda = ki_cuda_of(backend);
    const ki_cuda_map m = ki_cuda_map_of(backend, edge);
    const size_t bytes = (size_t)(m.n * m.c) * sizeof(float);
    float *room = NULL;
    KI_TRY(staging(cuda, bytes, &room, err));
    KI_TRY(cuda_upload(backend, room, host, bytes, err));
    backend->n_reorders++;
    if (m.row != m.w) KI_TRY(cuda_zero(backend, dst, edge->bytes, err));
    KI_CUDA(ki_cuda_import_map(cuda->stream, m.is_bf16, m.mb, m.c, m.h, m.w, room, dst, m.pitch, m.row,
                               edge->shape.n_dims == 4 && edge->layout == KI_PLAIN ? m.pitch : m.c));
    return KITH_OK;
}

static kith_status cuda_export(ki_backend *backend, const ki_edge *edge, const void *src, ki_real *host,
                               kith_error *err) {
    if (!is_reordered(backend, edge)) return cuda_download(backend, src, host, edge->bytes, err);
    cuda_backend *cuda = ki_cuda_of(backend);
    const ki_cuda_map m = ki_cuda_map_of(backend, edge);
    const size_t bytes = (size_t)(m.n * m.c) * sizeof(float);
    float *room = NULL;
    KI_TRY(staging(cuda, bytes, &room, err));
    backend->n_reorders++;
    KI_CUDA(ki_cuda_export_map(cuda->stream, m.is_bf16, m.mb, m.c, m.h, m.w, src, m.pitch, m.row, room));
    return cuda_download(backend, room, host, bytes, err);
}

kith_status ki_cuda_join(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                         const void *mask, void *dst, kith_error *err) {
    const ki_cuda_map m = ki_cuda_map_of(backend, edge);
    int64_t pitch[KI_CUDA_MAX_PARTS];
    if (n_parts > KI_CUDA_MAX_PARTS)
        return ki_fail(err, KITH_EUNSUPPORTED, "a sum of %d gradients, at most %d", n_parts,
                       KI_CUDA_MAX_PARTS);
    for (int i = 0; i < n_parts; i++) pitch[i] = m.pitch;
    KI_CUDA(ki_cuda_sum(ki_cuda_stream(backend), m.is_bf16, m.mb * m.h * m.row, m.c, n_parts, parts, pitch,
                        mask, m.pitch, false, dst, m.pitch));
    return KITH_OK;
}

static kith_status cuda_capture_begin(ki_backend *backend, kith_error *err) {
    KI_CUDA(cudaStreamBeginCapture(ki_cuda_stream(backend), cudaStreamCaptureModeThreadLocal));
    return KITH_OK;
}

static kith_status cuda_capture_end(ki_backend *backend, void **ret_step, kith_error *err) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t step = NULL;
    KI_CUDA(cudaStreamEndCapture(ki_cuda_stream(backend), &graph));
    const cudaError_t error = cudaGraphInstantiate(&step, graph, 0);
    (void)cudaGraphDestroy(graph);
    KI_CUDA(error);
    *ret_step = step;
    return KITH_OK;
}

static kith_status cuda_capture_launch(ki_backend *backend, void *step, kith_error *err) {
    KI_CUDA(cudaGraphLaunch(step, ki_cuda_stream(backend)));
    return KITH_OK;
}

static void cuda_capture_free(ki_backend *backend, void *step) {
    (void)backend;
    if (step) (void)cudaGraphExecDestroy(step);
}

static const ki_kernel_type *const kernels[KI_N_OPS] = {
#define X(NAME, name) [KI_OP_##NAME] = &ki_cuda_##name,
#include "device/op.def"
#undef X
};

const ki_backend_type ki_backend_cuda = {
    .name = "cuda",
    .summary = "NVIDIA devices",
    .version = KI_BACKEND_VERSION,
    .has_bf16 = true,
    .describe = cuda_describe,
    .count = count_devices,
    .identify = cuda_identify,
    .comm_open = ki_cuda_nccl_open,
    .open = cuda_open,
    .close = cuda_close,
    .queues = &ki_cuda_queues,
    .memory = {.alloc = ki_cuda_alloc,
               .free = ki_cuda_free,
               .upload = cuda_upload,
               .download = cuda_download,
               .zero = cuda_zero,
               .sync = cuda_sync,
               .edge_bytes = cuda_edge_bytes,
               .import = cuda_import,
               .export = cuda_export},
    .kernels = {.of = kernels,
                .can_fold_bn = true,
                .can_fuse_add = true,
                .can_mask_concat = true,
                .can_slice_concat = true,
                .can_merge_convs = true,
                .can_pad_pools = true,
                .can_add_diffs = true,
                .skips_lost_biases = true,
                .join = ki_cuda_join,
                .images = ki_cuda_images,
                .linear_grad = ki_cuda_linear_grad},
    .optimizers = {.update = ki_cuda_optim, .sum_squares = ki_cuda_sum_squares},
    .recording = {.begin = cuda_capture_begin,
                  .end = cuda_capture_end,
                  .launch = cuda_capture_launch,
                  .free = cuda_capture_free},
};
