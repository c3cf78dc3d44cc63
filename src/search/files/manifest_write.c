/* The manifest as text, and the changes a writer makes to it. */
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "base/text.h"
#include "io/json.h"
#include "search/files/manifest.h"
#include "search/files/segment.h"

void ki_manifest_release(ki_manifest *m) {
    ki_arena_release(&m->arena);
    *m = (ki_manifest){0};
}

int64_t ki_manifest_format(const ki_manifest *m) {
    if (m->updates.number) return KI_INDEX_FORMAT_UPDATES;
    if (m->first > 0) return KI_INDEX_FORMAT_START;
    return m->moves.number || m->n_excluded > 0 ? KI_INDEX_FORMAT_MOVES : KI_INDEX_FORMAT_FIRST;
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}
static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}
static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static void put_file(kith_json *json, const char *key, const ki_manifest_file *file) {
    if (file->number == 0) return;
    char sum[20];
    ki_snprintf(sum, sizeof sum, "%016llx", (unsigned long long)file->seal.sum);
    kith_json_key(json, key);
    kith_json_object_begin(json);
    put_int(json, "number", file->number);
    put_int(json, "bytes", file->seal.bytes);
    put_text(json, "seal", sum);
    kith_json_object_end(json);
}

static void put_lists(kith_json *json, const ki_manifest *m) {
    kith_json_key(json, "columns");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < m->n_columns; i++) {
        kith_json_object_begin(json);
        put_text(json, "name", m->columns[i].name);
        put_text(json, "type", kith_value_type_name(m->columns[i].type));
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_key(json, "notes");
    kith_json_object_begin(json);
    for (int64_t i = 0; i < m->n_notes; i++) put_text(json, m->notes[i].name, m->notes[i].text);
    kith_json_object_end(json);
    kith_json_key(json, "segments");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < m->n_segments; i++) {
        kith_json_object_begin(json);
        put_int(json, "rows", m->segments[i].n);
        put_file(json, "file", &m->segments[i].rows);
        put_file(json, "codes", &m->segments[i].codes);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}

static void put_calibration(kith_json *json, const kith_calibration *c) {
    kith_json_key(json, "calibration");
    kith_json_object_begin(json);
    put_text(json, "source", c->source);
    put_int(json, "classes", c->n_classes);
    put_int(json, "same", c->n_same);
    put_int(json, "different", c->n_different);
    kith_json_key(json, "points");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < c->n; i++) {
        kith_json_object_begin(json);
        put_real(json, "threshold", c->threshold[i]);
        put_real(json, "fmr", c->fmr[i]);
        put_real(json, "tmr", c->tmr[i]);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
}

static void put_all(kith_json *json, const ki_manifest *m) {
    kith_json_object_begin(json);
    put_int(json, "kith_index", ki_manifest_format(m));
    put_int(json, "generation", m->generation);
    put_int(json, "dim", m->dim);
    put_text(json, "metric", kith_metric_name(m->metric));
    put_text(json, "model", m->model);
    put_text(json, "preprocess", m->preprocess);
    put_real(json, "recall", m->recall);
    put_int(json, "exact_numbers", m->exact_numbers);
    if (m->first > 0) put_int(json, "first", m->first);
    put_int(json, "next_id", m->next_id);
    put_int(json, "next_file", m->next_file);
    put_lists(json, m);
    if (m->calibration) put_calibration(json, m->calibration);
    put_file(json, "changes", &m->changes);
    put_file(json, "moves", &m->moves);
    put_file(json, "updates", &m->updates);
    put_file(json, "excluded", &m->excluded);
    if (m->n_excluded > 0) put_int(json, "n_excluded", m->n_excluded);
    put_file(json, "coder", &m->coder);
    if (m->coder.number) {
        kith_json_key(json, "coding");
        kith_json_object_begin(json);
        put_int(json, "bits", m->coding.bits);
        put_int(json, "lists", m->coding.n_lists);
        put_int(json, "coder_rows", m->coding.coder_rows);
        put_int(json, "tuned_rows", m->coding.tuned_rows);
        put_int(json, "probes", m->coding.n_probes);
        put_int(json, "looks", m->coding.n_looks);
        put_int(json, "k", m->coding.tuned_k);
        put_real(json, "recall", m->coding.recall);
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
}

kith_status ki_manifest_print(const ki_manifest *m, char **ret_text, size_t *ret_n, kith_error *err) {
    kith_status status = KITH_OK;
    kith_json *json = NULL;
    const char *text = NULL;
    ki_buffer out = {.err = err};
    KI_CHECK(kith_json_new(&json, err));
    put_all(json, m);
    KI_CHECK(kith_json_finish(json, &text, err));
    ki_buffer_add(&out, text, strlen(text) - 1); /* all but the last brace */
    if (out.status == KITH_OK)
        ki_buffer_put(&out, ",\"checksum\":\"%016llx\"}\n",
                      (unsigned long long)ki_checksum(out.data, out.n, KI_INDEX_FORMAT_FIRST));
    KI_CHECK(out.status);
    *ret_text = out.data;
    *ret_n = out.n;
    out.data = NULL;
done:
    ki_buffer_release(&out);
    kith_json_free(json);
    return status;
}

/* ---- changes ---- */

static kith_status copy_text(ki_manifest *m, const char *text, const char **ret_text, kith_error *err) {
    const char *copy = ki_arena_strdup(&m->arena, text);
    if (!copy) return ki_fail_memory(err, strlen(text) + 1, "a text");
    *ret_text = copy;
    return KITH_OK;
}

kith_status ki_column_check(const char *name, kith_value_type type, kith_error *err) {
    static const char *const taken[] = {"id",  "path", "label", "bytes", "mtime", "hash", "score",
                                        "and", "or",   "not",   "in",    "like",  "none"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    if (type < KITH_VALUE_INT || type > KITH_VALUE_TEXT)
        return ki_fail(err, KITH_EINVAL, "type %d of column '%s' is none", (int)type, name);
    if (!*name || !strchr(letters, *name) || name[strspn(name, signs)] || strlen(name) > 63)
        return ki_fail(err, KITH_EINVAL,
                       "'%.80s' cannot be the name of a column; wanted up to 63 letters, digits and _, the "
                       "first no digit",
                       name);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(name, taken[i]) == 0)
            return ki_fail(err, KITH_EINVAL, "'%s' cannot be the name of a column: it has a meaning already",
                           name);
    }
    return KITH_OK;
}

kith_status ki_manifest_column_add(ki_manifest *m, const char *name, kith_value_type type, kith_error *err) {
    KI_TRY(ki_column_check(name, type, err));
    for (int64_t i = 0; i < m->n_columns; i++) {
        if (strcmp(m->columns[i].name, name) != 0) continue;
        if (m->types[i] == type) return KITH_OK;
        return ki_fail(err, KITH_EINVAL, "column '%s' is there with type %s; wanted %s", name,
                       kith_value_type_name(m->types[i]), kith_value_type_name(type));
    }
    const size_t n = (size_t)m->n_columns;
    if (n == KI_MOST_COLUMNS)
        return ki_fail(err, KITH_EINVAL, "the index has %zu columns, which is the most", n);
    kith_column *columns = ki_arena_alloc(&m->arena, n + 1, sizeof *columns);
    kith_value_type *types = ki_arena_alloc(&m->arena, n + 1, sizeof *types);
    if (!columns || !types) return ki_fail_memory(err, (n + 1) * sizeof *columns, "columns");
    if (n > 0) memcpy(columns, m->columns, n * sizeof *columns);
    if (n > 0) memcpy(types, m->types, n * sizeof *types);
    KI_TRY(copy_text(m, name, &columns[n].name, err));
    columns[n].type = types[n] = type;
    m->columns = columns;
    m->types = types;
    m->n_columns++;
    return KITH_OK;
}

kith_status ki_manifest_note_set(ki_manifest *m, const char *name, const char *text, kith_error *err) {
    /* JSON has no other texts. */
    if (!*name || !ki_is_utf8(name) || !ki_is_utf8(text))
        return ki_fail(err, KITH_EINVAL, "note '%.80s' is not text in UTF-8", name);
    const char *copy = NULL;
    KI_TRY(copy_text(m, text, &copy, err));
    for (int64_t i = 0; i < m->n_notes; i++) {
        if (strcmp(m->notes[i].name, name) != 0) continue;
        m->notes[i].text = copy;
        return KITH_OK;
    }
    const size_t n = (size_t)m->n_notes;
    ki_manifest_note *notes = ki_arena_alloc(&m->arena, n + 1, sizeof *notes);
    if (!notes) return ki_fail_memory(err, (n + 1) * sizeof *notes, "notes");
    if (n > 0) memcpy(notes, m->notes, n * sizeof *notes);
    KI_TRY(copy_text(m, name, &notes[n].name, err));
    notes[n].text = copy;
    m->notes = notes;
    m->n_notes++;
    return KITH_OK;
}
