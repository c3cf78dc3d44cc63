/* run.json and result.json: what was run, and what the result is. judge/card.h defines the schema of both. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parallel.h"
#include "base/text.h"
#include "data/input.h"
#include "embed/preprocess.h"
#include "io/json.h"
#include "judge/card.h"
#include "train/run.h"

static const char *const selection_names[] = {"validation", "test", "last"};
static const char *const metric_names[] = {"map_at_r", "r_at_1"};

static void time_text(int64_t seconds, char *buf, size_t bytes) {
    const time_t t = (time_t)seconds;
    struct tm parts;
    if (!gmtime_r(&t, &parts) || strftime(buf, bytes, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) buf[0] = '\0';
}

/* What both files contain. */
static void put_origin(kith_json *json, const ki_train_state *run) {
    const ki_recipe *r = run->recipe;
    static const char *const precisions[] = {"float32", "bf16"};
    char resize[32], preprocessing[160];
    const kith_card_facts facts = {
        .size = sizeof(kith_card_facts),
        .recipe_sha256 = run->recipe_hash,
        .data = run->set->root,
        .dataset = run->set->kind->name,
        .data_sha256 = run->data_hash,
        .backbone = run->net.backbone->name,
        .weights = r->model.weights,
        .weights_sha256 = run->weights_hash,
        .embedding_size = run->net.embedding,
        .pool = r->is_features ? NULL : ki_global_pool_names[run->net.pool],
        .tap = "embedding",
        .bn = r->model.bn ? "frozen" : "batch",
        .preprocessing = ki_preprocess_text(&run->net, preprocessing, sizeof preprocessing),
        .resize = r->is_features ? NULL : ki_resize_text(&r->test, resize, sizeof resize),
        .crop = r->is_features ? 0 : r->test.crop_to,
        .device = r->device,
        .precision = precisions[r->precision]};
    ki_card_put_facts(json, &facts);
    ki_card_put_int(json, "seed", r->seed);
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
    ki_card_put_text(json, "command", run->options->command);
    ki_card_put_text(json, "started", started);
    ki_card_put_int(json, "threads", ki_threads());
    ki_card_put_int(json, "n_steps", run->n_steps);
    ki_card_put_int(json, "n_train_classes", run->n_classes);
    ki_card_put_int(json, "n_train_images", run->train.n);
    ki_card_put_int(json, "n_validation_images", run->validation.n);
    ki_card_put_int(json, "n_test_images", run->test.n);
    kith_json_object_end(json);
    const kith_status status = write_json(run, "run.json", json, err);
    kith_json_free(json);
    return status;
}

/* The test classes by other vectors than the embedding, which `test` is about. */
static void put_variants(kith_json *json, const ki_train_state *run, const ki_orders *orders,
                         const char *data_hash) {
    const ki_projected *fair = &orders->fair, *each = &orders->each_white, *on_test = &orders->transductive;
    char all_note[160], on_test_note[240];
    ki_snprintf(all_note, sizeof all_note,
                "the embedding and all orders side by side, %lld numbers, after a PCA to %lld fitted on "
                "training images",
                (long long)fair->dim[0], (long long)fair->dim[1]);
    ki_snprintf(on_test_note, sizeof on_test_note,
                "transductive: the embedding and all orders side by side, %lld numbers, after a PCA to %lld "
                "fitted on the test images themselves; not comparable with the other blocks",
                (long long)on_test->dim[0], (long long)on_test->dim[1]);
    const struct {
        ki_card_variant variant;
        ki_card_block block;
    } list[] = {
        {{"all_orders", "pca", "training", {fair->dim[0], fair->dim[1]}},
         {.scores = &fair->plain,
          .data_sha256 = data_hash,
          .intervals = &fair->intervals,
          .clustered = &fair->clustered,
          .note = all_note,
          .orders = orders}},
        {{"all_orders_white", "pca_white", "training", {fair->dim[0], fair->dim[1]}},
         {.scores = &fair->white,
          .note = "as all_orders, every component of the PCA over its standard deviation"}},
        {{"all_orders_each_white", "each_white_pca", "training", {each->dim[0], each->dim[1]}},
         {.scores = &each->plain,
          .intervals = &each->intervals,
          .note = "as all_orders, the embedding and every order whitened by themselves before the PCA"}},
        {{.name = "embedding_white", .transform = "white", .fitted_on = "training"},
         {.scores = &orders->first_white, .note = "the embedding alone, whitened on training images"}},
        {{"transductive", "pca", "test", {on_test->dim[0], on_test->dim[1]}},
         {.scores = &on_test->plain,
          .data_sha256 = data_hash,
          .intervals = &on_test->intervals,
          .note = on_test_note}},
        {{"transductive_white", "pca_white", "test", {on_test->dim[0], on_test->dim[1]}},
         {.scores = &on_test->white,
          .note = "as transductive, every component of the PCA over its standard deviation"}}};
    if (!fair->plain.is_there) return;
    kith_json_key(json, "variants");
    kith_json_array_begin(json);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        ki_card_block block = list[i].block;
        block.k = run->recipe->k;
        block.n_k = run->recipe->n_k;
        block.variant = &list[i].variant;
        ki_card_put_block(json, NULL, &block);
    }
    kith_json_array_end(json);
}

kith_status ki_train_write_result(const ki_train_state *run, const ki_train_result *result,
                                  const kith_intervals *intervals, const ki_per_query *queries,
                                  kith_error *err) {
    const ki_recipe *r = run->recipe;
    char test[65], validation[65];
    kith_json *json = NULL;
    kith_dataset_hash(run->set, KITH_SPLIT_TEST, test);
    kith_dataset_hash(run->set, KITH_SPLIT_VALIDATION, validation);
    const struct {
        const char *key;
        ki_card_block block;
    } blocks[] = {{"test",
                   {.scores = &result->test,
                    .data_sha256 = test,
                    .intervals = intervals,
                    .clustered = &result->clustered,
                    .per_query = queries}},
                  {"best_on_test",
                   {.scores = &result->best_on_test,
                    .note = "the best R@1 of all evaluations on the test classes themselves: the papers' "
                            "habit, which flatters; nothing was chosen by it"}},
                  {"untrained", {.scores = &result->untrained}},
                  {"validation", {.scores = &result->validation, .data_sha256 = validation}},
                  {"untrained_validation", {.scores = &run->at.untrained_validation}},
                  {"seen", {.scores = &result->seen}}};
    kith_status status;
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    ki_card_put_text(json, "selection", selection_names[result->selection]);
    kith_json_key(json, "selection_metric");
    kith_json_string(json, result->selection == KI_SELECT_LAST ? NULL : metric_names[r->eval.metric]);
    ki_card_put_int(json, "step", result->step);
    ki_card_put_int(json, "steps", result->n_steps);
    kith_json_key(json, "stopped_early");
    kith_json_bool(json, run->at.is_stopped);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        ki_card_block block = blocks[i].block;
        block.k = r->k;
        block.n_k = r->n_k;
        ki_card_put_block(json, blocks[i].key, &block);
    }
    put_variants(json, run, &result->orders, test);
    KI_CHECK(ki_train_put_order_curves(run, json, err));
    ki_card_put_int(json, "n_train_classes", run->n_classes);
    ki_card_put_int(json, "n_train_images", run->train.n);
    ki_card_put_int(json, "n_validation_images", run->validation.n);
    ki_card_put_int(json, "n_classes", result->test.n_classes);
    ki_card_put_int(json, "n_images", run->test.n);
    ki_card_put_int(json, "n_unreadable", run->loader ? ki_loader_n_bad(run->loader) : 0);
    ki_card_put_real(json, "seconds", result->seconds);
    ki_card_put_real(json, "wall_seconds", result->wall_seconds);
    ki_card_put_real(json, "img_per_s", result->images_per_second);
    put_origin(json, run);
    kith_json_object_end(json);
    KI_CHECK(write_json(run, "result.json", json, err));
done:
    kith_json_free(json);
    return status;
}

/* ---- reading them back ---- */

static double real_of(const kith_card *card, const char *key) {
    double value = 0;
    return kith_card_real(card, key, &value) ? value : NAN;
}

static int64_t int_of(const kith_card *card, const char *key) {
    const char *text = kith_card_text(card, key);
    int64_t value = 0;
    if (text) ki_parse_int64(text, &value);
    return value;
}

kith_status ki_train_read_run(const char *folder, ki_beginning *ret, kith_error *err) {
    kith_card *card = NULL;
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/run.json", folder));
    KI_TRY(kith_card_read(path.s, &card, err));
    const char *data = kith_card_text(card, "data_sha256"), *weights = kith_card_text(card, "weights_sha256");
    kith_status status = KITH_OK;
    if (data && *data) {
        *ret = (ki_beginning){.n_train = int_of(card, "n_train_images"),
                              .n_validation = int_of(card, "n_validation_images"),
                              .n_test = int_of(card, "n_test_images")};
        ki_snprintf(ret->data_hash, sizeof ret->data_hash, "%s", data);
        ki_snprintf(ret->weights_hash, sizeof ret->weights_hash, "%s", weights ? weights : "");
    } else {
        status =
            ki_fail(err, KITH_EFORMAT, "%s does not say which data the run began with (data_sha256)", path.s);
    }
    kith_card_free(card);
    return status;
}

static kith_interval interval_of(const kith_card *card, const char *score) {
    char low[64], high[64];
    ki_snprintf(low, sizeof low, "test.intervals.%s.0", score);
    ki_snprintf(high, sizeof high, "test.intervals.%s.1", score);
    return (kith_interval){.low = real_of(card, low), .high = real_of(card, high)};
}

static ki_train_result result_of(const kith_card *card, const ki_recipe *r) {
    return (ki_train_result){.step = int_of(card, "step"),
                             .n_steps = int_of(card, "steps"),
                             .test = ki_card_scores(card, "test", r->k, r->n_k),
                             .untrained = ki_card_scores(card, "untrained", r->k, r->n_k),
                             .validation = ki_card_scores(card, "validation", r->k, r->n_k),
                             .seen = ki_card_scores(card, "seen", r->k, r->n_k),
                             .best_on_test = ki_card_scores(card, "best_on_test", r->k, r->n_k),
                             .orders = {.fair.plain = ki_card_scores(card, "all_orders", r->k, r->n_k)},
                             .clustered = ki_card_clustered(card, "test"),
                             .recall_at_1 = interval_of(card, "recall.1"),
                             .map_at_r = interval_of(card, "map_at_r"),
                             .r_precision = interval_of(card, "r_precision"),
                             .seconds = real_of(card, "seconds"),
                             .wall_seconds = real_of(card, "wall_seconds"),
                             .images_per_second = real_of(card, "img_per_s")};
}

kith_status ki_train_read_result(const char *folder, const ki_recipe *recipe, ki_train_result *ret_result,
                                 kith_error *err) {
    kith_status status;
    kith_card *card = NULL;
    ki_recipe *there = NULL;
    ki_path path;
    KI_CHECK(ki_path_print(&path, err, "%s/recipe.yaml", folder));
    const ki_recipe_source source = {.path = path.s};
    KI_CHECK(ki_recipe_read(&source, &there, err));
    KI_CHECK(ki_recipe_same(there, recipe, folder, err));
    KI_CHECK(ki_path_print(&path, err, "%s/result.json", folder));
    KI_CHECK(kith_card_read(path.s, &card, err));
    const char *selection = kith_card_text(card, "selection");
    if (!selection) {
        status = ki_fail(err, KITH_EFORMAT, "%s is no result of kith train", path.s);
        goto done;
    }
    ki_train_result r = result_of(card, recipe);
    for (int i = 0; i < 3; i++) {
        if (strcmp(selection, selection_names[i]) == 0) r.selection = (ki_select)i;
    }
    *ret_result = r;
done:
    ki_recipe_free(there);
    kith_card_free(card);
    return status;
}
