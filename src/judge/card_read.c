/* Reading result cards, today's and those of 0.1. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "core/text.h"
#include "io/json.h"
#include "judge/card.h"

struct kith_card {
    ki_arena arena;
    const char *path;
    ki_value *root;
};

kith_status kith_card_read(const char *path, kith_card **ret_card, kith_error *err) {
    KI_NEED(err, path, ret_card);
    kith_card *card = NULL;
    KI_TRY(ki_zalloc_or(&card, 1, sizeof *card, "a result card", err));
    kith_status status = ki_json_read(path, &card->arena, &card->root, err);
    if (status == KITH_OK && !(card->path = ki_arena_strdup(&card->arena, path)))
        status = ki_fail_memory(err, strlen(path), "a file's name");
    if (status == KITH_OK && card->root->kind != KI_VALUE_MAP) {
        char found[96];
        status = ki_fail(err, KITH_EFORMAT, "%s holds %s; wanted " KI_CARD_WANTED, path,
                         ki_value_describe(card->root, found, sizeof found));
    }
    if (status == KITH_OK)
        *ret_card = card;
    else
        kith_card_free(card);
    return status;
}

void kith_card_free(kith_card *card) {
    if (!card) return;
    ki_arena_release(&card->arena);
    ki_free(card);
}

const char *ki_card_path(const kith_card *card) { return card->path; }

/* ---- by path ---- */

/* Today's names, and what 0.1 called the same in a block of result.json or, the last, in the card of kith eval. */
static const char *const renamed[][2] = {{"queries", "n_images"},
                                         {"classes", "n_classes"},
                                         {"lone_queries", "n_lone"},
                                         {"model_sha256", "weights_sha256"}};

static const ki_value *get(const ki_value *map, const char *key) {
    const ki_value *found = ki_value_get(map, key);
    for (size_t i = 0; !found && i < sizeof renamed / sizeof renamed[0]; i++) {
        if (strcmp(key, renamed[i][0]) == 0) found = ki_value_get(map, renamed[i][1]);
        if (!found && strcmp(key, renamed[i][1]) == 0) found = ki_value_get(map, renamed[i][0]);
    }
    return found;
}

const ki_value *ki_card_find(const ki_value *root, const char *path) {
    const ki_value *at = root;
    while (at && *path) {
        char key[128];
        const size_t n = strcspn(path, ".");
        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        int64_t i = 0;
        if (at->kind == KI_VALUE_LIST)
            at = ki_parse_int64(key, &i) && i >= 0 ? ki_value_at(at, (size_t)i) : NULL;
        else
            at = get(at, key);
        path += n + (path[n] == '.');
    }
    return at;
}

static const char *text_of(const ki_value *value) {
    return value && value->kind == KI_VALUE_SCALAR ? value->text : NULL;
}

const char *kith_card_text(const kith_card *card, const char *path) {
    if (!card || !path) return NULL;
    return text_of(ki_card_find(card->root, path));
}

bool kith_card_real(const kith_card *card, const char *path, double *ret_value) {
    if (!card || !path || !ret_value) return false;
    const char *text = kith_card_text(card, path);
    return text && ki_parse_double(text, ret_value);
}

const char *kith_card_key(const kith_card *card, const char *path, int64_t i) {
    if (!card || !path || i < 0) return NULL;
    const ki_value *map = ki_card_find(card->root, path);
    const ki_value *entry = map && map->kind == KI_VALUE_MAP ? ki_value_at(map, (size_t)i) : NULL;
    return entry ? entry->key : NULL;
}

/* kith eval has its facts apart, a run beside its blocks. A run judges embeddings. */
const char *kith_card_fact(const kith_card *card, const char *name) {
    if (!card || !name) return NULL;
    const ki_value *apart = ki_value_get(card->root, "card");
    const char *text = text_of(apart ? get(apart, name) : ki_value_get(card->root, name));
    if (!text && !apart && strcmp(name, "tap") == 0 && ki_value_get(card->root, "selection"))
        text = "embedding";
    return text && *text ? text : NULL;
}

/* ---- blocks ---- */

static double real_at(const ki_value *map, const char *key) {
    double value = NAN;
    const char *text = map ? text_of(get(map, key)) : NULL;
    if (text) ki_parse_double(text, &value);
    return value;
}

static int64_t int_at(const ki_value *map, const char *key) {
    int64_t value = 0;
    const char *text = map ? text_of(get(map, key)) : NULL;
    if (text) ki_parse_int64(text, &value);
    return value;
}

ki_scores ki_card_scores(const kith_card *card, const char *block, const int64_t *k, int64_t n_k) {
    const ki_value *map = ki_value_get(card->root, block), *recall = map ? ki_value_get(map, "recall") : NULL;
    ki_scores s = {.is_there = recall != NULL,
                   .step = int_at(map, "step"),
                   .map_at_r = real_at(map, "map_at_r"),
                   .r_precision = real_at(map, "r_precision"),
                   .n_query = int_at(map, "queries"),
                   .n_classes = int_at(map, "classes"),
                   .n_lone = int_at(map, "lone_queries")};
    for (int64_t i = 0; i < n_k; i++) {
        char name[32];
        ki_snprintf(name, sizeof name, "%lld", (long long)k[i]);
        s.recall[i] = real_at(recall, name);
    }
    return s;
}

static bool says(const ki_value *map, const char *key, const char *wanted) {
    const char *text = map ? text_of(get(map, key)) : NULL;
    return text && strcmp(text, wanted) == 0;
}

ki_clustered ki_card_clustered(const kith_card *card, const char *block) {
    const ki_value *map = ki_value_get(card->root, block), *how = map ? ki_value_get(map, "kmeans") : NULL;
    return (ki_clustered){
        .is_there = map && ki_value_get(map, "nmi"),
        .settings = {.n_clusters = int_at(how, "clusters"),
                     .is_random_start = says(how, "start", "random rows"),
                     .n_restarts = (int)int_at(how, "restarts"),
                     .n_iterations = int_at(how, "iterations"),
                     .seed = (uint64_t)int_at(how, "seed"),
                     .normalize = says(how, "normalized", "true")},
        .scores = {.nmi = real_at(map, "nmi"), .ami = real_at(map, "ami"), .f1 = real_at(map, "f1")}};
}
