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
#include "train/frozen.h"

static const char *const selection_names[] = {"validation", "test", "last"};
static const char *const metric_names[] = {"map_at_r", "r_at_1"};

static void time_text(int64_t seconds, char *buf, size_t bytes) {
    const time_t t = (time_t)seconds;
    struct tm parts;
    if (!gmtime_r(&t, &parts) || strftime(buf, bytes, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) buf[0] = '\0';
}

/* What both files contain. */
typedef struct origin {
    kith_card_facts facts;
    char resize[32], preprocessing[160]; /* of the facts */
} origin;

static void origin_of(const ki_train_state *run, origin *o) {
    const ki_recipe *r = run->recipe;
    static const char *const precisions[] = {"float32", "bf16"};
    o->facts = (kith_card_facts){
        .size = sizeof(kith_card_facts),
        .recipe_sha256 = run->recipe_hash,
        .data = run->set->root,
        .dataset = run->set->kind->name,
        .data_sha256 = run->data_hash,
        .backbone = ki_train_model(run)->backbone->name,
        .weights = r->model.weights,
        .weights_sha256 = run->weights_hash,
        .embedding_size = run->net.embedding,
        .pool = r->is_features ? NULL : ki_pooling_names[ki_train_model(run)->pool],
        .tap = "embedding",
        .bn = r->model.bn ? "frozen" : "batch",
        .preprocessing = ki_preprocess_text(ki_train_model(run), o->preprocessing, sizeof o->preprocessing),
        .resize = r->is_features ? NULL : ki_resize_text(&r->test, o->resize, sizeof o->resize),
        .crop = r->is_features ? 0 : r->test.crop_to,
        .device = r->device,
        .precision = precisions[r->precision]};
}

static kith_status save(const ki_train_state *run, const char *name, const ki_card_content *content,
                        kith_error *err) {
    kith_json *json = NULL;
    ki_path path;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "%s", name));
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    ki_card_put(json, content);
    kith_json_object_end(json);
    const kith_status status = ki_json_save(json, path.s, err);
    kith_json_free(json);
    return status;
}

#define N_OF(list) (sizeof(list) / sizeof(list)[0])

kith_status ki_train_write_run(const ki_train_state *run, kith_error *err) {
    char started[32];
    origin o;
    origin_of(run, &o);
    time_text(run->started, started, sizeof started);
    char teachers[KI_MOST_TEACHERS * 66] = "";
    for (int t = 0; t < run->recipe->n_teachers; t++)
        ki_snprintf(teachers + strlen(teachers), sizeof teachers - strlen(teachers), "%s%s", t ? " " : "",
                    run->teacher[t].hash);
    const ki_card_entry entries[] = {ki_entry_int("seed", run->recipe->seed),
                                     ki_entry_text("command", run->options->command),
                                     ki_entry_text("started", started),
                                     ki_entry_int("threads", ki_threads()),
                                     ki_entry_int("n_steps", run->n_steps),
                                     ki_entry_int("n_train_classes", run->n_classes),
                                     ki_entry_int("n_train_images", run->train.n),
                                     ki_entry_int("n_validation_images", run->validation.n),
                                     ki_entry_int("n_test_images", run->test.n),
                                     ki_entry_text("teachers_sha256", teachers)};
    const size_t n = N_OF(entries) - (*teachers ? 0 : 1);
    return save(run, "run.json", &(ki_card_content){.last = entries, .n_last = n, .facts = &o.facts}, err);
}

/* Items of the list `variants`: the test classes by other vectors than the embedding, which `test` is about. */
typedef struct variant_block {
    ki_card_variant variant;
    char note[KI_VARIANT_NOTE];
} variant_block;

static ki_card_block variant_of(const ki_train_state *run, const ki_variant_scores *v, const char *data_hash,
                                variant_block *b) {
    ki_card_block block = ki_card_block_of(NULL, &v->scores, run->recipe->k, run->recipe->n_k);
    b->variant =
        (ki_card_variant){.name = v->variant.name,
                          .transform = ki_change_name(v->variant.change),
                          .fitted_on = v->variant.change ? ki_fitted_name(v->variant.fitted_on) : NULL,
                          .dim = {v->dim[0], v->dim[1]}};
    block.variant = &b->variant;
    block.data_sha256 = data_hash;
    block.intervals = v->variant.has & KI_VARIANT_INTERVALS ? &v->intervals : NULL;
    block.clustered = &v->clustered;
    block.note = ki_variant_note(v, b->note);
    return block;
}

static ki_card_block with_note(ki_card_block block, const char *note) {
    block.note = note;
    return block;
}

static ki_card_block with_data(ki_card_block block, const char *hash) {
    block.data_sha256 = hash;
    return block;
}

kith_status ki_train_write_result(const ki_train_state *run, const ki_train_result *result,
                                  const kith_intervals *intervals, const ki_per_query *queries,
                                  const ki_variant_list *variants, const kith_calibration *calibration,
                                  kith_error *err) {
    const ki_recipe *r = run->recipe;
    char test[65], validation[65], views[64];
    ki_card_block items[KI_MOST_VARIANTS];
    variant_block borrowed[KI_MOST_VARIANTS];
    origin o;
    origin_of(run, &o);
    kith_dataset_hash(run->set, KITH_SPLIT_TEST, test);
    kith_dataset_hash(run->set, KITH_SPLIT_VALIDATION, validation);
    ki_card_block blocks[] = {
        with_data(ki_card_block_of("test", &result->test, r->k, r->n_k), test),
        with_note(ki_card_block_of("best_on_test", &result->best_on_test, r->k, r->n_k),
                  "the best R@1 of all evaluations on the test classes themselves: the papers' "
                  "habit, which flatters; nothing was chosen by it"),
        ki_card_block_of("untrained", &result->untrained, r->k, r->n_k),
        with_data(ki_card_block_of("validation", &result->validation, r->k, r->n_k), validation),
        ki_card_block_of("untrained_validation", &run->at.untrained_validation, r->k, r->n_k),
        ki_card_block_of("seen", &result->seen, r->k, r->n_k)};
    if (r->eval.views > 1) {
        ki_snprintf(views, sizeof views, "mean of %lld views of every image", (long long)r->eval.views);
        blocks[0].note = views;
    }
    blocks[0].intervals = intervals;
    blocks[0].clustered = &result->clustered;
    blocks[0].per_query = queries;
    for (size_t i = 0; i < variants->n; i++)
        items[i] = variant_of(run, &variants->item[i], test, &borrowed[i]);
    ki_card_entry metric = ki_entry_text("selection_metric", metric_names[r->eval.metric]);
    if (result->selection == KI_SELECT_LAST) metric.kind = KI_ENTRY_NULL;
    const ki_card_entry first[] = {ki_entry_text("selection", selection_names[result->selection]), metric,
                                   ki_entry_int("step", result->step), ki_entry_int("steps", result->n_steps),
                                   ki_entry_bool("stopped_early", run->at.is_stopped)};
    const ki_card_entry last[] = {
        ki_entry_int("n_train_classes", run->n_classes),
        ki_entry_int("n_train_images", run->train.n),
        ki_entry_int("n_validation_images", run->validation.n),
        ki_entry_int("n_classes", result->test.n_classes),
        ki_entry_int("n_images", run->test.n),
        ki_entry_int("n_unreadable", run->loader ? ki_loader_n_bad(run->loader) : 0),
        ki_entry_real("seconds", result->seconds),
        ki_entry_real("wall_seconds", result->wall_seconds),
        ki_entry_real("img_per_s", result->images_per_second),
        ki_entry_int("seed", r->seed)};
    return save(run, "result.json",
                &(ki_card_content){.first = first,
                                   .n_first = N_OF(first),
                                   .block = blocks,
                                   .n_blocks = N_OF(blocks),
                                   .variant = items,
                                   .n_variants = variants->n,
                                   .last = last,
                                   .n_last = N_OF(last),
                                   .facts = &o.facts,
                                   .calibration = calibration},
                err);
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
        const char *teachers = kith_card_text(card, "teachers_sha256");
        for (int t = 0; teachers && *teachers && t < KI_MOST_TEACHERS; t++) {
            const size_t n = strcspn(teachers, " ");
            ki_snprintf(ret->teacher_hash[t], sizeof ret->teacher_hash[t], "%.*s", (int)n, teachers);
            teachers += n + (teachers[n] == ' ');
        }
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
