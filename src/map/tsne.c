/* Barnes-Hut t-SNE.
 *   p_j|i = exp(-b_i |x_i - x_j|^2) over the 3 u nearest neighbours, b_i set so that the perplexity is u
 *   p_ij  = (p_j|i + p_i|j) / 2 n,   q_ij = w_ij / Z,  w_ij = 1 / (1 + |y_i - y_j|^2),  Z = sum w
 *   dKL / dy_i = 4 sum_j (p_ij - q_ij) w_ij (y_i - y_j)
 * The first part of the gradient runs over neighbours, the second over a quadtree. Descent with momentum
 * (0.5, then 0.8), gains per coordinate, and exaggerated p at first, from the first two principal components
 * at standard deviation 1e-4 (Kobak and Berens, Nature Communications 2019). Exaggeration fades out instead
 * of ending at once: on Omniglot this reaches a lower divergence for every seed tried. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/map.h"
#include "knn/rows.h"
#include "map/quadtree.h"

KI_OPTIONS_INIT(kith_tsne_options, .n_iterations = 1000, .exaggeration = 12, .theta = 0.5, .n_components = 50,
                .metric = KITH_COSINE)

/* Symmetric p in compressed rows. */
typedef struct graph {
    int64_t *begin; /* [n + 1] */
    int32_t *to;
    double *p;
} graph;

typedef struct state {
    int64_t n;
    const graph *graph;
    ki_quadtree tree;
    double theta2, exaggeration;
    double *y, *speed, *gain; /* [n, 2] */
    double *pull, *push;      /* [n, 2] */
    double *z;                /* [n] */
} state;

/* ---- p ---- */

typedef struct fitting {
    int64_t k;
    const kith_neighbor *neighbor; /* [n, k] */
    double perplexity;
    double *p; /* [n, k]: p_j|i */
} fitting;

/* Bisection on the precision b until the entropy of the row is log(perplexity). */
static void fit_rows(void *context, int64_t begin, int64_t end) {
    const fitting *f = context;
    const double wanted = log(f->perplexity);
    for (int64_t i = begin; i < end; i++) {
        const kith_neighbor *near = f->neighbor + i * f->k;
        double *p = f->p + i * f->k, b = 1, low = 0, high = INFINITY, sum = 0;
        const double nearest = (double)near[0].score; /* shifts all exponents, which changes no p */
        for (int step = 0; step < 200; step++) {
            double weighted = 0;
            sum = 0;
            for (int64_t j = 0; j < f->k; j++) {
                const double d = (double)near[j].score - nearest;
                p[j] = exp(-b * d);
                sum += p[j];
                weighted += d * p[j];
            }
            const double entropy = log(sum) + b * weighted / sum;
            if (fabs(entropy - wanted) < 1e-5) break;
            if (entropy > wanted) {
                low = b;
                b = isinf(high) ? 2 * b : (b + high) / 2;
            } else {
                high = b;
                b = (b + low) / 2;
            }
        }
        for (int64_t j = 0; j < f->k; j++) p[j] /= sum;
    }
}

static void graph_release(graph *g) {
    ki_free(g->begin);
    ki_free(g->to);
    ki_free(g->p);
    *g = (graph){0};
}

static int64_t find_in(const kith_neighbor *near, int64_t k, int64_t wanted) {
    for (int64_t j = 0; j < k; j++) {
        if (near[j].index == wanted) return j;
    }
    return -1;
}

/* (P + P') / 2 n. Row i has its own edges, and one more for each edge to i that it does not have itself. */
static kith_status symmetrize(const fitting *f, int64_t n, graph *g, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t k = f->k;
    int64_t *next = NULL;
    KI_CHECK(ki_zalloc_or(&g->begin, (size_t)n + 1, sizeof *g->begin, "neighbour graph", err));
    KI_CHECK(ki_alloc_or(&next, (size_t)n, sizeof *next, "neighbour graph", err));
    for (int64_t i = 0; i < n; i++) {
        g->begin[i + 1] += k;
        for (int64_t j = 0; j < k; j++) {
            const int64_t o = f->neighbor[i * k + j].index;
            if (find_in(f->neighbor + o * k, k, i) < 0) g->begin[o + 1]++;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        g->begin[i + 1] += g->begin[i];
        next[i] = g->begin[i];
    }
    KI_CHECK(ki_alloc_or(&g->to, (size_t)g->begin[n], sizeof *g->to, "neighbour graph", err));
    KI_CHECK(ki_alloc_or(&g->p, (size_t)g->begin[n], sizeof *g->p, "neighbour graph", err));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < k; j++) {
            const int64_t o = f->neighbor[i * k + j].index;
            const int64_t back = find_in(f->neighbor + o * k, k, i);
            const double p = (f->p[i * k + j] + (back >= 0 ? f->p[o * k + back] : 0)) / (2 * (double)n);
            g->to[next[i]] = (int32_t)o;
            g->p[next[i]++] = p;
            if (back >= 0) continue;
            g->to[next[o]] = (int32_t)i;
            g->p[next[o]++] = p;
        }
    }
done:
    ki_free(next);
    return status;
}

static kith_status make_graph(const kith_array *x, double perplexity, graph *g, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n = x->dim[0];
    kith_gallery *gallery = NULL;
    kith_neighbor *near = NULL;
    fitting f = {.k = (int64_t)(3 * perplexity), .perplexity = perplexity};
    if (f.k > n - 1) f.k = n - 1;
    KI_CHECK(kith_gallery_new(
        x, &(kith_knn_options){.size = sizeof(kith_knn_options), .metric = KITH_SQEUCLIDEAN}, &gallery, err));
    KI_CHECK(ki_alloc_or(&near, (size_t)n, (size_t)f.k * sizeof *near, "neighbours", err));
    KI_CHECK(ki_alloc_or(&f.p, (size_t)n, (size_t)f.k * sizeof *f.p, "neighbour weights", err));
    KI_CHECK(kith_gallery_self(gallery, f.k, near, err));
    f.neighbor = near;
    ki_parallel_for(n, 64, fit_rows, &f);
    KI_CHECK(symmetrize(&f, n, g, err));
done:
    kith_gallery_free(gallery);
    ki_free(near);
    ki_free(f.p);
    return status;
}

/* ---- descent ---- */

static void forces(void *context, int64_t begin, int64_t end) {
    state *s = context;
    const graph *g = s->graph;
    for (int64_t i = begin; i < end; i++) {
        const double x = s->y[2 * i], y = s->y[2 * i + 1];
        double px = 0, py = 0;
        for (int64_t e = g->begin[i]; e < g->begin[i + 1]; e++) {
            const double dx = x - s->y[2 * g->to[e]], dy = y - s->y[2 * g->to[e] + 1];
            const double w = g->p[e] / (1 + dx * dx + dy * dy);
            px += w * dx;
            py += w * dy;
        }
        s->pull[2 * i] = px;
        s->pull[2 * i + 1] = py;
        ki_quadtree_repel(&s->tree, x, y, s->theta2, s->push + 2 * i, s->z + i);
    }
}

/* Forces at the present places; returns Z. */
static double measure(state *s) {
    ki_quadtree_build(&s->tree, s->y);
    ki_parallel_for(s->n, 64, forces, s);
    double z = 0;
    for (int64_t i = 0; i < s->n; i++) z += s->z[i] - 1; /* without itself */
    return z;
}

static void step(state *s, double rate, double momentum) {
    const double z = measure(s);
    double mean[2] = {0, 0};
    for (int64_t i = 0; i < 2 * s->n; i++) {
        const double gradient = 4 * (s->exaggeration * s->pull[i] - s->push[i] / z);
        const bool is_same_way = gradient * s->speed[i] > 0; /* speed runs against the gradient */
        s->gain[i] = is_same_way ? fmax(0.8 * s->gain[i], 0.01) : s->gain[i] + 0.2;
        s->speed[i] = momentum * s->speed[i] - rate * s->gain[i] * gradient;
        s->y[i] += s->speed[i];
        mean[i % 2] += s->y[i] / (double)s->n;
    }
    for (int64_t i = 0; i < 2 * s->n; i++) s->y[i] -= mean[i % 2];
}

static double divergence(state *s) {
    const double z = measure(s);
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = s->graph->begin[i]; e < s->graph->begin[i + 1]; e++) {
            const double dx = s->y[2 * i] - s->y[2 * s->graph->to[e]];
            const double dy = s->y[2 * i + 1] - s->y[2 * s->graph->to[e] + 1], p = s->graph->p[e];
            if (p > 0) sum += p * log(p * z * (1 + dx * dx + dy * dy));
        }
    }
    return sum;
}

static void state_release(state *s) {
    ki_quadtree_release(&s->tree);
    ki_free(s->speed);
    ki_free(s->gain);
    ki_free(s->pull);
    ki_free(s->push);
    ki_free(s->z);
}

static kith_status descend(const graph *g, int64_t n, const kith_tsne_options *o, double *y,
                           double *ret_divergence, kith_error *err) {
    kith_status status = KITH_OK;
    state s = {.n = n, .graph = g, .theta2 = o->theta * o->theta, .y = y};
    const size_t two = 2 * (size_t)n;
    KI_CHECK(ki_quadtree_init((int32_t)n, &s.tree, err));
    KI_CHECK(ki_zalloc_or(&s.speed, two, sizeof *s.speed, "map speeds", err));
    KI_CHECK(ki_alloc_or(&s.gain, two, sizeof *s.gain, "map gains", err));
    KI_CHECK(ki_alloc_or(&s.pull, two, sizeof *s.pull, "map forces", err));
    KI_CHECK(ki_alloc_or(&s.push, two, sizeof *s.push, "map forces", err));
    KI_CHECK(ki_alloc_or(&s.z, (size_t)n, sizeof *s.z, "map sums", err));
    for (size_t i = 0; i < two; i++) s.gain[i] = 1;
    const int64_t n_first = (o->n_iterations + 3) / 4;
    const double rate = o->learning_rate > 0 ? o->learning_rate : fmax((double)n / o->exaggeration / 4, 50);
    for (int64_t t = 0; t < o->n_iterations; t++) {
        const double done = t < n_first ? 0 : fmin(1, (double)(t - n_first) / (double)n_first);
        s.exaggeration = pow(o->exaggeration, 1 - done);
        step(&s, rate, t < n_first ? 0.5 : 0.8);
        if (o->progress && o->progress(o->user, t + 1, o->n_iterations) != 0) {
            status = ki_fail(err, KITH_ECANCELED, "stopped after %lld iterations", (long long)t + 1);
            goto done;
        }
    }
    if (ret_divergence) *ret_divergence = divergence(&s);
done:
    state_release(&s);
    return status;
}

/* ---- the whole ---- */

/* float32 rows, normalised when the cosine is wanted (then |x - y|^2 = 2 - 2 cos). */
static kith_status copy_rows(const ki_rows *rows, bool normalize, kith_array *ret_copy, kith_error *err) {
    double *row = NULL;
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){rows->n, rows->dim}, ret_copy, err));
    KI_TRY(ki_alloc_or(&row, (size_t)rows->dim, sizeof *row, "a row", err));
    float *to = ret_copy->data;
    for (int64_t i = 0; i < rows->n; i++) {
        const double norm = normalize ? fmax(sqrt(ki_rows_dot(rows, i, rows, i)), 1e-12) : 1;
        ki_rows_get(rows, i, row);
        for (int64_t k = 0; k < rows->dim; k++) to[i * rows->dim + k] = (float)(row[k] / norm);
    }
    ki_free(row);
    return KITH_OK;
}

static kith_status reduce(kith_array *x, int64_t n_components, uint64_t seed, kith_array *ret,
                          kith_error *err) {
    kith_pca pca = {0};
    KI_TRY(kith_pca_fit(
        x, &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = n_components, .seed = seed},
        &pca, err));
    const kith_status status = kith_pca_apply(&pca, x, ret, err);
    kith_pca_release(&pca);
    return status;
}

/* Two principal components at standard deviation 1e-4; a little noise separates equal rows. */
static kith_status start(kith_array *x, uint64_t seed, double *y, kith_error *err) {
    const int64_t n = x->dim[0], m = x->dim[1] < 2 ? 1 : 2;
    kith_array plane = {0};
    KI_TRY(reduce(x, m, seed, &plane, err));
    const float *from = plane.data;
    double spread = 0;
    for (int64_t i = 0; i < n; i++) spread += (double)from[i * m] * (double)from[i * m];
    spread = sqrt(spread / (double)n);
    ki_rng rng = ki_rng_at(seed, KI_RNG_MAP, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < 2; c++) {
            const double value = c < m && spread > 0 ? (double)from[i * m + c] / spread : 0;
            y[2 * i + c] = 1e-4 * value + 1e-6 * ki_rng_normal(&rng);
        }
    }
    kith_array_release(&plane);
    return KITH_OK;
}

static kith_status check(const kith_tsne_options *o, int64_t n, kith_error *err) {
    if (n < 4) return ki_fail(err, KITH_EINVAL, "%lld rows; a map wants at least 4", (long long)n);
    if (!(o->perplexity >= 1) || o->perplexity > (double)(n - 1) / 3) {
        ki_fail(err, KITH_EINVAL, "perplexity %g for %lld rows; wanted 1 to %.4g", o->perplexity,
                (long long)n, (double)(n - 1) / 3);
        return ki_hint(err, KITH_EINVAL, "a third of the rows is the most; 0: one that fits");
    }
    if (o->n_iterations < 1)
        return ki_fail(err, KITH_EINVAL, "%lld iterations; wanted at least 1", (long long)o->n_iterations);
    if (!(o->exaggeration >= 1))
        return ki_fail(err, KITH_EINVAL, "exaggeration %g; wanted at least 1", o->exaggeration);
    if (!(o->theta >= 0 && o->theta <= 1))
        return ki_fail(err, KITH_EINVAL, "theta %g; wanted 0 to 1", o->theta);
    if (o->n_components < 0)
        return ki_fail(err, KITH_EINVAL, "%lld components; wanted 0 or more", (long long)o->n_components);
    return KITH_OK;
}

double kith_tsne_perplexity(int64_t n) { return fmin(30, fmax(1, (double)(n - 1) / 3)); }

kith_status kith_tsne(const kith_array *array, const kith_tsne_options *options, kith_array *ret_map,
                      double *ret_divergence, kith_error *err) {
    KI_NEED(err, array, ret_map);
    kith_status status = KITH_OK;
    ki_rows rows;
    KI_OPTIONS_TAKE(kith_tsne_options, o, options, err);
    KI_TRY(ki_rows_init(array, "rows", &rows, err));
    if (o.perplexity == 0) o.perplexity = kith_tsne_perplexity(rows.n);
    KI_TRY(check(&o, rows.n, err));
    kith_array x = {0}, reduced = {0}, map = {0};
    graph g = {0};
    KI_CHECK(copy_rows(&rows, o.metric == KITH_COSINE, &x, err));
    const int64_t m = o.n_components;
    if (m > 0 && m < rows.dim && m <= rows.n - 1) {
        KI_CHECK(reduce(&x, m, o.seed, &reduced, err));
        kith_array_release(&x);
        x = reduced;
        reduced = (kith_array){0};
    }
    KI_CHECK(kith_array_init(KITH_F64, 2, (int64_t[]){rows.n, 2}, &map, err));
    KI_CHECK(make_graph(&x, o.perplexity, &g, err));
    KI_CHECK(start(&x, o.seed, map.data, err));
    KI_CHECK(descend(&g, rows.n, &o, map.data, ret_divergence, err));
    *ret_map = map;
    map = (kith_array){0};
done:
    graph_release(&g);
    kith_array_release(&x);
    kith_array_release(&reduced);
    kith_array_release(&map);
    return status;
}
