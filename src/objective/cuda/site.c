/* One run of the loss: inner products, mining, the loss's rows, the sums, and the chain rule back to the
 * embeddings and proxies. host/run_loss.c and pair/chain.c are the same on the host. */
#include <string.h>

#include "backend/cuda/gemm/gemm.h"
#include "objective/cuda/inside.h"
#include "objective/cuda/rows.h"

enum { LANES = 32, MOST_COLUMNS = 1 << 26 };

static kith_status take(ki_engine *engine, int64_t n, size_t size, const char *what, void *ret,
                        kith_error *err) {
    size_t bytes = 0;
    if (!ki_mul_size((size_t)(n > 0 ? n : 1), size, &bytes)) return ki_fail_memory(err, SIZE_MAX, what);
    return ki_engine_take(engine, bytes, what, ret, err);
}

/* The view's memory, shared with earlier runs if it fits. */
static kith_status open_room(ki_cuda_site *l, int64_t n_tallies, kith_error *err) {
    ki_engine *e = l->engine;
    ki_cuda_view *v = &l->view;
    ki_cuda_room *room = &e->room;
    const int64_t cells = (int64_t)v->m * v->ld;
    if (room->cells < cells) {
        KI_TRY(take(e, cells, sizeof(float), "the pair matrix", &room->s, err));
        KI_TRY(take(e, cells, sizeof(float), "pair gradients", &room->g, err));
        if (!l->is_proxy) KI_TRY(take(e, cells, sizeof(float), "pair gradients", &room->h, err));
        KI_TRY(take(e, cells, 1, "the kept pairs", &room->pair, err));
        if (v->rule == KI_TRIPLETS_PICKED) KI_TRY(take(e, cells, sizeof(int32_t), "picks", &room->pick, err));
        room->cells = cells;
    }
    if (room->n_tallies < n_tallies) {
        KI_TRY(take(e, n_tallies, sizeof(ki_cuda_tally), "row sums", &room->tally, err));
        room->n_tallies = n_tallies;
    }
    if (!room->n_pos) {
        KI_TRY(take(e, v->m, sizeof(int32_t), "counts", &room->n_pos, err));
        KI_TRY(take(e, v->m, sizeof(int32_t), "counts", &room->n_neg, err));
        KI_TRY(take(e, v->m, sizeof(float), "row sums", &room->memory_sum, err));
        KI_TRY(take(e, 3, sizeof(float), "weights", &room->scale, err));
    }
    v->s = room->s;
    v->g = room->g;
    v->pair = room->pair;
    v->pick = room->pick;
    v->n_pos = room->n_pos;
    v->n_neg = room->n_neg;
    v->tally = room->tally;
    v->n_tallies = (int32_t)n_tallies;
    return KITH_OK;
}

static kith_status open_proxies(ki_cuda_site *l, const ki_cuda_param *param, kith_error *err) {
    ki_engine *e = l->engine;
    const int64_t n = l->view.n;
    l->proxies = param[0];
    if (l->dim < l->proxies.state->shape.dim[1]) {
        KI_TRY(take(e, n * l->dim, sizeof(float), "first numbers of proxies", &l->w_cut, err));
        KI_TRY(take(e, n * l->dim, sizeof(float), "proxy gradients", &l->diff_cut, err));
    }
    KI_TRY(take(e, n * l->dim, sizeof(float), "normalised proxies", &l->w_unit, err));
    KI_TRY(take(e, n, sizeof(float), "proxy norms", &l->w_norm, err));
    KI_TRY(take(e, n, sizeof(float), "proxy norms", &l->w_sq, err));
    if (l->proxies.diff) KI_TRY(take(e, n * l->dim, sizeof(float), "proxy gradients", &l->diff_w, err));
    l->view.w = l->in.proxies = l->w_unit;
    l->view.w_sq = l->w_sq;
    if (l->type->has_straight && l->type->has_straight(l->in.settings))
        KI_TRY(take(e, n * l->dim, sizeof(float), "proxy gradients", &l->in.diff_proxies, err));
    return KITH_OK;
}

/* A narrower site has the first numbers of the memory's columns, normalised again where the loss wants it. */
static kith_status open_memory(ki_cuda_site *l, kith_error *err) {
    ki_engine *e = l->engine;
    const ki_objective *o = e->objective;
    const int64_t n = e->ring.size * l->view.heads;
    l->view.w = e->ring.embedding;
    l->view.w_sq = e->ring.square;
    l->view.memory_state = e->ring.state;
    l->view.memory_label = e->ring.label;
    l->view.memory_warmup = (uint64_t)o->memory.warmup;
    if (l->dim * l->view.heads == e->ring.dim) return KITH_OK;
    KI_TRY(take(e, n * l->dim, sizeof(float), "first numbers of the memory", &l->w_cut, err));
    KI_TRY(take(e, n, sizeof(float), "norms of the memory", &l->w_sq, err));
    if (o->loss.normalize)
        KI_TRY(take(e, n * l->dim, sizeof(float), "first numbers of the memory", &l->w_unit, err));
    l->view.w = l->w_unit ? l->w_unit : l->w_cut;
    l->view.w_sq = l->w_sq;
    return KITH_OK;
}

/* For speed: one more warp for a few columns costs more than it gains. */
static int32_t threads_for(int64_t n) {
    return n <= 32 ? 32 : n <= 64 ? 64 : n <= 512 ? 128 : n <= 4096 ? 256 : 512;
}

static kith_status open_view(ki_cuda_site *l, const ki_cuda_param *param, bool is_main, kith_error *err) {
    ki_engine *e = l->engine;
    const ki_objective *o = e->objective;
    const ki_loss *loss = o->loss.record;
    const bool has_memory = is_main && e->ring.size > 0;
    const int64_t heads = is_main ? o->sizes.heads : 1, m = e->n_labelled * heads;
    const int64_t n =
        l->is_proxy ? param[0].state->shape.dim[0] : m + (has_memory ? e->ring.size * heads : 0);
    if (n > MOST_COLUMNS)
        return ki_fail(err, KITH_EUNSUPPORTED, "%lld columns of pairs on the device; at most %d",
                       (long long)n, MOST_COLUMNS);
    l->view = (ki_cuda_view){
        .m = (int32_t)m,
        .n = (int32_t)n,
        .ld = (int32_t)ki_round_up((size_t)n, LANES),
        .dim = (int32_t)l->dim,
        .n_centers = (int32_t)ki_objective_centers(o),
        .heads = (int32_t)heads,
        .measure = (int32_t)(loss->measure ? loss->measure(o->loss.settings) : KI_INNER),
        .label = is_main ? e->row_label : e->label,
        .step = e->batch.step,
        .seed = o->seed,
        .threads = threads_for(n),
    };
    if (l->miner->set_rule) l->miner->set_rule(o->miner_settings, &l->view);
    return has_memory ? open_memory(l, err) : KITH_OK;
}

static kith_status open_site(ki_cuda_site *l, const ki_cuda_param *param, bool is_main, kith_error *err) {
    ki_engine *e = l->engine;
    const ki_objective *o = e->objective;
    const ki_method *method = &o->loss.record->method;
    l->type = ki_cuda_loss_find(method->name);
    if (!l->type) return ki_cuda_fail_method(err, "loss", method->name);
    l->miner = ki_cuda_miner_find(o->miner->method.name);
    if (!l->miner) return ki_cuda_fail_method(err, "miner", o->miner->method.name);
    l->in.settings = o->loss.settings;
    KI_TRY(open_view(l, param, is_main, err));
    ki_cuda_view *v = &l->view;
    const int64_t n_tallies = l->type->n_tallies ? l->type->n_tallies(l->in.settings, v) : v->m;
    KI_TRY(open_room(l, n_tallies > v->m ? n_tallies : v->m, err));
    v->n_tallies = (int32_t)n_tallies;
    if (l->is_proxy) {
        KI_TRY(open_proxies(l, param, err));
    } else if (o->loss.n_params) {
        l->in.param = param[0].value;
        l->in.n_param = param[0].state->count;
        l->in.diff_param = param[0].diff;
    }
    if (l->type->scratch_bytes && l->type->scratch_bytes(l->in.settings, v))
        KI_TRY(ki_engine_take(e, l->type->scratch_bytes(l->in.settings, v), "the loss's sums", &l->in.scratch,
                              err));
    l->weight[KI_PAIR_NONE] = (ki_cuda_weight){KI_BY_ONE, 1};
    l->weight[KI_PAIR_POSITIVE] = l->weight[KI_PAIR_NEGATIVE] = (ki_cuda_weight){l->type->by, 1};
    if (l->type->weights) l->type->weights(l->in.settings, v, l->weight);
    l->in.scale = e->room.scale;
    l->in.weight = l->outer_weight;
    l->reads_norms = v->measure != KI_INNER || l->type->reads_norms || l->miner->reads_norms;
    if (v->measure != KI_INNER) {
        KI_TRY(take(e, v->m * l->dim, sizeof(float), "centred embeddings", &l->centred, err));
        KI_TRY(take(e, l->dim, sizeof(float), "the mean embedding", &l->mean, err));
    }
    return KITH_OK;
}

kith_status ki_cuda_site_open(ki_engine *e, const ki_cuda_param *param, int64_t dim, bool is_main,
                              const float *outer_weight, ki_cuda_site **ret_site, kith_error *err) {
    ki_cuda_site *l = NULL;
    KI_TRY(ki_grow(&e->site, &e->site_capacity, e->n_sites + 1, sizeof *e->site, "losses", err));
    KI_TRY(ki_zalloc_or(&l, 1, sizeof *l, "a loss on the device", err));
    e->site[e->n_sites++] = l;
    l->engine = e;
    l->dim = dim;
    l->is_proxy = e->objective->loss.record->is_proxy;
    l->outer_weight = outer_weight;
    KI_TRY(open_site(l, param, is_main, err));
    *ret_site = l;
    return KITH_OK;
}

/* s = x y^T, in exact float32 even if the network's products may be TF32: similarities appear in exponents,
 * where the 11 bits of TF32 would cause errors of several percent. */
static kith_status similarities(ki_cuda_site *l, const float *x, const float *y, int64_t n, float *s,
                                kith_error *err) {
    ki_backend *backend = l->engine->backend;
    const bool tf32 = backend->options.tf32;
    backend->options.tf32 = false;
    const kith_status status = ki_cuda_gemm(backend, false, true, l->view.m, n, l->dim, 1, x, KI_NUMBER_FLOAT,
                                            l->dim, y, l->dim, 0, s, KI_NUMBER_FLOAT, l->view.ld, err);
    backend->options.tf32 = tf32;
    return status;
}

static kith_status products(ki_cuda_site *l, const float *x, kith_error *err) {
    const ki_cuda_view *v = &l->view;
    const int64_t n_self = l->is_proxy ? 0 : v->m, n_more = v->n - n_self;
    if (n_self) KI_TRY(similarities(l, x, x, n_self, v->s, err));
    return n_more ? similarities(l, x, v->w, n_more, v->s + n_self, err) : KITH_OK;
}

/* dst (beta 0: =, 1: +=) alpha h w, h [m, ld] with n columns. */
static kith_status weighted(ki_cuda_site *l, float alpha, const float *h, const float *w, int64_t n,
                            float beta, float *dst, kith_error *err) {
    return ki_cuda_gemm(l->engine->backend, false, false, l->view.m, l->dim, n, alpha, h, KI_NUMBER_FLOAT,
                        l->view.ld, w, l->dim, beta, dst, KI_NUMBER_FLOAT, l->dim, err);
}

static kith_status proxies_backward(ki_cuda_site *l, const float *x, float *diff_x, kith_error *err) {
    const ki_cuda_view *v = &l->view;
    const cudaStream_t stream = l->engine->stream;
    KI_CUDA(ki_cuda_scale(v, l->in.scale, stream));
    KI_TRY(weighted(l, 1, v->g, l->w_unit, v->n, 0, diff_x, err));
    float *diff = l->w_cut ? l->diff_cut : l->proxies.diff;
    if (!l->proxies.diff) return KITH_OK;
    KI_TRY(ki_cuda_gemm(l->engine->backend, true, false, v->n, l->dim, v->m, 1, v->g, KI_NUMBER_FLOAT, v->ld,
                        x, l->dim, 0, l->diff_w, KI_NUMBER_FLOAT, l->dim, err));
    KI_CUDA(ki_cuda_rows_normalize_backward(l->w_unit, l->w_norm, l->diff_w, l->in.diff_proxies, v->n, l->dim,
                                            !l->w_cut, diff, stream));
    if (l->w_cut)
        KI_CUDA(ki_cuda_rows_add_cut(diff, v->n, l->dim, l->proxies.diff, l->proxies.state->shape.dim[1],
                                     stream));
    return KITH_OK;
}

static kith_status pairs_backward(ki_cuda_site *l, const float *x, float *diff_x, kith_error *err) {
    const ki_cuda_view *v = &l->view;
    const ki_cuda_room *room = &l->engine->room;
    const cudaStream_t stream = l->engine->stream;
    const int64_t n_memory = v->n - v->m;
    const bool is_inner = v->measure == KI_INNER;
    const float factor = is_inner ? 1 : -2;
    KI_CUDA(ki_cuda_symmetrize(v, l->in.scale, room->h, room->memory_sum, stream));
    if (!is_inner) KI_CUDA(ki_cuda_centre(x, v->m, l->dim, l->mean, l->centred, stream));
    KI_TRY(weighted(l, factor, room->h, is_inner ? x : l->centred, v->m, 0, diff_x, err));
    if (!n_memory) return KITH_OK;
    KI_TRY(weighted(l, factor, room->h + v->m, v->w, n_memory, 1, diff_x, err));
    if (!is_inner) KI_CUDA(ki_cuda_add_mean(room->memory_sum, l->mean, 2, v->m, l->dim, diff_x, stream));
    return KITH_OK;
}

/* Learned and remembered columns as this site sees them. */
static kith_status make_columns(ki_cuda_site *l, kith_error *err) {
    const ki_engine *e = l->engine;
    const int64_t n = l->is_proxy ? l->view.n : e->ring.size;
    const float *from = l->is_proxy ? l->proxies.value : e->ring.embedding;
    const int64_t wide = l->is_proxy ? l->proxies.state->shape.dim[1] : e->ring.dim;
    if (!l->is_proxy && !l->w_cut) return KITH_OK;
    if (l->w_cut) KI_CUDA(ki_cuda_rows_cut(from, n, wide, l->dim, l->w_cut, e->stream));
    KI_CUDA(ki_cuda_rows_normalize(l->w_cut ? l->w_cut : from, n, l->dim, l->w_unit, l->w_norm, l->w_sq, NULL,
                                   e->stream));
    return KITH_OK;
}

kith_status ki_cuda_site_run(ki_cuda_site *l, const float *x, const float *x_sq, double *value,
                             int64_t *pairs, float *diff_x, kith_error *err) {
    ki_engine *e = l->engine;
    ki_cuda_view *v = &l->view;
    const cudaStream_t stream = e->stream;
    v->x = x;
    v->x_sq = x_sq;
    if (!x_sq && l->reads_norms) {
        if (!l->x_sq) return ki_fail(err, KITH_EINTERNAL, "a loss on the device without norms");
        KI_CUDA(ki_cuda_rows_normalize(x, v->m, l->dim, NULL, NULL, l->x_sq, NULL, stream));
        v->x_sq = l->x_sq;
    }
    KI_TRY(make_columns(l, err));
    KI_TRY(products(l, x, err));
    KI_CUDA(l->miner->mine(e->objective->miner_settings, v, stream));
    KI_CUDA(l->type->rows(&l->in, v, stream));
    const ki_cuda_totals totals = {.scale = e->room.scale,
                                   .value = value,
                                   .pairs = pairs,
                                   .weight = l->outer_weight,
                                   .weighs_value = l->weighs_value};
    KI_CUDA(ki_cuda_sum_up(v, l->weight, totals, stream));
    if (l->type->after) KI_CUDA(l->type->after(&l->in, v, stream));
    return l->is_proxy ? proxies_backward(l, x, diff_x, err) : pairs_backward(l, x, diff_x, err);
}

kith_status ki_cuda_repeat_open(const ki_cuda_reg_in *in, size_t first, int64_t dim, ki_cuda_site **ret_site,
                                kith_error *err) {
    KI_TRY(ki_cuda_site_open(in->engine, in->param + first, dim, false, in->weight, ret_site, err));
    return ki_engine_take(in->engine, (size_t)in->m * sizeof(float), "norms", &(*ret_site)->x_sq, err);
}

kith_status ki_cuda_repeat_run(ki_cuda_site *site, const float *x, double *value, float *diff_x,
                               kith_error *err) {
    return ki_cuda_site_run(site, x, NULL, value, NULL, diff_x, err);
}
