/* The CUDA runtime on the host: everything runs at once when it is queued, or goes into the graph when the
 * stream is being captured. What a stream of low priority is given is put off until somebody waits for it, so
 * that memory used again too early is seen. Device memory is host memory, filled with NaN when it is taken; copies check that
 * what is called device memory is. There are two devices, so that nothing can assume the first. */
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "emulate/block.h"
#include "emulate/emulate.h"
#include "emulate/emulated.h"

enum { N_DEVICES = 2, LEAST_PRIORITY = 1 };
enum { N_PROCESSORS = 3 }; /* few and odd: grids that wrap are seen */

struct ki_emulate_stream {
    int device;
    ki_emulate_graph *graph; /* being captured */
    bool is_lazy;
    size_t n_given, n_done; /* a lazy one's work, in order */
    std::deque<std::function<void()>> put_off;
};
struct ki_emulate_event {
    std::chrono::steady_clock::time_point at;
    ki_emulate_graph *graph; /* recorded while capturing */
    cudaStream_t stream;     /* NULL: all before it is done */
    size_t n_given;          /* of the stream's work, before it */
};
struct ki_emulate_graph {
    std::vector<std::function<void()>> work;
};

namespace {

std::recursive_mutex lock;
thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::map<const char *, size_t> blocks; /* device memory */
size_t used_bytes, memory_bytes = (size_t)16 << 30;
size_t most_shared_bytes = 227 * 1024;
long n_launches;
uint64_t n_blocks_run;
std::set<cudaStream_t> streams;
std::set<ki_emulate_graph *> captures; /* going on */

typedef std::lock_guard<std::recursive_mutex> guard;

cudaError_t fail(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

/* Memory lies between fences of signalling NaNs: a number read from one shows, and one written there is known when the
 * memory is given back (a sum written back, too: it is a quiet NaN). */
enum { FENCE = 256 };

char fence_byte(size_t at) { return "\xa0\x7f\xa0\x7f"[at % 4]; }

void check_fences(const char *block, size_t bytes) {
    for (size_t i = 0; i < FENCE; i++) {
        const bool before = block[-FENCE + (ptrdiff_t)i] != fence_byte(i);
        if (!before && block[bytes + i] == fence_byte(bytes + i)) continue;
        fprintf(stderr, "emulated kernel: written %s %zu bytes of device memory\n",
                before ? "before" : "behind", bytes);
        abort();
    }
}

bool is_device(const void *ptr, size_t bytes) {
    auto it = blocks.upper_bound((const char *)ptr);
    if (it == blocks.begin()) return false;
    --it;
    return (const char *)ptr + bytes <= it->first + it->second;
}

cudaError_t queue(cudaStream_t stream, std::function<void()> work) {
    guard g(lock);
    if (stream && stream->device != device) return fail(cudaErrorInvalidResourceHandle);
    if (stream && stream->is_lazy) {
        stream->n_given++;
        stream->put_off.push_back(std::move(work));
    } else if (stream && stream->graph)
        stream->graph->work.push_back(std::move(work));
    else
        work();
    return cudaSuccess;
}

/* Do what a lazy stream was given, up to its n-th piece. */
void catch_up(cudaStream_t stream, size_t n) {
    while (stream->n_done < n && !stream->put_off.empty()) {
        std::function<void()> work = std::move(stream->put_off.front());
        stream->put_off.pop_front();
        stream->n_done++;
        if (stream->graph)
            stream->graph->work.push_back(std::move(work));
        else
            work();
    }
}

bool are_places_right(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind) {
    const bool to = is_device(dst, bytes), from = is_device(src, bytes);
    switch (kind) {
    case cudaMemcpyHostToDevice: return to && !from;
    case cudaMemcpyDeviceToHost: return !to && from;
    case cudaMemcpyDeviceToDevice: return to && from;
    case cudaMemcpyHostToHost: return !to && !from;
    default: return true;
    }
}

void launch(bool together, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &thread) {
    const size_t n_alive = together ? (size_t)grid.x * grid.y * grid.z : 1;
    const size_t room = (shared_bytes + 15) / 16 * 16;
    unsigned char *shared = room ? (unsigned char *)aligned_alloc(16, n_alive * room) : nullptr;
    std::vector<ki_emulate_here> here;
    n_launches++;
    n_blocks_run += (uint64_t)n_launches % 2; /* so that a block is not always of the same parity */
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x++) {
                if (here.size() == n_alive) here.clear();
                unsigned char *mine = shared ? shared + here.size() * room : nullptr;
                if (mine) memset(mine, 0xff, room);
                here.push_back({{0, 0, 0}, {x, y, z}, block, grid, mine, ++n_blocks_run});
                if (here.size() == n_alive) ki_emulate_blocks_run(thread, here.data(), (int)n_alive);
            }
        }
    }
    free(shared);
}

/* Do all blocks find a place on the processors? */
bool fits_together(dim3 grid, uint64_t n_threads, size_t shared_bytes) {
    const uint64_t by_threads = 2048 / n_threads, by_shared = 228 * 1024 / (shared_bytes + 1024);
    return (uint64_t)grid.x * grid.y * grid.z <= N_PROCESSORS * std::min(by_threads, by_shared);
}

} // namespace

cudaError_t ki_emulate_launch(bool together, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                              std::function<void()> thread) {
    const uint64_t n = (uint64_t)block.x * block.y * block.z;
    if (n < 1 || n > 1024 || block.z > 64 || grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffffu ||
        grid.y > 65535 || grid.z > 65535 || shared_bytes > most_shared_bytes)
        return fail(cudaErrorInvalidConfiguration);
    if (together && !fits_together(grid, n, shared_bytes)) return fail(cudaErrorCooperativeLaunchTooLarge);
    return queue(stream, [=] { launch(together, grid, block, shared_bytes, thread); });
}

extern "C" {

cudaError_t ki_emulate_run(cudaStream_t stream, void (*fn)(void *args), const void *args, size_t bytes) {
    std::vector<unsigned char> copy((const unsigned char *)args, (const unsigned char *)args + bytes);
    return queue(stream, [=]() mutable { fn(copy.data()); });
}

void ki_emulate_memory(size_t bytes) { memory_bytes = bytes; }
void ki_emulate_shared(size_t bytes) { most_shared_bytes = bytes; }
long ki_emulate_launches(void) { return n_launches; }

cudaError_t cudaGetDeviceCount(int *count) {
    *count = N_DEVICES;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
    if (d < 0 || d >= N_DEVICES) return fail(cudaErrorInvalidDevice);
    device = d;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *d) {
    *d = device;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int d) {
    if (d < 0 || d >= N_DEVICES) return fail(cudaErrorInvalidDevice);
    switch (attr) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)most_shared_bytes; break;
    case cudaDevAttrMultiProcessorCount: *value = N_PROCESSORS; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    default: return fail(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int d) {
    if (d < 0 || d >= N_DEVICES) return fail(cudaErrorInvalidDevice);
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "emulated device");
    prop->pciBusID = d + 1;
    prop->totalGlobalMem = memory_bytes;
    prop->sharedMemPerBlockOptin = most_shared_bytes;
    prop->major = 9;
    prop->multiProcessorCount = N_PROCESSORS;
    prop->l2CacheSize = 50 << 20;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError(void) { return last_error; }
const char *cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }
const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorCooperativeLaunchTooLarge: return "too many blocks in cooperative launch";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    default: return "unknown error";
    }
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ptr, size_t bytes) {
    guard g(lock);
    if (bytes > memory_bytes - used_bytes) return fail(cudaErrorMemoryAllocation);
    char *all = (char *)aligned_alloc(256, FENCE + (bytes + 255) / 256 * 256 + FENCE);
    if (!all) return fail(cudaErrorMemoryAllocation);
    char *block = all + FENCE;
    for (size_t i = 0; i < FENCE; i++) all[i] = fence_byte(i), block[bytes + i] = fence_byte(bytes + i);
    memset(block, 0xff, bytes);
    blocks[block] = bytes;
    used_bytes += bytes;
    *ptr = block;
    return cudaSuccess;
}
cudaError_t cudaFree(void *ptr) {
    guard g(lock);
    if (!ptr) return cudaSuccess;
    auto it = blocks.find((const char *)ptr);
    if (it == blocks.end()) return fail(cudaErrorInvalidValue);
    check_fences(it->first, it->second);
    used_bytes -= it->second;
    blocks.erase(it);
    free((char *)ptr - FENCE);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **ptr, size_t bytes, unsigned flags) {
    (void)flags;
    *ptr = malloc(bytes ? bytes : 1);
    return *ptr ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void **ptr, size_t bytes) { return cudaHostAlloc(ptr, bytes, 0); }
cudaError_t cudaFreeHost(void *ptr) {
    free(ptr);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    guard g(lock);
    *free_bytes = memory_bytes - used_bytes;
    *total_bytes = memory_bytes;
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    guard g(lock);
    if (bytes == 0) return cudaSuccess;
    if (!are_places_right(dst, src, bytes, kind)) return fail(cudaErrorInvalidValue);
    return queue(stream, [=] { memcpy(dst, src, bytes); });
}
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(dst, src, bytes, kind, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return queue(stream, [=] {
        for (size_t i = 0; i < height; i++)
            memcpy((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width);
    });
}
cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream) {
    guard g(lock);
    if (bytes == 0) return cudaSuccess;
    if (!is_device(dst, bytes)) return fail(cudaErrorInvalidValue);
    return queue(stream, [=] { memset(dst, value, bytes); });
}
cudaError_t cudaMemset(void *dst, int value, size_t bytes) {
    return cudaMemsetAsync(dst, value, bytes, nullptr);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    (void)flags;
    guard g(lock);
    *stream = new ki_emulate_stream{device, nullptr, priority == LEAST_PRIORITY, 0, 0, {}};
    streams.insert(*stream);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = LEAST_PRIORITY;
    *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    guard g(lock);
    catch_up(stream, stream->n_given);
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    guard g(lock);
    if (stream && stream->graph) return fail(cudaErrorStreamCaptureUnsupported);
    if (stream) catch_up(stream, stream->n_given);
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
/* A second stream that waits for an event of a capture joins the capture. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    guard g(lock);
    if (stream && captures.count(event->graph) && !stream->graph) stream->graph = event->graph;
    if (event->stream) catch_up(event->stream, event->n_given);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    (void)flags;
    *event = new ki_emulate_event{{}, nullptr, nullptr, 0};
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->at = std::chrono::steady_clock::now();
    event->graph = stream ? stream->graph : nullptr;
    event->stream = stream && stream->is_lazy ? stream : nullptr;
    event->n_given = event->stream ? stream->n_given : 0;
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    guard g(lock);
    if (event->stream) catch_up(event->stream, event->n_given);
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    *ms = std::chrono::duration<float, std::milli>(end->at - start->at).count();
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *data) {
    return queue(stream, [=] { fn(data); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    (void)mode;
    guard g(lock);
    if (stream->graph) return fail(cudaErrorStreamCaptureUnsupported);
    stream->graph = new ki_emulate_graph;
    captures.insert(stream->graph);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    guard g(lock);
    if (!stream->graph) return fail(cudaErrorInvalidValue);
    *graph = stream->graph;
    for (cudaStream_t s : streams) { /* a forked stream must have been joined */
        if (s->graph == *graph && !s->put_off.empty()) return fail(cudaErrorStreamCaptureUnsupported);
    }
    captures.erase(*graph);
    for (cudaStream_t s : streams) {
        if (s->graph == *graph) s->graph = nullptr;
    }
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    *status = stream->graph ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    *exec = new ki_emulate_graph(*graph);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    guard g(lock);
    if (stream && stream->device != device) return fail(cudaErrorInvalidResourceHandle);
    for (const auto &work : exec->work) work();
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
    (void)exec, (void)stream;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

} /* extern "C" */
