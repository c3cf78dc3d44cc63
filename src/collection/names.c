/* The curve of names of an index, as a note of it. */
#include "collection/names.h"

#include "base/alloc.h"
#include "collection/collection.h"
#include "search/index_handle.h"
#include "search/labelled.h"
#include "search/notes.h"

static kith_status measure(const kith_index *index, ki_name_curve *ret, kith_error *err) {
    ki_trials trials = {0};
    kith_status status = ki_index_trials(index, KI_EVIDENCE_HITS, 1, &trials, err);
    if (status == KITH_OK) status = ki_naming_make(&trials, ret, err);
    ki_trials_release(&trials);
    return status;
}

static kith_status note(kith_index *index, const ki_name_curve *curve, kith_error *err) {
    kith_json *json = NULL;
    const char *text = NULL;
    KI_TRY(kith_json_new(&json, err));
    kith_status status = ki_naming_write(curve, json, &text, err);
    if (status == KITH_OK) status = ki_index_note_set(index, KI_NOTE_NAMES, text, err);
    kith_json_free(json);
    return status;
}

kith_status ki_measure_names(kith_index *index, bool *ret_is_changed, kith_error *err) {
    kith_error why;
    ki_name_curve *curve = NULL;
    const char *there = ki_index_note(index, KI_NOTE_NAMES);
    *ret_is_changed = false;
    KI_TRY(ki_zalloc_or(&curve, 1, sizeof *curve, "a curve", err));
    kith_status status = measure(index, curve, &why);
    if (status == KITH_OK) {
        *ret_is_changed = true;
        status = note(index, curve, err);
    } else if (status == KITH_ENOTFOUND) {
        *ret_is_changed = there && *there;
        status = *ret_is_changed ? ki_index_note_set(index, KI_NOTE_NAMES, "", err) : KITH_OK;
    } else if (err) {
        *err = why;
    }
    ki_free(curve);
    return status;
}

/* Have fewer than a tenth of the labelled items come or gone? */
static kith_status is_recent(const kith_index *index, const ki_name_curve *curve, bool *ret,
                             kith_error *err) {
    int64_t *ids = NULL, n = 0;
    const kith_status status = kith_index_ids(index, KI_NAMED, &ids, &n, err);
    kith_ids_free(ids);
    const int64_t change = n > curve->n_rows ? n - curve->n_rows : curve->n_rows - n;
    *ret = change <= curve->n_rows / 10;
    return status;
}

static kith_status find(const kith_collection *c, ki_name_curve *ret, kith_error *err) {
    const char *text = ki_index_note(c->index, KI_NOTE_NAMES);
    bool recent = false;
    if (text && *text) {
        KI_TRY(ki_naming_read(text, ret, err));
        if (ret->metric == ki_index_committed(c->index)->metric)
            KI_TRY(is_recent(c->index, ret, &recent, err));
    }
    return recent ? KITH_OK : measure(c->index, ret, err);
}

kith_status ki_collection_names(kith_collection *c, const ki_name_curve **ret, kith_error *err) {
    kith_index_info info;
    kith_index_info_get(c->index, &info);
    if (!c->naming || c->naming_of != info.generation) {
        ki_name_curve *curve = NULL;
        KI_TRY(ki_zalloc_or(&curve, 1, sizeof *curve, "a curve", err));
        const kith_status status = find(c, curve, err);
        if (status != KITH_OK) {
            ki_free(curve);
            return status;
        }
        ki_free(c->naming);
        c->naming = curve;
        c->naming_of = info.generation;
    }
    *ret = c->naming;
    return KITH_OK;
}
