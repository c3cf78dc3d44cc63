/* Writing and reading outcomes. */
#include "reproduce/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "io/file.h"
#include "io/json.h"
#include "io/names.h"
#include "kith/experimental/json.h"
#include "kith/version.h"
#include "report/material.h"
#include "report/series.h"

enum { MOST_POINTS = 100 };
/* Earlier results had curves of the orders of a regularizer by number, in the card itself. */
static const char older_name[] = "order_";

static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

/* ---- writing ---- */

/* Whose value is text even when it looks like a number (a hash, a commit). */
static bool is_text_key(const char *key) {
    const size_t n = strlen(key);
    return (n >= 6 && strcmp(key + n - 6, "sha256") == 0) || strcmp(key, "commit") == 0 ||
           strcmp(key, "kith") == 0 || strcmp(key, "device") == 0;
}

static void put_scalar(kith_json *json, const ki_value *v) {
    double real;
    int64_t whole;
    const bool is_text = v->key && is_text_key(v->key);
    if (!is_text && (strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0))
        kith_json_bool(json, v->text[0] == 't');
    else if (!is_text && ki_parse_int64(v->text, &whole))
        kith_json_int(json, whole);
    else if (!is_text && ki_parse_double(v->text, &real) && isfinite(real))
        kith_json_real(json, real);
    else
        kith_json_string(json, v->text);
}

/* Where the files lay is the machine's affair; hashes say what they were. */
static bool is_path(const char *key) { return strcmp(key, "data") == 0 || strcmp(key, "weights") == 0; }

static void put_value(kith_json *json, const ki_value *v) {
    switch (v->kind) {
    case KI_VALUE_NULL: kith_json_null(json); break;
    case KI_VALUE_SCALAR: put_scalar(json, v); break;
    case KI_VALUE_LIST:
        kith_json_array_begin(json);
        for (const ki_value *item = v->first; item; item = item->next) put_value(json, item);
        kith_json_array_end(json);
        break;
    case KI_VALUE_MAP:
        kith_json_object_begin(json);
        for (const ki_value *item = v->first; item; item = item->next) {
            if (is_path(item->key)) continue;
            kith_json_key(json, item->key);
            put_value(json, item);
        }
        kith_json_object_end(json);
        break;
    }
}

static void put_origin(kith_json *json, const ki_origin *o) {
    put_text(json, "row", o->row);
    put_text(json, "recipe", o->recipe);
    kith_json_key(json, "seed");
    kith_json_int(json, o->seed);
    kith_json_key(json, "set");
    kith_json_array_begin(json);
    for (size_t i = 0; i < o->n_sets; i++) kith_json_string(json, o->sets[i]);
    kith_json_array_end(json);
    put_text(json, "experiment_sha256", o->experiment);
    put_text(json, "recipe_sha256", o->recipe_hash);
}

/* At most so many points, the last among them. */
static void put_curve(kith_json *json, const char *key, const ki_series *s) {
    if (!s || s->n == 0) return;
    const size_t every = (s->n + MOST_POINTS - 1) / MOST_POINTS;
    kith_json_key(json, key);
    kith_json_array_begin(json);
    for (size_t i = 0; i < s->n; i++) {
        if (i % every != 0 && i + 1 != s->n) continue;
        kith_json_array_begin(json);
        kith_json_int(json, (int64_t)s->point[i].step);
        kith_json_real32(json, (float)s->point[i].value);
        kith_json_array_end(json);
    }
    kith_json_array_end(json);
}

static const char *const splits[] = {"seen", "test", "validation"};

/* R@1 of the variants that the log has: {"test": {"NAME": […]}}. */
static void put_variants(kith_json *json, const ki_log_file *log) {
    bool is_open = false;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        char prefix[64];
        size_t at = 0;
        const int n = ki_snprintf(prefix, sizeof prefix, "eval/%s/variant_recall_at_1/", splits[i]);
        const ki_series *s = ki_log_next(log, prefix, &at);
        if (!s) continue;
        if (!is_open) kith_json_key(json, "variants");
        if (!is_open) kith_json_object_begin(json);
        is_open = true;
        kith_json_key(json, splits[i]);
        kith_json_object_begin(json);
        for (; s; s = ki_log_next(log, prefix, &at)) put_curve(json, s->name + n, s);
        kith_json_object_end(json);
    }
    if (is_open) kith_json_object_end(json);
}

kith_status ki_outcome_write(const char *path, const ki_origin *origin, const char *run, kith_error *err) {
    kith_status status;
    kith_json *json = NULL;
    ki_arena arena = {0};
    ki_value *result = NULL;
    ki_log_file log = {0};
    ki_path at;
    KI_CHECK(ki_path_print(&at, err, "%s/result.json", run));
    KI_CHECK(ki_json_read(at.s, &arena, &result, err));
    KI_CHECK(ki_path_print(&at, err, "%s/log.jsonl", run));
    KI_CHECK(ki_log_read(at.s, &log, err));
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    put_origin(json, origin);
    kith_json_key(json, "result");
    put_value(json, result);
    kith_json_key(json, "curves");
    kith_json_object_begin(json);
    put_curve(json, "seen", ki_log_series(&log, "eval/seen/recall/1"));
    put_curve(json, "test", ki_log_series(&log, "eval/test/recall/1"));
    put_curve(json, "validation", ki_log_series(&log, "eval/validation/recall/1"));
    put_variants(json, &log);
    kith_json_object_end(json);
    kith_json_object_end(json);
    KI_CHECK(ki_json_save(json, path, err));
done:
    kith_json_free(json);
    ki_log_release(&log);
    ki_arena_release(&arena);
    return status;
}

kith_status ki_outcome_write_failure(const char *path, const ki_origin *origin, const kith_error *why,
                                     kith_error *err) {
    kith_json *json = NULL;
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    put_origin(json, origin);
    put_text(json, "error", why->message);
    put_text(json, "hint", *why->hint ? why->hint : NULL);
    put_text(json, "commit", *kith_commit() ? kith_commit() : "unknown");
    kith_json_object_end(json);
    const kith_status status = ki_json_save(json, path, err);
    kith_json_free(json);
    return status;
}

/* ---- reading ---- */

static const char *text_at(const ki_value *map, const char *key) {
    const ki_value *v = ki_value_get(map, key);
    return v && v->kind == KI_VALUE_SCALAR ? v->text : NULL;
}

static const ki_value *map_at(const ki_value *map, const char *key) {
    const ki_value *v = ki_value_get(map, key);
    return v && v->kind == KI_VALUE_MAP ? v : NULL;
}

kith_status ki_outcome_read(const char *path, ki_arena *arena, ki_outcome *ret, kith_error *err) {
    ki_value *root = NULL;
    kith_status status = ki_json_read(path, arena, &root, err);
    if (status != KITH_OK) {
        if (status == KITH_EFORMAT) ki_hint(err, status, "remove the file to run it again");
        return status;
    }
    const char *seed = text_at(root, "seed");
    ki_outcome o = {.row = text_at(root, "row"),
                    .recipe = text_at(root, "recipe"),
                    .experiment = text_at(root, "experiment_sha256"),
                    .recipe_hash = text_at(root, "recipe_sha256"),
                    .error = text_at(root, "error"),
                    .set = ki_value_get(root, "set"),
                    .result = map_at(root, "result"),
                    .curves = map_at(root, "curves")};
    double recall;
    const bool has_result = o.result && (ki_document_real(o.result, "test.recall.1", &recall) ||
                                         ki_document_real(o.result, "validation.recall.1", &recall));
    if (o.row && o.recipe && o.experiment && o.recipe_hash && seed && ki_parse_int64(seed, &o.seed) &&
        (o.error || has_result)) {
        o.data = ki_outcome_text(&o, "data_sha256");
        *ret = o;
        return KITH_OK;
    }
    ki_fail(err, KITH_EFORMAT,
            "%s is no result of kith reproduce: wanted row, recipe, seed, hashes and a recall", path);
    return ki_hint(err, KITH_EFORMAT, "remove the file to run it again");
}

/* ---- a folder ---- */

static bool is_result(const void *user, const char *name) {
    (void)user;
    const size_t n = strlen(name);
    return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/* ---- of which data ---- */

/* Results of that data, of one row or (NULL) of all. */
static size_t count_data(const ki_outcomes *all, const char *row, const char *data) {
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const ki_outcome *o = &all->item[i];
        n += !o->error && (!row || strcmp(o->row, row) == 0) && strcmp(o->data, data) == 0;
    }
    return n;
}

/* The data of most results, of those that the row (NULL: any) has; of as many the first by name. */
static const char *usual_data(const ki_outcomes *all, const char *row) {
    const char *best = "";
    size_t n_best = 0, n_best_here = 0;
    for (size_t i = 0; i < all->n; i++) {
        const ki_outcome *o = &all->item[i];
        if (o->error || (row && strcmp(o->row, row) != 0)) continue;
        const size_t n = count_data(all, NULL, o->data), n_here = count_data(all, row, o->data);
        if (n < n_best || (n == n_best && n_here <= n_best_here)) continue;
        best = o->data;
        n_best = n;
        n_best_here = n_here;
    }
    return best;
}

const char *ki_outcomes_data(const ki_outcomes *all) { return usual_data(all, NULL); }

bool ki_outcome_is_of(const ki_outcome *o, const char *row) {
    return !o->error && !o->is_other_data && strcmp(o->row, row) == 0;
}

static void mark_other_data(ki_outcomes *all) {
    for (size_t i = 0; i < all->n; i++) {
        ki_outcome *o = &all->item[i];
        o->is_other_data = !o->error && strcmp(o->data, usual_data(all, o->row)) != 0;
    }
}

kith_status ki_outcomes_read(const char *folder, ki_outcomes *ret, kith_error *err) {
    kith_status status;
    ki_outcomes all = {0};
    ki_names list = {0};
    KI_CHECK(ki_names_read(folder, is_result, NULL, &list, err));
    for (size_t i = 0; i < list.n; i++) {
        ki_path path;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, list.item[i]));
        KI_CHECK(ki_grow(&all.item, &all.capacity, all.n + 1, sizeof *all.item, "results", err));
        KI_CHECK(ki_outcome_read(path.s, &all.arena, &all.item[all.n], err));
        all.n++;
    }
    mark_other_data(&all);
done:
    ki_names_release(&list);
    if (status != KITH_OK) ki_outcomes_release(&all);
    *ret = all;
    return status;
}

void ki_outcomes_release(ki_outcomes *all) {
    ki_free(all->item);
    ki_arena_release(&all->arena);
    *all = (ki_outcomes){0};
}

double ki_outcome_real(const ki_outcome *o, const char *block, const char *path) {
    char at[200];
    double value = NAN;
    ki_snprintf(at, sizeof at, "%s%s%s", block, *block ? "." : "", path);
    if (!o->result || !ki_document_real(o->result, at, &value)) return NAN;
    return value;
}

double ki_outcome_recall(const ki_outcome *o) {
    const double test = ki_outcome_real(o, "test", "recall.1");
    return isnan(test) ? ki_outcome_real(o, "validation", "recall.1") : test;
}

ki_outcome_curve ki_outcome_curve_of(const ki_outcome *o, const char *split, const char *variant) {
    const ki_value *all = o->curves, *map;
    if (!*variant) return (ki_outcome_curve){.pairs = all ? ki_value_get(all, split) : NULL};
    all = all ? ki_value_get(all, "variants") : NULL;
    map = all ? ki_value_get(all, split) : NULL;
    if (map) return (ki_outcome_curve){.pairs = ki_value_get(map, variant)};
    all = o->result ? ki_value_get(o->result, "order_curves") : NULL;
    map = all ? ki_value_get(all, split) : NULL;
    if (!map || strncmp(variant, older_name, sizeof older_name - 1) != 0) return (ki_outcome_curve){0};
    return (ki_outcome_curve){.steps = ki_value_get(map, "step"),
                              .values = ki_value_get(map, variant + sizeof older_name - 1)};
}

bool ki_outcome_curve_name(const ki_outcome *o, size_t i, char ret_name[KI_VARIANT_NAME]) {
    const ki_value *all = o->curves ? ki_value_get(o->curves, "variants") : NULL;
    const bool is_older = !all;
    if (is_older) all = o->result ? ki_value_get(o->result, "order_curves") : NULL;
    const ki_value *map = all && all->kind == KI_VALUE_MAP ? all->first : NULL;
    if (!map || map->kind != KI_VALUE_MAP) return false;
    const ki_value *v = ki_value_at(map, is_older ? i + 2 : i); /* after the steps and the embedding */
    if (!v || !v->key) return false;
    ki_snprintf(ret_name, KI_VARIANT_NAME, "%s%.40s", is_older ? older_name : "", v->key);
    return true;
}

bool ki_outcome_variant(const ki_outcome *o, size_t i, ki_card_variant *ret) {
    return o->result && ki_card_variant_at(o->result, i, ret);
}

const char *ki_outcome_text(const ki_outcome *o, const char *path) {
    const char *text = o->result ? ki_document_text(o->result, path) : NULL;
    return text ? text : "";
}
