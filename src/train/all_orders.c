/* All orders at test time (HORDE Table 1, dagger): the normalised embedding and every order's side by side, and a
 * PCA to the embedding's size, fitted on training images. */
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "kith/knn.h"
#include "train/describer.h"
#include "train/run.h"

/* More training images than this add nothing to a few hundred components. */
enum { MOST_FITTED = 10000 };

typedef struct describing {
    ki_describer *describer;
    ki_embedded *e;
} describing;

static kith_status describe_batch(void *user, const ki_loader_batch *batch, kith_error *err) {
    const describing *to = user;
    ki_embedded *e = to->e;
    const ki_embedder_batch input = {.n = batch->n, .data = batch->data, .window = batch->window};
    KI_TRY(ki_describer_run(to->describer, &input, e->x + e->n * e->dim, err));
    for (int64_t i = 0; i < batch->n; i++, e->n++) {
        e->label[e->n] = batch->label[i];
        e->item[e->n] = batch->item[i];
    }
    return KITH_OK;
}

static kith_status describe(ki_train_state *run, ki_describer *describer, const int64_t *items, int64_t n,
                            ki_embedded *ret, kith_error *err) {
    KI_TRY(ki_embedded_make(n, ki_objective_describe_dim(run->objective), ret, err));
    return ki_judge_each(run->judge, items, n, describe_batch, &(describing){describer, ret}, err);
}

/* Every k-th training image, so that there are not too many. */
static kith_status choose_fitted(const ki_train_state *run, ki_items *ret, kith_error *err) {
    const int64_t every = (run->train.n + MOST_FITTED - 1) / MOST_FITTED;
    KI_TRY(ki_alloc_or(&ret->item, (size_t)(run->train.n / every + 1), sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < run->train.n; i += every) ret->item[ret->n++] = run->train.item[i];
    return KITH_OK;
}

/* Scores the whitened projection, and leaves the plain one in test. */
static kith_status project(const ki_train_state *run, const ki_embedded *fitted, ki_embedded *test,
                           ki_scores *ret_white, kith_error *err) {
    kith_status status;
    kith_pca pca = {0};
    kith_array projected = {0}, white = {0};
    int64_t n = run->net.embedding;
    if (n > test->dim) n = test->dim;
    if (n > fitted->n - 1) n = fitted->n - 1;
    const kith_array rows = {KITH_F32, 2, {fitted->n, fitted->dim}, fitted->x},
                     wanted = {KITH_F32, 2, {test->n, test->dim}, test->x};
    KI_CHECK(kith_pca_fit(&rows, &(kith_pca_options){.n_components = n}, &pca, err));
    KI_CHECK(kith_pca_apply(&pca, &wanted, &projected, err));
    pca.whiten = true;
    KI_CHECK(kith_pca_apply(&pca, &wanted, &white, err));
    const ki_embedded whitened = {
        .n = test->n, .dim = n, .x = white.data, .label = test->label, .item = test->item};
    KI_CHECK(ki_judge_score(run->judge, &whitened, ret_white, NULL, err));
    memcpy(test->x, projected.data, (size_t)(test->n * n) * sizeof *test->x); /* n is not larger than dim */
    test->dim = n;
done:
    kith_pca_release(&pca);
    kith_array_release(&projected);
    kith_array_release(&white);
    return status;
}

/* R@1 by the order whose part of every row begins at `from`. */
static kith_status score_part(const ki_train_state *run, const ki_embedded *all, int64_t from, int64_t width,
                              double *ret_recall, kith_error *err) {
    ki_embedded part = {.n = all->n, .dim = width, .label = all->label, .item = all->item};
    ki_scores scores = {0};
    KI_TRY(ki_alloc_or(&part.x, (size_t)all->n, (size_t)width * sizeof *part.x, "an order's rows", err));
    for (int64_t i = 0; i < all->n; i++)
        memcpy(part.x + i * width, all->x + i * all->dim + from, (size_t)width * sizeof *part.x);
    const kith_status status = ki_judge_score(run->judge, &part, &scores, NULL, err);
    *ret_recall = scores.recall[0];
    ki_free(part.x);
    return status;
}

static kith_status score_each(const ki_train_state *run, const ki_embedded *test, ki_train_result *result,
                              kith_error *err) {
    ki_scores whole = {0};
    int64_t width = 0;
    const int64_t n = ki_objective_describe_n(run->objective, &width), first = test->dim - n * width;
    result->order_recall[0] = result->test.recall[0]; /* the embedding is order 1 */
    for (int64_t k = 0; k < n; k++)
        KI_TRY(score_part(run, test, first + k * width, width, &result->order_recall[1 + k], err));
    result->n_orders = 1 + n;
    KI_TRY(ki_judge_score(run->judge, test, &whole, NULL, err));
    result->side_by_side_recall = whole.recall[0];
    return KITH_OK;
}

kith_status ki_train_all_orders(ki_train_state *run, ki_train_result *result, kith_error *err) {
    kith_status status;
    ki_describer *describer = NULL;
    ki_items chosen = {0};
    ki_embedded fitted = {0}, test = {0};
    const double began = ki_seconds_now();
    /* What the moments have learnt is that of the last step: with an earlier model it does not go. */
    if (!run->recipe->eval.all_orders || ki_objective_describe_dim(run->objective) == 0 || run->test.n == 0 ||
        result->step != run->at.step)
        return KITH_OK;
    const ki_describer_settings settings = {.backend = run->backend,
                                            .net = &run->net,
                                            .params = run->params,
                                            .objective = run->objective,
                                            .batch = ki_judge_batch(run->judge),
                                            .format = ki_feed_format(run->backend, &run->test_transform),
                                            .transform = &run->test_transform};
    KI_CHECK(ki_learner_pull(run->learner, err));
    KI_CHECK(ki_describer_new(&settings, &describer, err));
    KI_CHECK(choose_fitted(run, &chosen, err));
    KI_CHECK(describe(run, describer, chosen.item, chosen.n, &fitted, err));
    KI_CHECK(describe(run, describer, run->test.item, run->test.n, &test, err));
    result->all_orders_dim[0] = test.dim;
    KI_CHECK(score_each(run, &test, result, err));
    KI_CHECK(project(run, &fitted, &test, &result->white_orders, err));
    result->white_orders.step = result->step;
    result->all_orders_dim[1] = test.dim;
    KI_CHECK(ki_judge_score(run->judge, &test, &result->all_orders, &result->all_orders_intervals, err));
    if (run->recipe->eval.clustering) KI_CHECK(ki_judge_cluster(&test, &result->all_orders_clustered, err));
    result->all_orders.step = result->step;
    result->all_orders.seconds = ki_seconds_now() - began;
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_EVAL,
                                             .split = "test",
                                             .text = "all orders",
                                             .recall_at_1 = result->all_orders.recall[0],
                                             .map_at_r = result->all_orders.map_at_r});
done:
    ki_describer_free(describer);
    ki_free(chosen.item);
    ki_embedded_release(&fitted);
    ki_embedded_release(&test);
    return status;
}
