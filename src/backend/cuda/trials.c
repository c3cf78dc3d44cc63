/* Choosing a way: collect what the libraries offer, build it, time it, keep the fastest.
 *
 * cuDNN is asked for every form of the pass (what is fused, whether dst keeps its pitch) by its
 * heuristic modes A and B. In float32 without TF32 these name little else than engines on the matrix
 * units, which is TF32, so all engines are gone through by number, and those not far from the fastest again with
 * each of their tile sizes. Of engines that compile a kernel, which takes as long as a hundred others, only a few
 * are taken; the fallback list is asked where there is nothing else. A candidate is run twice, then several times
 * as a captured graph, which is how it will run: one that cannot be captured is of no use.
 *
 * A large batch is not timed itself: what is fastest for 256 images, which fill a device, is so for more.
 *
 * The fastest weight gradient in bf16 must also pass a test of its rounding (rounding.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/conv_kernels.h"
#include "backend/cuda/rounding.h"
#include "backend/cuda/ways.h"
#include "core/log.h"

enum {
    MAX_CANDIDATES = 192,
    OFFERS = 12,     /* of one form and heuristic mode */
    OFFERS_MORE = 4, /* of a form that is seldom the best */
    OFFERS_LT = 8,
    COMPILED = 3, /* engines that compile a kernel, of one form and mode */
};
#define WORKSPACE_LIMIT ((size_t)512 << 20) /* or what a copy of both maps takes */
#define TILES 2.0                           /* times the fastest: an engine whose tile sizes are all tried */
#define FINALISTS 1.08                      /* times the fastest: looked at again */
#define BUILD_SECONDS 4.0                   /* of one pass, after which no more candidates are built */
#define MOST_IMAGES 256 /* larger batches take what is best for so many: it takes as long */

typedef struct candidate {
    ki_cudnn_form form;
    bool packs_dst;
    ki_cudnn_choice choice;
    int64_t n_tiles;              /* tile sizes its engine has beside the one it takes by itself */
    ki_conv_algorithm *algorithm; /* NULL: not built */
    bool is_timed;
} candidate;

typedef struct trial {
    ki_backend *backend;
    ki_cuda_libraries *libraries;
    const ki_conv_problem *problem;
    candidate candidate[MAX_CANDIDATES];
    int n, n_built; /* those before n_built have been tried */
    ki_conv_trials stats;
    kith_error why; /* the last refusal, for the log */
} trial;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Only the first that can be built, untimed: every run must choose the same, and there is no file to remember a
 * choice in. */
static bool only_first(const trial *t) {
    return t->backend->options.deterministic && !ki_choices_are_kept(t->libraries->choices);
}

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

static void add(trial *t, const candidate *c) {
    if (t->n < MAX_CANDIDATES && !is_known(t, c)) t->candidate[t->n++] = *c;
}

static bool compiles(const ki_cudnn_notes *notes) {
    return (notes->behavior & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != 0;
}

/* What one heuristic mode offers for a graph. */
static void add_offers(trial *t, const ki_cudnn_graph *graph, candidate like, cudnnBackendHeurMode_t mode,
                       int most, bool is_second_try) {
    cudnnBackendDescriptor_t offer[KI_CUDNN_MAX_OFFERS];
    int n = 0;
    if (ki_cudnn_offers(graph, mode, KI_CUDNN_MAX_OFFERS, offer, &n, &t->why) != KITH_OK) return;
    t->stats.n_offered += n;
    int n_compiled = 0;
    const int limit = t->n + most;
    for (int i = 0; i < n && t->n < limit; i++) {
        ki_cudnn_notes notes;
        if (ki_cudnn_config_read(offer[i], &like.choice, &notes, &t->why) != KITH_OK) continue;
        if (!is_allowed(t, &notes)) {
            ki_fail(&t->why, KITH_EUNSUPPORTED, "engine %lld is not what was asked for (notes %x)",
                    (long long)like.choice.engine, notes.numerical);
            continue;
        }
        if (compiles(&notes) && !is_second_try && ++n_compiled > COMPILED) continue;
        add(t, &like);
        if (!is_second_try) continue;
        memset(&like.choice, 0, sizeof like.choice);
        like.choice.by_place = true, like.choice.mode = (int)mode, like.choice.place = i;
        add(t, &like);
    }
    while (n > 0) (void)cudnnBackendDestroyDescriptor(offer[--n]);
}

/* Every engine there is, newest first, as it is by itself. */
static void add_engines(trial *t, const ki_cudnn_graph *graph, candidate like) {
    int64_t n = 0;
    if (ki_cudnn_engine_count(graph, &n, &t->why) != KITH_OK) return;
    for (int64_t number = n - 1; number >= 0; number--) {
        ki_cudnn_notes notes;
        if (ki_cudnn_engine_look(graph, number, &notes, &like.n_tiles, &t->why) != KITH_OK) continue;
        if (!is_allowed(t, &notes) || compiles(&notes)) continue;
        t->stats.n_offered++;
        memset(&like.choice, 0, sizeof like.choice);
        like.choice.engine = number;
        add(t, &like);
    }
}

/* All tile sizes of the engines that came near the fastest. */
static void add_tiles(trial *t, double fastest_seconds) {
    const int n = t->n;
    for (int i = 0; i < n; i++) {
        candidate like = t->candidate[i];
        if (!like.algorithm || like.algorithm->seconds > TILES * fastest_seconds) continue;
        like.algorithm = NULL;
        like.is_timed = false;
        like.choice.n_knobs = 1;
        like.choice.knob[0] = CUDNN_KNOB_TYPE_TILE_SIZE;
        for (int64_t tile = 0; tile < like.n_tiles; tile++) {
            like.choice.value[0] = tile;
            add(t, &like);
        }
    }
}

static void add_form(trial *t, ki_cudnn_form form, bool packs_dst, int most, bool is_second_try) {
    const ki_conv_problem seen = packs_dst ? ki_conv_packed(t->problem) : *t->problem;
    const candidate like = {.form = form, .packs_dst = packs_dst};
    const bool is_exact = seen.type == KI_NUMBER_FLOAT && !t->backend->options.tf32;
    ki_cudnn_graph graph;
    if (ki_cudnn_graph_init(t->libraries->cudnn, &seen, form, &graph, &t->why) != KITH_OK) return;
    add_offers(t, &graph, like, CUDNN_HEUR_MODE_A, most, is_second_try);
    add_offers(t, &graph, like, CUDNN_HEUR_MODE_B, most, is_second_try);
    if (is_second_try) add_offers(t, &graph, like, CUDNN_HEUR_MODE_FALLBACK, most, is_second_try);
    if (is_exact && !is_second_try) add_engines(t, &graph, like);
    ki_cudnn_graph_release(&graph);
}

static void add_forms(trial *t, bool is_second_try) {
    const ki_conv_problem *p = t->problem;
    const bool can_fuse = p->pass == KI_CONV_FORWARD && (p->has_bias || p->has_relu);
    if (p->adds) return; /* only products do */
    if (can_fuse) add_form(t, KI_CUDNN_FUSED, false, OFFERS, is_second_try);
    add_form(t, KI_CUDNN_BARE, false, can_fuse ? OFFERS_MORE : OFFERS, is_second_try);
    if (!ki_conv_dst_is_packed(p)) add_form(t, KI_CUDNN_BARE, true, OFFERS, is_second_try);
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

static const candidate *first_built(const trial *t) {
    for (int i = 0; i < t->n; i++) {
        if (t->candidate[i].algorithm) return &t->candidate[i];
    }
    return NULL;
}

/* Engines that change layouts need room for the maps in the other one. */
static size_t workspace_limit(const ki_conv_problem *p) {
    const size_t maps = (size_t)(p->mb * (p->src.image + p->dst.image)) * ki_number_bytes(p->type);
    const size_t least = WORKSPACE_LIMIT * (size_t)(p->mb > MOST_IMAGES ? p->mb : MOST_IMAGES) / MOST_IMAGES;
    return maps + maps / 4 > least ? maps + maps / 4 : least;
}

static void build(trial *t, candidate *c) {
    if (ki_conv_way_cudnn(t->backend, t->problem, c->form, c->packs_dst, &c->choice, &c->algorithm,
                          &t->why) != KITH_OK) {
        ki_log(KITH_LOG_DEBUG, "engine %lld, form %d: %s", (long long)c->choice.engine, (int)c->form,
               t->why.message);
    } else if (c->algorithm->workspace_bytes > workspace_limit(t->problem) + c->algorithm->packed_bytes) {
        ki_fail(&t->why, KITH_EUNSUPPORTED, "a workspace of %zu MiB", c->algorithm->workspace_bytes >> 20);
        ki_conv_algorithm_free(c->algorithm);
        c->algorithm = NULL;
    }
}

static void build_all(trial *t) {
    const double begin = now();
    for (; t->n_built < t->n; t->n_built++) {
        if (first_built(t) && (only_first(t) || now() - begin > BUILD_SECONDS)) continue;
        build(t, &t->candidate[t->n_built]);
    }
}

static void collect(trial *t) {
    const double begin = now();
    add_products(t);
    for (int is_second_try = 0; is_second_try < 2; is_second_try++) {
        if (first_built(t) && (only_first(t) || is_second_try)) break;
        add_forms(t, is_second_try);
        build_all(t);
    }
    for (int i = 0; i < t->n; i++) t->stats.n_built += t->candidate[i].algorithm != NULL;
    t->stats.build_seconds = now() - begin;
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

/* A device that no longer answers fails every further call: then there is nothing to choose from. */
static kith_status device_lives(const trial *t, kith_error *err) {
    KI_CUDA(cudaStreamSynchronize(ki_cuda_of(t->backend)->stream));
    return KITH_OK;
}

static kith_status time_all(trial *t, const ki_conv_io *io, kith_error *err) {
    double best = 1e9;
    for (int i = 0; i < t->n; i++) {
        ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (!a) continue;
        if (t->candidate[i].is_timed) {
            if (a->seconds < best) best = a->seconds;
            continue;
        }
        t->candidate[i].is_timed = true;
        if (ki_conv_time(a, io, best, &a->seconds, &t->why) != KITH_OK) {
            KI_TRY(device_lives(t, err));
            ki_log(KITH_LOG_DEBUG, "%s: %s", a->text, t->why.message);
            ki_conv_algorithm_free(a);
            t->candidate[i].algorithm = NULL;
            continue;
        }
        t->stats.n_timed++;
        ki_log(KITH_LOG_DEBUG, "%8.1f us  %6.1f MiB  %s", 1e6 * a->seconds,
               (double)a->workspace_bytes / (1 << 20), a->text);
        if (a->seconds < best) best = a->seconds;
    }
    return KITH_OK;
}

static int fastest(const trial *t) {
    int best = -1;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (a && (best < 0 || a->seconds < t->candidate[best].algorithm->seconds)) best = i;
    }
    return best;
}

/* The fastest few are often a few percent apart, which a short look does not tell reliably. */
static kith_status time_finalists(trial *t, const ki_conv_io *io, kith_error *err) {
    const int first = fastest(t);
    if (first < 0) return KITH_OK;
    const double limit = FINALISTS * t->candidate[first].algorithm->seconds;
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_algorithm *a = t->candidate[i].algorithm;
        n += a && a->seconds <= limit;
    }
    for (int i = 0; n > 1 && i < t->n; i++) {
        ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (!a || a->seconds > limit) continue;
        KI_TRY(ki_conv_time_closely(a, io, &a->seconds, err));
        ki_log(KITH_LOG_DEBUG, "%8.1f us at a closer look  %s", 1e6 * a->seconds, a->text);
    }
    return KITH_OK;
}

/* The fastest that rounds well, else the one that does best; *ret_best stays NULL when nothing can be run. */
static kith_status pick(trial *t, ki_conv_algorithm **ret_best, kith_error *err) {
    ki_conv_io io;
    ki_conv_algorithm *least = NULL;
    double least_off = 1e9;
    const double begin = now();
    const bool checks = ki_conv_can_check_rounding(t->problem);
    kith_status status = KITH_OK;
    KI_CHECK(make_tensors(t, &io, err));
    KI_CHECK(time_all(t, &io, err));
    if (fastest(t) >= 0) {
        add_tiles(t, t->candidate[fastest(t)].algorithm->seconds);
        build_all(t);
        KI_CHECK(make_tensors(t, &io, err));
        KI_CHECK(time_all(t, &io, err));
    }
    KI_CHECK(time_finalists(t, &io, err));
    for (int best = fastest(t); best >= 0; best = fastest(t)) {
        ki_conv_algorithm *a = t->candidate[best].algorithm;
        double off = 0;
        if (checks && !ki_conv_accumulates(a))
            KI_CHECK(ki_conv_rounding(t->backend, t->problem, a, &io, &off, err));
        t->candidate[best].algorithm = NULL;
        if (off < least_off) {
            ki_conv_algorithm_free(least);
            least = a;
            least_off = off;
        } else {
            ki_conv_algorithm_free(a);
        }
        if (least_off <= KI_CONV_ROUNDING) break;
        t->stats.n_wrong++;
    }
    if (least && least_off > KI_CONV_ROUNDING)
        ki_log(KITH_LOG_WARNING, "a weight gradient is off by %.2g of itself: %s", least_off, least->text);
    *ret_best = least;
    least = NULL;
done:
    ki_conv_algorithm_free(least);
    t->stats.time_seconds = now() - begin;
    return status;
}

static void write_key(const ki_backend *backend, const ki_conv_problem *p, char *key, size_t key_bytes) {
    static const char *const names[KI_N_CONV_PASSES] = {"forward", "diff_src", "diff_weights"};
    const ki_conv_strides *s = &p->src, *d = &p->dst;
    snprintf(key, key_bytes,
             "%s %s mb%lld ic%lld ih%lld iw%lld oc%lld oh%lld ow%lld kh%lld kw%lld sh%lld sw%lld "
             "p%lld,%lld,%lld,%lld "
             "src%lld,%lld,%lld dst%lld,%lld,%lld%s%s%s%s%s%s",
             names[p->pass], p->type == KI_NUMBER_BF16 ? "bf16" : "float32", (long long)p->mb,
             (long long)p->ic, (long long)p->ih, (long long)p->iw, (long long)p->oc, (long long)p->oh,
             (long long)p->ow, (long long)p->kh, (long long)p->kw, (long long)p->sh, (long long)p->sw,
             (long long)p->ph, (long long)p->pw, (long long)p->ph_end, (long long)p->pw_end,
             (long long)s->image, (long long)s->row, (long long)s->pixel, (long long)d->image,
             (long long)d->row, (long long)d->pixel, p->has_bias ? " bias" : "", p->has_relu ? " relu" : "",
             p->adds ? " adds" : "", p->plain_weights ? " plain" : "", backend->options.tf32 ? " tf32" : "",
             backend->options.deterministic ? " repeatable" : "");
}

static kith_status choose(trial *t, ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_algorithm *best = NULL;
    collect(t);
    if (only_first(t)) {
        for (int i = 0; i < t->n && !best; i++) {
            best = t->candidate[i].algorithm;
            t->candidate[i].algorithm = NULL;
        }
    } else if (first_built(t)) {
        KI_TRY(pick(t, &best, err));
    }
    if (!best) {
        ki_log(KITH_LOG_DEBUG, "no library takes this convolution, the plain kernel does: %s",
               t->why.message);
        return ki_conv_way_plain(t->backend, t->problem, ret_algorithm, err);
    }
    *ret_algorithm = best;
    return KITH_OK;
}

/* What was remembered for the key, if it can be had; else *ret_algorithm stays NULL. */
static void recall(trial *t, const char *key, ki_conv_algorithm **ret_algorithm) {
    const char *known = ki_choices_get(t->libraries->choices, key);
    char *text = NULL;
    const double seconds = known ? strtod(known, &text) : 0; /* "SECONDS TEXT" */
    if (known && *text == ' ' &&
        ki_conv_way_parse(t->backend, t->problem, text + 1, ret_algorithm, &t->why) == KITH_OK) {
        (*ret_algorithm)->seconds = seconds;
        t->stats.from_cache = true;
        return;
    }
    *ret_algorithm = NULL;
    if (known) ki_log(KITH_LOG_WARNING, "%s: choosing anew: %s", key, t->why.message);
}

static kith_status remember(const trial *t, const char *key, const ki_conv_algorithm *algorithm,
                            kith_error *err) {
    char value[KI_CONV_TEXT + 32];
    snprintf(value, sizeof value, "%.4g %s", algorithm->seconds, algorithm->text);
    return ki_choices_set(t->libraries->choices, key, value, err);
}

/* In deterministic mode everybody must choose the same, also those who are choosing at this moment: what somebody has
 * saved meanwhile is taken, and one's own choice is saved at once. */
static kith_status choose_with_others(trial *t, const char *key, ki_conv_algorithm **ret_algorithm,
                                      kith_error *err) {
    ki_choices *choices = t->libraries->choices;
    ki_conv_algorithm *theirs = NULL;
    ki_choices_refresh(choices);
    recall(t, key, ret_algorithm);
    if (*ret_algorithm) return KITH_OK;
    KI_TRY(choose(t, ret_algorithm, err));
    ki_choices_refresh(choices);
    recall(t, key, &theirs);
    if (theirs) {
        ki_conv_algorithm_free(*ret_algorithm);
        *ret_algorithm = theirs;
        return KITH_OK;
    }
    KI_TRY(remember(t, key, *ret_algorithm, err));
    ki_choices_save(choices);
    return KITH_OK;
}

/* What was chosen for fewer images, if it can be had for these too; else *ret_algorithm stays NULL. Places in cuDNN's
 * list are no choice for another size. */
static kith_status choose_for_fewer(trial *t, ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_problem few = *t->problem;
    ki_conv_algorithm *small = NULL;
    candidate *only = &t->candidate[0];
    ki_conv_io io;
    few.mb = MOST_IMAGES;
    KI_TRY(ki_conv_choose(t->backend, &few, &small, NULL, err));
    if (small->way == KI_WAY_CUDNN && small->choice.by_place)
        only->algorithm = NULL;
    else if (ki_conv_way_parse(t->backend, t->problem, small->text, &only->algorithm, &t->why) == KITH_OK)
        t->n = t->n_built = 1;
    ki_conv_algorithm_free(small);
    if (t->n == 1 &&
        only->algorithm->workspace_bytes <= workspace_limit(t->problem) + only->algorithm->packed_bytes) {
        KI_TRY(make_tensors(t, &io, err));
        KI_TRY(time_all(t, &io, err)); /* does it run at all? */
        *ret_algorithm = only->algorithm;
        only->algorithm = NULL;
    }
    ki_conv_algorithm_free(only->algorithm);
    memset(only, 0, sizeof *only);
    t->n = t->n_built = 0;
    return KITH_OK;
}

static void say_once(const trial *t) {
    if (!t->libraries->has_said)
        ki_log(KITH_LOG_INFO, "timing ways to compute convolutions of these sizes on this device%s",
               ki_choices_are_kept(t->libraries->choices) ? "; the next run will know them" : "");
    t->libraries->has_said = true;
}

kith_status ki_conv_choose(ki_backend *backend, const ki_conv_problem *problem,
                           ki_conv_algorithm **ret_algorithm, ki_conv_trials *ret_trials, kith_error *err) {
    char key[512];
    trial *t = NULL;
    kith_status status = KITH_OK;
    *ret_algorithm = NULL;
    KI_TRY(ki_zalloc_or(&t, 1, sizeof *t, "trials", err));
    t->backend = backend;
    t->problem = problem;
    KI_CHECK(ki_cuda_libraries_of(backend, &t->libraries, err));
    write_key(backend, problem, key, sizeof key);
    recall(t, key, ret_algorithm);
    if (*ret_algorithm) goto done;
    if (problem->mb > MOST_IMAGES) KI_CHECK(choose_for_fewer(t, ret_algorithm, err));
    if (*ret_algorithm) goto done;
    say_once(t);
    if (backend->options.deterministic) {
        KI_CHECK(choose_with_others(t, key, ret_algorithm, err));
    } else {
        KI_CHECK(choose(t, ret_algorithm, err));
        KI_CHECK(remember(t, key, *ret_algorithm, err));
    }
    ki_log(KITH_LOG_DEBUG, "%s: %d offered, %d built, %d timed: %s", key, t->stats.n_offered,
           t->stats.n_built, t->stats.n_timed, (*ret_algorithm)->text);
done:
    if (status != KITH_OK) {
        ki_conv_algorithm_free(*ret_algorithm);
        *ret_algorithm = NULL;
    }
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
