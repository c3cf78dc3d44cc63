/* Variants (base/variant.h): scores of the same images by other vectors than the embedding. Those with a curve at every
 * evaluation, all of them at the end. The rows are what the describing term of the objective makes or, where only the embedding
 * is wanted, embeddings. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "train/describe.h"
#include "train/run.h"

/* More training images than this add nothing to a few hundred components. */
enum { MOST_FITTED = 10000 };

/* ---- which ---- */

static bool is_named(const ki_recipe *r, const char *name) {
    for (size_t i = 0; i < r->n_variants; i++) {
        if (strcmp(r->variant[i], name) == 0) return true;
    }
    return false;
}

void ki_train_choose_variants(ki_train_state *run) {
    const ki_recipe *r = run->recipe;
    ki_variant all[KI_MOST_VARIANTS];
    size_t n = ki_objective_variants(run->objective, all, KI_MOST_VARIANTS);
    if (n > KI_MOST_VARIANTS) n = KI_MOST_VARIANTS;
    if (r->variants == KI_VARIANTS_NONE) return;
    if (r->variants == KI_VARIANTS_LISTED && !ki_objective_lists_variants(run->objective)) return;
    for (size_t i = 0; i < n; i++) {
        if (r->variants == KI_VARIANTS_NAMED && !is_named(r, all[i].name)) continue;
        run->variant[run->n_variants++] = all[i];
    }
}

static bool is_described(const ki_variant *v) { return !ki_variant_is_of_embedding(v); }
static bool has_curve(const ki_variant *v) { return (v->has & KI_VARIANT_CURVE) != 0; }

/* Those of the run's for which it is so; returns how many. */
static size_t pick(const ki_train_state *run, bool (*is_so)(const ki_variant *), ki_variant *ret) {
    size_t n = 0;
    for (size_t i = 0; i < run->n_variants; i++) {
        if (is_so(&run->variant[i])) ret[n++] = run->variant[i];
    }
    return n;
}

static ki_variants_options options_of(const ki_train_state *run, bool described) {
    ki_variants_options o = {.k = run->recipe->k,
                             .n_k = run->recipe->n_k,
                             .parts = ki_objective_parts(run->objective),
                             .embedding = run->net.embedding,
                             .has_clustering = run->recipe->eval.clustering};
    if (!described) o.parts = (ki_parts){.n = 1, .width = {run->net.embedding}};
    return o;
}

/* ---- at an evaluation ---- */

/* Rows that begin with the embedding serve both: the scores of the network and those of its variants. */
static bool is_watched(const ki_train_state *run) {
    ki_variant curves[KI_MOST_VARIANTS];
    return !run->description_failed && pick(run, has_curve, curves) > 0 &&
           ki_objective_parts(run->objective).width[0] > 0;
}

kith_status ki_train_variants_begin(ki_train_state *run, kith_error *err) {
    if (run->description || !is_watched(run)) return KITH_OK;
    return ki_description_new(run->learner, &run->description, err);
}

void ki_train_variants_end(ki_train_state *run) {
    if (!run->description) return;
    ki_embedder_drop_plan(run->embedder); /* it may use the description */
    ki_description_free(run->description);
    run->description = NULL;
}

static kith_status judge_both(const ki_train_state *run, ki_vectors *rows, ki_scores *ret_scores,
                              ki_variant_list *ret_list, kith_error *err) {
    ki_variant curves[KI_MOST_VARIANTS];
    const size_t n = pick(run, has_curve, curves);
    const ki_variants_options options = options_of(run, true);
    KI_TRY(ki_judge_embedding(rows, &options, ret_scores, err));
    return ki_judge_variants(NULL, rows, &options, curves, n, ret_list, err);
}

static kith_status judge_curves(ki_train_state *run, const ki_items *items, ki_scores *ret_scores,
                                ki_variant_list *ret_list, kith_error *err) {
    ki_vectors v = {0};
    ki_scores scores = {0};
    const ki_describer *describer = ki_description_describer(run->description);
    kith_status status = ki_train_embed(run, items->item, items->n, NULL, describer, &v, err);
    if (status == KITH_OK) status = ki_train_agree(run, judge_both(run, &v, &scores, ret_list, err), err);
    if (status == KITH_OK) *ret_scores = scores;
    ki_vectors_release(&v);
    return status;
}

/* An extra: a device without the memory for it still trains. */
kith_status ki_train_variants_judge(ki_train_state *run, const ki_items *items, ki_scores *ret_scores,
                                    ki_variant_list *ret_list, kith_error *err) {
    kith_error why = {0};
    const kith_status status = judge_curves(run, items, ret_scores, ret_list, &why);
    if (status == KITH_ENOMEM) {
        ki_variant_list_release(ret_list); /* another rank may have lacked the memory */
        ki_train_variants_end(run);
        run->description_failed = true;
        return ki_train_say(run, KITH_TRAIN_WARNING, err,
                            "variants are not scored at evaluations from here on (%s); eval.variants=false "
                            "leaves them out, a smaller eval.batch needs less",
                            why.message);
    }
    if (status != KITH_OK && err) *err = why;
    return status;
}

/* ---- at the end ---- */

/* Every k-th training image, so that there are not too many. */
kith_status ki_train_choose_fitted(const ki_train_state *run, ki_items *ret, kith_error *err) {
    const int64_t every = (run->train.n + MOST_FITTED - 1) / MOST_FITTED;
    KI_TRY(ki_alloc_or(&ret->item, (size_t)(run->train.n / every + 1), sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < run->train.n; i += every) ret->item[ret->n++] = run->train.item[i];
    return KITH_OK;
}

/* The term's descriptors belong to the last step and cannot be combined with an earlier model. What the recipe
 * asks for and needs no term is scored then, too. */
static kith_status choose_possible(ki_train_state *run, int64_t step, ki_variant *ret, size_t *ret_n,
                                   kith_error *err) {
    ki_variant described[KI_MOST_VARIANTS];
    const bool is_asked = run->recipe->variants != KI_VARIANTS_LISTED;
    *ret_n = 0;
    if (step == run->at.step || pick(run, is_described, described) == 0) {
        memcpy(ret, run->variant, sizeof run->variant);
        *ret_n = run->n_variants;
        return KITH_OK;
    }
    if (!is_asked) return KITH_OK;
    *ret_n = pick(run, ki_variant_is_of_embedding, ret);
    return ki_train_say(run, KITH_TRAIN_WARNING, err,
                        "variant %s is not scored: its term is that of the last step, %lld, and the chosen "
                        "model is of step %lld (eval.select=last chooses the last)",
                        described[0].name, (long long)run->at.step, (long long)step);
}

/* Rows of both kinds of images: described, or embeddings. */
static kith_status make_rows(ki_train_state *run, bool described, ki_vectors *fitted, ki_vectors *test,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_items chosen = {0};
    if (described && !run->description) status = ki_description_new(run->learner, &run->description, err);
    if (status == KITH_OK) status = ki_train_choose_fitted(run, &chosen, err);
    KI_CHECK(ki_train_agree(run, status, err));
    const ki_describer *describer = described ? ki_description_describer(run->description) : NULL;
    const char *tap = described ? NULL : "embedding";
    KI_CHECK(ki_train_embed(run, chosen.item, chosen.n, tap, describer, fitted, err));
    KI_CHECK(ki_train_embed(run, run->test.item, run->test.n, tap, describer, test, err));
    if (described) goto done;
    status = ki_judge_normalize(fitted, run->net.heads, err);
    if (status == KITH_OK) status = ki_judge_normalize(test, run->net.heads, err);
    KI_CHECK(ki_train_agree(run, status, err));
done:
    ki_free(chosen.item);
    return status;
}

static void tell(ki_train_state *run, ki_variant_list *list, int64_t step) {
    for (size_t i = 0; i < list->n; i++) {
        ki_scores *s = &list->item[i].scores;
        s->step = step;
        if (!s->is_there) continue;
        ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_EVAL,
                                                 .split = "test",
                                                 .text = list->item[i].variant.name,
                                                 .recall_at_1 = s->recall[0],
                                                 .map_at_r = s->map_at_r});
    }
}

kith_status ki_train_variants_score(ki_train_state *run, int64_t step, ki_variant_list *ret,
                                    kith_error *err) {
    kith_status status = KITH_OK;
    ki_variant list[KI_MOST_VARIANTS];
    size_t n = 0;
    ki_vectors fitted = {0}, test = {0};
    bool described = false;
    if (run->n_variants == 0 || run->test.n == 0) return KITH_OK;
    KI_CHECK(choose_possible(run, step, list, &n, err));
    for (size_t i = 0; i < n; i++) described |= is_described(&list[i]);
    if (n == 0) goto done;
    KI_CHECK(make_rows(run, described, &fitted, &test, err));
    const ki_variants_options options = options_of(run, described);
    KI_CHECK(ki_train_agree(run, ki_judge_variants(&fitted, &test, &options, list, n, ret, err), err));
    tell(run, ret, step);
done:
    ki_train_variants_end(run);
    ki_vectors_release(&fitted);
    ki_vectors_release(&test);
    return status;
}
