/* Choosing a way: collect what the libraries offer, build it, time it, keep the fastest.
 *
 * cuDNN is asked for every form of the pass (what is fused, whether dst keeps its pitch), by its
 * heuristic modes A and B, and by the fallback list where these give nothing. A candidate is run once,
 * then several times as a captured graph, which is how it will run: one that cannot be captured is of no
 * use. Building may compile a kernel and takes long, so several threads build, and the number of
 * candidates and the time spent on them are limited; the heuristics' first are seldom far from the best. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/conv_kernels.h"
#include "backend/cuda/ways.h"
#include "core/log.h"
#include "core/parallel.h"

enum {
    MAX_CANDIDATES = 64,
    OFFERS_A = 6, /* of one form */
    OFFERS_B = 3,
    OFFERS_FALLBACK = 4,
    OFFERS_LT = 6,
    REPEATS = 8 /* runs in a timed graph */
};
#define WORKSPACE_LIMIT ((size_t)512 << 20)
#define BUILD_SECONDS 4.0   /* of one pass, after which a builder starts no other candidate */
#define ROUNDING_PRICE 1.05 /* what a weight gradient rounded to bf16 must be faster by */

typedef struct candidate {
    ki_cudnn_form form;
    bool packs_dst;
    ki_cudnn_choice choice;
    ki_conv_algorithm *algorithm; /* NULL: not built */
    kith_error why;
} candidate;

typedef struct trial {
    ki_backend *backend;
    ki_cuda_libraries *libraries;
    const ki_conv_problem *problem;
    candidate candidate[MAX_CANDIDATES];
    int n, n_built; /* those before n_built have been tried */
    ki_conv_trials stats;
    kith_error why; /* the last refusal, for the log */
    double build_began;
} trial;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Only the first that can be built: nothing is timed, so that every run chooses the same. */
static bool only_first(const trial *t) { return t->backend->options.deterministic; }

/* Engines whose arithmetic is not what was asked for. Large Winograd tiles lose digits; in float32 the
 * matrix units mean TF32, and converting inputs down means less than bf16 promises. */
static bool is_allowed(const trial *t, const ki_cudnn_notes *notes) {
    unsigned banned = 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
                      1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 |
                      1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    if (t->backend->options.deterministic) banned |= 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    if (t->problem->type == KI_NUMBER_BF16 || !t->backend->options.tf32)
        banned |= 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    if (t->problem->type == KI_NUMBER_FLOAT && !t->backend->options.tf32)
        banned |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return !(notes->numerical & banned);
}

static bool is_known(const trial *t, const candidate *c) {
    for (int i = 0; i < t->n; i++) {
        const candidate *other = &t->candidate[i];
        if (other->form == c->form && other->packs_dst == c->packs_dst &&
            memcmp(&other->choice, &c->choice, sizeof c->choice) == 0)
            return true;
    }
    return false;
}

/* What one heuristic mode offers for a graph, up to `limit`. */
static void add_offers(trial *t, const ki_cudnn_graph *graph, candidate like, cudnnBackendHeurMode_t mode,
                       int limit, bool by_place) {
    cudnnBackendDescriptor_t offer[KI_CUDNN_MAX_OFFERS];
    int n = 0, n_added = 0;
    if (ki_cudnn_offers(graph, mode, KI_CUDNN_MAX_OFFERS, offer, &n, &t->why) != KITH_OK) return;
    if (!by_place) t->stats.n_offered += n;
    for (int i = 0; i < n && n_added < limit && t->n < MAX_CANDIDATES; i++) {
        ki_cudnn_notes notes;
        if (ki_cudnn_config_read(offer[i], &like.choice, &notes, &t->why) != KITH_OK) continue;
        if (!is_allowed(t, &notes)) {
            ki_fail(&t->why, KITH_EUNSUPPORTED, "engine %lld is not what was asked for (notes %x)",
                    (long long)like.choice.engine, notes.numerical);
            continue;
        }
        if (by_place) like.choice = (ki_cudnn_choice){.by_place = true, .mode = (int)mode, .place = i};
        if (is_known(t, &like)) continue;
        t->candidate[t->n++] = like;
        n_added++;
    }
    while (n > 0) (void)cudnnBackendDestroyDescriptor(offer[--n]);
}

static void add_form(trial *t, ki_cudnn_form form, bool packs_dst, bool is_second_try) {
    const ki_conv_problem seen = packs_dst ? ki_conv_packed(t->problem) : *t->problem;
    const candidate like = {.form = form, .packs_dst = packs_dst};
    ki_cudnn_graph graph;
    for (int i = 0; is_second_try && i < t->n; i++) {
        const candidate *c = &t->candidate[i];
        if (c->algorithm && c->form == form && c->packs_dst == packs_dst) return;
    }
    if (ki_cudnn_graph_init(t->libraries->cudnn, &seen, form, &graph, &t->why) != KITH_OK) return;
    if (is_second_try) add_offers(t, &graph, like, CUDNN_HEUR_MODE_FALLBACK, OFFERS_FALLBACK, false);
    add_offers(t, &graph, like, CUDNN_HEUR_MODE_A, OFFERS_A, is_second_try);
    add_offers(t, &graph, like, CUDNN_HEUR_MODE_B, OFFERS_B, is_second_try);
    ki_cudnn_graph_release(&graph);
}

static void add_forms(trial *t, bool is_second_try) {
    const ki_conv_problem *p = t->problem;
    const bool is_packed = ki_conv_dst_is_packed(p), is_forward = p->pass == KI_CONV_FORWARD;
    if (is_forward && (p->has_bias || p->has_relu)) add_form(t, KI_CUDNN_FUSED, false, is_second_try);
    if (is_forward && p->has_bias && p->type == KI_NUMBER_BF16)
        add_form(t, KI_CUDNN_STORED, false, is_second_try);
    for (int packs = 0; packs <= (is_packed ? 0 : 1); packs++) {
        if (p->pass == KI_CONV_DIFF_WEIGHTS && p->type != KI_NUMBER_FLOAT)
            add_form(t, KI_CUDNN_WIDE, packs, is_second_try);
        add_form(t, KI_CUDNN_BARE, packs, is_second_try);
    }
}

static void add_products(trial *t) {
    ki_lt_product product;
    ki_lt_call call;
    cublasLtMatmulHeuristicResult_t offer[OFFERS_LT];
    int n = 0;
    if (!ki_conv_product(t->backend, t->problem, &product)) return;
    if (ki_lt_describe(&product, &call, &t->why) != KITH_OK ||
        ki_lt_offers(t->libraries->lt, &call, &product, WORKSPACE_LIMIT / 8, OFFERS_LT, offer, &n, &t->why) !=
            KITH_OK)
        return;
    t->stats.n_offered += n;
    for (int i = 0; i < n; i++) {
        candidate *c = &t->candidate[t->n];
        if (ki_conv_way_lt(t->backend, t->problem, &offer[i].algo, offer[i].workspaceSize, &c->algorithm,
                           &t->why) != KITH_OK)
            continue;
        c->form = KI_N_CUDNN_FORMS;
        t->n++;
    }
    t->n_built = t->n;
}

static void build(trial *t, candidate *c, cudnnHandle_t handle) {
    if (ki_conv_way_cudnn(t->backend, handle, t->problem, c->form, c->packs_dst, &c->choice, &c->algorithm,
                          &c->why) != KITH_OK)
        return;
    if (c->algorithm->workspace_bytes > WORKSPACE_LIMIT + c->algorithm->packed_bytes) {
        ki_fail(&c->why, KITH_EUNSUPPORTED, "a workspace of %zu MiB", c->algorithm->workspace_bytes >> 20);
        ki_conv_algorithm_free(c->algorithm);
        c->algorithm = NULL;
    }
}

/* Builder w takes every KI_CUDA_BUILDERS-th candidate. */
static void build_range(void *context, int64_t begin, int64_t end) {
    trial *t = context;
    (void)cudaSetDevice(ki_cuda_of(t->backend)->device);
    for (int64_t w = begin; w < end; w++) {
        for (int i = t->n_built + (int)w; i < t->n; i += KI_CUDA_BUILDERS) {
            if (now() - t->build_began < BUILD_SECONDS) build(t, &t->candidate[i], t->libraries->builder[w]);
        }
    }
}

static kith_status open_builders(trial *t, kith_error *err) {
    for (int i = 0; i < KI_CUDA_BUILDERS; i++) {
        if (!t->libraries->builder[i]) KI_CUDNN(cudnnCreate(&t->libraries->builder[i]));
    }
    return KITH_OK;
}

static const candidate *first_built(const trial *t) {
    for (int i = 0; i < t->n; i++) {
        if (t->candidate[i].algorithm) return &t->candidate[i];
    }
    return NULL;
}

static kith_status build_all(trial *t, kith_error *err) {
    const int n_before = t->n_built;
    t->build_began = now();
    if (only_first(t)) {
        for (int i = t->n_built; i < t->n && !first_built(t); i++)
            build(t, &t->candidate[i], t->libraries->cudnn);
    } else if (t->n > t->n_built) {
        KI_TRY(open_builders(t, err));
        ki_parallel_for(KI_CUDA_BUILDERS, 1, build_range, t);
    }
    t->n_built = t->n;
    t->stats.build_seconds += now() - t->build_began;
    for (int i = n_before; i < t->n; i++) {
        const candidate *c = &t->candidate[i];
        if (c->why.status == KITH_OK) continue;
        t->why = c->why;
        ki_log(KITH_LOG_DEBUG, "engine %lld, form %d: %s", (long long)c->choice.engine, (int)c->form,
               c->why.message);
    }
    return KITH_OK;
}

static kith_status collect(trial *t, kith_error *err) {
    add_products(t);
    if (only_first(t) && first_built(t)) return KITH_OK;
    for (int is_second_try = 0; is_second_try < 2; is_second_try++) {
        add_forms(t, is_second_try);
        KI_TRY(build_all(t, err));
        if (only_first(t) && first_built(t)) break;
    }
    for (int i = 0; i < t->n; i++) t->stats.n_built += t->candidate[i].algorithm != NULL;
    return KITH_OK;
}

/* Scratch tensors with numbers in them, as large as the pass and its candidates need. */
static kith_status make_tensors(trial *t, ki_conv_io *ret_io, kith_error *err) {
    const ki_conv_problem *p = t->problem;
    const size_t each = ki_number_bytes(p->type);
    size_t workspace_bytes = 0;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (a && a->workspace_bytes > workspace_bytes) workspace_bytes = a->workspace_bytes;
    }
    const size_t bytes[] = {(size_t)(p->mb * p->src.image) * each,
                            (size_t)(p->mb * p->dst.image) * each,
                            (size_t)(p->oc * p->kh * p->kw * p->ic) * sizeof(float),
                            (size_t)p->oc * sizeof(float),
                            (size_t)(p->mb * p->src.image) * each,
                            workspace_bytes};
    enum { N = sizeof bytes / sizeof bytes[0] };
    char *at[N];
    size_t total = 0, filled = 0;
    for (int i = 0; i < N; i++) {
        if (i == N - 1) filled = total;
        total += ki_round_up(bytes[i], 256);
    }
    if (total > t->libraries->trial_bytes) {
        ki_cuda_free(t->backend, t->libraries->trial);
        t->libraries->trial = NULL;
        t->libraries->trial_bytes = 0;
        KI_TRY(ki_cuda_alloc(t->backend, total, &t->libraries->trial, err));
        t->libraries->trial_bytes = total;
    }
    at[0] = t->libraries->trial;
    for (int i = 1; i < N; i++) at[i] = at[i - 1] + ki_round_up(bytes[i - 1], 256);
    KI_CUDA(ki_cuda_noise(t->libraries->trial, filled, 1, ki_cuda_of(t->backend)->stream));
    *ret_io = (ki_conv_io){.src = at[0],
                           .dst = at[1],
                           .diff_dst = at[1],
                           .weights = at[2],
                           .diff_weights = at[2],
                           .diff_master = (float *)(void *)at[2],
                           .bias = (const float *)(const void *)at[3],
                           .bias_stored = at[3],
                           .diff_src = at[4],
                           .workspace = at[N - 1]};
    return KITH_OK;
}

static kith_status elapsed(const trial *t, double *ret_seconds, kith_error *err) {
    float milliseconds = 0;
    KI_CUDA(cudaEventSynchronize(t->libraries->end));
    KI_CUDA(cudaEventElapsedTime(&milliseconds, t->libraries->begin, t->libraries->end));
    *ret_seconds = 1e-3 * (double)milliseconds;
    return KITH_OK;
}

static kith_status run_once(const trial *t, ki_conv_algorithm *a, double *ret_seconds, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(t->backend)->stream;
    KI_CUDA(cudaEventRecord(t->libraries->begin, stream));
    KI_TRY(ki_conv_run(a, err));
    KI_CUDA(cudaEventRecord(t->libraries->end, stream));
    return elapsed(t, ret_seconds, err);
}

static kith_status capture(const trial *t, ki_conv_algorithm *a, int n, cudaGraphExec_t *ret_graph,
                           kith_error *err) {
    cudaStream_t stream = ki_cuda_of(t->backend)->stream;
    cudaGraph_t graph = NULL;
    kith_status status = KITH_OK;
    KI_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n && status == KITH_OK; i++) status = ki_conv_run(a, err);
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

static kith_status time_graph(const trial *t, cudaGraphExec_t graph, double *ret_seconds, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(t->backend)->stream;
    double best = 1e9;
    KI_CUDA(cudaGraphLaunch(graph, stream));
    for (int i = 0; i < 3; i++) {
        double seconds = 0;
        KI_CUDA(cudaEventRecord(t->libraries->begin, stream));
        KI_CUDA(cudaGraphLaunch(graph, stream));
        KI_CUDA(cudaEventRecord(t->libraries->end, stream));
        KI_TRY(elapsed(t, &seconds, err));
        if (seconds < best) best = seconds;
    }
    *ret_seconds = best;
    return KITH_OK;
}

/* Seconds of a candidate; one that is far behind `best` after one run is not looked at closer. */
static kith_status time_candidate(const trial *t, ki_conv_algorithm *a, const ki_conv_io *io, double best,
                                  double *ret_seconds, kith_error *err) {
    double seconds = 0;
    cudaGraphExec_t graph = NULL;
    KI_TRY(ki_conv_bind(a, io, err));
    KI_TRY(run_once(t, a, &seconds, err)); /* loads what it needs */
    KI_TRY(run_once(t, a, &seconds, err));
    *ret_seconds = seconds;
    if (seconds > 3 * best + 1e-4) return KITH_OK;
    const int n = seconds > 1e-3 ? 2 : REPEATS;
    KI_TRY(capture(t, a, n, &graph, err));
    const kith_status status = time_graph(t, graph, &seconds, err);
    (void)cudaGraphExecDestroy(graph);
    *ret_seconds = seconds / n;
    return status;
}

/* A device that no longer answers fails every further call: then there is nothing to choose from. */
static kith_status device_lives(const trial *t, kith_error *err) {
    KI_CUDA(cudaStreamSynchronize(ki_cuda_of(t->backend)->stream));
    return KITH_OK;
}

static kith_status pick(trial *t, ki_conv_algorithm **ret_best, kith_error *err) {
    ki_conv_io io;
    double best_price = 1e9, best_seconds = 1e9;
    int best = -1;
    KI_TRY(make_tensors(t, &io, err));
    const double begin = now();
    for (int i = 0; i < t->n; i++) {
        ki_conv_algorithm *a = t->candidate[i].algorithm;
        double seconds = 0;
        if (!a) continue;
        if (time_candidate(t, a, &io, best_seconds, &seconds, &t->why) != KITH_OK) {
            KI_TRY(device_lives(t, err));
            ki_log(KITH_LOG_DEBUG, "%s: %s", a->text, t->why.message);
            continue;
        }
        t->stats.n_timed++;
        a->seconds = seconds;
        const bool is_rounded = t->problem->pass == KI_CONV_DIFF_WEIGHTS && !ki_conv_accumulates(a) &&
                                ki_conv_diff_type(a) == KI_NUMBER_BF16;
        const double price = seconds * (is_rounded ? ROUNDING_PRICE : 1);
        ki_log(KITH_LOG_DEBUG, "%8.1f us  %6.1f MiB  %s", 1e6 * seconds,
               (double)a->workspace_bytes / (1 << 20), a->text);
        if (price >= best_price) continue;
        best_price = price;
        best_seconds = seconds;
        best = i;
    }
    t->stats.time_seconds = now() - begin;
    if (best < 0) return KITH_OK;
    *ret_best = t->candidate[best].algorithm;
    t->candidate[best].algorithm = NULL;
    return KITH_OK;
}

static void write_key(const ki_backend *backend, const ki_conv_problem *p, char *key, size_t key_bytes) {
    static const char *const names[KI_N_CONV_PASSES] = {"forward", "diff_src", "diff_weights"};
    const ki_conv_strides *s = &p->src, *d = &p->dst;
    snprintf(key, key_bytes,
             "%s %s mb%lld ic%lld ih%lld iw%lld oc%lld oh%lld ow%lld kh%lld kw%lld sh%lld sw%lld "
             "p%lld,%lld,%lld,%lld "
             "src%lld,%lld,%lld dst%lld,%lld,%lld%s%s%s%s%s",
             names[p->pass], p->type == KI_NUMBER_BF16 ? "bf16" : "float32", (long long)p->mb,
             (long long)p->ic, (long long)p->ih, (long long)p->iw, (long long)p->oc, (long long)p->oh,
             (long long)p->ow, (long long)p->kh, (long long)p->kw, (long long)p->sh, (long long)p->sw,
             (long long)p->ph, (long long)p->pw, (long long)p->ph_end, (long long)p->pw_end,
             (long long)s->image, (long long)s->row, (long long)s->pixel, (long long)d->image,
             (long long)d->row, (long long)d->pixel, p->has_bias ? " bias" : "", p->has_relu ? " relu" : "",
             p->plain_weights ? " plain" : "", backend->options.tf32 ? " tf32" : "",
             backend->options.deterministic ? " deterministic" : "");
}

static kith_status choose(trial *t, ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_algorithm *best = NULL;
    KI_TRY(collect(t, err));
    if (only_first(t)) {
        for (int i = 0; i < t->n && !best; i++) {
            best = t->candidate[i].algorithm;
            t->candidate[i].algorithm = NULL;
        }
    } else if (first_built(t)) {
        KI_TRY(pick(t, &best, err));
    }
    if (!best) {
        ki_log(KITH_LOG_INFO, "no library takes this convolution, the plain kernel does: %s", t->why.message);
        return ki_conv_way_plain(t->backend, t->problem, ret_algorithm, err);
    }
    *ret_algorithm = best;
    return KITH_OK;
}

kith_status ki_conv_choose(ki_backend *backend, const ki_conv_problem *problem,
                           ki_conv_algorithm **ret_algorithm, ki_conv_trials *ret_trials, kith_error *err) {
    char key[512];
    trial *t = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&t, 1, sizeof *t, "trials", err));
    t->backend = backend;
    t->problem = problem;
    KI_CHECK(ki_cuda_libraries_of(backend, &t->libraries, err));
    write_key(backend, problem, key, sizeof key);
    const char *known = ki_choices_get(t->libraries->choices, key);
    if (known && ki_conv_way_parse(backend, problem, known, ret_algorithm, &t->why) == KITH_OK) {
        t->stats.from_cache = true;
        goto done;
    }
    if (known) ki_log(KITH_LOG_WARNING, "%s: choosing anew: %s", key, t->why.message);
    KI_CHECK(choose(t, ret_algorithm, err));
    ki_log(KITH_LOG_DEBUG, "%s: %d offered, %d built, %d timed: %s", key, t->stats.n_offered,
           t->stats.n_built, t->stats.n_timed, (*ret_algorithm)->text);
    status = ki_choices_set(t->libraries->choices, key, (*ret_algorithm)->text, err);
    if (status != KITH_OK) {
        ki_conv_algorithm_free(*ret_algorithm);
        *ret_algorithm = NULL;
    }
done:
    if (ret_trials) *ret_trials = t->stats;
    for (int i = 0; i < t->n; i++) ki_conv_algorithm_free(t->candidate[i].algorithm);
    ki_free(t);
    return status;
}

void ki_conv_trials_end(ki_backend *backend) {
    ki_cuda_libraries *libraries = ki_cuda_of(backend)->libraries;
    if (!libraries) return;
    ki_cuda_free(backend, libraries->trial);
    libraries->trial = NULL;
    libraries->trial_bytes = 0;
    ki_choices_save(libraries->choices);
}
