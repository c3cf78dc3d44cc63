/* The candidates for a pass, and building them.
 *
 * cuDNN is asked for every form of the pass (what is fused, whether dst keeps its pitch) by its heuristic modes A
 * and B. In float32 without TF32 these offer almost only engines on the matrix units, which means TF32. So all
 * engines are tried by number, and those not far from the fastest again with each of their tile sizes. Compiling
 * a kernel takes as long as a hundred other engines, so only a few engines that do so are tried. The fallback
 * list is used if there is nothing else. */
#include <string.h>

#include "backend/cuda/conv/tune.h"
#include "base/clock.h"
#include "base/log.h"

enum {
    OFFERS = 12,     /* of one form and heuristic mode */
    OFFERS_MORE = 4, /* of a form that is rarely the best */
    OFFERS_LT = 8,
    COMPILED = 3, /* engines that compile a kernel, of one form and mode */
};
#define WORKSPACE_LIMIT ((size_t)512 << 20) /* or what a copy of both maps takes */
#define TILES 2.0                           /* times the fastest: an engine whose tile sizes are all tried */
#define BUILD_SECONDS 4.0                   /* of one pass, after which no more candidates are built */

bool ki_tune_takes_first(const ki_conv_contest *t) {
    return t->backend->options.deterministic && !ki_remembered_is_kept(t->libraries->remembered);
}

/* Engines whose arithmetic is not what was asked for. Large Winograd tiles lose digits; in float32 the
 * matrix units mean TF32, and converting inputs down means less than bf16 promises. */
static bool is_allowed(const ki_conv_contest *t, const ki_cudnn_notes *notes) {
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

static bool is_known(const ki_conv_contest *t, const ki_tune_candidate *c) {
    for (int i = 0; i < t->n; i++) {
        const ki_tune_candidate *other = &t->candidate[i];
        if (other->form == c->form && other->packs_dst == c->packs_dst &&
            memcmp(&other->setting, &c->setting, sizeof c->setting) == 0)
            return true;
    }
    return false;
}

static void add(ki_conv_contest *t, const ki_tune_candidate *c) {
    if (t->n < KI_TUNE_MOST && !is_known(t, c)) t->candidate[t->n++] = *c;
}

static bool compiles(const ki_cudnn_notes *notes) {
    return (notes->behavior & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != 0;
}

/* What one heuristic mode offers for a graph. */
static void add_offers(ki_conv_contest *t, const ki_cudnn_graph *graph, ki_tune_candidate like,
                       cudnnBackendHeurMode_t mode, int most, bool is_second_try) {
    cudnnBackendDescriptor_t offer[KI_CUDNN_MAX_OFFERS];
    int n = 0;
    if (ki_cudnn_offers(graph, mode, KI_CUDNN_MAX_OFFERS, offer, &n, &t->why) != KITH_OK) return;
    t->stats.n_offered += n;
    int n_compiled = 0;
    const int limit = t->n + most;
    for (int i = 0; i < n && t->n < limit; i++) {
        ki_cudnn_notes notes;
        if (ki_cudnn_config_read(offer[i], &like.setting, &notes, &t->why) != KITH_OK) continue;
        if (!is_allowed(t, &notes)) {
            ki_fail(&t->why, KITH_EUNSUPPORTED, "engine %lld is not what was asked for (notes %x)",
                    (long long)like.setting.engine, notes.numerical);
            continue;
        }
        if (compiles(&notes) && !is_second_try && ++n_compiled > COMPILED) continue;
        add(t, &like);
        if (!is_second_try) continue;
        memset(&like.setting, 0, sizeof like.setting);
        like.setting.by_place = true, like.setting.mode = (int)mode, like.setting.place = i;
        add(t, &like);
    }
    while (n > 0) (void)cudnnBackendDestroyDescriptor(offer[--n]);
}

/* Every engine, newest first, with its default settings. */
static void add_engines(ki_conv_contest *t, const ki_cudnn_graph *graph, ki_tune_candidate like) {
    int64_t n = 0;
    if (ki_cudnn_engine_count(graph, &n, &t->why) != KITH_OK) return;
    for (int64_t number = n - 1; number >= 0; number--) {
        ki_cudnn_notes notes;
        if (ki_cudnn_engine_look(graph, number, &notes, &like.n_tiles, &t->why) != KITH_OK) continue;
        if (!is_allowed(t, &notes) || compiles(&notes)) continue;
        t->stats.n_offered++;
        memset(&like.setting, 0, sizeof like.setting);
        like.setting.engine = number;
        add(t, &like);
    }
}

static void add_form(ki_conv_contest *t, ki_cudnn_form form, bool packs_dst, int most, bool is_second_try) {
    const ki_conv_problem seen = packs_dst ? ki_conv_packed(t->problem) : *t->problem;
    const ki_tune_candidate like = {.form = form, .packs_dst = packs_dst};
    const bool is_exact = seen.type == KI_NUMBER_FLOAT && !t->backend->options.tf32;
    ki_cudnn_graph graph;
    if (ki_cudnn_graph_init(t->libraries->cudnn, &seen, form, &graph, &t->why) != KITH_OK) return;
    add_offers(t, &graph, like, CUDNN_HEUR_MODE_A, most, is_second_try);
    add_offers(t, &graph, like, CUDNN_HEUR_MODE_B, most, is_second_try);
    if (is_second_try) add_offers(t, &graph, like, CUDNN_HEUR_MODE_FALLBACK, most, is_second_try);
    if (is_exact && !is_second_try) add_engines(t, &graph, like);
    ki_cudnn_graph_release(&graph);
}

static void add_forms(ki_conv_contest *t, bool is_second_try) {
    const ki_conv_problem *p = t->problem;
    const bool can_fuse = p->pass == KI_CONV_FORWARD && (p->has_bias || p->has_relu);
    if (p->adds || p->is_product) return; /* only products do */
    if (can_fuse) add_form(t, KI_CUDNN_FUSED, false, OFFERS, is_second_try);
    add_form(t, KI_CUDNN_BARE, false, can_fuse ? OFFERS_MORE : OFFERS, is_second_try);
    if (!ki_conv_dst_is_packed(p)) add_form(t, KI_CUDNN_BARE, true, OFFERS, is_second_try);
}

static void add_products(ki_conv_contest *t) {
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
        ki_tune_candidate *c = &t->candidate[t->n];
        if (ki_conv_way_lt(t->backend, t->problem, &offer[i].algo, offer[i].workspaceSize, &c->way,
                           &t->why) != KITH_OK)
            continue;
        c->form = KI_N_CUDNN_FORMS;
        t->n++;
    }
    t->n_built = t->n;
}

static void add_depthwise(ki_conv_contest *t) {
    ki_tune_candidate *c = &t->candidate[t->n];
    if (ki_conv_way_depthwise(t->backend, t->problem, &c->way, &t->why) != KITH_OK) return;
    c->form = KI_N_CUDNN_FORMS;
    t->stats.n_offered++;
    t->n_built = ++t->n;
}

const ki_tune_candidate *ki_tune_first(const ki_conv_contest *t) {
    for (int i = 0; i < t->n; i++) {
        if (t->candidate[i].way) return &t->candidate[i];
    }
    return NULL;
}

size_t ki_tune_workspace(const ki_conv_problem *p) {
    const size_t maps = (size_t)(p->mb * (p->src.image + p->dst.image)) * ki_number_bytes(p->type);
    const size_t least =
        WORKSPACE_LIMIT * (size_t)(p->mb > KI_TUNE_IMAGES ? p->mb : KI_TUNE_IMAGES) / KI_TUNE_IMAGES;
    return maps + maps / 4 > least ? maps + maps / 4 : least;
}

static void build(ki_conv_contest *t, ki_tune_candidate *c) {
    if (ki_conv_way_cudnn(t->backend, t->problem, c->form, c->packs_dst, &c->setting, &c->way, &t->why) !=
        KITH_OK) {
        ki_log(KITH_LOG_DEBUG, "engine %lld, form %d: %s", (long long)c->setting.engine, (int)c->form,
               t->why.message);
    } else if (c->way->workspace_bytes > ki_tune_workspace(t->problem) + c->way->packed_bytes) {
        ki_fail(&t->why, KITH_EUNSUPPORTED, "a workspace of %zu MiB", c->way->workspace_bytes >> 20);
        ki_conv_way_free(c->way);
        c->way = NULL;
    }
}

static void build_all(ki_conv_contest *t) {
    const double begin = ki_seconds_now();
    for (; t->n_built < t->n; t->n_built++) {
        if (ki_tune_first(t) && (ki_tune_takes_first(t) || ki_seconds_now() - begin > BUILD_SECONDS))
            continue;
        build(t, &t->candidate[t->n_built]);
    }
}

void ki_tune_collect(ki_conv_contest *t) {
    const double begin = ki_seconds_now();
    add_products(t);
    add_depthwise(t);
    for (int is_second_try = 0; is_second_try < 2; is_second_try++) {
        if (ki_tune_first(t) && (ki_tune_takes_first(t) || is_second_try)) break;
        add_forms(t, is_second_try);
        build_all(t);
    }
    for (int i = 0; i < t->n; i++) t->stats.n_built += t->candidate[i].way != NULL;
    t->stats.build_seconds = ki_seconds_now() - begin;
}

void ki_tune_collect_tiles(ki_conv_contest *t, double fastest_seconds) {
    const int n = t->n;
    for (int i = 0; i < n; i++) {
        ki_tune_candidate like = t->candidate[i];
        if (!like.way || like.way->seconds > TILES * fastest_seconds) continue;
        like.way = NULL;
        like.setting.n_knobs = 1;
        like.setting.knob[0] = CUDNN_KNOB_TYPE_TILE_SIZE;
        for (int64_t tile = 0; tile < like.n_tiles; tile++) {
            like.setting.value[0] = tile;
            add(t, &like);
        }
    }
    build_all(t);
}
