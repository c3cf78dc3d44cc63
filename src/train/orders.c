/* All orders at test time (HORDE Table 1, dagger): test images by what a term of the objective has for them, with a PCA
 * to the embedding's size fitted on training images. */
#include "core/alloc.h"
#include "core/clock.h"
#include "train/describe.h"
#include "train/run.h"

/* More training images than this add nothing to a few hundred components. */
enum { MOST_FITTED = 10000 };

/* Every k-th training image, so that there are not too many. */
static kith_status choose_fitted(const ki_train_state *run, ki_items *ret, kith_error *err) {
    const int64_t every = (run->train.n + MOST_FITTED - 1) / MOST_FITTED;
    KI_TRY(ki_alloc_or(&ret->item, (size_t)(run->train.n / every + 1), sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < run->train.n; i += every) ret->item[ret->n++] = run->train.item[i];
    return KITH_OK;
}

static kith_status judge(ki_train_state *run, ki_vectors *fitted, ki_vectors *test, ki_train_result *result,
                         kith_error *err) {
    ki_orders_options options = {.k = run->recipe->k,
                                 .n_k = run->recipe->n_k,
                                 .recall = result->test.recall[0],
                                 .n_components = run->net.embedding,
                                 .has_clustering = run->recipe->eval.clustering};
    options.n = ki_objective_describe_n(run->objective, &options.width);
    KI_TRY(ki_judge_orders(fitted, test, &options, &result->orders, err));
    result->orders.scores.step = result->orders.white.step = result->step;
    return KITH_OK;
}

kith_status ki_train_all_orders(ki_train_state *run, ki_train_result *result, kith_error *err) {
    kith_status status;
    ki_description *description = NULL;
    ki_items chosen = {0};
    ki_vectors fitted = {0}, test = {0};
    const double began = ki_seconds_now();
    /* What the moments have learnt is that of the last step: with an earlier model it does not go. */
    if (!run->recipe->eval.all_orders || ki_objective_describe_dim(run->objective) == 0 || run->test.n == 0 ||
        result->step != run->at.step)
        return KITH_OK;
    KI_CHECK(ki_learner_pull(run->learner, err));
    KI_CHECK(ki_description_new(run->backend, &run->net, run->params, run->objective, &description, err));
    const ki_describer *describer = ki_description_describer(description);
    KI_CHECK(choose_fitted(run, &chosen, err));
    KI_CHECK(ki_train_embed(run, chosen.item, chosen.n, NULL, describer, &fitted, err));
    KI_CHECK(ki_train_embed(run, run->test.item, run->test.n, NULL, describer, &test, err));
    KI_CHECK(judge(run, &fitted, &test, result, err));
    const ki_scores *scores = &result->orders.scores;
    result->orders.scores.seconds = ki_seconds_now() - began;
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_EVAL,
                                             .split = "test",
                                             .text = "all orders",
                                             .recall_at_1 = scores->recall[0],
                                             .map_at_r = scores->map_at_r});
done:
    ki_embedder_drop_plan(run->embedder);
    ki_description_free(description);
    ki_free(chosen.item);
    ki_vectors_release(&fitted);
    ki_vectors_release(&test);
    return status;
}
