/* Decisions about names as notes: reading and writing them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "collection/decisions.h"
#include "io/json.h"
#include "search/notes.h"

enum { MOST_MADE = 1 << 30 }; /* decisions, and proposals that were checked: more is damage */

static const char *const words[] = {
#define X(name, word) word,
    KITH_NAME_ACT_LIST(X)
#undef X
};

const char *kith_name_act_word(kith_name_act act) {
    return (unsigned)act < KITH_N_NAME_ACTS ? words[act] : "?";
}

void ki_decisions_drop(ki_decisions *n) {
    ki_arena_release(&n->arena);
    *n = (ki_decisions){0};
}

void ki_decisions_rate(int64_t n_checked, int64_t n_wrong, double *ret_rate, double *ret_low,
                       double *ret_high) {
    static const double Z = 1.959963984540054; /* 95 % on both sides */
    const double n = (double)n_checked, p = n > 0 ? fmin((double)n_wrong / n, 1) : NAN, zz = Z * Z / n;
    const double middle = (p + zz / 2) / (1 + zz);
    const double half = Z * sqrt(p * (1 - p) / n + zz / (4 * n)) / (1 + zz);
    *ret_rate = p;
    *ret_low = n > 0 ? fmax(middle - half, 0) : NAN;
    *ret_high = n > 0 ? fmin(middle + half, 1) : NAN;
}

/* ---- reading ---- */

/* One line of a note. */
typedef struct reader {
    ki_arena *arena;
    const char *note;
    kith_error *err;
} reader;

static kith_status fail(const reader *r) {
    ki_fail(r->err, KITH_EFORMAT, "the index's note '%s' cannot be read", r->note);
    return ki_hint(r->err, KITH_EFORMAT, "was it changed by another program than kith?");
}

static bool get_int(const ki_value *value, int64_t least, int64_t *ret) {
    int64_t found = 0;
    if (!value || value->kind != KI_VALUE_SCALAR || value->is_quoted ||
        !ki_parse_int64(value->text, &found) || found < least)
        return false;
    *ret = found;
    return true;
}

static bool get_text(const ki_value *value, const char **ret) {
    *ret = NULL;
    if (!value || value->kind == KI_VALUE_NULL) return true;
    if (value->kind != KI_VALUE_SCALAR || !value->is_quoted) return false;
    *ret = value->text;
    return true;
}

static kith_status get_ids(const reader *r, const ki_value *list, int64_t **ret, int64_t *ret_n) {
    *ret = NULL;
    *ret_n = 0;
    if (!list) return KITH_OK;
    if (list->kind != KI_VALUE_LIST) return fail(r);
    int64_t *ids = ki_arena_alloc(r->arena, list->n_items + 1, sizeof *ids);
    if (!ids) return ki_fail_memory(r->err, list->n_items * sizeof *ids, "ids");
    for (const ki_value *v = list->first; v; v = v->next) {
        if (!get_int(v, 0, &ids[(*ret_n)++])) return fail(r);
    }
    *ret = ids;
    return KITH_OK;
}

/* [name, by, kind] */
static bool get_state(const ki_value *list, ki_name_state *ret) {
    return list && list->kind == KI_VALUE_LIST && list->n_items == 3 &&
           get_text(ki_value_at(list, 0), &ret->name) && get_text(ki_value_at(list, 1), &ret->by) &&
           get_text(ki_value_at(list, 2), &ret->kind);
}

static kith_status get_changes(const reader *r, const ki_value *list, ki_name_entry *e) {
    if (!list) return KITH_OK;
    if (list->kind != KI_VALUE_LIST) return fail(r);
    e->changes = ki_arena_alloc(r->arena, list->n_items + 1, sizeof *e->changes);
    if (!e->changes) return ki_fail_memory(r->err, list->n_items * sizeof *e->changes, "changes");
    for (const ki_value *v = list->first; v; v = v->next) {
        ki_name_change *c = &e->changes[e->n_changes++];
        if (!get_state(ki_value_get(v, "was"), &c->before) || !get_state(ki_value_get(v, "is"), &c->after))
            return fail(r);
        KI_TRY(get_ids(r, ki_value_get(v, "ids"), &c->ids, &c->n));
    }
    return KITH_OK;
}

static bool get_act(const ki_value *value, kith_name_act *ret) {
    const char *word = NULL;
    if (!get_text(value, &word) || !word) return false;
    for (int i = 0; i < KITH_N_NAME_ACTS; i++) {
        *ret = (kith_name_act)i;
        if (strcmp(words[i], word) == 0) return true;
    }
    return false;
}

/* Of the items of a decision, or less them. */
static bool is_count(int64_t n) { return n >= -KITH_NAMES_MOST_ITEMS && n <= KITH_NAMES_MOST_ITEMS; }

static kith_status get_entry(const reader *r, const ki_value *v, ki_name_entry *e) {
    const char *kind = NULL;
    int64_t is_back = 0;
    if (!get_int(ki_value_get(v, "n"), 1, &e->number) || !get_int(ki_value_get(v, "at"), 0, &e->time) ||
        !get_text(ki_value_get(v, "who"), &e->who) || !e->who || !get_text(ki_value_get(v, "kind"), &kind) ||
        !kind || !get_act(ki_value_get(v, "act"), &e->act) || !get_act(ki_value_get(v, "root"), &e->root) ||
        !get_text(ki_value_get(v, "name"), &e->name) || !get_text(ki_value_get(v, "from"), &e->from) ||
        !get_int(ki_value_get(v, "of"), 0, &e->of) || !get_int(ki_value_get(v, "back"), 0, &is_back) ||
        !get_int(ki_value_get(v, "checked"), INT64_MIN, &e->n_checked) ||
        !get_int(ki_value_get(v, "wrong"), INT64_MIN, &e->n_wrong))
        return fail(r);
    if (e->of >= e->number || !is_count(e->n_checked) || !is_count(e->n_wrong)) return fail(r);
    if (e->root == KITH_NAME_REJECT && !e->name) return fail(r);
    e->by_model = strcmp(kind, "model") == 0;
    e->is_back = is_back != 0;
    KI_TRY(get_changes(r, ki_value_get(v, "changes"), e));
    return get_ids(r, ki_value_get(v, "ids"), &e->ids, &e->n_ids);
}

/* Numbers rise. */
static ki_name_entry *entry_of(const ki_decisions *n, int64_t number) {
    int64_t low = 0, high = n->n_entries;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (n->entries[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->n_entries && n->entries[low].number == number ? &n->entries[low] : NULL;
}

/* The next line of a note, parsed; *ret NULL at its end. */
static kith_status next_line(const reader *r, const char **at, ki_value **ret) {
    *ret = NULL;
    if (!*at || !**at) return KITH_OK;
    const size_t n = strcspn(*at, "\n");
    const char *line = *at;
    *at += n + (line[n] == '\n');
    if (ki_json_parse(line, n, r->note, r->arena, ret, r->err) == KITH_ENOMEM) return KITH_ENOMEM;
    return *ret ? KITH_OK : fail(r);
}

static int64_t count_lines(const char *text) {
    int64_t n = 0;
    for (const char *at = text; at && *at; at++) n += *at == '\n';
    return n;
}

/* The last one first: whether one counts is known when all behind it have been looked at. */
static void find_undone(ki_decisions *n) {
    for (int64_t i = n->n_entries - 1; i >= 0; i--) {
        const ki_name_entry *e = &n->entries[i];
        ki_name_entry *of = e->of > 0 && e->undone_by == 0 ? entry_of(n, e->of) : NULL;
        if (of && of->undone_by == 0) of->undone_by = e->number;
    }
}

static kith_status read_entries(ki_decisions *n, const char *text, kith_error *err) {
    const reader r = {&n->arena, "decisions", err};
    ki_value *line = NULL;
    KI_TRY(next_line(&r, &text, &line));
    if (!line) return KITH_OK;
    if (!get_int(ki_value_get(line, "made"), 0, &n->n_made) ||
        !get_int(ki_value_get(line, "checked"), 0, &n->n_checked) ||
        !get_int(ki_value_get(line, "wrong"), 0, &n->n_wrong) || n->n_made > MOST_MADE ||
        n->n_checked > MOST_MADE || n->n_wrong > MOST_MADE)
        return fail(&r);
    const size_t most = (size_t)count_lines(text) + 2; /* and a new one */
    n->entries = ki_arena_alloc(&n->arena, most, sizeof *n->entries);
    if (!n->entries) return ki_fail_memory(err, most * sizeof *n->entries, "decisions");
    for (int64_t before = 0;; before = n->entries[n->n_entries++].number) {
        ki_name_entry *e = &n->entries[n->n_entries];
        KI_TRY(next_line(&r, &text, &line));
        if (!line) break;
        if (n->n_entries == KITH_NAMES_KEPT) return fail(&r);
        KI_TRY(get_entry(&r, line, e));
        if (e->number <= before || e->number > n->n_made) return fail(&r);
    }
    find_undone(n);
    return KITH_OK;
}

static kith_status read_rejected(ki_decisions *n, const char *text, kith_error *err) {
    const reader r = {&n->arena, "rejected_names", err};
    ki_value *line = NULL;
    const size_t most = (size_t)count_lines(text) + 1;
    n->rejected = ki_arena_alloc(&n->arena, most, sizeof *n->rejected);
    if (!n->rejected) return ki_fail_memory(err, most * sizeof *n->rejected, "names");
    n->rejected_room = (int64_t)most;
    for (;;) {
        ki_name_rejected *to = &n->rejected[n->n_rejected];
        KI_TRY(next_line(&r, &text, &line));
        if (!line) return KITH_OK;
        if (!get_int(ki_value_at(line, 0), 0, &to->id) || !get_text(ki_value_at(line, 1), &to->name) ||
            !to->name)
            return fail(&r);
        n->n_rejected++;
    }
}

static kith_status read_apart(ki_decisions *n, const char *text, kith_error *err) {
    const reader r = {&n->arena, "not_same", err};
    ki_value *line = NULL;
    const size_t most = (size_t)count_lines(text) + 1;
    n->apart = ki_arena_alloc(&n->arena, most, sizeof *n->apart);
    if (!n->apart) return ki_fail_memory(err, most * sizeof *n->apart, "pairs");
    n->apart_room = (int64_t)most;
    for (;;) {
        ki_name_pair *to = &n->apart[n->n_apart];
        KI_TRY(next_line(&r, &text, &line));
        if (!line) return KITH_OK;
        if (!get_int(ki_value_at(line, 0), 0, &to->a) || !get_int(ki_value_at(line, 1), 0, &to->b))
            return fail(&r);
        n->n_apart++;
    }
}

kith_status ki_decisions_read(ki_decisions *n, const kith_index *index, kith_error *err) {
    KI_TRY(read_entries(n, ki_index_note(index, KI_NOTE_DECISIONS), err));
    KI_TRY(read_rejected(n, ki_index_note(index, KI_NOTE_REJECTED), err));
    return read_apart(n, ki_index_note(index, KI_NOTE_APART), err);
}

/* ---- writing ---- */

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static void put_ids(kith_json *json, const int64_t *ids, int64_t n) {
    kith_json_key(json, "ids");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < n; i++) kith_json_int(json, ids[i]);
    kith_json_array_end(json);
}

static void put_state(kith_json *json, const char *key, const ki_name_state *state) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    kith_json_string(json, state->name);
    kith_json_string(json, state->by);
    kith_json_string(json, state->kind);
    kith_json_array_end(json);
}

static void put_entry(kith_json *json, const ki_name_entry *e) {
    kith_json_object_begin(json);
    put_int(json, "n", e->number);
    put_int(json, "at", e->time);
    put_text(json, "who", e->who);
    put_text(json, "kind", e->by_model ? "model" : "person");
    put_text(json, "act", kith_name_act_word(e->act));
    put_text(json, "root", kith_name_act_word(e->root));
    put_text(json, "name", e->name);
    put_text(json, "from", e->from);
    put_int(json, "of", e->of);
    put_int(json, "back", e->is_back);
    put_int(json, "checked", e->n_checked);
    put_int(json, "wrong", e->n_wrong);
    kith_json_key(json, "changes");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < e->n_changes; i++) {
        kith_json_object_begin(json);
        put_state(json, "was", &e->changes[i].before);
        put_state(json, "is", &e->changes[i].after);
        put_ids(json, e->changes[i].ids, e->changes[i].n);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    put_ids(json, e->ids, e->n_ids);
    kith_json_object_end(json);
}

/* One line, what `json` holds, which is then empty. */
static kith_status add_line(ki_buffer *text, kith_json *json, kith_error *err) {
    const char *line = NULL;
    KI_TRY(kith_json_finish(json, &line, err));
    ki_buffer_add(text, line, strlen(line));
    ki_buffer_add(text, "\n", 1);
    kith_json_reset(json);
    return text->status;
}

static kith_status add_head(ki_buffer *text, kith_json *json, const ki_decisions *n, kith_error *err) {
    kith_json_object_begin(json);
    put_int(json, "made", n->n_made);
    put_int(json, "checked", n->n_checked > 0 ? n->n_checked : 0);
    put_int(json, "wrong", n->n_wrong > 0 ? n->n_wrong : 0);
    kith_json_object_end(json);
    return add_line(text, json, err);
}

/* The last ones that fit; the very last one in any case. */
static kith_status add_entries(ki_buffer *text, kith_json *json, const ki_decisions *n, kith_error *err) {
    kith_status status = KITH_OK;
    ki_buffer all = {.err = err};
    size_t *begin = NULL;
    KI_CHECK(ki_alloc_or(&begin, (size_t)n->n_entries + 1, sizeof *begin, "decisions", err));
    for (int64_t i = 0; i < n->n_entries; i++) {
        begin[i] = all.n;
        put_entry(json, &n->entries[i]);
        KI_CHECK(add_line(&all, json, err));
    }
    int64_t first = n->n_entries > KITH_NAMES_KEPT ? n->n_entries - KITH_NAMES_KEPT : 0;
    while (first + 1 < n->n_entries && all.n - begin[first] > KITH_NAMES_KEPT_BYTES) first++;
    if (first < n->n_entries) ki_buffer_add(text, all.data + begin[first], all.n - begin[first]);
    status = text->status;
done:
    ki_buffer_release(&all);
    ki_free(begin);
    return status;
}

static kith_status put_note(kith_index *index, ki_note note, ki_buffer *text, kith_error *err) {
    KI_TRY(text->status);
    ki_buffer_add(text, "", 1);
    KI_TRY(text->status);
    const char *before = ki_index_note(index, note);
    if (strcmp(before ? before : "", text->data) == 0) return KITH_OK;
    return ki_index_note_set(index, note, text->data, err);
}

kith_status ki_decisions_write(const ki_decisions *n, kith_index *index, kith_error *err) {
    kith_status status = KITH_OK;
    kith_json *json = NULL;
    ki_buffer text = {.err = err}, rejected = {.err = err}, apart = {.err = err};
    KI_CHECK(kith_json_new(&json, err));
    KI_CHECK(add_head(&text, json, n, err));
    KI_CHECK(add_entries(&text, json, n, err));
    KI_CHECK(put_note(index, KI_NOTE_DECISIONS, &text, err));
    for (int64_t i = 0; i < n->n_rejected; i++) {
        kith_json_array_begin(json);
        kith_json_int(json, n->rejected[i].id);
        kith_json_string(json, n->rejected[i].name);
        kith_json_array_end(json);
        KI_CHECK(add_line(&rejected, json, err));
    }
    KI_CHECK(put_note(index, KI_NOTE_REJECTED, &rejected, err));
    for (int64_t i = 0; i < n->n_apart; i++)
        ki_buffer_put(&apart, "[%lld,%lld]\n", (long long)n->apart[i].a, (long long)n->apart[i].b);
    status = put_note(index, KI_NOTE_APART, &apart, err);
done:
    kith_json_free(json);
    ki_buffer_release(&text);
    ki_buffer_release(&rejected);
    ki_buffer_release(&apart);
    return status;
}

/* ---- asking ---- */

static int64_t place_rejected(const ki_decisions *n, int64_t id, const char *name, bool *ret_is_there) {
    int64_t low = 0, high = n->n_rejected;
    *ret_is_there = false;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const ki_name_rejected *at = &n->rejected[middle];
        const int order = at->id != id ? (at->id > id ? 1 : -1) : strcmp(at->name, name);
        if (order == 0) *ret_is_there = true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t place_apart(const ki_decisions *n, int64_t a, int64_t b, bool *ret_is_there) {
    int64_t low = 0, high = n->n_apart;
    *ret_is_there = false;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const ki_name_pair *at = &n->apart[middle];
        const bool is_before = at->a < a || (at->a == a && at->b < b);
        if (at->a == a && at->b == b) *ret_is_there = true;
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ki_decisions_is_rejected(const ki_decisions *n, int64_t id, const char *name) {
    bool is_there = false;
    place_rejected(n, id, name, &is_there);
    return is_there;
}

bool ki_decisions_are_apart(const ki_decisions *n, int64_t a, int64_t b) {
    bool is_there = false;
    place_apart(n, a < b ? a : b, a < b ? b : a, &is_there);
    return is_there;
}

/* A list in the arena: it grows by half, so that many that are put in one by one take no more than three times their memory. */
typedef struct list {
    char *at;
    int64_t *n, *room;
    size_t bytes; /* of one */
} list;

static kith_status make_room(ki_decisions *n, list *l, kith_error *err) {
    if (*l->n >= KITH_NAMES_MOST_REJECTED) {
        ki_fail(err, KITH_EINVAL, "%d rejected names or pairs are remembered, and there is no room for more",
                KITH_NAMES_MOST_REJECTED);
        return ki_hint(err, KITH_EINVAL, "give the photos names instead");
    }
    if (*l->n < *l->room) return KITH_OK;
    const int64_t room = *l->n + *l->n / 2 + 8;
    char *longer = ki_arena_alloc(&n->arena, (size_t)room, l->bytes);
    if (!longer) return ki_fail_memory(err, (size_t)room * l->bytes, "names");
    if (*l->n > 0) memcpy(longer, l->at, (size_t)*l->n * l->bytes);
    l->at = longer;
    *l->room = room;
    return KITH_OK;
}

/* One more at `place`, or the one there is taken out. */
static kith_status change_list(ki_decisions *n, list *l, int64_t place, bool is_out, const void *value,
                               kith_error *err) {
    if (!is_out) KI_TRY(make_room(n, l, err));
    char *to = l->at + (size_t)place * l->bytes;
    const size_t behind = (size_t)(*l->n - place) * l->bytes;
    if (is_out) {
        memmove(to, to + l->bytes, behind - l->bytes);
        --*l->n;
        return KITH_OK;
    }
    memmove(to + l->bytes, to, behind);
    memcpy(to, value, l->bytes);
    ++*l->n;
    return KITH_OK;
}

kith_status ki_decisions_reject(ki_decisions *n, int64_t id, const char *name, bool is_back,
                                kith_error *err) {
    bool is_there = false;
    const int64_t at = place_rejected(n, id, name, &is_there);
    const ki_name_rejected one = {id, name};
    list l = {(char *)n->rejected, &n->n_rejected, &n->rejected_room, sizeof one};
    if (is_there != is_back) return KITH_OK;
    KI_TRY(change_list(n, &l, at, is_back, &one, err));
    n->rejected = (void *)l.at;
    return KITH_OK;
}

kith_status ki_decisions_tell_apart(ki_decisions *n, int64_t a, int64_t b, bool is_back, kith_error *err) {
    bool is_there = false;
    const ki_name_pair one = {a < b ? a : b, a < b ? b : a};
    const int64_t at = place_apart(n, one.a, one.b, &is_there);
    list l = {(char *)n->apart, &n->n_apart, &n->apart_room, sizeof one};
    if (is_there != is_back) return KITH_OK;
    KI_TRY(change_list(n, &l, at, is_back, &one, err));
    n->apart = (void *)l.at;
    return KITH_OK;
}

const ki_name_entry *ki_decisions_find(const ki_decisions *n, int64_t number) { return entry_of(n, number); }

int64_t ki_decisions_undone_by(const ki_decisions *n, int64_t number) {
    const ki_name_entry *e = entry_of(n, number);
    return e ? e->undone_by : 0;
}
