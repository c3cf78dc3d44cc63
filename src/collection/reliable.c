/* Reliability of hits as a note of an index. */
#include "collection/reliable.h"

#include "base/alloc.h"
#include "base/argument.h"
#include "judge/reliability.h"
#include "search/labelled.h"
#include "search/notes.h"

static kith_status measure(const kith_index *index, kith_reliability *ret, kith_error *err) {
    ki_trials trials = {0};
    KI_TRY(ki_index_trials(index, KI_RELIABILITY_DEPTH, KI_RELIABILITY_LEAST_LABELS, &trials, err));
    const kith_status status = ki_reliability_measure(&trials, ret, err);
    ki_trials_release(&trials);
    return status;
}

kith_status ki_reliable_measure(kith_index *index, bool *ret_is_changed, kith_error *err) {
    kith_status status;
    kith_reliability *r = NULL;
    kith_error why;
    char *text = NULL;
    const char *before = ki_index_note(index, KI_NOTE_RELIABILITY);
    *ret_is_changed = false;
    KI_CHECK(ki_alloc_or(&r, 1, sizeof *r, "the reliability of hits", err));
    status = measure(index, r, &why);
    if (status == KITH_ENOTFOUND) { /* one of labels that were there before says nothing of the items now */
        *ret_is_changed = before && *before;
        status = *ret_is_changed ? ki_index_note_set(index, KI_NOTE_RELIABILITY, "", err) : KITH_OK;
        goto done;
    }
    if (status != KITH_OK && err) *err = why;
    if (status != KITH_OK) goto done;
    KI_CHECK(ki_reliability_write(r, &text, err));
    *ret_is_changed = true;
    status = ki_index_note_set(index, KI_NOTE_RELIABILITY, text, err);
done:
    ki_free(text);
    ki_free(r);
    return status;
}

kith_status ki_reliable_read(const kith_index *index, kith_reliability *ret, kith_error *err) {
    kith_error why;
    kith_index_info info;
    const char *note = ki_index_note(index, KI_NOTE_RELIABILITY);
    kith_index_info_get(index, &info);
    if (!note || !*note) {
        ki_fail(err, KITH_ENOTFOUND,
                "the index does not know how often hits are wrong: it takes %d labels with two items each",
                KI_RELIABILITY_LEAST_LABELS);
        return ki_hint(err, KITH_ENOTFOUND, "name some of the items (folders per thing, or --labels)");
    }
    kith_status status = ki_reliability_read(note, ret, &why);
    if (status == KITH_OK && ret->metric != info.metric)
        status = ki_fail(&why, KITH_EFORMAT, "it is of scores by %s", kith_metric_name(ret->metric));
    if (status == KITH_OK || status == KITH_ENOMEM) {
        if (status != KITH_OK && err) *err = why;
        return status;
    }
    ki_fail(err, KITH_EFORMAT, "the note of how often hits are wrong is damaged: %.300s", why.message);
    return ki_hint(err, KITH_EFORMAT, "measure it again: kith index INDEX --calibrate INDEX");
}

bool ki_reliable_is_there(const kith_index *index) {
    kith_reliability r;
    return ki_reliable_read(index, &r, NULL) == KITH_OK;
}

kith_status kith_collection_reliability(kith_collection *collection, kith_reliability *ret_reliability,
                                        kith_error *err) {
    KI_NEED(err, collection, ret_reliability);
    KI_TRY(ki_collection_ready(collection, err));
    return ki_reliable_read(collection->index, ret_reliability, err);
}
