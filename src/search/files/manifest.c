/* Reading a manifest. */
#include "search/files/manifest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "base/text.h"
#include "io/json.h"
#include "search/files/segment.h"

typedef struct reader {
    ki_manifest *m;
    const char *name;
    kith_error *err;
} reader;

static kith_status fail(const reader *r, const char *key, const char *wanted) {
    ki_fail(r->err, KITH_EFORMAT, "%s: '%s' is not %s", r->name, key, wanted);
    return ki_hint(r->err, KITH_EFORMAT, "copy the index back from a backup, or make it again");
}

static const char *text_of(const ki_value *map, const char *key) {
    const ki_value *value = ki_value_get(map, key);
    return value && value->kind == KI_VALUE_SCALAR ? value->text : NULL;
}

static kith_status get_int(const reader *r, const ki_value *map, const char *key, int64_t least, int64_t most,
                           int64_t *ret) {
    const char *text = text_of(map, key);
    int64_t value = 0;
    if (!text || !ki_parse_int64(text, &value) || value < least || value > most)
        return fail(r, key, "a number in range");
    *ret = value;
    return KITH_OK;
}

static kith_status get_real(const reader *r, const ki_value *map, const char *key, double *ret) {
    const char *text = text_of(map, key);
    double value = 0;
    if (!text || !ki_parse_double(text, &value) || !isfinite(value)) return fail(r, key, "a number");
    *ret = value;
    return KITH_OK;
}

static kith_status get_text(const reader *r, const ki_value *map, const char *key, const char **ret) {
    const char *text = text_of(map, key);
    if (!text) return fail(r, key, "a text");
    *ret = text;
    return KITH_OK;
}

static kith_status get_list(const reader *r, const ki_value *map, const char *key, ki_value_kind kind,
                            size_t item_bytes, void *ret_items, int64_t *ret_n, const ki_value **ret_first) {
    const ki_value *list = ki_value_get(map, key);
    if (!list || list->kind != kind) return fail(r, key, "a list");
    void *items = ki_arena_alloc(&r->m->arena, list->n_items + 1, item_bytes);
    if (!items) return ki_fail_memory(r->err, list->n_items * item_bytes, key);
    memcpy(ret_items, &items, sizeof items);
    *ret_n = (int64_t)list->n_items;
    *ret_first = list->first;
    return KITH_OK;
}

static kith_status get_file(const reader *r, const ki_value *map, const char *key, ki_manifest_file *ret) {
    const ki_value *file = ki_value_get(map, key);
    if (!file) return KITH_OK;
    const char *seal = text_of(file, "seal");
    unsigned long long sum = 0;
    int end = 0;
    KI_TRY(get_int(r, file, "number", 1, r->m->next_file - 1, &ret->number));
    KI_TRY(get_int(r, file, "bytes", 0, INT64_C(1) << 56, &ret->seal.bytes));
    if (!seal || strspn(seal, "0123456789abcdef") != 16 || sscanf(seal, "%16llx%n", &sum, &end) != 1 ||
        seal[end] != '\0')
        return fail(r, "seal", "16 hexadecimal digits");
    ret->seal.sum = sum;
    return KITH_OK;
}

static kith_status get_columns(const reader *r, const ki_value *root) {
    const ki_value *at = ki_value_get(root, "columns");
    if (!at || at->kind != KI_VALUE_LIST || at->n_items > KI_MOST_COLUMNS)
        return fail(r, "columns", "a list of columns");
    for (at = at->first; at; at = at->next) {
        const char *name = NULL, *type = NULL;
        KI_TRY(get_text(r, at, "name", &name));
        KI_TRY(get_text(r, at, "type", &type));
        kith_value_type found = KITH_VALUE_NONE;
        for (int i = KITH_VALUE_INT; i <= KITH_VALUE_TEXT; i++) {
            if (strcmp(type, kith_value_type_name((kith_value_type)i)) == 0) found = (kith_value_type)i;
        }
        const int64_t before = r->m->n_columns;
        kith_error why;
        if (ki_manifest_column_add(r->m, name, found, &why) != KITH_OK || r->m->n_columns == before)
            return fail(r, "columns", "a list of columns");
    }
    return KITH_OK;
}

static kith_status get_calibration(const reader *r, const ki_value *root) {
    const ki_value *map = ki_value_get(root, "calibration");
    if (!map) return KITH_OK;
    const ki_value *at = ki_value_get(map, "points");
    const char *source = NULL;
    kith_calibration *c = ki_arena_alloc(&r->m->arena, 1, sizeof *c);
    if (!c) return ki_fail_memory(r->err, sizeof *c, "a curve");
    *c = (kith_calibration){.metric = r->m->metric};
    KI_TRY(get_text(r, map, "source", &source));
    ki_snprintf(c->source, sizeof c->source, "%s", source);
    KI_TRY(get_int(r, map, "classes", 0, INT64_MAX, &c->n_classes));
    KI_TRY(get_int(r, map, "same", 0, INT64_MAX, &c->n_same));
    KI_TRY(get_int(r, map, "different", 0, INT64_MAX, &c->n_different));
    if (!at || at->kind != KI_VALUE_LIST || at->n_items > KITH_CALIBRATION_POINTS)
        return fail(r, "points", "a list of points");
    for (at = at->first; at; at = at->next, c->n++) {
        KI_TRY(get_real(r, at, "threshold", &c->threshold[c->n]));
        KI_TRY(get_real(r, at, "fmr", &c->fmr[c->n]));
        KI_TRY(get_real(r, at, "tmr", &c->tmr[c->n]));
    }
    kith_error why;
    if (kith_calibration_check(c, &why) != KITH_OK)
        return fail(r, "calibration", "a curve of false-match rates");
    r->m->calibration = c;
    return KITH_OK;
}

static kith_status get_lists(const reader *r, const ki_value *root) {
    ki_manifest *m = r->m;
    const ki_value *at = NULL;
    KI_TRY(get_columns(r, root));
    KI_TRY(get_list(r, root, "notes", KI_VALUE_MAP, sizeof *m->notes, &m->notes, &m->n_notes, &at));
    for (ki_manifest_note *note = m->notes; at; at = at->next, note++) {
        if (at->kind != KI_VALUE_SCALAR) return fail(r, "notes", "a map of texts");
        *note = (ki_manifest_note){at->key, at->text};
    }
    KI_TRY(
        get_list(r, root, "segments", KI_VALUE_LIST, sizeof *m->segments, &m->segments, &m->n_segments, &at));
    int64_t n = 0;
    for (ki_manifest_segment *segment = m->segments; at; at = at->next, segment++) {
        KI_TRY(get_int(r, at, "rows", 1, KI_MOST_ROWS - n, &segment->n));
        KI_TRY(get_file(r, at, "file", &segment->rows));
        KI_TRY(get_file(r, at, "codes", &segment->codes));
        if (!segment->rows.number) return fail(r, "segments", "a list of files");
        n += segment->n;
    }
    return KITH_OK;
}

static kith_status get_coding(const reader *r, const ki_value *root) {
    const ki_value *map = ki_value_get(root, "coding");
    ki_manifest_coding *c = &r->m->coding;
    KI_TRY(get_int(r, map, "bits", 1, 64, &c->bits));
    KI_TRY(get_int(r, map, "lists", 1, INT32_MAX, &c->n_lists));
    KI_TRY(get_int(r, map, "coder_rows", 1, KI_MOST_ROWS, &c->coder_rows));
    KI_TRY(get_int(r, map, "tuned_rows", 1, KI_MOST_ROWS, &c->tuned_rows));
    KI_TRY(get_int(r, map, "probes", 0, INT32_MAX, &c->n_probes));
    KI_TRY(get_int(r, map, "looks", 0, INT32_MAX, &c->n_looks));
    KI_TRY(get_int(r, map, "k", 0, INT32_MAX, &c->tuned_k));
    return get_real(r, map, "recall", &c->recall);
}

static kith_status get_all(const reader *r, const ki_value *root) {
    ki_manifest *m = r->m;
    const char *metric = NULL;
    KI_TRY(get_int(r, root, "generation", 1, INT64_MAX - 1, &m->generation));
    KI_TRY(get_int(r, root, "dim", 1, KI_MOST_DIM, &m->dim));
    KI_TRY(get_text(r, root, "metric", &metric));
    kith_error why;
    if (kith_metric_parse(metric, &m->metric, &why) != KITH_OK) return fail(r, "metric", "a metric");
    KI_TRY(get_text(r, root, "model", &m->model));
    KI_TRY(get_text(r, root, "preprocess", &m->preprocess));
    KI_TRY(get_real(r, root, "recall", &m->recall));
    KI_TRY(get_int(r, root, "exact_numbers", 0, INT64_MAX, &m->exact_numbers));
    if (ki_value_get(root, "first")) KI_TRY(get_int(r, root, "first", 1, m->dim, &m->first));
    KI_TRY(get_int(r, root, "next_id", 0, INT64_MAX - KI_MOST_ROWS, &m->next_id));
    KI_TRY(get_int(r, root, "next_file", 1, INT64_MAX - 1000, &m->next_file));
    KI_TRY(get_lists(r, root));
    KI_TRY(get_calibration(r, root));
    KI_TRY(get_file(r, root, "changes", &m->changes));
    KI_TRY(get_file(r, root, "moves", &m->moves));
    KI_TRY(get_file(r, root, "updates", &m->updates));
    KI_TRY(get_file(r, root, "excluded", &m->excluded));
    if (ki_value_get(root, "n_excluded"))
        KI_TRY(get_int(r, root, "n_excluded", 0, KI_MOST_ROWS, &m->n_excluded));
    KI_TRY(get_file(r, root, "coder", &m->coder));
    return m->coder.number ? get_coding(r, root) : KITH_OK;
}

/* The tail is always as long as this. */
enum { TAIL_BYTES = sizeof ",\"checksum\":\"0123456789abcdef\"}\n" };

static kith_status check_sum(const reader *r, const char *text, size_t n, uint64_t *ret_sum) {
    const size_t n_tail = TAIL_BYTES - 1;
    char wanted[TAIL_BYTES];
    if (n > n_tail) {
        *ret_sum = ki_checksum(text, n - n_tail, KI_INDEX_FORMAT_FIRST);
        ki_snprintf(wanted, sizeof wanted, ",\"checksum\":\"%016llx\"}\n", (unsigned long long)*ret_sum);
        if (memcmp(text + n - n_tail, wanted, n_tail) == 0) return KITH_OK;
    }
    ki_fail(r->err, KITH_EFORMAT, "%s is damaged: its checksum is not that of its text", r->name);
    return ki_hint(r->err, KITH_EFORMAT, "copy the index back from a backup, or make it again");
}

kith_status ki_manifest_parse(const char *text, size_t n, const char *name, ki_manifest *ret_manifest,
                              kith_error *err) {
    kith_status status = KITH_OK;
    ki_manifest m = {0};
    const reader r = {&m, name, err};
    ki_value *root = NULL;
    int64_t format = 0;
    KI_CHECK(ki_json_parse(text, n, name, &m.arena, &root, err));
    /* The format comes first: another one may say everything else in another way. */
    const char *found = text_of(root, "kith_index");
    if (!found || !ki_parse_int64(found, &format)) {
        status = ki_fail(err, KITH_EFORMAT, "%s is not the manifest of an index", name);
        goto done;
    }
    if (format < KI_INDEX_FORMAT_FIRST || format > KI_INDEX_FORMAT) {
        status =
            ki_fail(err, KITH_EUNSUPPORTED, "%s: an index of format %lld; this kith reads format %d to %d",
                    name, (long long)format, KI_INDEX_FORMAT_FIRST, KI_INDEX_FORMAT);
        ki_hint(err, status,
                format > KI_INDEX_FORMAT ? "open it with a newer kith, or make it again"
                                         : "make it again with this kith");
        goto done;
    }
    KI_CHECK(check_sum(&r, text, n, &m.sum));
    KI_CHECK(get_all(&r, root));
    *ret_manifest = m;
    return KITH_OK;
done:
    ki_manifest_release(&m);
    return status;
}
