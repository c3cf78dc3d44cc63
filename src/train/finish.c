/* The end of a run: the chosen model, the test classes scored once, the result card. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "train/frozen.h"

/* Put the chosen model's weights into the network.
 *
 * A process that was killed may have left the model of an evaluation that no checkpoint knows about. If that evaluation
 * is repeated with other bits (another number of threads) and is no longer the best, the chosen model is lost. Then the
 * last model is the result, and a line says so. */
static kith_status take_best(ki_train_state *run, kith_error *err) {
    if (run->selection == KI_SELECT_LAST) return KITH_OK;
    ki_best_found found;
    kith_tensors *tensors = NULL;
    kith_status status;
    KI_CHECK(ki_best_look(run, &run->at, &found, &tensors, err));
    if (found.is_other && found.is_ours && found.step > run->at.best_step) {
        run->selection = KI_SELECT_LAST;
        KI_CHECK(ki_train_say(run, KITH_TRAIN_WARNING, err,
                              "best.safetensors is of step %lld, from before the run was resumed, and the "
                              "best model was that of step %lld: the result is the last step's",
                              (long long)found.step, (long long)run->at.best_step));
        goto done;
    }
    if (found.is_other) {
        status = ki_best_fail_other(run, &run->at, err);
        ki_hint(err, status, "put the file back as it was, then go on with --resume");
        goto done;
    }
    status = ki_train_model_load(run, tensors, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s/best.safetensors", run->folder.path);
done:
    kith_tensors_free(tensors);
    return status;
}

static kith_status write_paths(const ki_train_state *run, const ki_vectors *e, kith_error *err) {
    kith_status status;
    ki_atomic_file file = {0};
    ki_path path;
    KI_CHECK(ki_folder_at(&run->folder, &path, err, "test/paths.txt"));
    KI_CHECK(ki_atomic_open(&file, path.s, err));
    for (int64_t i = 0; i < e->n; i++) {
        ki_path image;
        KI_CHECK(ki_path_absolute(run->set->item[e->item[i]].path, &image, err));
        KI_CHECK(ki_atomic_write(&file, image.s, strlen(image.s), err));
        KI_CHECK(ki_atomic_write(&file, "\n", 1, err));
    }
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    return status;
}

/* The name of label k is line k, from 0: what a report shows instead of numbers. */
static kith_status write_classes(const ki_train_state *run, kith_error *err) {
    kith_status status;
    ki_path path;
    ki_buffer lines = {.err = err};
    for (int32_t k = 0; k < kith_dataset_n_classes(run->set); k++) {
        for (const char *c = kith_dataset_class_name(run->set, k); *c; c++)
            ki_buffer_put(&lines, "%c", *c == '\n' || *c == '\r' ? ' ' : *c);
        ki_buffer_put(&lines, "\n");
    }
    KI_CHECK(lines.status);
    KI_CHECK(ki_folder_at(&run->folder, &path, err, "test/classes.txt"));
    KI_CHECK(ki_file_write(path.s, lines.data, lines.n, err));
done:
    ki_buffer_release(&lines);
    return status;
}

static kith_status write_test(const ki_train_state *run, ki_vectors *e, kith_error *err) {
    ki_path path;
    const float *rows = NULL;
    KI_TRY(ki_vectors_host(e, &rows, err));
    const kith_array x = {KITH_F32, 2, {e->n, e->dim}, (void *)(uintptr_t)rows},
                     labels = {KITH_I64, 1, {e->n}, e->label};
    KI_TRY(ki_folder_at(&run->folder, &path, err, "test"));
    KI_TRY(ki_make_folders(path.s, err));
    KI_TRY(ki_folder_at(&run->folder, &path, err, "test/embedding.npy"));
    KI_TRY(kith_npy_write(path.s, &x, err));
    KI_TRY(ki_folder_at(&run->folder, &path, err, "test/labels.npy"));
    KI_TRY(kith_npy_write(path.s, &labels, err));
    KI_TRY(write_classes(run, err));
    return write_paths(run, e, err);
}

/* Of which of several data sets each row is. */
static kith_status parts_of(const ki_train_state *run, const ki_vectors *v, int32_t **ret, kith_error *err) {
    int32_t *part = NULL;
    KI_TRY(ki_zalloc_or(&part, (size_t)v->n, sizeof *part, "data sets of images", err));
    for (size_t p = 1; p < run->set->n_parts; p++) {
        size_t first = 0, n = 0;
        ki_dataset_part(run->set, p, &first, &n);
        for (int64_t i = 0; i < v->n; i++) {
            if ((size_t)v->item[i] >= first) part[i] = (int32_t)p;
        }
    }
    *ret = part;
    return KITH_OK;
}

/* What the scores of the chosen model mean for classes that it has not learnt from. Only now, and once: nothing that a
 * checkpoint holds depends on it. */
static kith_status calibrate(ki_train_state *run, kith_calibration *ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_vectors v = {0};
    int32_t *part = NULL;
    if (run->validation.n == 0) return KITH_OK;
    KI_CHECK(ki_train_embed(run, run->validation.item, run->validation.n, "embedding", NULL, &v, err));
    if (run->set->n_parts > 1) {
        KI_CHECK(parts_of(run, &v, &part, err));
        KI_CHECK(ki_judge_calibrate_parts(&v, part, (int32_t)run->set->n_parts, "validation", ret, err));
    } else {
        KI_CHECK(ki_judge_calibrate(&v, "validation", ret, err));
    }
done:
    ki_free(part);
    ki_vectors_release(&v);
    return status;
}

/* This is an extra: if it fails, the run still has its result, and a warning says why. */
static kith_status score_variants(ki_train_state *run, int64_t step, ki_variant_list *ret, kith_error *err) {
    kith_error why = {0};
    const kith_status status = ki_train_variants_score(run, step, ret, &why);
    if (status == KITH_OK) return KITH_OK;
    ki_variant_list_release(ret); /* another rank may have failed */
    if (status != KITH_ECANCELED)
        return ki_train_say(run, KITH_TRAIN_WARNING, err, "variants could not be scored: %s", why.message);
    if (err) *err = why;
    return status;
}

static ki_train_result result_of(const ki_train_state *run) {
    const bool has_chosen = run->selection != KI_SELECT_LAST;
    ki_train_result result = {.selection = run->selection,
                              .step = has_chosen ? run->at.best_step : run->at.step,
                              .n_steps = run->at.step,
                              .untrained = run->at.untrained,
                              .validation = has_chosen ? run->at.best_validation : run->at.last_validation,
                              .seen = has_chosen ? run->at.best_seen : run->at.last_seen,
                              .best_on_test = run->at.best_test,
                              .seconds = run->at.seconds};
    if (run->at.seconds > 0) result.images_per_second = (double)run->at.n_images / run->at.seconds;
    return result;
}

static kith_status write_model(ki_train_state *run, const kith_calibration *calibration, kith_error *err) {
    ki_path path;
    if (!run->writes) return KITH_OK;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "model.safetensors"));
    return ki_train_model_save(run, NULL, calibration->n ? calibration : NULL, path.s, err);
}

/* The test classes, scored once. */
static kith_status judge_test(ki_train_state *run, ki_vectors *test, ki_train_result *result,
                              kith_intervals *intervals, ki_per_query *queries, kith_error *err) {
    KI_TRY(ki_judge_by_query(test, run->recipe->k, run->recipe->n_k, run->comm, &result->test, intervals,
                             queries, err));
    result->test.step = result->step;
    result->recall_at_1 = intervals->recall[0];
    result->map_at_r = intervals->map_at_r;
    result->r_precision = intervals->r_precision;
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_EVAL,
                                             .split = "test",
                                             .recall_at_1 = result->test.recall[0],
                                             .map_at_r = result->test.map_at_r});
    if (!run->writes) return KITH_OK;
    KI_TRY(write_test(run, test, err));
    return run->recipe->eval.clustering ? ki_judge_cluster(test, &result->clustered, err) : KITH_OK;
}

static kith_status write_end(ki_train_state *run, ki_train_result *result, ki_vectors *test,
                             const kith_intervals *intervals, const ki_per_query *queries,
                             const ki_variant_list *variants, const kith_calibration *calibration,
                             kith_error *err) {
    if (!run->writes) return KITH_OK;
    /* Where the test classes are watched, the log has had this step's line. */
    if (run->test.n > 0 && !run->recipe->eval.watch_test)
        KI_TRY(ki_record_add_eval(run->record, result->step, "test", run->recipe->n_k, run->recipe->k,
                                  &result->test, variants, err));
    KI_TRY(ki_train_write_pairs(run, test->n ? test : NULL, err));
    result->wall_seconds = ki_train_wall(run);
    return ki_train_write_result(run, result, test->n ? intervals : NULL, queries, variants, calibration,
                                 err);
}

kith_status ki_train_finish(ki_train_state *run, ki_train_result *ret_result, kith_error *err) {
    kith_status status;
    ki_vectors test = {0};
    kith_intervals intervals;
    ki_per_query queries = {0};
    ki_variant_list variants = {0};
    kith_calibration calibration = {0};
    KI_CHECK(ki_train_weigh_pairs(run, err)); /* of the last step */
    /* What follows is of the average, if there is one. */
    KI_CHECK(ki_train_agree(run, ki_learner_swap(run->learner, err), err));
    KI_CHECK(ki_train_agree(run, take_best(run, err), err));
    ki_train_result result = result_of(run);
    KI_CHECK(ki_train_whiten(run, err));
    KI_CHECK(calibrate(run, &calibration, err));
    KI_CHECK(ki_train_agree(run, write_model(run, &calibration, err), err));
    if (run->test.n > 0) {
        KI_CHECK(ki_train_embed_judged(run, run->test.item, run->test.n, &test, err));
        KI_CHECK(ki_train_agree(run, judge_test(run, &test, &result, &intervals, &queries, err), err));
    }
    KI_CHECK(score_variants(run, result.step, &variants, err));
    status = write_end(run, &result, &test, &intervals, &queries, &variants, &calibration, err);
    KI_CHECK(ki_train_agree(run, status, err));
    *ret_result = result;
done:
    ki_vectors_release(&test);
    ki_per_query_release(&queries);
    ki_variant_list_release(&variants);
    return status;
}
