/* Three ways in which training goes wrong without an error: all embeddings become alike; a margin loss stays
 * at its margin, which is its value when distances no longer differ; a regularizer outweighs the loss. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "objective/usual.h"
#include "train/run.h"

static const double most_alike = 0.99, near_margin = 0.01, most_share = 1000, least_loss = 0.1;
/* A sign must be seen so many times in a row before the warning: the embeddings of a new network are often
 * alike for a while. */
enum { LEAST_MARGIN = 20, LEAST_ALIKE = 10, LEAST_DROWNED = 5, EVAL_COUNTS = 5 };

/* A warning is given when its sign was seen so many times in a row, and only once. */
static bool is_due(bool is_seen, int counts, int least, int64_t *n, bool *has_warned) {
    *n = is_seen ? *n + counts : 0;
    *has_warned = *n >= least;
    return *has_warned;
}

kith_status ki_train_watch_alike(ki_train_state *run, double alike, bool is_eval, kith_error *err) {
    if (run->at.has_warned_alike || run->at.step == 0) return KITH_OK;
    if (!is_due(!(alike < most_alike), is_eval ? EVAL_COUNTS : 1, LEAST_ALIKE, &run->at.n_alike,
                &run->at.has_warned_alike))
        return KITH_OK;
    return ki_train_say(
        run, KITH_TRAIN_WARNING, err,
        "step %lld: all embeddings are alike (mean cosine %.4f over %s), training has collapsed; "
        "try a lower optim.lr, an optim.warmup, or %s",
        (long long)run->at.step, alike, is_eval ? "validation images" : "the batch", ki_advice_easier_pairs);
}

/* The loss's margin, if it has one. */
static bool margin_of(const ki_train_state *run, double *ret) {
    const ki_value *loss = ki_value_get(run->recipe->objective, "loss");
    const ki_value *margin = ki_value_get(loss, "margin");
    return margin && margin->kind == KI_VALUE_SCALAR && ki_parse_double(margin->text, ret) && *ret > 0;
}

static kith_status watch_margin(ki_train_state *run, const ki_learner_values *values, kith_error *err) {
    double margin = 0;
    if (run->at.has_warned_margin || values->n_terms == 0 || !margin_of(run, &margin)) return KITH_OK;
    const double value = values->term[0].value;
    if (!is_due(fabs(value - margin) <= near_margin * margin, 1, LEAST_MARGIN, &run->at.n_margin,
                &run->at.has_warned_margin))
        return KITH_OK;
    return ki_train_say(
        run, KITH_TRAIN_WARNING, err,
        "step %lld: the loss has stayed at its margin (%s %.4f, margin %g): it no longer tells "
        "classes apart; try a lower optim.lr, more classes in a batch, or %s",
        (long long)run->at.step, values->term[0].name, value, margin, ki_advice_margin);
}

static double size_of(const ki_term *term) { return fabs(term->weight * term->value); }

/* Values of terms cannot be compared as gradients can, but a factor of a thousand is never useful. A loss
 * near 0 has been learned; that is no reason to warn. */
static kith_status watch_drowned(ki_train_state *run, const ki_learner_values *values, kith_error *err) {
    const ki_term *largest = NULL;
    if (run->at.has_warned_drowned || values->n_terms == 0) return KITH_OK;
    const double loss = fmax(size_of(&values->term[0]), least_loss);
    for (size_t i = 1; i < values->n_terms; i++) {
        if (!largest || size_of(&values->term[i]) > size_of(largest)) largest = &values->term[i];
    }
    const bool is_drowned = largest && size_of(largest) > most_share * loss;
    if (!is_due(is_drowned, 1, LEAST_DROWNED, &run->at.n_drowned, &run->at.has_warned_drowned))
        return KITH_OK;
    return ki_train_say(run, KITH_TRAIN_WARNING, err,
                        "step %lld: %s is far larger than the loss (%.3g times weight %g, %s %.3g), so that "
                        "little else is trained; "
                        "try a lower weight, or a bandwidth for its kernels if it has any",
                        (long long)run->at.step, largest->name, largest->value, largest->weight,
                        values->term[0].name, values->term[0].value);
}

kith_status ki_train_watch(ki_train_state *run, const ki_learner_values *values, double alike,
                           kith_error *err) {
    KI_TRY(watch_margin(run, values, err));
    KI_TRY(watch_drowned(run, values, err));
    return ki_train_watch_alike(run, alike, false, err);
}
