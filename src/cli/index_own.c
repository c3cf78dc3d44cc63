/* False-match rates from an index's own labels, measured after a change by the commands that make one (docs/adr/0053). */
#include <stdio.h>
#include <string.h>

#include "cli/index.h"
#include "kith/text.h"

/* Of a measured index: how many items it had, and an id that none of them had reached: "400 512". */
#define NOTE "measured"

/* Was the curve measured on the index itself, maybe beside another one? */
static bool is_own(const kith_calibration *curve) {
    return curve && (strcmp(curve->source, "index") == 0 || cli_ends_with(curve->source, ", index"));
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
    return kith_parse_int(items, ret_items) && kith_parse_int(note + n + 1, ret_next);
}

/* Have fewer than a tenth of the items come or gone since the index was measured? A file that changed is a new item. */
static kith_status is_recent(const kith_index *index, bool *ret, kith_error *err) {
    int64_t n_then = 0, next = 0, *ids = NULL, n_new = 0;
    char where[48];
    kith_index_info info;
    *ret = false;
    if (!is_own(kith_index_calibration(index)) || !read_note(kith_index_note(index, NOTE), &n_then, &next))
        return KITH_OK;
    kith_index_info_get(index, &info);
    snprintf(where, sizeof where, "id >= %lld", (long long)next);
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
    snprintf(note, sizeof note, "%lld %lld", (long long)n, n > 0 ? (long long)ids[n - 1] + 1 : 0);
    kith_ids_free(ids);
    return status == KITH_OK ? kith_index_note_set(index, NOTE, note, err) : status;
}

/* The model's curve, where it has one for this index; *ret false: it has none. */
static kith_status find_beside(const kith_index *index, const kith_embedder *embedder,
                               kith_calibration *ret_curve, bool *ret, kith_error *err) {
    kith_index_info info;
    *ret = false;
    if (!embedder) return KITH_OK;
    kith_index_info_get(index, &info);
    const kith_status status = kith_embedder_calibration(embedder, info.metric, ret_curve, err);
    *ret = status == KITH_OK;
    return status == KITH_ENOTFOUND ? KITH_OK : status;
}

static kith_status calibrate(kith_index *index, const kith_calibration *beside, kith_calibration *ret_curve,
                             kith_error *err) {
    kith_status status = kith_index_calibrate_own(index, beside, ret_curve, err);
    if (status == KITH_OK) status = write_note(index, err);
    return status == KITH_OK ? kith_index_commit(index, NULL, err) : status;
}

kith_status index_calibrate_own(kith_index *index, const kith_embedder *embedder, kith_calibration *ret_curve,
                                kith_error *err) {
    kith_calibration model;
    bool has_curve = false;
    const kith_status status = find_beside(index, embedder, &model, &has_curve, err);
    return status == KITH_OK ? calibrate(index, has_curve ? &model : NULL, ret_curve, err) : status;
}

static kith_status measure(kith_index *index, const kith_embedder *embedder, kith_error *err) {
    kith_calibration model, curve;
    bool has_curve = false, recent = false;
    kith_status status = find_beside(index, embedder, &model, &has_curve, err);
    const kith_calibration *beside = has_curve ? &model : NULL;
    if (status != KITH_OK || !may_replace(kith_index_calibration(index), beside)) return status;
    status = is_recent(index, &recent, err);
    if (status != KITH_OK || recent) return status;
    status = calibrate(index, beside, &curve, err);
    if (status != KITH_ENOTFOUND) return status;
    /* Too few labels: the model's curve, or none. One of labels that were there before says nothing of the items now. */
    if (!is_own(kith_index_calibration(index))) return KITH_OK;
    status = kith_index_calibrate(index, beside, err);
    return status == KITH_OK ? kith_index_commit(index, NULL, err) : status;
}

kith_status index_measure(const index_request *r, kith_index **index, const kith_embedder *embedder,
                          kith_error *err) {
    kith_error why = {0};
    if (measure(*index, embedder, &why) == KITH_OK) return KITH_OK;
    fprintf(stderr, "kith: the index is complete, but its false-match rates were not measured: %s\n",
            why.message);
    kith_index_free(*index); /* after a failed commit it can do nothing else */
    *index = NULL;
    return kith_index_open(r->index, KITH_INDEX_READ, index, err);
}
