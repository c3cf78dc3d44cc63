/* run.json and result.json: what was run, and what came out. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/parallel.h"
#include "core/text.h"
#include "data/input.h"
#include "io/json.h"
#include "kith/json.h"
#include "kith/version.h"
#include "train/run.h"

static const char *const selection_names[] = {"validation", "test", "last"};
static const char *const metric_names[] = {"map_at_r", "r_at_1"};

static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void time_text(int64_t seconds, char *buf, size_t bytes) {
    const time_t t = (time_t)seconds;
    struct tm parts;
    if (!gmtime_r(&t, &parts) || strftime(buf, bytes, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) buf[0] = '\0';
}

/* What both files say. */
static void put_origin(kith_json *json, const ki_train_state *run) {
    const ki_recipe *r = run->recipe;
    static const char *const precisions[] = {"float32", "bf16"};
    char resize[32];
    put_text(json, "kith", kith_version());
    put_text(json, "commit", *kith_commit() ? kith_commit() : "unknown");
    put_text(json, "recipe_sha256", run->recipe_hash);
    put_text(json, "data", run->set->root);
    put_text(json, "dataset", run->set->kind->name);
    put_text(json, "data_sha256", run->data_hash);
    put_text(json, "backbone", run->net.backbone->name);
    put_text(json, "weights", r->model.weights);
    put_text(json, "weights_sha256", run->weights_hash);
    put_int(json, "embedding_size", run->net.embedding);
    put_text(json, "pool", ki_global_pool_names[run->net.pool]);
    put_text(json, "bn", r->model.bn ? "frozen" : "batch");
    put_int(json, "crop", r->test.crop_to);
    put_text(json, "resize", ki_resize_text(&r->test, resize, sizeof resize));
    put_int(json, "seed", r->seed);
    put_text(json, "device", r->device);
    put_text(json, "precision", precisions[r->precision]);
}

static kith_status write_json(const ki_train_state *run, const char *name, kith_json *json, kith_error *err) {
    ki_path path;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "%s", name));
    return ki_json_save(json, path.s, err);
}

kith_status ki_train_write_run(const ki_train_state *run, kith_error *err) {
    kith_json *json = NULL;
    char started[32];
    KI_TRY(kith_json_new(&json, err));
    time_text(run->started, started, sizeof started);
    kith_json_object_begin(json);
    put_origin(json, run);
    put_text(json, "command", run->options->command);
    put_text(json, "started", started);
    put_int(json, "threads", ki_threads());
    put_int(json, "n_steps", run->n_steps);
    put_int(json, "n_train_classes", run->n_classes);
    put_int(json, "n_train_images", run->train.n);
    put_int(json, "n_validation_images", run->validation.n);
    put_int(json, "n_test_images", run->test.n);
    kith_json_object_end(json);
    const kith_status status = write_json(run, "run.json", json, err);
    kith_json_free(json);
    return status;
}

/* As `kith eval --json` has them. */
static void put_clustering(kith_json *json, const ki_clustered *c) {
    put_real(json, "nmi", c->scores.nmi);
    put_real(json, "ami", c->scores.ami);
    put_real(json, "f1", c->scores.f1);
    kith_json_key(json, "kmeans");
    kith_json_object_begin(json);
    put_int(json, "clusters", c->settings.n_clusters);
    put_text(json, "start", c->settings.is_random_start ? "random rows" : "k-means++");
    put_int(json, "restarts", c->settings.n_restarts);
    put_int(json, "iterations", c->settings.n_iterations);
    put_int(json, "seed", (int64_t)c->settings.seed);
    kith_json_key(json, "normalized");
    kith_json_bool(json, c->settings.normalize);
    kith_json_object_end(json);
}

/* What may stand beside the scores of one split. */
typedef struct beside {
    const kith_intervals *intervals;
    const ki_clustered *clustered;
    const char *note;
    const ki_train_result *orders; /* their own R@1 */
} beside;

static void put_orders(kith_json *json, const ki_train_result *result) {
    char name[32];
    kith_json_key(json, "order_recall_at_1");
    kith_json_object_begin(json);
    for (int64_t i = 0; i < result->n_orders; i++) {
        snprintf(name, sizeof name, "%lld", (long long)i + 1);
        put_real(json, name, result->order_recall[i]);
    }
    kith_json_object_end(json);
    put_real(json, "side_by_side_recall_at_1", result->side_by_side_recall);
}

static void put_scores(kith_json *json, const char *key, const ki_recipe *r, const ki_scores *s,
                       const beside *with) {
    const kith_intervals *intervals = with ? with->intervals : NULL;
    const ki_clustered *clustered = with ? with->clustered : NULL;
    const char *note = with ? with->note : NULL;
    char name[32];
    if (!s->is_there) return;
    kith_json_key(json, key);
    kith_json_object_begin(json);
    kith_json_key(json, "recall");
    kith_json_object_begin(json);
    for (int64_t i = 0; i < r->n_k; i++) {
        snprintf(name, sizeof name, "%lld", (long long)r->k[i]);
        put_real(json, name, s->recall[i]);
    }
    kith_json_object_end(json);
    put_real(json, "map_at_r", s->map_at_r);
    put_real(json, "r_precision", s->r_precision);
    put_int(json, "n_images", s->n_query);
    put_int(json, "n_classes", s->n_classes);
    put_int(json, "n_lone", s->n_lone);
    put_int(json, "step", s->step);
    if (clustered && clustered->is_there) put_clustering(json, clustered);
    if (note) put_text(json, "note", note);
    if (with && with->orders) put_orders(json, with->orders);
    if (intervals) {
        kith_json_key(json, "intervals");
        kith_json_object_begin(json);
        put_real(json, "level", 0.95);
        kith_json_key(json, "recall");
        kith_json_object_begin(json);
        for (int64_t i = 0; i < r->n_k; i++) {
            snprintf(name, sizeof name, "%lld", (long long)r->k[i]);
            kith_json_key(json, name);
            kith_json_array_begin(json);
            kith_json_real(json, intervals->recall[i].low);
            kith_json_real(json, intervals->recall[i].high);
            kith_json_array_end(json);
        }
        kith_json_object_end(json);
        const kith_interval both[] = {intervals->map_at_r, intervals->r_precision};
        static const char *const names[] = {"map_at_r", "r_precision"};
        for (int i = 0; i < 2; i++) {
            kith_json_key(json, names[i]);
            kith_json_array_begin(json);
            kith_json_real(json, both[i].low);
            kith_json_real(json, both[i].high);
            kith_json_array_end(json);
        }
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
}

kith_status ki_train_write_result(const ki_train_state *run, const ki_train_result *result,
                                  const kith_intervals *intervals, kith_error *err) {
    const ki_recipe *r = run->recipe;
    kith_json *json = NULL;
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    put_text(json, "selection", selection_names[result->selection]);
    put_text(json, "selection_metric",
             result->selection == KI_SELECT_LAST ? NULL : metric_names[r->eval.metric]);
    put_int(json, "step", result->step);
    put_int(json, "steps", result->n_steps);
    kith_json_key(json, "stopped_early");
    kith_json_bool(json, run->at.is_stopped);
    put_scores(json, "test", r, &result->test,
               &(beside){.intervals = intervals, .clustered = &result->clustered});
    char orders[160];
    snprintf(orders, sizeof orders,
             "the embedding and all orders side by side, %lld numbers, after a PCA to %lld fitted on "
             "training images",
             (long long)result->all_orders_dim[0], (long long)result->all_orders_dim[1]);
    put_scores(json, "all_orders", r, &result->all_orders,
               &(beside){.intervals = &result->all_orders_intervals,
                         .clustered = &result->all_orders_clustered,
                         .note = orders,
                         .orders = result});
    put_scores(json, "all_orders_white", r, &result->white_orders,
               &(beside){.note = "as all_orders, every component of the PCA over its standard deviation"});
    put_scores(
        json, "best_on_test", r, &result->best_on_test,
        &(beside){.note = "the best R@1 of all evaluations on the test classes themselves: the papers' "
                          "habit, which flatters; nothing was chosen by it"});
    put_scores(json, "untrained", r, &result->untrained, NULL);
    put_scores(json, "validation", r, &result->validation, NULL);
    put_scores(json, "untrained_validation", r, &run->at.untrained_validation, NULL);
    put_scores(json, "seen", r, &result->seen, NULL);
    put_int(json, "n_train_classes", run->n_classes);
    put_int(json, "n_train_images", run->train.n);
    put_int(json, "n_validation_images", run->validation.n);
    put_int(json, "n_classes", result->test.n_classes);
    put_int(json, "n_images", run->test.n);
    put_int(json, "n_unreadable", run->loader ? ki_loader_n_bad(run->loader) : 0);
    put_real(json, "seconds", result->seconds);
    put_real(json, "wall_seconds", result->wall_seconds);
    put_real(json, "img_per_s", result->images_per_second);
    put_origin(json, run);
    kith_json_object_end(json);
    const kith_status status = write_json(run, "result.json", json, err);
    kith_json_free(json);
    return status;
}

/* ---- reading them back ---- */

static double real_at(const ki_value *map, const char *key) {
    double value = NAN;
    const ki_value *v = ki_value_get(map, key);
    if (v && v->kind == KI_VALUE_SCALAR) ki_parse_double(v->text, &value);
    return value;
}

static int64_t int_at(const ki_value *map, const char *key) {
    int64_t value = 0;
    const ki_value *v = ki_value_get(map, key);
    if (v && v->kind == KI_VALUE_SCALAR) ki_parse_int64(v->text, &value);
    return value;
}

/* The hash under the key; "" when there is none. */
static void hash_at(const ki_value *map, const char *key, char ret[65]) {
    const ki_value *v = ki_value_get(map, key);
    snprintf(ret, 65, "%s", v && v->kind == KI_VALUE_SCALAR ? v->text : "");
}

kith_status ki_train_read_run(const char *folder, ki_beginning *ret, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_value *root = NULL;
    ki_path path;
    KI_CHECK(ki_path_print(&path, err, "%s/run.json", folder));
    KI_CHECK(ki_json_read(path.s, &arena, &root, err));
    ki_beginning o = {.n_train = int_at(root, "n_train_images"),
                      .n_validation = int_at(root, "n_validation_images"),
                      .n_test = int_at(root, "n_test_images")};
    hash_at(root, "data_sha256", o.data_hash);
    hash_at(root, "weights_sha256", o.weights_hash);
    if (!*o.data_hash) {
        status =
            ki_fail(err, KITH_EFORMAT, "%s does not say which data the run began with (data_sha256)", path.s);
        goto done;
    }
    *ret = o;
done:
    ki_arena_release(&arena);
    return status;
}

static ki_scores scores_at(const ki_value *root, const char *key, const ki_recipe *r) {
    const ki_value *map = ki_value_get(root, key), *recall = ki_value_get(map, "recall");
    ki_scores s = {.is_there = recall != NULL,
                   .step = int_at(map, "step"),
                   .map_at_r = real_at(map, "map_at_r"),
                   .r_precision = real_at(map, "r_precision"),
                   .n_query = int_at(map, "n_images"),
                   .n_classes = int_at(map, "n_classes"),
                   .n_lone = int_at(map, "n_lone")};
    for (int64_t i = 0; i < r->n_k; i++) {
        char name[32];
        snprintf(name, sizeof name, "%lld", (long long)r->k[i]);
        s.recall[i] = real_at(recall, name);
    }
    return s;
}

/* The scores; the settings are only in the file. */
static ki_clustered clustered_at(const ki_value *map) {
    return (ki_clustered){
        .is_there = ki_value_get(map, "nmi") != NULL,
        .scores = {.nmi = real_at(map, "nmi"), .ami = real_at(map, "ami"), .f1 = real_at(map, "f1")}};
}

kith_status ki_train_read_result(const char *folder, const ki_recipe *recipe, ki_train_result *ret_result,
                                 kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_value *root = NULL;
    ki_recipe *there = NULL;
    ki_path path;
    KI_CHECK(ki_path_print(&path, err, "%s/recipe.yaml", folder));
    const ki_recipe_source source = {.path = path.s};
    KI_CHECK(ki_recipe_read(&source, &there, err));
    KI_CHECK(ki_recipe_same(there, recipe, folder, err));
    KI_CHECK(ki_path_print(&path, err, "%s/result.json", folder));
    KI_CHECK(ki_json_read(path.s, &arena, &root, err));
    const ki_value *selection = ki_value_get(root, "selection");
    ki_train_result r = {.step = int_at(root, "step"),
                         .n_steps = int_at(root, "steps"),
                         .test = scores_at(root, "test", recipe),
                         .untrained = scores_at(root, "untrained", recipe),
                         .validation = scores_at(root, "validation", recipe),
                         .seen = scores_at(root, "seen", recipe),
                         .best_on_test = scores_at(root, "best_on_test", recipe),
                         .all_orders = scores_at(root, "all_orders", recipe),
                         .clustered = clustered_at(ki_value_get(root, "test")),
                         .seconds = real_at(root, "seconds"),
                         .wall_seconds = real_at(root, "wall_seconds"),
                         .images_per_second = real_at(root, "img_per_s")};
    if (!selection || selection->kind != KI_VALUE_SCALAR) {
        status = ki_fail(err, KITH_EFORMAT, "%s is no result of kith train", path.s);
        goto done;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(selection->text, selection_names[i]) == 0) r.selection = (ki_select)i;
    }
    *ret_result = r;
done:
    ki_recipe_free(there);
    ki_arena_release(&arena);
    return status;
}
