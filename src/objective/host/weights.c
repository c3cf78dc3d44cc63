/* Pair weights of the loss: which pairs it pulls and pushes, and how hard. */
#include "base/alloc.h"
#include "objective/check.h"
#include "objective/host/host.h"

/* The pairs of rows as pairs of images, in place: the sum of the heads' weights and the mean of their similarities.
 * Returns the columns. What is written lies before what is still to be read. */
static int64_t join_heads(const ki_pairs *pairs, int64_t heads, ki_real *weight, ki_real *similarity) {
    const int64_t own = pairs->is_proxy ? 1 : heads, n = pairs->n / own;
    for (int64_t i = 0; heads > 1 && i < pairs->m / heads; i++) {
        for (int64_t j = 0; j < n; j++) {
            ki_real sum = 0, mean = 0;
            for (int64_t h = 0; h < heads; h++) {
                const int64_t at = (i * heads + h) * pairs->n + j * own + (own > 1 ? h : 0);
                sum += weight[at];
                if (similarity) mean += similarity[at] / (ki_real)heads;
            }
            weight[i * n + j] = sum;
            if (similarity) similarity[i * n + j] = mean;
        }
    }
    return n;
}

kith_status ki_objective_weights(ki_objective *objective, const ki_batch *batch, ki_real **ret_weight,
                                 ki_real **ret_similarity, int64_t *ret_n, kith_error *err) {
    ki_evaluation e = {.o = objective, .batch = batch, .share = {.comm = batch->comm, .n = batch->m}};
    const ki_loss_use *loss = &objective->loss;
    ki_pairs pairs;
    ki_loss_proxies with = {0};
    ki_loss_rows rows;
    ki_real **diff = NULL, *weight = NULL, *similarity = NULL;
    ki_loss_out out = {.g_scale = 1};
    if (!loss->record)
        return ki_fail(err, KITH_EINVAL, "the objective has no loss, so there are no pair weights");
    KI_TRY(ki_batch_check(objective, batch, err));
    ki_evaluation_forget(objective);
    ki_evaluation_begin(&e);
    if (loss->normalize) KI_TRY(ki_evaluation_normalize(&e, err));
    KI_TRY(ki_loss_rows_of(&e, &rows, err));
    KI_TRY(ki_loss_pairs(&e, &rows, loss->param, false, &pairs, &with, err));
    KI_TRY(ki_loss_take_diffs(&e, loss->param, &diff, err));
    KI_TRY(ki_work_reals(&objective->work, pairs.m * pairs.ld, "pair gradients", &out.g, err));
    if (loss->record->is_proxy)
        KI_TRY(
            ki_take_zeros(&objective->work, pairs.n * e.row_dim, "proxy gradients", &out.diff_proxies, err));
    out.diff = diff;
    const ki_loss_in in = {
        .settings = loss->settings, .pairs = &pairs, .param = loss->param, .proxies = with.unit};
    KI_TRY(loss->record->eval(&in, &out, err));
    const size_t n_weights = (size_t)(pairs.m * pairs.n);
    KI_TRY(ki_alloc_or(&weight, n_weights, sizeof *weight, "pair weights", err));
    if (ret_similarity) {
        const kith_status status =
            ki_alloc_or(&similarity, n_weights, sizeof *similarity, "similarities", err);
        if (status != KITH_OK) {
            ki_free(weight);
            return status;
        }
        *ret_similarity = similarity;
    }
    ki_pairs_weights(&pairs, out.g, out.g_scale, weight, similarity);
    *ret_n = join_heads(&pairs, objective->sizes.heads, weight, similarity);
    objective->column_class = with.columns.chosen;
    objective->first_class = loss->record->is_proxy ? with.of.proxies->first / with.of.n_centers : 0;
    *ret_weight = weight;
    return KITH_OK;
}

int64_t ki_objective_column_class(const ki_objective *objective, int64_t j) {
    const int64_t k = j / ki_objective_centers(objective);
    return objective->first_class + (objective->column_class ? objective->column_class[k] : k);
}
