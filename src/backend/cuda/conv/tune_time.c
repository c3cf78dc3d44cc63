/* Times the candidates for a pass and chooses the fastest.
 *
 * A candidate is run twice, then several times as a captured graph, because it will be used that way: one that
 * cannot be captured is useless. The fastest weight gradient in bf16 must also pass a test of its rounding
 * (rounding.h). */
#include "backend/cuda/conv/tune.h"

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/conv/rounding.h"
#include "base/clock.h"
#include "base/log.h"

#define FINALISTS 1.08 /* times the fastest: timed again */

enum { REPEATS = 8, LAUNCHES = 3 }; /* runs in a timed graph, and how often it is launched */

static kith_status elapsed(const ki_conv_way *w, double *ret_seconds, kith_error *err) {
    float milliseconds = 0;
    KI_CUDA(cudaEventSynchronize(w->libraries->end));
    KI_CUDA(cudaEventElapsedTime(&milliseconds, w->libraries->begin, w->libraries->end));
    *ret_seconds = 1e-3 * (double)milliseconds;
    return KITH_OK;
}

static kith_status run_once(ki_conv_way *w, double *ret_seconds, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(w->backend)->stream;
    KI_CUDA(cudaEventRecord(w->libraries->begin, stream));
    KI_TRY(ki_conv_way_run(w, stream, err));
    KI_CUDA(cudaEventRecord(w->libraries->end, stream));
    return elapsed(w, ret_seconds, err);
}

static kith_status capture(ki_conv_way *w, int n, cudaGraphExec_t *ret_graph, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(w->backend)->stream;
    cudaGraph_t graph = NULL;
    kith_status status = KITH_OK;
    KI_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n && status == KITH_OK; i++) status = ki_conv_way_run(w, stream, err);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (status == KITH_OK && ended != cudaSuccess) status = ki_cuda_fail(err, ended, "cudaStreamEndCapture");
    if (status == KITH_OK) {
        const cudaError_t made = cudaGraphInstantiate(ret_graph, graph, 0);
        if (made != cudaSuccess) status = ki_cuda_fail(err, made, "cudaGraphInstantiate");
    }
    if (graph) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return status;
}

static kith_status time_graph(const ki_conv_way *w, cudaGraphExec_t graph, int n_launches,
                              double *ret_seconds, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(w->backend)->stream;
    double best = 1e9;
    KI_CUDA(cudaGraphLaunch(graph, stream));
    for (int i = 0; i < n_launches; i++) {
        double seconds = 0;
        KI_CUDA(cudaEventRecord(w->libraries->begin, stream));
        KI_CUDA(cudaGraphLaunch(graph, stream));
        KI_CUDA(cudaEventRecord(w->libraries->end, stream));
        KI_TRY(elapsed(w, &seconds, err));
        if (seconds < best) best = seconds;
    }
    *ret_seconds = best;
    return KITH_OK;
}

/* Seconds of a run, of n in a graph. */
static kith_status time_runs(ki_conv_way *w, int n, int n_launches, double *ret_seconds, kith_error *err) {
    cudaGraphExec_t graph = NULL;
    double seconds = 0;
    KI_TRY(capture(w, n, &graph, err));
    const kith_status status = time_graph(w, graph, n_launches, &seconds, err);
    (void)cudaGraphExecDestroy(graph);
    *ret_seconds = seconds / n;
    return status;
}

/* Long runs are timed one by one: the time of a launch is negligible. */
#define LONG_SECONDS 1e-3

static bool can_be_captured(ki_conv_way *w, kith_error *err) {
    cudaGraphExec_t graph = NULL;
    const bool can = capture(w, 1, &graph, err) == KITH_OK;
    if (can) (void)cudaGraphExecDestroy(graph);
    return can;
}

/* Seconds of one run, bound to io; a way that is much slower than `best` seconds is timed only roughly.
 * Waits. A way that cannot be captured is an error. */
static kith_status time_way(ki_conv_way *w, const ki_conv_io *io, double best, double *ret_seconds,
                            kith_error *err) {
    double seconds = 0;
    KI_TRY(ki_conv_way_bind(w, io, err));
    KI_TRY(run_once(w, &seconds, err)); /* loads what it needs */
    KI_TRY(run_once(w, &seconds, err));
    *ret_seconds = seconds;
    if (seconds > 3 * best + 1e-4) return KITH_OK;
    if (seconds <= LONG_SECONDS) return time_runs(w, REPEATS, LAUNCHES, ret_seconds, err);
    if (!can_be_captured(w, err)) return KITH_EUNSUPPORTED;
    if (seconds > 1.5 * best) return KITH_OK;
    KI_TRY(run_once(w, ret_seconds, err));
    if (seconds < *ret_seconds) *ret_seconds = seconds;
    return KITH_OK;
}

/* The same with more runs, to tell algorithms of similar speed apart. */
static kith_status time_closely(ki_conv_way *w, const ki_conv_io *io, double *ret_seconds, kith_error *err) {
    KI_TRY(ki_conv_way_bind(w, io, err));
    if (w->seconds > LONG_SECONDS) return time_runs(w, 1, LAUNCHES, ret_seconds, err);
    return time_runs(w, 4 * REPEATS, 2 * LAUNCHES, ret_seconds, err);
}

/* Scratch tensors with numbers in them, as large as the pass and its candidates need. */
static kith_status make_tensors(ki_conv_contest *t, ki_conv_io *ret_io, kith_error *err) {
    const ki_conv_problem *p = t->problem;
    const size_t each = ki_number_bytes(p->type);
    size_t workspace_bytes = 0;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_way *w = t->candidate[i].way;
        if (w && w->workspace_bytes > workspace_bytes) workspace_bytes = w->workspace_bytes;
    }
    const size_t bytes[] = {(size_t)(p->mb * p->src.image) * each,
                            (size_t)(p->mb * p->dst.image) * each,
                            (size_t)(p->oc * p->kh * p->kw * ki_conv_group_ic(p)) * sizeof(float),
                            (size_t)p->oc * sizeof(float),
                            (size_t)(p->mb * p->src.image) * each,
                            p->adds && p->pass == KI_CONV_FORWARD ? (size_t)(p->mb * p->dst.image) * each : 0,
                            workspace_bytes};
    enum { N = sizeof bytes / sizeof bytes[0] };
    char *at[N];
    size_t total = 0, filled = 0;
    for (int i = 0; i < N; i++) {
        if (i == N - 1) filled = total;
        total += ki_round_up(bytes[i], 256);
    }
    if (total > t->libraries->tune_bytes) {
        ki_cuda_free(t->backend, t->libraries->tune_memory);
        t->libraries->tune_memory = NULL;
        t->libraries->tune_bytes = 0;
        KI_TRY(ki_cuda_alloc(t->backend, total, &t->libraries->tune_memory, err));
        t->libraries->tune_bytes = total;
    }
    at[0] = t->libraries->tune_memory;
    for (int i = 1; i < N; i++) at[i] = at[i - 1] + ki_round_up(bytes[i - 1], 256);
    KI_CUDA(ki_cuda_noise(t->libraries->tune_memory, filled, 1, ki_cuda_of(t->backend)->stream));
    *ret_io = (ki_conv_io){.src = at[0],
                           .dst = at[1],
                           .diff_dst = at[1],
                           .weights = at[2],
                           .diff_weights = at[2],
                           .diff_master = (float *)(void *)at[2],
                           .bias = (const float *)(const void *)at[3],
                           .bias_stored = at[3],
                           .diff_src = at[4],
                           .added = at[5],
                           .workspace = at[N - 1]};
    return KITH_OK;
}

/* If the device no longer answers, every further call fails, and there is nothing to choose from. */
static kith_status device_lives(const ki_conv_contest *t, kith_error *err) {
    KI_CUDA(cudaStreamSynchronize(ki_cuda_of(t->backend)->stream));
    return KITH_OK;
}

static kith_status time_all(ki_conv_contest *t, const ki_conv_io *io, kith_error *err) {
    double best = 1e9;
    for (int i = 0; i < t->n; i++) {
        ki_conv_way *w = t->candidate[i].way;
        if (!w) continue;
        if (w->seconds > 0) { /* timed before */
            if (w->seconds < best) best = w->seconds;
            continue;
        }
        if (time_way(w, io, best, &w->seconds, &t->why) != KITH_OK) {
            KI_TRY(device_lives(t, err));
            ki_log(KITH_LOG_DEBUG, "%s: %s", w->text, t->why.message);
            ki_conv_way_free(w);
            t->candidate[i].way = NULL;
            continue;
        }
        t->stats.n_timed++;
        ki_log(KITH_LOG_DEBUG, "%8.1f us  %6.1f MiB  %s", 1e6 * w->seconds,
               (double)w->workspace_bytes / (1 << 20), w->text);
        if (w->seconds < best) best = w->seconds;
    }
    return KITH_OK;
}

kith_status ki_tune_time(ki_conv_contest *t, ki_conv_io *ret_io, kith_error *err) {
    KI_TRY(make_tensors(t, ret_io, err));
    return time_all(t, ret_io, err);
}

static int fastest(const ki_conv_contest *t) {
    int best = -1;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_way *w = t->candidate[i].way;
        if (w && (best < 0 || w->seconds < t->candidate[best].way->seconds)) best = i;
    }
    return best;
}

/* The fastest few often differ by a few percent, and a short timing cannot tell them apart reliably. */
static kith_status time_finalists(ki_conv_contest *t, const ki_conv_io *io, kith_error *err) {
    const int first = fastest(t);
    if (first < 0) return KITH_OK;
    const double limit = FINALISTS * t->candidate[first].way->seconds;
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_way *w = t->candidate[i].way;
        n += w && w->seconds <= limit;
    }
    for (int i = 0; n > 1 && i < t->n; i++) {
        ki_conv_way *w = t->candidate[i].way;
        if (!w || w->seconds > limit) continue;
        KI_TRY(time_closely(w, io, &w->seconds, err));
        ki_log(KITH_LOG_DEBUG, "%8.1f us at a closer look  %s", 1e6 * w->seconds, w->text);
    }
    return KITH_OK;
}

kith_status ki_tune_pick(ki_conv_contest *t, ki_conv_way **ret_best, kith_error *err) {
    ki_conv_io io;
    ki_conv_way *least = NULL;
    double least_off = 1e9;
    const double begin = ki_seconds_now();
    const bool checks = ki_conv_can_check_rounding(t->problem);
    kith_status status = KITH_OK;
    KI_CHECK(ki_tune_time(t, &io, err));
    if (fastest(t) >= 0) {
        ki_tune_collect_tiles(t, t->candidate[fastest(t)].way->seconds);
        KI_CHECK(ki_tune_time(t, &io, err));
    }
    KI_CHECK(time_finalists(t, &io, err));
    for (int best = fastest(t); best >= 0; best = fastest(t)) {
        ki_conv_way *w = t->candidate[best].way;
        double off = 0;
        if (checks && !ki_conv_way_accumulates(w) && ki_conv_way_diff_type(w) == KI_NUMBER_BF16)
            KI_CHECK(ki_conv_rounding(t->backend, t->problem, w, &io, &off, err));
        t->candidate[best].way = NULL;
        if (off < least_off) {
            ki_conv_way_free(least);
            least = w;
            least_off = off;
        } else {
            ki_conv_way_free(w);
        }
        if (least_off <= KI_CONV_ROUNDING) break;
        t->stats.n_wrong++;
    }
    if (least && least_off > KI_CONV_ROUNDING)
        ki_log(KITH_LOG_WARNING, "a weight gradient is off by %.2g of itself: %s", least_off, least->text);
    *ret_best = least;
    least = NULL;
done:
    ki_conv_way_free(least);
    t->stats.time_seconds = ki_seconds_now() - begin;
    return status;
}
