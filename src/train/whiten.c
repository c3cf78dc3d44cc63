/* model.whiten: the embedding layer of the chosen model, whitened on training images.
 *
 * Directions in which training images hardly differ may still tell other classes apart, but a cosine hears only the loud ones. The map
 * of knn/whiten.h evens them out. It is linear, and embeddings are compared by direction, so the layer W f + b becomes
 * (A W) f + A b: the model stays a network like any other. The heads of an ensemble share that layer and are normalised one by
 * one, so they share one map, which is made of the vectors of all heads. Source: Jégou and Chum, ECCV 2012 (for descriptors). */
#include "knn/whiten.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "train/run.h"

enum { CHUNK = 32 }; /* columns at a time */

/* to [dim, width] = map [dim, dim] from [dim, width] */
typedef struct product {
    int64_t dim, width;
    const double *map;
    const ki_real *from;
    ki_real *to;
} product;

static void multiply_rows(void *context, int64_t begin, int64_t end) {
    const product *p = context;
    for (int64_t r = begin; r < end; r++) {
        for (int64_t c = 0; c < p->width; c += CHUNK) {
            const int64_t n = p->width - c < CHUNK ? p->width - c : CHUNK;
            double sum[CHUNK] = {0};
            for (int64_t k = 0; k < p->dim; k++) {
                const double factor = p->map[r * p->dim + k];
                for (int64_t i = 0; i < n; i++) sum[i] += factor * (double)p->from[k * p->width + c + i];
            }
            for (int64_t i = 0; i < n; i++) p->to[r * p->width + c + i] = (ki_real)sum[i];
        }
    }
}

static kith_status change(ki_train_state *run, const char *name, const double *map, kith_error *err) {
    kith_status status;
    const int64_t dim = run->net.embedding / run->net.heads;
    const ki_param *param = ki_params_find(run->params, name);
    ki_real *values = NULL;
    if (!param) return KITH_OK; /* a layer without a bias */
    KI_TRY(ki_alloc_or(&values, 2 * (size_t)param->n, sizeof *values, "the embedding layer", err));
    KI_CHECK(ki_params_get(run->params, param, values, err));
    product p = {dim, param->n / dim, map, values, values + param->n};
    ki_parallel_for(dim, 1, multiply_rows, &p);
    KI_CHECK(ki_params_set(run->params, param, p.to, err));
done:
    ki_free(values);
    return status;
}

static kith_status whiten(ki_train_state *run, ki_vectors *v, kith_error *err) {
    kith_status status;
    const float *rows = NULL;
    double *map = NULL;
    KI_CHECK(ki_vectors_host(v, &rows, err));
    const int64_t heads = run->net.heads, dim = v->dim / heads;
    KI_CHECK(ki_alloc_or(&map, (size_t)(dim * dim), sizeof *map, "a whitening", err));
    kith_error why = {0};
    status = ki_whiten_map(rows, v->n * heads, dim, map, &why);
    if (status == KITH_EINVAL) { /* training is done, and its model is good without */
        status = ki_train_say(run, KITH_TRAIN_WARNING, err, "the embedding layer is not whitened: %s",
                              why.message);
        goto done;
    }
    if (status != KITH_OK && err) *err = why;
    KI_CHECK(status);
    KI_CHECK(change(run, "embedding.weight", map, err));
    KI_CHECK(change(run, "embedding.bias", map, err));
    KI_CHECK(ki_train_say(run, KITH_TRAIN_NOTE, err,
                          "the embedding layer was whitened on %lld training images", (long long)v->n));
done:
    ki_free(map);
    return status;
}

kith_status ki_train_whiten(ki_train_state *run, kith_error *err) {
    kith_status status;
    ki_items chosen = {0};
    ki_vectors v = {0};
    if (!run->recipe->model.whiten) return KITH_OK;
    KI_CHECK(ki_train_agree(run, ki_train_choose_fitted(run, &chosen, err), err));
    KI_CHECK(ki_train_embed(run, chosen.item, chosen.n, "embedding", NULL, &v, err));
    KI_CHECK(ki_train_agree(run, whiten(run, &v, err), err));
done:
    ki_free(chosen.item);
    ki_vectors_release(&v);
    return status;
}
