/* Reading result cards, today's and those of 0.1, of one run or of several. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/path.h"
#include "base/text.h"
#include "io/json.h"
#include "io/names.h"
#include "judge/card.h"

struct kith_card {
    ki_arena arena;
    const char *path;
    ki_value *root;
    kith_card **run; /* [n_runs]: of the runs it is about; none: it is about one */
    size_t n_runs, capacity;
};

/* ---- one file ---- */

static kith_status read_file(const char *path, kith_card **ret_card, kith_error *err) {
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
    if (status == KITH_OK && ki_value_get(card->root, "row") && ki_value_get(card->root, "error"))
        status = ki_fail(err, KITH_EFORMAT, "%s is the record of a run that failed", path);
    if (status == KITH_OK)
        *ret_card = card;
    else
        kith_card_free(card);
    return status;
}

/* ---- several runs ---- */

/* One of the prefixes, a number, the suffix. */
typedef struct numbered {
    const char *prefix[2]; /* NULL: one is enough */
    const char *suffix;
} numbered;

static bool is_numbered(const void *user, const char *name) {
    const numbered *wanted = user;
    for (size_t i = 0; i < 2 && wanted->prefix[i]; i++) {
        const size_t n = strlen(wanted->prefix[i]);
        if (strncmp(name, wanted->prefix[i], n) != 0) continue;
        const size_t digits = strspn(name + n, "0123456789");
        if (digits > 0 && strcmp(name + n + digits, wanted->suffix) == 0) return true;
    }
    return false;
}

static kith_status add_run(kith_card *card, const char *path, kith_error *err) {
    KI_TRY(ki_grow(&card->run, &card->capacity, card->n_runs + 1, sizeof *card->run, "runs", err));
    KI_TRY(read_file(path, &card->run[card->n_runs], err));
    card->n_runs++;
    return KITH_OK;
}

/* The runs of folds and seeds below a run's folder: seeds may be inside folds. */
static kith_status add_runs_below(kith_card *card, const char *folder, int depth, kith_error *err) {
    static const numbered wanted = {{"fold-", "seed-"}, ""};
    kith_status status;
    ki_names found = {0};
    KI_CHECK(ki_names_read(folder, is_numbered, &wanted, &found, err));
    for (size_t i = 0; i < found.n; i++) {
        ki_path sub, result;
        KI_CHECK(ki_path_print(&sub, err, "%s/%s", folder, found.item[i]));
        KI_CHECK(ki_path_print(&result, err, "%s/result.json", sub.s));
        if (ki_is_file("%s", result.s))
            KI_CHECK(add_run(card, result.s, err));
        else if (depth > 0)
            KI_CHECK(add_runs_below(card, sub.s, depth - 1, err));
    }
done:
    ki_names_release(&found);
    return status;
}

static kith_status read_folder(const char *folder, kith_card **ret_card, kith_error *err) {
    ki_path path;
    kith_card *card = NULL;
    KI_TRY(ki_path_print(&path, err, "%s/result.json", folder));
    if (!ki_is_file("%s", path.s)) {
        ki_fail(err, KITH_EFORMAT, "%s has no result.json; wanted the folder of a run that has ended",
                folder);
        return ki_hint(err, KITH_EFORMAT, "kith train RUN --resume ends it");
    }
    KI_TRY(read_file(path.s, &card, err));
    const kith_status status = add_runs_below(card, folder, 1, err);
    if (status == KITH_OK)
        *ret_card = card;
    else
        kith_card_free(card);
    return status;
}

/* ROW stands for ROW-seed0.json, ROW-seed1.json … of kith reproduce. *ret_card stays NULL where there are none. */
static kith_status read_row(const char *row, kith_card **ret_card, kith_error *err) {
    kith_status status;
    ki_names found = {0};
    kith_card *card = NULL;
    ki_path folder, prefix;
    const char *slash = strrchr(row, '/'), *name = slash ? slash + 1 : row;
    KI_CHECK(ki_path_print(&folder, err, "%.*s", slash ? (int)(slash - row) + 1 : 1, slash ? row : "."));
    KI_CHECK(ki_path_print(&prefix, err, "%s-seed", name));
    KI_CHECK(ki_names_read(folder.s, is_numbered, &(numbered){{prefix.s}, ".json"}, &found, err));
    if (found.n == 0) goto done;
    KI_CHECK(ki_zalloc_or(&card, 1, sizeof *card, "a result card", err));
    if (!(card->path = ki_arena_strdup(&card->arena, row)))
        KI_CHECK(ki_fail_memory(err, strlen(row), "a file's name"));
    for (size_t i = 0; i < found.n; i++) {
        ki_path path;
        KI_CHECK(ki_path_print(&path, err, "%.*s%s", slash ? (int)(slash - row) + 1 : 0, row, found.item[i]));
        KI_CHECK(add_run(card, path.s, err));
    }
    card->root = card->run[0]->root;
    *ret_card = card;
    card = NULL;
done:
    kith_card_free(card);
    ki_names_release(&found);
    return status;
}

kith_status kith_card_read(const char *path, kith_card **ret_card, kith_error *err) {
    KI_NEED(err, path, ret_card);
    kith_card *card = NULL;
    if (ki_is_folder("%s", path)) {
        KI_TRY(read_folder(path, &card, err));
    } else {
        if (access(path, F_OK) != 0) KI_TRY(read_row(path, &card, err));
        if (!card) KI_TRY(read_file(path, &card, err));
    }
    *ret_card = card;
    return KITH_OK;
}

void kith_card_free(kith_card *card) {
    if (!card) return;
    for (size_t i = 0; i < card->n_runs; i++) kith_card_free(card->run[i]);
    ki_free(card->run);
    ki_arena_release(&card->arena);
    ki_free(card);
}

const char *ki_card_path(const kith_card *card) { return card->path; }

int64_t ki_card_n_runs(const kith_card *card) { return card->n_runs ? (int64_t)card->n_runs : 1; }

const kith_card *ki_card_run(const kith_card *card, int64_t i) { return card->n_runs ? card->run[i] : card; }

/* ---- by path ---- */

/* Today's names, and what 0.1 called the same in a block of result.json or, the last, in the card of kith eval. */
static const char *const renamed[][2] = {{"queries", "n_images"},
                                         {"classes", "n_classes"},
                                         {"lone_queries", "n_lone"},
                                         {"model_sha256", "weights_sha256"}};

static const char *text_of(const ki_value *value) {
    return value && value->kind == KI_VALUE_SCALAR ? value->text : NULL;
}

static const ki_value *variant_in(const ki_value *map, const char *name) {
    const ki_value *list = ki_value_get(map, "variants");
    if (!list || list->kind != KI_VALUE_LIST) return NULL;
    for (const ki_value *v = list->first; v; v = v->next) {
        const ki_value *own = v->kind == KI_VALUE_MAP ? ki_value_get(v, "name") : NULL;
        if (own && own->kind == KI_VALUE_SCALAR && strcmp(own->text, name) == 0) return v;
    }
    return NULL;
}

static const ki_value *get(const ki_value *map, const char *key) {
    const ki_value *found = ki_value_get(map, key);
    if (!found) found = variant_in(map, key);
    for (size_t i = 0; !found && i < sizeof renamed / sizeof renamed[0]; i++) {
        if (strcmp(key, renamed[i][0]) == 0) found = ki_value_get(map, renamed[i][1]);
        if (!found && strcmp(key, renamed[i][1]) == 0) found = ki_value_get(map, renamed[i][0]);
    }
    return found;
}

static const ki_value *walk(const ki_value *root, const char *path) {
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

const ki_value *ki_card_find(const ki_value *root, const char *path) {
    char moved[64];
    const ki_value *found = walk(root, path);
    return found || !ki_card_moved_path(path, moved, sizeof moved) ? found : walk(root, moved);
}

bool ki_card_variant_at(const ki_value *root, size_t i, ki_card_variant *ret) {
    const ki_value *list = ki_value_get(root, "variants");
    if (!list) return ki_card_older_variant(root, i, ret);
    const ki_value *v = list->kind == KI_VALUE_LIST ? ki_value_at(list, i) : NULL;
    if (!v || v->kind != KI_VALUE_MAP) return false;
    *ret = (ki_card_variant){.name = text_of(ki_value_get(v, "name")),
                             .transform = text_of(ki_value_get(v, "transform")),
                             .fitted_on = text_of(ki_value_get(v, "fitted_on"))};
    return ret->name != NULL;
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

/* kith eval has its facts apart, a run beside its blocks; kith reproduce keeps the card of a run below "result". A run judges
 * embeddings. */
const char *kith_card_fact(const kith_card *card, const char *name) {
    if (!card || !name) return NULL;
    const ki_value *kept = ki_value_get(card->root, "row") ? ki_value_get(card->root, "result") : NULL,
                   *root = kept ? kept : card->root, *apart = ki_value_get(root, "card");
    const char *text = text_of(apart ? get(apart, name) : ki_value_get(root, name));
    if (!text && !apart && strcmp(name, "tap") == 0 && ki_value_get(root, "selection")) text = "embedding";
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
    const ki_value *map = get(card->root, block), *recall = map ? ki_value_get(map, "recall") : NULL;
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
    const ki_value *map = get(card->root, block), *how = map ? ki_value_get(map, "kmeans") : NULL;
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
