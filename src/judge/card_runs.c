/* The card of several runs: means of what their cards say, by the names of one run's card. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "judge/card.h"

typedef struct runs {
    kith_card *const *card;
    int n;
    const int64_t *k;
    int64_t n_k;
    /* [n] of one block */
    ki_scores *scores;
    ki_clustered *clustered;
    double *value;
} runs;

/* Of the number at `offset` in each of n structs of `bytes`. */
static kith_estimate mean_at(const runs *r, const void *structs, size_t bytes, size_t offset) {
    for (int i = 0; i < r->n; i++)
        memcpy(&r->value[i], (const char *)structs + (size_t)i * bytes + offset, sizeof r->value[i]);
    return ki_estimate_mean(r->value, r->n);
}

#define SCORE(field) mean_at(r, r->scores, sizeof *r->scores, offsetof(ki_scores, field))
#define CLUSTERING(field) mean_at(r, r->clustered, sizeof *r->clustered, offsetof(ki_clustered, scores.field))
static ki_card_means means_of(const runs *r) {
    ki_card_means m = {.map_at_r = SCORE(map_at_r),
                       .r_precision = SCORE(r_precision),
                       .nmi = CLUSTERING(nmi),
                       .ami = CLUSTERING(ami),
                       .f1 = CLUSTERING(f1)};
    for (int64_t i = 0; i < r->n_k; i++)
        m.recall[i] = mean_at(r, r->scores, sizeof *r->scores,
                              offsetof(ki_scores, recall) + (size_t)i * sizeof r->scores->recall[0]);
    return m;
}
#undef SCORE
#undef CLUSTERING

/* The first run's, with -1 for each count that is not everyone's. */
static ki_scores common_counts(const runs *r) {
    ki_scores s = r->scores[0];
    for (int i = 1; i < r->n; i++) {
        const ki_scores *other = &r->scores[i];
        if (other->n_query != s.n_query) s.n_query = -1;
        if (other->n_classes != s.n_classes) s.n_classes = -1;
        if (other->n_lone != s.n_lone) s.n_lone = -1;
        if (other->step != s.step) s.step = -1;
    }
    return s;
}

static const char *common_text(const runs *r, const char *block, const char *key) {
    char path[160];
    ki_snprintf(path, sizeof path, "%s.%s", block, key);
    const char *text = kith_card_text(r->card[0], path);
    for (int i = 1; text && i < r->n; i++) {
        const char *other = kith_card_text(r->card[i], path);
        if (!other || strcmp(other, text) != 0) text = NULL;
    }
    return text;
}

static int64_t common_int(const runs *r, const char *block, const char *key) {
    const char *text = common_text(r, block, key);
    int64_t value = 0;
    if (text) ki_parse_int64(text, &value);
    return value;
}

/* A block and what it borrows. */
typedef struct together {
    ki_card_means means;
    ki_clustered clustered;
    ki_card_variant variant;
} together;

static void read_block(const runs *r, const char *key, together *t, ki_card_block *ret) {
    for (int i = 0; i < r->n; i++) {
        r->scores[i] = ki_card_scores(r->card[i], key, r->k, r->n_k);
        r->clustered[i] = ki_card_clustered(r->card[i], key);
    }
    const ki_scores scores = common_counts(r);
    t->means = means_of(r);
    t->clustered = r->clustered[0];
    *ret = ki_card_block_of(key, &scores, r->k, r->n_k);
    ret->means = &t->means;
    ret->clustered = &t->clustered;
    ret->data_sha256 = common_text(r, key, "data_sha256");
    ret->note = common_text(r, key, "note");
}

/* Those of the first run: all runs of a recipe have the same. */
static const char *variant_name(const runs *r, size_t i) {
    char path[48];
    ki_snprintf(path, sizeof path, "variants.%zu.name", i);
    return kith_card_text(r->card[0], path);
}

static void read_variant(const runs *r, const char *name, together *t, ki_card_block *ret) {
    read_block(r, name, t, ret);
    t->variant = (ki_card_variant){.name = name,
                                   .transform = common_text(r, name, "transform"),
                                   .fitted_on = common_text(r, name, "fitted_on"),
                                   .dim = {common_int(r, name, "dim.0"), common_int(r, name, "dim.1")}};
    ret->variant = &t->variant;
}

kith_status ki_card_put_runs(kith_json *json, kith_card *const *cards, int n, const int64_t *k, int64_t n_k,
                             kith_error *err) {
    kith_status status;
    runs r = {.card = cards, .n = n, .k = k, .n_k = n_k};
    together *borrowed = NULL;
    ki_card_block *blocks = NULL;
    size_t n_keys = 0, n_variants = 0;
    while (kith_card_key(cards[0], "", (int64_t)n_keys)) n_keys++;
    while (variant_name(&r, n_variants)) n_variants++;
    KI_CHECK(ki_alloc_or(&r.scores, (size_t)n, sizeof *r.scores, "results", err));
    KI_CHECK(ki_alloc_or(&r.clustered, (size_t)n, sizeof *r.clustered, "results", err));
    KI_CHECK(ki_alloc_or(&r.value, (size_t)n, sizeof *r.value, "results", err));
    KI_CHECK(ki_zalloc_or(&borrowed, n_keys + n_variants + 1, sizeof *borrowed, "results", err));
    KI_CHECK(ki_zalloc_or(&blocks, n_keys + n_variants + 1, sizeof *blocks, "results", err));
    for (size_t i = 0; i < n_keys; i++)
        read_block(&r, kith_card_key(cards[0], "", (int64_t)i), &borrowed[i], &blocks[i]);
    for (size_t i = n_keys; i < n_keys + n_variants; i++)
        read_variant(&r, variant_name(&r, i - n_keys), &borrowed[i], &blocks[i]);
    const kith_card_facts facts = ki_card_common_facts(cards, n);
    ki_card_put(json, &(ki_card_content){.block = blocks,
                                         .n_blocks = n_keys,
                                         .variant = blocks + n_keys,
                                         .n_variants = n_variants,
                                         .facts = &facts});
done:
    ki_free(borrowed);
    ki_free(blocks);
    ki_free(r.scores);
    ki_free(r.clustered);
    ki_free(r.value);
    return status;
}
