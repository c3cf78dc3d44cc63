/* The CUDA backend's record. Plain C: only hand-written kernels need .cu files. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "core/alloc.h"
#include "core/backend.h"

extern const ki_backend_type ki_backend_cuda;

typedef struct cuda_backend {
    ki_backend base;
    int device;
    cudaStream_t stream;
} cuda_backend;

#define KI_CUDA(call)                                                        \
    do {                                                                     \
        const cudaError_t ki_cuda_ = (call);                                 \
        if (ki_cuda_ != cudaSuccess) return fail_cuda(err, ki_cuda_, #call); \
    } while (0)

static kith_status fail_cuda(kith_error *err, cudaError_t error, const char *call) {
    const kith_status status = error == cudaErrorMemoryAllocation ? KITH_ENOMEM : KITH_EBACKEND;
    return ki_fail(err, status, "CUDA: %s (%.80s)", cudaGetErrorString(error), call);
}

static cuda_backend *cuda_of(ki_backend *backend) { return (cuda_backend *)backend; }

static void cuda_close(ki_backend *backend) {
    cuda_backend *cuda = cuda_of(backend);
    if (cuda->stream) cudaStreamDestroy(cuda->stream);
    ki_free(cuda);
}

static kith_status open_stream(cuda_backend *cuda, kith_error *err) {
    KI_CUDA(cudaSetDevice(cuda->device));
    KI_CUDA(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    return KITH_OK;
}

static kith_status cuda_open(const ki_backend_options *options, ki_backend **ret_backend, kith_error *err) {
    const int device = options->device;
    int n_devices = 0;
    cuda_backend *cuda = NULL;
    const cudaError_t found = cudaGetDeviceCount(&n_devices);
    if (found != cudaSuccess || n_devices == 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "no CUDA device: %s", cudaGetErrorString(found));
        return ki_hint(err, KITH_EUNSUPPORTED, "use device cpu, or check the driver with nvidia-smi");
    }
    if (device < 0 || device >= n_devices)
        return ki_fail(err, KITH_EINVAL, "CUDA device %d; there are %d, from 0", device, n_devices);
    KI_TRY(ki_zalloc_or(&cuda, 1, sizeof *cuda, "the CUDA backend", err));
    cuda->base.type = &ki_backend_cuda;
    cuda->device = device;
    const kith_status status = open_stream(cuda, err);
    if (status == KITH_OK)
        *ret_backend = &cuda->base;
    else
        cuda_close(&cuda->base);
    return status;
}

static kith_status cuda_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    KI_CUDA(cudaSetDevice(cuda_of(backend)->device));
    KI_CUDA(cudaMalloc(ret_ptr, bytes));
    return KITH_OK;
}

static void cuda_free(ki_backend *backend, void *ptr) {
    (void)backend;
    if (ptr) cudaFree(ptr);
}

static kith_status cuda_upload(ki_backend *backend, void *dst, const void *host, size_t bytes,
                               kith_error *err) {
    KI_CUDA(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, cuda_of(backend)->stream));
    return KITH_OK;
}

static kith_status cuda_download(ki_backend *backend, const void *src, void *host, size_t bytes,
                                 kith_error *err) {
    KI_CUDA(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, cuda_of(backend)->stream));
    return KITH_OK;
}

static kith_status cuda_zero(ki_backend *backend, void *dst, size_t bytes, kith_error *err) {
    KI_CUDA(cudaMemsetAsync(dst, 0, bytes, cuda_of(backend)->stream));
    return KITH_OK;
}

static kith_status cuda_sync(ki_backend *backend, kith_error *err) {
    KI_CUDA(cudaStreamSynchronize(cuda_of(backend)->stream));
    return KITH_OK;
}

static size_t cuda_edge_bytes(const ki_backend *backend, const ki_shape *shape, ki_layout layout) {
    (void)backend, (void)layout;
    const int64_t n = ki_shape_count(shape);
    return n > 0 && n < INT64_MAX / 8 ? (size_t)n * sizeof(float) : 0;
}

/* [n, c, hw] from or to [n, hw, c] in host memory. */
static void transpose(const ki_edge *edge, const float *from, float *to, bool to_native) {
    const int64_t mb = edge->shape.dim[0], c = edge->shape.dim[1],
                  hw = edge->shape.dim[2] * edge->shape.dim[3];
    for (int64_t n = 0; n < mb; n++) {
        for (int64_t k = 0; k < c; k++) {
            for (int64_t p = 0; p < hw; p++) {
                const int64_t plain = (n * c + k) * hw + p, native = (n * hw + p) * c + k;
                if (to_native)
                    to[native] = from[plain];
                else
                    to[plain] = from[native];
            }
        }
    }
}

/* Whole maps cross the edge rarely (taps of maps, tests), so the host turns them. */
static kith_status cuda_import(ki_backend *backend, const ki_edge *edge, void *dst, const ki_real *host,
                               kith_error *err) {
    if (edge->layout == KI_PLAIN) return cuda_upload(backend, dst, host, edge->bytes, err);
    float *turned = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_alloc_or(&turned, 1, edge->bytes, "a map", err));
    transpose(edge, host, turned, true);
    backend->n_reorders++;
    KI_CHECK(cuda_upload(backend, dst, turned, edge->bytes, err));
    KI_CHECK(cuda_sync(backend, err));
done:
    ki_free(turned);
    return status;
}

static kith_status cuda_export(ki_backend *backend, const ki_edge *edge, const void *src, ki_real *host,
                               kith_error *err) {
    if (edge->layout == KI_PLAIN) return cuda_download(backend, src, host, edge->bytes, err);
    float *turned = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_alloc_or(&turned, 1, edge->bytes, "a map", err));
    KI_CHECK(cuda_download(backend, src, turned, edge->bytes, err));
    KI_CHECK(cuda_sync(backend, err));
    transpose(edge, turned, host, false);
    backend->n_reorders++;
done:
    ki_free(turned);
    return status;
}

static kith_status cuda_capture_begin(ki_backend *backend, kith_error *err) {
    KI_CUDA(cudaStreamBeginCapture(cuda_of(backend)->stream, cudaStreamCaptureModeThreadLocal));
    return KITH_OK;
}

static kith_status cuda_capture_end(ki_backend *backend, void **ret_step, kith_error *err) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t step = NULL;
    KI_CUDA(cudaStreamEndCapture(cuda_of(backend)->stream, &graph));
    const cudaError_t error = cudaGraphInstantiate(&step, graph, 0);
    cudaGraphDestroy(graph);
    KI_CUDA(error);
    *ret_step = step;
    return KITH_OK;
}

static kith_status cuda_capture_launch(ki_backend *backend, void *step, kith_error *err) {
    KI_CUDA(cudaGraphLaunch(step, cuda_of(backend)->stream));
    return KITH_OK;
}

static void cuda_capture_free(ki_backend *backend, void *step) {
    (void)backend;
    if (step) cudaGraphExecDestroy(step);
}

const ki_backend_type ki_backend_cuda = {
    .name = "cuda",
    .summary = "NVIDIA devices (memory and streams; no kernels yet)",
    .version = KI_BACKEND_VERSION,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .zero = cuda_zero,
    .sync = cuda_sync,
    .edge_bytes = cuda_edge_bytes,
    .import = cuda_import,
    .export = cuda_export,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .capture_launch = cuda_capture_launch,
    .capture_free = cuda_capture_free,
};
