/* What an index keeps of its groups: how they were made, as a note, and each item's group, in a column. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "collection/group.h"
#include "search/filter.h"
#include "search/index_handle.h"
#include "search/notes.h"

/* ---- the note: "1 ERROR LEVEL SCORE LEAST ALL NUMBER ID WHERE" ---- */

static bool read_word(const char **at, char *word, size_t bytes) {
    const size_t n = strcspn(*at, " ");
    if (n == 0 || n >= bytes || (*at)[n] != ' ') return false;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n + 1;
    return true;
}

static bool read_int(const char **at, int64_t *ret) {
    char word[32];
    return read_word(at, word, sizeof word) && ki_parse_int64(word, ret) && *ret >= 0;
}

static bool read_real(const char **at, double *ret) {
    char word[40];
    if (!read_word(at, word, sizeof word)) return false;
    if (strcmp(word, "none") == 0) {
        *ret = NAN;
        return true;
    }
    return ki_parse_double(word, ret) && isfinite(*ret);
}

static bool read_note(const char *at, ki_groups_kept *k) {
    int64_t version, all;
    const bool is_read = read_int(&at, &version) && version == 1 && read_real(&at, &k->error) &&
                         read_real(&at, &k->level) && read_real(&at, &k->least_score) &&
                         read_int(&at, &k->least) && read_int(&at, &all) && read_int(&at, &k->next_number) &&
                         read_int(&at, &k->next_id);
    if (!is_read) return false;
    k->all = all != 0;
    k->where = at;
    return k->error > 0 && k->error < 1 && k->level > 0 && k->least >= 2 && k->next_number >= 1;
}

static bool has_column(const kith_index *index) {
    for (int64_t i = 0;; i++) {
        const kith_column column = kith_index_column(index, i);
        if (!column.name) return false;
        if (strcmp(column.name, KITH_GROUPS_COLUMN) == 0) return true;
    }
}

kith_status ki_groups_recall(const kith_index *index, ki_groups_kept *ret_kept, kith_error *err) {
    const char *note = ki_index_note(index, KI_NOTE_GROUPS);
    *ret_kept = (ki_groups_kept){.next_number = 1, .where = ""};
    if (note && *note) {
        ret_kept->is_there = has_column(index) && read_note(note, ret_kept);
        return ret_kept->is_there
                   ? KITH_OK
                   : ki_fail(err, KITH_EFORMAT, "the index's note of its groups is damaged: '%.60s'", note);
    }
    if (!has_column(index)) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "the index has a column '%s' of its own, where groups would be written",
            KITH_GROUPS_COLUMN);
    return ki_hint(err, KITH_EINVAL, "make the index again with another name for that column");
}

static kith_status write_note(kith_index *index, const ki_groups_kept *k, kith_error *err) {
    char *note = NULL;
    char score[40] = "none";
    const char *where = k->where ? k->where : "";
    const size_t bytes = strlen(where) + 256;
    if (!isnan(k->least_score)) ki_snprintf(score, sizeof score, "%.17g", k->least_score);
    KI_TRY(ki_alloc_or(&note, bytes, 1, "a note", err));
    ki_snprintf(note, bytes, "1 %.17g %.17g %s %lld %d %lld %lld %s", k->error, k->level, score,
                (long long)k->least, (int)k->all, (long long)k->next_number, (long long)k->next_id, where);
    const kith_status status = ki_index_note_set(index, KI_NOTE_GROUPS, note, err);
    ki_free(note);
    return status;
}

/* ---- the column ---- */

kith_status ki_groups_numbers(const kith_index *index, const int64_t *ids, int64_t n, int64_t *ret_number,
                              kith_error *err) {
    int64_t at = 0;
    while (kith_index_column(index, at).name &&
           strcmp(kith_index_column(index, at).name, KITH_GROUPS_COLUMN) != 0)
        at++;
    const bool is_there = kith_index_column(index, at).name != NULL;
    for (int64_t i = 0; i < n; i++) {
        kith_index_item item;
        ret_number[i] = 0;
        if (!is_there) continue;
        KI_TRY(kith_index_item_get(index, ids[i], &item, err));
        if (item.values && item.values[at].type == KITH_VALUE_INT) ret_number[i] = item.values[at].integer;
        kith_index_item_release(&item);
        if (ret_number[i] < 0) ret_number[i] = 0;
    }
    return KITH_OK;
}

kith_status ki_groups_keep(kith_index *index, const int64_t *ids, int64_t n, const int64_t *before,
                           const int64_t *number, const ki_groups_kept *kept, kith_error *err) {
    static const char *const column[] = {KITH_GROUPS_COLUMN};
    kith_status status;
    int64_t *id = NULL, n_set = 0;
    kith_value *value = NULL;
    KI_CHECK(ki_alloc_or(&id, (size_t)n, sizeof *id, "groups", err));
    KI_CHECK(ki_zalloc_or(&value, (size_t)n, sizeof *value, "groups", err));
    for (int64_t i = 0; i < n; i++) {
        if (before[i] == number[i]) continue;
        id[n_set] = ids[i];
        value[n_set++] =
            (kith_value){.type = number[i] > 0 ? KITH_VALUE_INT : KITH_VALUE_NONE, .integer = number[i]};
    }
    KI_CHECK(kith_index_column_add(index, KITH_GROUPS_COLUMN, KITH_VALUE_INT, err));
    if (n_set > 0) KI_CHECK(kith_index_set(index, id, n_set, column, 1, value, err));
    KI_CHECK(write_note(index, kept, err));
    status = kith_index_commit(index, NULL, err);
done:
    ki_free(id);
    ki_free(value);
    return status;
}

/* ---- which items ---- */

kith_status ki_groups_chosen(const kith_index *index, const int64_t *ids, int64_t n, bool all,
                             const char *where, bool *ret_is_chosen, kith_error *err) {
    static const char unlabelled[] = "not label != ''";
    char *both = NULL;
    int64_t *chosen = NULL, n_chosen = 0;
    const bool has_where = where && *where;
    ki_where *alone = NULL;
    /* An expression by itself, before it becomes a part of another: "a) or (b" is none. */
    if (has_where) KI_TRY(ki_index_parse(index, where, &alone, err));
    ki_where_free(alone);
    const size_t bytes = (has_where ? strlen(where) : 0) + sizeof unlabelled + 16;
    KI_TRY(ki_alloc_or(&both, bytes, 1, "an expression", err));
    if (has_where)
        ki_snprintf(both, bytes, all ? "%s" : "(%s) and not label != ''", where);
    else
        ki_snprintf(both, bytes, "%s", unlabelled);
    const kith_status status =
        kith_index_ids(index, all && !has_where ? NULL : both, &chosen, &n_chosen, err);
    ki_free(both);
    if (status != KITH_OK) return status;
    for (int64_t i = 0; i < n; i++) ret_is_chosen[i] = false;
    for (int64_t i = 0; i < n_chosen; i++) {
        const int64_t at = ki_groups_place_of(ids, n, chosen[i]);
        if (at >= 0) ret_is_chosen[at] = true;
    }
    kith_ids_free(chosen);
    return KITH_OK;
}
