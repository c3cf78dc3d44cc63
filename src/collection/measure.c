/* False-match rates and the reliability of hits: from an index's own labels when they are due, or from what the user names. */
#include "collection/measure.h"

#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "collection/collection.h"
#include "collection/names.h"
#include "collection/reliable.h"
#include "collection/remember.h"
#include "collection/source.h"
#include "kith/eval.h"
#include "search/notes.h"

/* Was the curve measured on the index itself, maybe beside another one? */
static bool is_own(const kith_calibration *curve) {
    static const char beside[] = ", index";
    const size_t n = curve ? strlen(curve->source) : 0, n_beside = sizeof beside - 1;
    if (n >= n_beside && strcmp(curve->source + n - n_beside, beside) == 0) return true;
    return curve && strcmp(curve->source, "index") == 0;
}

/* Was the curve measured here, or is it the model's (NULL: it has none)? Any other is the user's. */
static bool may_replace(const kith_calibration *curve, const kith_calibration *model) {
    if (!curve || is_own(curve)) return true;
    return model && strcmp(curve->source, model->source) == 0 && curve->n == model->n &&
           curve->n_different == model->n_different;
}

static bool read_note(const char *note, int64_t *ret_items, int64_t *ret_next) {
    char items[24];
    const size_t n = note ? strcspn(note, " ") : 0;
    if (n == 0 || n >= sizeof items || note[n] != ' ') return false;
    memcpy(items, note, n);
    items[n] = '\0';
    return ki_parse_int64(items, ret_items) && ki_parse_int64(note + n + 1, ret_next);
}

/* Have fewer than a tenth of the items come or gone since the index was measured? A file that changed is a new item. */
static kith_status is_recent(const kith_index *index, bool *ret, kith_error *err) {
    int64_t n_then = 0, next = 0, *ids = NULL, n_new = 0;
    char where[48];
    kith_index_info info;
    *ret = false;
    if (!read_note(ki_index_note(index, KI_NOTE_MEASURED), &n_then, &next)) return KITH_OK;
    kith_index_info_get(index, &info);
    ki_snprintf(where, sizeof where, "id >= %lld", (long long)next);
    const kith_status status = kith_index_ids(index, where, &ids, &n_new, err);
    kith_ids_free(ids);
    const int64_t n_gone = n_then - (info.n_items - n_new);
    *ret = (n_new + n_gone) * 10 < n_then;
    return status;
}

static kith_status write_note(kith_index *index, kith_error *err) {
    int64_t *ids = NULL, n = 0;
    char note[48];
    kith_status status = kith_index_ids(index, NULL, &ids, &n, err);
    ki_snprintf(note, sizeof note, "%lld %lld", (long long)n, n > 0 ? (long long)ids[n - 1] + 1 : 0);
    kith_ids_free(ids);
    return status == KITH_OK ? ki_index_note_set(index, KI_NOTE_MEASURED, note, err) : status;
}

/* The model's curve, where it has one for this index; *ret false: it has none. */
static kith_status find_beside(const kith_index *index, const kith_model *of, kith_calibration *ret_curve,
                               bool *ret, kith_error *err) {
    kith_index_info info;
    *ret = false;
    if (!of) return KITH_OK;
    kith_index_info_get(index, &info);
    const kith_status status = kith_model_curve(of, info.metric, ret_curve, err);
    *ret = status == KITH_OK;
    return status == KITH_ENOTFOUND ? KITH_OK : status;
}

static kith_status measure_own(kith_index *index, const kith_model *of, kith_calibration *ret_curve,
                               kith_error *err) {
    kith_calibration model;
    bool has_curve = false, is_changed = false;
    KI_TRY(find_beside(index, of, &model, &has_curve, err));
    KI_TRY(kith_index_calibrate_own(index, has_curve ? &model : NULL, ret_curve, err));
    KI_TRY(ki_reliable_measure(index, &is_changed, err));
    KI_TRY(ki_measure_names(index, &is_changed, err));
    KI_TRY(write_note(index, err));
    return kith_index_commit(index, NULL, err);
}

/* The curve, if it is due. Too few labels: the model's curve, or none. One of labels that were there before says nothing of the items now. */
static kith_status measure_curve(kith_index *index, const kith_calibration *beside, bool recent,
                                 bool *ret_is_measured, bool *ret_is_changed, kith_error *err) {
    kith_calibration curve;
    kith_error why;
    const kith_calibration *now = kith_index_calibration(index);
    if (!may_replace(now, beside) || (recent && is_own(now))) return KITH_OK;
    kith_status status = kith_index_calibrate_own(index, beside, &curve, &why);
    *ret_is_measured = *ret_is_changed = status == KITH_OK;
    if (status != KITH_ENOTFOUND) {
        if (status != KITH_OK && err) *err = why;
        return status;
    }
    *ret_is_changed = is_own(now);
    return *ret_is_changed ? kith_index_calibrate(index, beside, err) : KITH_OK;
}

kith_status ki_measure(kith_index *index, const kith_model *of, kith_error *err) {
    kith_calibration model;
    bool has_curve = false, recent = false, is_measured = false, is_new = false, is_other = false,
         has_names = false;
    KI_TRY(find_beside(index, of, &model, &has_curve, err));
    KI_TRY(is_recent(index, &recent, err));
    KI_TRY(measure_curve(index, has_curve ? &model : NULL, recent, &is_measured, &is_new, err));
    if (is_measured || !recent || !ki_reliable_is_there(index))
        KI_TRY(ki_reliable_measure(index, &is_other, err));
    if (is_measured || !recent || is_other) KI_TRY(ki_measure_names(index, &has_names, err));
    if (!is_new && !is_other && !has_names) return KITH_OK;
    if (is_measured || ki_reliable_is_there(index)) KI_TRY(write_note(index, err));
    return kith_index_commit(index, NULL, err);
}

/* ---- what the user asks for ---- */

/* The curve of a data set whose classes are known, by the index's metric. */
static kith_status measure_data(kith_index *index, kith_model *model, const kith_dataset *set,
                                kith_split split, kith_progress_fn progress, void *user,
                                kith_calibration *ret_curve, kith_error *err) {
    kith_status status;
    kith_vectors *vectors = NULL;
    kith_array rows = {0};
    kith_index_info info;
    kith_verification *found = NULL;
    KITH_OPTIONS(kith_embed_options, how);
    KITH_OPTIONS(kith_verification_options, options);
    kith_index_info_get(index, &info);
    how.most_bad = -1;
    how.progress = progress;
    how.user = user;
    options.metric = info.metric;
    options.has_intervals = false;
    KI_CHECK(ki_zalloc_or(&found, 1, sizeof *found, "a curve", err));
    KI_CHECK(kith_model_embed_dataset(model, set, split, &how, &vectors, err));
    KI_CHECK(kith_vectors_array(vectors, &rows, err));
    rows.n_dims = 2;
    rows.dim[1] = kith_model_dim(model);
    const kith_retrieval_input input = {
        .embedding = &rows, .labels = kith_vectors_labels(vectors), .n_labels = kith_vectors_count(vectors)};
    KI_CHECK(kith_verification_run(&input, &options, found, err));
    ki_snprintf(found->curve.source, sizeof found->curve.source, "data");
    *ret_curve = found->curve;
done:
    kith_vectors_free(vectors);
    ki_free(found);
    return status;
}

/* Nothing is changed before the data is measured. */
static kith_status calibrate_on(kith_collection *c, const kith_sources *data, kith_progress_fn progress,
                                void *user, kith_calibration *ret_curve, bool *ret_is_changed,
                                kith_error *err) {
    kith_status status;
    kith_model *model = NULL;
    kith_dataset *set = NULL;
    ki_source source = {0};
    KI_CHECK(kith_collection_model(c, &model, err));
    KI_CHECK(ki_source_take(&source, data, err));
    if (!source.kind) source.kind = "auto";
    KI_CHECK(ki_source_open(&source, &set, err));
    KI_CHECK(measure_data(c->index, model, set, source.split, progress, user, ret_curve, err));
    *ret_is_changed = true;
    KI_CHECK(kith_index_calibrate(c->index, ret_curve, err));
    KI_CHECK(ki_collection_remember_file(c, err));
    KI_CHECK(kith_index_commit(c->index, NULL, err));
done:
    kith_dataset_free(set);
    ki_source_release(&source);
    return status;
}

/* Vectors made elsewhere have no model. */
static kith_status calibrate_own(kith_collection *c, kith_calibration *ret_curve, bool *ret_is_changed,
                                 kith_error *err) {
    kith_model *model = NULL;
    KI_TRY(ki_collection_model_if_any(c, &model, err));
    const kith_status status = measure_own(c->index, model, ret_curve, err);
    *ret_is_changed = status != KITH_ENOTFOUND;
    return status;
}

kith_status kith_collection_calibrate(kith_collection *collection, const kith_sources *data,
                                      kith_progress_fn progress, void *user,
                                      kith_calibration *ret_calibration, kith_error *err) {
    KI_NEED(err, collection, ret_calibration);
    bool is_changed = false;
    kith_calibration curve = {0};
    KI_TRY(ki_collection_begin(collection, err));
    const kith_status status = data ? calibrate_on(collection, data, progress, user, &curve, &is_changed, err)
                                    : calibrate_own(collection, &curve, &is_changed, err);
    if (status == KITH_OK) {
        ki_collection_committed(collection);
        *ret_calibration = curve;
    } else if (is_changed) {
        ki_collection_drop(collection);
    }
    return status;
}
