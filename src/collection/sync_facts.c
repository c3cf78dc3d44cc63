/* Facts and rows as values of items: which columns they are in, for new items, and for items that stay. */
#include "collection/sync_facts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/text.h"
#include "collection/sync_meta.h"
#include "data/dataset/table.h"
#include "data/image/facts.h"
#include "search/notes.h"

static const char *const names[KITH_N_FACTS] = {KITH_FACT_COLUMNS};
static const kith_value_type types[KITH_N_FACTS] = {KITH_VALUE_TEXT, KITH_VALUE_TEXT, KITH_VALUE_TEXT,
                                                    KITH_VALUE_REAL, KITH_VALUE_REAL, KITH_VALUE_REAL};
enum { PART = 512 };
static const char off[] = "no";

static int64_t find_column(const kith_index *index, const char *name, kith_value_type *ret_type) {
    for (int64_t i = 0; kith_index_column(index, i).name; i++) {
        const kith_column column = kith_index_column(index, i);
        if (strcmp(column.name, name) != 0) continue;
        *ret_type = column.type;
        return i;
    }
    return -1;
}

/* ---- facts as values ---- */

static kith_value text_value(const char *text) {
    return (kith_value){.type = *text ? KITH_VALUE_TEXT : KITH_VALUE_NONE, .text = text};
}

static kith_value real_value(double value) {
    return (kith_value){.type = isnan(value) ? KITH_VALUE_NONE : KITH_VALUE_REAL, .real = value};
}

static void list_facts(const ki_photo_facts *f, kith_value ret[KITH_N_FACTS]) {
    const kith_value values[KITH_N_FACTS] = {text_value(f->taken),     text_value(f->camera),
                                             text_value(f->lens),      real_value(f->latitude),
                                             real_value(f->longitude), real_value(f->altitude)};
    memcpy(ret, values, sizeof values);
}

typedef struct reading {
    const ki_sync *sync;
    const int64_t *files;
    ki_photo_facts *facts;
} reading;

static void read_some(void *context, int64_t begin, int64_t end) {
    const reading *r = context;
    for (int64_t k = begin; k < end; k++)
        ki_photo_facts_of_file(r->sync->stamp[r->files[k]].path, &r->facts[k]);
}

/* ---- columns ---- */

/* Is fact j read into a column of its own? Not one that the table has, or that is of another type. */
static bool is_wanted(const ki_sync *s, int j) {
    kith_value_type type = types[j];
    find_column(s->index, names[j], &type);
    return type == types[j] && !ki_sync_meta_has(s->meta, names[j]);
}

/* EXIF's columns, as the note lists them. */
static kith_status note_columns(ki_sync *s, kith_error *err) {
    const char *list[KITH_N_FACTS];
    int64_t n = 0;
    for (int j = 0; j < KITH_N_FACTS; j++) {
        if (s->exif_columns & 1u << j) list[n++] = names[j];
    }
    return ki_index_note_paths_set(s->index, KI_NOTE_EXIF, list, n, err);
}

/* The first photo that has a fact makes its column. */
static kith_status make_columns(ki_sync *s, const ki_photo_facts *facts, int64_t n, kith_error *err) {
    unsigned found = s->exif_columns;
    for (int64_t k = 0; k < n; k++) {
        kith_value value[KITH_N_FACTS];
        list_facts(&facts[k], value);
        for (int j = 0; j < KITH_N_FACTS; j++)
            found |= value[j].type != KITH_VALUE_NONE && is_wanted(s, j) ? 1u << j : 0;
    }
    if (found == s->exif_columns) return KITH_OK;
    s->exif_columns = found;
    for (int j = 0; j < KITH_N_FACTS; j++) {
        if (found & 1u << j && is_wanted(s, j))
            KI_TRY(kith_index_column_add(s->index, names[j], types[j], err));
    }
    return note_columns(s, err);
}

/* ---- what is to be done ---- */

/* The columns that an earlier sync filled; `off` has none. */
static kith_status recall_columns(ki_sync *s, kith_error *err) {
    ki_arena arena = {0};
    const char **list = NULL;
    int64_t n = 0;
    KI_TRY(ki_index_note_paths(s->index, KI_NOTE_EXIF, &arena, &list, &n, err));
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < KITH_N_FACTS; j++) {
            if (strcmp(list[i], names[j]) == 0) s->exif_columns |= 1u << j;
        }
    }
    ki_arena_release(&arena);
    return KITH_OK;
}

static kith_status say_table_wins(ki_sync *s, kith_error *err) {
    char line[512] = "";
    for (int j = 0; j < KITH_N_FACTS; j++) {
        if (!ki_sync_meta_has(s->meta, names[j])) continue;
        const size_t n = strlen(line);
        ki_snprintf(line + n, sizeof line - n, "%s%s", n ? ", " : "", names[j]);
    }
    if (!*line || !s->meta->is_changed) return KITH_OK;
    const size_t n = strlen(line);
    ki_snprintf(line + n, sizeof line - n, ": from the table, not from the photos' files");
    return ki_sync_say(s, line, err);
}

kith_status ki_sync_facts_open(ki_sync *s, kith_error *err) {
    const char *note = ki_index_note(s->index, KI_NOTE_EXIF);
    const kith_exif_use use = s->task->options->exif;
    const bool was_off = note && strcmp(note, off) == 0;
    if ((unsigned)use > KITH_EXIF_NONE)
        return ki_fail(err, KITH_EINVAL, "exif is %d; wanted a kith_exif_use", (int)use);
    KI_TRY(recall_columns(s, err));
    KI_TRY(ki_sync_meta_open(s, err));
    s->reads_exif = use == KITH_EXIF_ALL || (use == KITH_EXIF_AS_BEFORE && !was_off);
    if (use == KITH_EXIF_NONE && !was_off) KI_TRY(ki_index_note_set(s->index, KI_NOTE_EXIF, off, err));
    if (use == KITH_EXIF_ALL && was_off) KI_TRY(note_columns(s, err));
    return s->reads_exif ? say_table_wins(s, err) : KITH_OK;
}

/* ---- new items ---- */

kith_status ki_sync_facts_new(ki_sync *s, const int64_t *files, int64_t n, ki_arena *arena,
                              kith_value **ret_values, int64_t *ret_n_columns, kith_error *err) {
    kith_status status = KITH_OK;
    ki_photo_facts *facts = NULL;
    kith_value *values = NULL, fact[KITH_N_FACTS];
    int64_t n_columns = 0;
    if (s->reads_exif) {
        facts = ki_arena_alloc(arena, (size_t)n + 1, sizeof *facts);
        if (!facts) return ki_fail_memory(err, (size_t)n * sizeof *facts, "facts");
        reading r = {s, files, facts};
        ki_parallel_for(n, 1, read_some, &r);
        KI_TRY(make_columns(s, facts, n, err));
    }
    while (kith_index_column(s->index, n_columns).name) n_columns++;
    if (n_columns == 0) return KITH_OK;
    KI_CHECK(ki_zalloc_or(&values, (size_t)(n * n_columns), sizeof *values, "values", err));
    for (int64_t k = 0; k < n; k++) {
        kith_value *row = values + k * n_columns;
        if (facts) list_facts(&facts[k], fact);
        for (int j = 0; facts && j < KITH_N_FACTS; j++) {
            kith_value_type type = KITH_VALUE_NONE;
            const int64_t c = is_wanted(s, j) ? find_column(s->index, names[j], &type) : -1;
            if (c >= 0) row[c] = fact[j];
        }
        for (int64_t c = 0; c < kith_items_n_columns(s->meta->items); c++) {
            kith_value_type type = KITH_VALUE_NONE;
            const int64_t to = find_column(s->index, kith_items_columns(s->meta->items)[c].name, &type);
            if (to >= 0) row[to] = ki_sync_meta_value(s->meta, files[k], c, type);
        }
    }
    *ret_values = values;
    *ret_n_columns = n_columns;
done:
    return status;
}

/* ---- items that stay ---- */

/* The item of a file that is in the index after the sync as it was before, but for its path; -1: it is new, or out. */
static int64_t kept_item(const ki_sync *s, int64_t i) {
    const ki_sync_file *f = &s->file[i];
    if (f->is_out) return -1;
    if (f->from >= 0) return f->from;
    return f->old >= 0 && (f->state == KITH_FILE_SAME || f->is_touched) ? f->old : -1;
}

static bool is_same(const kith_value *a, const kith_value *b) {
    if (a->type != b->type) return false;
    if (a->type == KITH_VALUE_INT) return a->integer == b->integer;
    if (a->type == KITH_VALUE_REAL) return a->real == b->real;
    return a->type == KITH_VALUE_NONE || strcmp(a->text, b->text) == 0;
}

/* Those of the table, those that it had, and the facts. */
enum { MOST_CHANGES = 2 * KI_TABLE_MOST_FIELDS + KITH_N_FACTS };

/* Changes of one item, collected. */
typedef struct changes {
    const char *column[MOST_CHANGES];
    kith_value value[MOST_CHANGES];
    int64_t n;
} changes;

/* Other than what the last commit has? Columns that are newer have nothing there. */
static void change(const ki_sync *s, const kith_index_item *item, int64_t n_committed, const char *name,
                   kith_value value, changes *to) {
    static const kith_value none;
    kith_value_type type = KITH_VALUE_NONE;
    const int64_t c = find_column(s->index, name, &type);
    if (c < 0 || is_same(c < n_committed ? &item->values[c] : &none, &value)) return;
    to->column[to->n] = name;
    to->value[to->n++] = value;
}

/* What is to be looked at of items that stay. */
typedef struct update {
    bool reads, empties; /* EXIF's columns */
    int64_t n_committed; /* columns */
} update;

/* Will EXIF say what this column has? Then the table does not empty it. */
static bool is_read(const ki_sync *s, const update *u, const char *name) {
    for (int j = 0; u->reads && j < KITH_N_FACTS; j++) {
        if (s->exif_columns & 1u << j && strcmp(names[j], name) == 0) return true;
    }
    return false;
}

static void change_from_table(const ki_sync *s, const update *u, int64_t file, const kith_index_item *item,
                              changes *to) {
    const ki_sync_meta *m = s->meta;
    const int64_t n_committed = u->n_committed;
    for (int64_t c = 0; c < kith_items_n_columns(m->items); c++) {
        kith_value_type type = KITH_VALUE_NONE;
        const char *name = kith_items_columns(m->items)[c].name;
        find_column(s->index, name, &type);
        change(s, item, n_committed, name, ki_sync_meta_value(m, file, c, type), to);
    }
    for (int64_t i = 0; m->is_changed && i < m->n_dropped; i++) {
        if (!is_read(s, u, m->dropped[i])) change(s, item, n_committed, m->dropped[i], (kith_value){0}, to);
    }
}

/* facts NULL: those that are there go. */
static void change_facts(const ki_sync *s, const ki_photo_facts *facts, const kith_index_item *item,
                         int64_t n_committed, changes *to) {
    kith_value value[KITH_N_FACTS] = {{0}};
    if (facts) list_facts(facts, value);
    for (int j = 0; j < KITH_N_FACTS; j++) {
        if (s->exif_columns & 1u << j && is_wanted(s, j))
            change(s, item, n_committed, names[j], value[j], to);
    }
}

static kith_status update_item(ki_sync *s, const update *u, int64_t file, const ki_photo_facts *facts,
                               changes *to, kith_error *err) {
    kith_index_item item;
    const int64_t id = kept_item(s, file);
    const bool has_row = s->meta->is_changed || (s->meta->items && s->file[file].from >= 0);
    KI_TRY(kith_index_item_get(s->index, id, &item, err));
    to->n = 0;
    if (has_row) change_from_table(s, u, file, &item, to);
    if (u->reads || u->empties) change_facts(s, u->reads ? facts : NULL, &item, u->n_committed, to);
    const kith_status status =
        to->n > 0 ? kith_index_set(s->index, &id, 1, to->column, to->n, to->value, err) : KITH_OK;
    s->report->n_revalued += to->n > 0;
    kith_index_item_release(&item);
    return status;
}

static kith_status update_part(ki_sync *s, const update *u, const int64_t *files, int64_t n, changes *to,
                               kith_error *err) {
    kith_status status = KITH_OK;
    ki_photo_facts *facts = NULL;
    KI_TRY(ki_zalloc_or(&facts, (size_t)n, sizeof *facts, "facts", err));
    if (u->reads) {
        reading r = {s, files, facts};
        ki_parallel_for(n, 1, read_some, &r);
        KI_CHECK(make_columns(s, facts, n, err));
    }
    for (int64_t k = 0; k < n; k++) KI_CHECK(update_item(s, u, files[k], &facts[k], to, err));
done:
    ki_free(facts);
    return status;
}

kith_status ki_sync_facts_update(ki_sync *s, kith_error *err) {
    kith_status status = KITH_OK;
    kith_index_info info;
    int64_t *files = NULL, n = 0;
    changes *to = NULL;
    const kith_exif_use use = s->task->options->exif;
    update u = {.reads = use == KITH_EXIF_ALL, .empties = use == KITH_EXIF_NONE};
    const bool looks_at_all = u.reads || u.empties || s->meta->is_changed;
    kith_index_info_get(s->index, &info);
    u.n_committed = info.n_columns;
    KI_CHECK(ki_alloc_or(&files, (size_t)s->n, sizeof *files, "files", err));
    KI_CHECK(ki_alloc_or(&to, 1, sizeof *to, "values", err));
    for (int64_t i = 0; i < s->n; i++) {
        const bool is_meant = looks_at_all || (s->meta->items && s->file[i].from >= 0);
        if (is_meant && kept_item(s, i) >= 0) files[n++] = i;
    }
    for (int64_t i = 0; i < n; i += PART)
        KI_CHECK(update_part(s, &u, files + i, n - i < PART ? n - i : PART, to, err));
done:
    ki_free(files);
    ki_free(to);
    return status;
}
