/* The end: the winner learns from all photos that train, the test photos are judged once, error rates are measured by the folds, and
 * tune.json says what was tried. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "judge/card.h"
#include "judge/paired.h"
#include "net/model_file.h"
#include "net/weights.h"
#include "tune/findings.h"
#include "tune/tune.h"

/* ---- the winner's run ---- */

/* With more minutes than before another way may have won: the run of the other one makes room. */
static kith_status make_room(const ki_tune *t, const ki_recipe *recipe, kith_error *err) {
    ki_path path;
    ki_recipe *there = NULL;
    kith_error ignored;
    if (!ki_is_file("%s/recipe.yaml", t->folder)) return KITH_OK;
    KI_TRY(ki_path_print(&path, err, "%s/recipe.yaml", t->folder));
    const ki_recipe_source source = {.path = path.s};
    if (ki_recipe_read(&source, &there, &ignored) != KITH_OK ||
        ki_recipe_same(there, recipe, t->folder, &ignored) != KITH_OK)
        ki_tune_clear_run(t);
    ki_recipe_free(there);
    return KITH_OK;
}

static kith_status run_winner(ki_tune *t, ki_train_result *ret, kith_error *err) {
    kith_status status;
    ki_recipe *recipe = NULL;
    const ki_tune_way *way = &t->way[t->winner];
    KI_CHECK(ki_tune_recipe(t, way, way->steps, &recipe, err));
    KI_CHECK(make_room(t, recipe, err));
    const ki_train_options options = {.recipe = recipe,
                                      .folder = t->folder,
                                      .resume = true,
                                      .command = t->options->command,
                                      .run_number = 1,
                                      .n_runs = 1,
                                      .notify = t->options->notify,
                                      .user = t->options->user};
    status = ki_train(&options, ret, err);
done:
    ki_recipe_free(recipe);
    return status;
}

/* ---- error rates ---- */

/* Held-out photos of the folds, each by the model that has not seen them. */
typedef struct pool {
    ki_vectors v;
    int32_t *part, n_parts;
} pool;

static kith_status pour(pool *p, ki_vectors *from, int64_t n_room, kith_error *err) {
    const float *rows = NULL;
    KI_TRY(ki_vectors_host(from, &rows, err));
    if (!p->part) {
        KI_TRY(ki_vectors_init(NULL, false, n_room, from->dim, &p->v, err));
        KI_TRY(ki_alloc_or(&p->part, (size_t)n_room, sizeof *p->part, "folds", err));
    }
    for (int64_t i = 0; i < from->n && p->v.n < n_room; i++) {
        const int64_t at = p->v.n++;
        memcpy(p->v.host + at * from->dim, rows + i * from->dim, (size_t)from->dim * sizeof *rows);
        p->v.label[at] = from->label[i];
        p->v.item[at] = from->item[i];
        p->part[at] = p->n_parts;
    }
    p->n_parts++;
    return KITH_OK;
}

static kith_status held_by(ki_tune *t, int fold, ki_vectors *ret, kith_error *err) {
    const ki_tune_way *way = &t->way[t->winner];
    const ki_tune_trial trial = {.way = way,
                                 .folds = &t->folds[1],
                                 .fold = fold,
                                 .part = {.share = 1},
                                 .mark = &way->steps,
                                 .n_marks = 1};
    ki_path folder;
    ki_items held = {0};
    if (!way->is_fine) return ki_tune_try(t, &trial, ret, err);
    KI_TRY(ki_tune_run_folder(t, way, &t->folds[1], fold, &folder, err));
    if (!ki_is_file("%s/model.safetensors", folder.s)) return KITH_OK; /* this fold was not tried */
    kith_status status = ki_tune_select(t, &t->folds[1], fold, true, NULL, &held, err);
    if (status == KITH_OK) status = ki_tune_embed_run(t, folder.s, &held, ret, err);
    ki_free(held.item);
    return status;
}

static kith_status measure(ki_tune *t, kith_calibration *ret, kith_error *err) {
    kith_status status = KITH_OK;
    pool p = {0};
    *ret = (kith_calibration){0};
    for (int f = 0; f < t->folds[1].n; f++) {
        ki_vectors v = {0};
        KI_CHECK(held_by(t, f, &v, err));
        status = v.n > 0 ? pour(&p, &v, t->learn.n, err) : KITH_OK;
        ki_vectors_release(&v);
        KI_CHECK(status);
    }
    if (p.v.n > 0) KI_CHECK(ki_judge_calibrate_parts(&p.v, p.part, p.n_parts, "cross-validation", ret, err));
done:
    ki_vectors_release(&p.v);
    ki_free(p.part);
    return status;
}

/* Into result.json, which the run wrote without them. */
static kith_status report_rates(const ki_tune *t, const kith_calibration *curve, kith_error *err) {
    kith_status status;
    ki_path path;
    kith_json *json = NULL;
    const char *rates = NULL;
    char *old = NULL;
    size_t n = 0;
    ki_buffer text = {.err = err};
    KI_CHECK(ki_path_print(&path, err, "%s/result.json", t->folder));
    KI_CHECK(ki_file_read(path.s, (size_t)1 << 28, &old, &n, err));
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    ki_card_put(json, &(ki_card_content){.calibration = curve});
    kith_json_object_end(json);
    KI_CHECK(kith_json_finish(json, &rates, err));
    while (n > 0 && old[n - 1] != '}') n--;
    if (n < 2) {
        status = ki_fail(err, KITH_EFORMAT, "%s is no JSON object", path.s);
        goto done;
    }
    ki_buffer_add(&text, old, n - 1);
    ki_buffer_put(&text, ", %s\n", rates + 1);
    KI_CHECK(text.status);
    status = ki_file_write(path.s, text.data, text.n, err);
done:
    ki_buffer_release(&text);
    ki_free(old);
    kith_json_free(json);
    return status;
}

static bool has_rates(const ki_tune *t) {
    ki_path path;
    kith_card *card = NULL;
    kith_error ignored;
    if (ki_path_print(&path, NULL, "%s/result.json", t->folder) != KITH_OK) return false;
    if (kith_card_read(path.s, &card, &ignored) != KITH_OK) return false;
    const bool yes = kith_card_text(card, "error_rates.source") != NULL;
    kith_card_free(card);
    return yes;
}

/* A run that was cleared and made again has none, though they were measured. */
static kith_status add_rates(ki_tune *t, kith_error *err) {
    kith_status status;
    ki_path path;
    kith_calibration curve;
    ki_net net = {0};
    ki_params *params = NULL;
    double done = 0;
    char key[256], text[200];
    ki_snprintf(key, sizeof key, "error rates of %s",
                ki_tune_describe(&t->way[t->winner], text, sizeof text));
    if (has_rates(t)) return KITH_OK;
    if (ki_tune_has_decided(t, key)) {
        KI_TRY(ki_tune_decide(t, key, 0, &done, err));
        if (!(done > 0)) return KITH_OK;
    }
    KI_CHECK(measure(t, &curve, err));
    KI_CHECK(ki_path_print(&path, err, "%s/model.safetensors", t->folder));
    const kith_model_options options = {.size = sizeof options, .weights = path.s};
    KI_CHECK(ki_model_file_open(&options, t->backend, &net, &params, NULL, err));
    if (curve.n) {
        KI_CHECK(ki_weights_save(&net, params, NULL, &curve, path.s, err));
        KI_CHECK(report_rates(t, &curve, err));
    }
    KI_CHECK(ki_tune_decide(t, key, (double)curve.n, &done, err));
done:
    ki_params_free(params);
    ki_net_release(&net);
    return status;
}

/* ---- the pretrained model beside it ---- */

typedef struct beside {
    ki_scores scores;
    kith_intervals intervals;
    bool is_there;
    kith_interval gain[2]; /* of the winner, in R@1 and MAP@R */
    bool has_gain;
} beside;

static kith_status test_items(const ki_tune *t, ki_items *ret, kith_error *err) {
    KI_TRY(ki_alloc_or(&ret->item, t->set->n_items, sizeof *ret->item, "items", err));
    for (size_t i = 0; i < t->set->n_items; i++) {
        if (t->set->item[i].split == KITH_SPLIT_TEST && t->is_sound[i]) ret->item[ret->n++] = (int64_t)i;
    }
    return KITH_OK;
}

/* Over the same test photos, query by query; an extra that is left out if it cannot be had. */
static void compare(const ki_tune *t, const ki_per_query *before, beside *ret) {
    ki_path path;
    kith_card *card = NULL;
    ki_per_query after = {0};
    kith_error ignored;
    static const int64_t scores[] = {1, 0};
    if (ki_path_print(&path, NULL, "%s/result.json", t->folder) != KITH_OK) return;
    if (kith_card_read(path.s, &card, &ignored) == KITH_OK &&
        ki_per_query_read(card, "test.", &after, &ignored) == KITH_OK && after.n == before->n &&
        strcmp(after.sha256, before->sha256) == 0) {
        const ki_paired_input input = {
            .run = {before, &after}, .n_runs = {1, 1}, .score = scores, .n_scores = 2, .n_draws = 1000};
        ret->has_gain = ki_paired_bootstrap(&input, ret->gain, &ignored) == KITH_OK;
    }
    kith_card_free(card);
}

static kith_status judge_pretrained(ki_tune *t, beside *ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_items items = {0};
    ki_vectors v = {0};
    ki_per_query queries = {0};
    static const int64_t k[] = {1, 2, 4, 8};
    if (t->n_test_classes == 0) return KITH_OK;
    KI_CHECK(test_items(t, &items, err));
    KI_CHECK(ki_tune_pretrained(t, &items, &v, err));
    KI_CHECK(ki_judge_by_query(&v, k, 4, NULL, &ret->scores, &ret->intervals, &queries, err));
    ret->is_there = true;
    compare(t, &queries, ret);
done:
    ki_free(items.item);
    ki_vectors_release(&v);
    ki_per_query_release(&queries);
    return status;
}

/* ---- tune.json ---- */

static void put_text(kith_json *json, const char *key, const char *text) {
    kith_json_key(json, key);
    kith_json_string(json, text);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

/* What a way came to: on the partition that decides if it came so far, else on the first. */
static kith_status put_way(const ki_tune *t, int number, kith_json *json, kith_error *err) {
    const ki_tune_way *way = &t->way[number];
    ki_tune_scores before = {0}, after = {0};
    kith_status status;
    char text[200];
    unsigned mask = 0;
    int n = 0, last = 1;
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    KI_CHECK(ki_tune_scores_init(t, &after, err));
    for (; last >= 0 && n == 0; last--) {
        for (int f = 0; f < t->folds[last].n; f++) {
            if (ki_tune_sum(t, way, &t->folds[last], way->steps, 1u << f, NULL, &after) == 0) continue;
            mask |= 1u << f;
            n++;
        }
        if (n > 0) ki_tune_sum(t, &t->way[0], &t->folds[last], 0, mask, NULL, &before);
    }
    if (n == 0 || isnan(ki_tune_mean(&after))) goto done;
    const ki_tune_difference d = ki_tune_compare(&before, &after);
    kith_json_object_begin(json);
    put_text(json, "way", ki_tune_describe(way, text, sizeof text));
    put_int(json, "rounds", last + 1 == 1 ? 2 : 1);
    put_int(json, "folds", n);
    put_real(json, "recall_at_1", ki_tune_recall(&after));
    put_real(json, "map_at_r", ki_tune_precision(&after));
    put_real(json, "gain_recall_at_1", d.recall);
    put_real(json, "gain_map_at_r", d.precision);
    put_real(json, "gain", d.mean);
    put_real(json, "gain_within", d.t * d.error);
    put_int(json, "classes", d.n);
    kith_json_key(json, "won");
    kith_json_bool(json, number == t->winner);
    kith_json_object_end(json);
done:
    ki_tune_scores_release(&before);
    ki_tune_scores_release(&after);
    return status;
}

static void put_point(kith_json *json, const ki_tune_point *p) {
    kith_json_object_begin(json);
    put_text(json, "of", p->part.of_photos ? "photos" : "classes");
    put_real(json, "share", p->part.share);
    put_real(json, "classes", p->n_classes);
    put_real(json, "photos", p->n_photos);
    put_real(json, "gain", p->gain.mean);
    put_real(json, "gain_within", p->gain.t * p->gain.error);
    put_real(json, "gain_recall_at_1", p->gain.recall);
    put_real(json, "gain_map_at_r", p->gain.precision);
    kith_json_object_end(json);
}

static void put_forecast(kith_json *json, const char *key, const ki_tune_forecast *f) {
    if (!f->is_known) return;
    kith_json_key(json, key);
    kith_json_object_begin(json);
    put_real(json, "gain", f->gain);
    put_real(json, "low", f->low);
    put_real(json, "high", f->high);
    put_real(json, "gain_recall_at_1", f->recall);
    put_real(json, "gain_map_at_r", f->precision);
    kith_json_object_end(json);
}

static void put_curve(const ki_tune *t, kith_json *json) {
    char text[200];
    put_text(json, "curve_of", ki_tune_describe(&t->way[t->best], text, sizeof text));
    kith_json_key(json, "curve");
    kith_json_array_begin(json);
    for (int i = 0; i < t->n_points; i++) put_point(json, &t->point[i]);
    kith_json_array_end(json);
    kith_json_key(json, "forecast");
    kith_json_object_begin(json);
    put_forecast(json, "twice_the_classes", &t->forecast[0]);
    put_forecast(json, "twice_the_photos", &t->forecast[1]);
    kith_json_object_end(json);
}

static void put_beside(kith_json *json, const beside *b) {
    if (!b->is_there) return;
    kith_json_key(json, "pretrained_test");
    kith_json_object_begin(json);
    put_real(json, "recall_at_1", b->scores.recall[0]);
    put_real(json, "map_at_r", b->scores.map_at_r);
    if (b->has_gain) {
        put_real(json, "gain_recall_at_1_low", b->gain[0].low);
        put_real(json, "gain_recall_at_1_high", b->gain[0].high);
        put_real(json, "gain_map_at_r_low", b->gain[1].low);
        put_real(json, "gain_map_at_r_high", b->gain[1].high);
    }
    kith_json_object_end(json);
}

static kith_status write_summary(const ki_tune *t, const beside *b, kith_error *err) {
    kith_status status;
    kith_json *json = NULL;
    ki_path path;
    char text[200];
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    put_text(json, "photos", t->options->photos);
    put_text(json, "model", t->options->model ? t->options->model : "general");
    put_real(json, "minutes", t->seconds_allowed / 60);
    put_real(json, "seconds", ki_tune_seconds(t));
    put_int(json, "n_photos_found", t->n_found);
    put_int(json, "n_photos_used", t->n_used);
    ki_tune_put_findings(t, json);
    put_int(json, "n_classes", t->n_classes);
    put_int(json, "n_train_classes", t->n_train_classes);
    put_int(json, "n_test_classes", t->n_test_classes);
    put_int(json, "n_views", t->n_views);
    put_text(json, "held_out", t->folds[1].by_photo ? "photos" : "classes");
    put_text(json, "winner", ki_tune_describe(&t->way[t->winner], text, sizeof text));
    kith_json_key(json, "is_pretrained");
    kith_json_bool(json, t->winner == 0);
    put_text(json, "why", t->why);
    put_text(json, "advice", t->advice);
    put_beside(json, b);
    put_curve(t, json);
    kith_json_key(json, "tried");
    kith_json_array_begin(json);
    for (int i = 0; i < t->n_ways; i++) KI_CHECK(put_way(t, i, json, err));
    kith_json_array_end(json);
    kith_json_object_end(json);
    KI_CHECK(ki_path_print(&path, err, "%s/tune.json", t->folder));
    KI_CHECK(ki_json_save(json, path.s, err));
done:
    kith_json_free(json);
    return status;
}

/* ---- the result ---- */

static kith_estimate estimate_of(double mean, kith_interval within, int64_t n) {
    return (kith_estimate){.mean = mean, .low = within.low, .high = within.high, .n = n};
}

static kith_train_scores scores_of(const ki_scores *s, const kith_interval *recall,
                                   const kith_interval *map) {
    static const kith_interval none = {NAN, NAN};
    kith_train_scores all = {0};
    if (!s->is_there) return all;
    all.recall_at_1 = estimate_of(s->recall[0], recall ? *recall : none, 1);
    all.map_at_r = estimate_of(s->map_at_r, map ? *map : none, 1);
    return all;
}

static void fill(const ki_tune *t, const ki_train_result *run, const beside *b, kith_tune_result *ret) {
    *ret = (kith_tune_result){.is_pretrained = t->winner == 0, .seconds = ki_tune_seconds(t)};
    ki_snprintf(ret->run.run, sizeof ret->run.run, "%s", t->folder);
    ki_snprintf(ret->run.selection, sizeof ret->run.selection, "last");
    ret->run.n_runs = 1;
    ret->run.step = run->step;
    ret->run.n_steps = run->n_steps;
    ret->run.test = scores_of(&run->test, &run->recall_at_1, &run->map_at_r);
    ret->run.untrained = scores_of(&run->untrained, NULL, NULL);
    ret->run.seconds = run->seconds;
    ret->run.images_per_second = run->images_per_second;
    ret->pretrained = scores_of(&b->scores, &b->intervals.recall[0], &b->intervals.map_at_r);
    for (int i = 0; i < t->n_ways; i++) {
        ki_tune_way way = t->way[i];
        for (int f = 0; f < t->folds[0].n; f++) {
            if (ki_tune_sum(t, &way, &t->folds[0], way.steps, 1u << f, NULL, NULL) +
                    ki_tune_sum(t, &way, &t->folds[1], way.steps, 1u << f, NULL, NULL) ==
                0)
                continue;
            ret->n_tried++;
            break;
        }
    }
    ki_tune_describe(&t->way[t->winner], ret->winner, sizeof ret->winner);
    ki_snprintf(ret->why, sizeof ret->why, "%s", t->why);
    ki_snprintf(ret->advice, sizeof ret->advice, "%s", t->advice);
}

kith_status ki_tune_finish(ki_tune *t, kith_tune_result *ret, kith_error *err) {
    ki_train_result run = {0};
    beside b = {0};
    KI_TRY(run_winner(t, &run, err));
    KI_TRY(add_rates(t, err));
    KI_TRY(judge_pretrained(t, &b, err));
    KI_TRY(write_summary(t, &b, err));
    fill(t, &run, &b, ret);
    return ki_tune_end(t, err);
}
