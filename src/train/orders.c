/* Every order at test time (HORDE Table 1, dagger): what a term of the objective has for an image beside its embedding.
 * Each order alone at every evaluation; at the end also all of them together, with a PCA to the embedding's size. */
#include "base/alloc.h"
#include "base/clock.h"
#include "train/describe.h"
#include "train/run.h"

/* More training images than this add nothing to a few hundred components. */
enum { MOST_FITTED = 10000 };

static ki_orders_options options_of(const ki_train_state *run) {
    ki_orders_options o = {.k = run->recipe->k,
                           .n_k = run->recipe->n_k,
                           .n_components = run->net.embedding,
                           .has_clustering = run->recipe->eval.clustering};
    o.n = ki_objective_describe_n(run->objective, &o.width);
    return o;
}

/* ---- each alone, at an evaluation ---- */

/* Rows that begin with the embedding serve both: the scores of the network and those of its orders. */
static bool is_watched(const ki_train_state *run) {
    int64_t width = 0;
    const int64_t n = ki_objective_describe_n(run->objective, &width);
    return run->recipe->eval.all_orders && !run->orders_failed && n > 0 &&
           ki_objective_describe_dim(run->objective) > n * width;
}

kith_status ki_train_orders_begin(ki_train_state *run, kith_error *err) {
    if (run->orders || !is_watched(run)) return KITH_OK;
    return ki_description_new(run->learner, &run->orders, err);
}

void ki_train_orders_end(ki_train_state *run) {
    if (!run->orders) return;
    ki_embedder_drop_plan(run->embedder); /* it may use the description */
    ki_description_free(run->orders);
    run->orders = NULL;
}

static kith_status judge_each(ki_train_state *run, const ki_items *items, ki_scores *ret_scores,
                              ki_order_recall *ret_alone, kith_error *err) {
    ki_vectors v = {0};
    const ki_orders_options options = options_of(run);
    const ki_describer *describer = ki_description_describer(run->orders);
    kith_status status = ki_train_embed(run, items->item, items->n, NULL, describer, &v, err);
    if (status == KITH_OK)
        status = ki_train_agree(run, ki_judge_each_order(&v, &options, ret_scores, ret_alone, err), err);
    ki_vectors_release(&v);
    return status;
}

/* An extra: a device without the memory for it still trains. */
kith_status ki_train_orders_judge(ki_train_state *run, const ki_items *items, ki_scores *ret_scores,
                                  ki_order_recall *ret_alone, kith_error *err) {
    kith_error why = {0};
    const kith_status status = judge_each(run, items, ret_scores, ret_alone, &why);
    if (status == KITH_ENOMEM) {
        ki_train_orders_end(run);
        run->orders_failed = true;
        return ki_train_say(run, KITH_TRAIN_WARNING, err,
                            "the orders are not scored alone from here on (%s); eval.all_orders=false leaves "
                            "them out, a smaller eval.batch needs less",
                            why.message);
    }
    if (status != KITH_OK && err) *err = why;
    return status;
}

/* ---- all together, at the end ---- */

/* Every k-th training image, so that there are not too many. */
kith_status ki_train_choose_fitted(const ki_train_state *run, ki_items *ret, kith_error *err) {
    const int64_t every = (run->train.n + MOST_FITTED - 1) / MOST_FITTED;
    KI_TRY(ki_alloc_or(&ret->item, (size_t)(run->train.n / every + 1), sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < run->train.n; i += every) ret->item[ret->n++] = run->train.item[i];
    return KITH_OK;
}

static kith_status judge_all(ki_train_state *run, ki_vectors *fitted, ki_vectors *test,
                             ki_train_result *result, kith_error *err) {
    ki_orders_options options = options_of(run);
    ki_orders *found = &result->orders;
    options.recall = result->test.recall[0];
    KI_TRY(ki_judge_orders(fitted, test, &options, found, err));
    ki_scores *const scores[] = {&found->fair.plain,  &found->fair.white,         &found->each_white.plain,
                                 &found->first_white, &found->transductive.plain, &found->transductive.white};
    for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++) scores[i]->step = result->step;
    return KITH_OK;
}

kith_status ki_train_all_orders(ki_train_state *run, ki_train_result *result, kith_error *err) {
    kith_status status = KITH_OK;
    ki_items chosen = {0};
    ki_vectors fitted = {0}, test = {0};
    const double began = ki_seconds_now();
    /* What the moments have learnt is that of the last step: with an earlier model it does not go. */
    if (!run->recipe->eval.all_orders || ki_objective_describe_dim(run->objective) == 0 || run->test.n == 0 ||
        result->step != run->at.step)
        return KITH_OK;
    if (!run->orders) status = ki_description_new(run->learner, &run->orders, err);
    if (status == KITH_OK) status = ki_train_choose_fitted(run, &chosen, err);
    KI_CHECK(ki_train_agree(run, status, err));
    const ki_describer *describer = ki_description_describer(run->orders);
    KI_CHECK(ki_train_embed(run, chosen.item, chosen.n, NULL, describer, &fitted, err));
    KI_CHECK(ki_train_embed(run, run->test.item, run->test.n, NULL, describer, &test, err));
    KI_CHECK(ki_train_agree(run, judge_all(run, &fitted, &test, result, err), err));
    ki_scores *scores = &result->orders.fair.plain;
    scores->seconds = ki_seconds_now() - began;
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_EVAL,
                                             .split = "test",
                                             .text = "all orders",
                                             .recall_at_1 = scores->recall[0],
                                             .map_at_r = scores->map_at_r});
done:
    ki_train_orders_end(run);
    ki_free(chosen.item);
    ki_vectors_release(&fitted);
    ki_vectors_release(&test);
    return status;
}
