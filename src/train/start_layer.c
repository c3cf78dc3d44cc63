/* model.embedding_init: pca, white. The embedding layer starts from the principal axes of the pooled features of training images
 * (knn/whiten.h): with `pca` as wide as the features the first embeddings have the cosines of the features themselves, so that
 * training starts from what the network knows already. A random layer first has to find that again. */
#include <string.h>

#include "base/alloc.h"
#include "knn/whiten.h"
#include "train/run.h"

static kith_status set_layer(ki_train_state *run, const double *map, int64_t n_axes, int64_t width,
                             kith_error *err) {
    kith_status status;
    const ki_param *weight = ki_params_find(run->params, "embedding.weight"),
                   *bias = ki_params_find(run->params, "embedding.bias");
    ki_real *values = NULL;
    if (!weight) return ki_fail(err, KITH_EINTERNAL, "the network has no embedding.weight");
    KI_CHECK(ki_zalloc_or(&values, (size_t)weight->n, sizeof *values, "the embedding layer", err));
    if (bias) KI_CHECK(ki_params_set(run->params, bias, values, err)); /* zeros: weights are more */
    for (int64_t i = 0; i < n_axes * width; i++) values[i] = (ki_real)map[i];
    KI_CHECK(ki_params_set(run->params, weight, values, err));
done:
    ki_free(values);
    return status;
}

static kith_status start(ki_train_state *run, ki_vectors *v, kith_error *err) {
    kith_status status;
    const float *rows = NULL;
    double *map = NULL;
    const int64_t n_axes = run->net.embedding < v->dim ? run->net.embedding : v->dim;
    KI_CHECK(ki_vectors_host(v, &rows, err));
    KI_CHECK(ki_alloc_or(&map, (size_t)n_axes * (size_t)v->dim, sizeof *map, "axes", err));
    status = ki_whiten_axes(rows, v->n, v->dim, n_axes,
                            run->recipe->model.embedding_init == KI_START_OF_WHITE_AXES, map, err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "model.embedding_init");
        goto done;
    }
    KI_CHECK(set_layer(run, map, n_axes, v->dim, err));
done:
    ki_free(map);
    return status;
}

kith_status ki_train_start_layer(ki_train_state *run, kith_error *err) {
    kith_status status;
    ki_items chosen = {0};
    ki_vectors v = {0};
    if (run->recipe->model.embedding_init < KI_START_OF_AXES) return KITH_OK;
    KI_CHECK(ki_train_agree(run, ki_train_choose_fitted(run, &chosen, err), err));
    KI_CHECK(ki_train_embed(run, chosen.item, chosen.n, "pooled", NULL, &v, err));
    KI_CHECK(ki_train_agree(run, start(run, &v, err), err));
done:
    ki_free(chosen.item);
    ki_vectors_release(&v);
    return status;
}
