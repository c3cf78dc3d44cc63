/* A file's tensors under our names: the table that its names are of, then each name through the rules. */
#include "net/names/names.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "base/text.h"
#include "net/names/match.h"

#define X(name) extern const ki_naming ki_names_##name;
#include "net/names/table.def"
#undef X

static const ki_naming *const tables[] = {
#define X(name) &ki_names_##name,
#include "net/names/table.def"
#undef X
};
enum { N_TABLES = sizeof tables / sizeof tables[0] };
/* Prefixes that are tried for a table: more models than any file has, and few enough that a file of nothing but first signs costs no time. */
enum { MOST_PREFIXES = 64, LEAST_SLOTS = 64 };

const ki_naming *ki_names_at(int i) { return i >= 0 && i < N_TABLES ? tables[i] : NULL; }

/* One tensor of ours. A tensor of theirs is one of its parts. */
typedef struct entry {
    char name[KI_NAMES_LONGEST];
    const char *theirs;
    const ki_names_rule *rule; /* NULL: as it is */
    kith_array part[KI_NAMES_PARTS];
    int n_parts, n_there;
} entry;

struct ki_named {
    const kith_tensors *tensors;
    const ki_naming *table;
    char prefix[KI_NAMES_LONGEST];
    entry *entries;
    size_t n, capacity;
    uint32_t *slot; /* [n_slots]: numbers of entries plus 1, by their names */
    size_t n_slots;
};

static bool begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* ---- which table ---- */

/* The name of theirs behind a prefix. */
static bool has_sign(const kith_tensors *tensors, const char *prefix, const char *sign) {
    const bool wanted = sign[0] != '!';
    const size_t n = strlen(prefix);
    ki_names_match m;
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        const char *name = kith_tensors_name(tensors, i);
        if (begins(name, prefix) && ki_names_matches(sign + !wanted, name + n, &m)) return wanted;
    }
    return !wanted;
}

static bool has_signs(const kith_tensors *tensors, const char *prefix, const ki_naming *table) {
    for (int i = 0; i < KI_NAMES_SIGNS && table->signs[i]; i++) {
        if (!has_sign(tensors, prefix, table->signs[i])) return false;
    }
    return true;
}

/* Where a name could begin behind a prefix that goes on from `from`; NULL: nowhere else. */
static const char *next_start(const char *from) {
    const char *dot = strchr(from, '.');
    return dot ? dot + 1 : NULL;
}

/* Prefixes in which all signs are there: how many, at most two. The layers of one model have one prefix, which is tried once. */
static int find_prefixes(const kith_tensors *tensors, const char *outer, const ki_naming *table,
                         char ret[2][KI_NAMES_LONGEST]) {
    ki_names_match m;
    char prefix[KI_NAMES_LONGEST], last[KI_NAMES_LONGEST] = "/"; /* not a prefix of anything */
    int n_tried = 0, n_found = 0;
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        const char *name = kith_tensors_name(tensors, i);
        if (!begins(name, outer)) continue;
        for (const char *at = name + strlen(outer); at; at = next_start(at)) {
            if (!ki_names_matches(table->signs[0], at, &m)) continue;
            const int n = ki_snprintf(prefix, sizeof prefix, "%.*s", (int)(at - name), name);
            if (n < 0 || n >= KI_NAMES_LONGEST || strcmp(prefix, last) == 0) continue;
            if (has_signs(tensors, prefix, table)) memcpy(ret[n_found++], prefix, sizeof prefix);
            if (n_found == 2 || ++n_tried == MOST_PREFIXES) return n_found;
            memcpy(last, prefix, sizeof last);
        }
    }
    return n_found;
}

/* As a student and its teacher are. Nothing says which is meant. */
static kith_status fail_two(const ki_naming *table, char prefix[2][KI_NAMES_LONGEST], kith_error *err) {
    ki_fail(err, KITH_EINVAL, "two networks of %s, '%.60s*' and '%.60s*'; wanted one", table->library,
            prefix[0], prefix[1]);
    return ki_hint(err, KITH_EINVAL, "save the tensors of one of them in a file of their own");
}

/* Leaves the names as they are where no table has them. */
static kith_status find_table(ki_named *named, const char *outer, kith_error *err) {
    ki_snprintf(named->prefix, sizeof named->prefix, "%s", outer);
    if (kith_tensors_metadata(named->tensors, "kith.backbone")) return KITH_OK;
    for (int i = 0; i < N_TABLES && !named->table; i++) {
        char prefix[2][KI_NAMES_LONGEST];
        const int n = find_prefixes(named->tensors, outer, tables[i], prefix);
        if (n == 2) return fail_two(tables[i], prefix, err);
        if (n == 0) continue;
        named->table = tables[i];
        memcpy(named->prefix, prefix[0], sizeof prefix[0]);
    }
    return KITH_OK;
}

/* ---- the tensors ---- */

/* Where the name is, or would be. */
static size_t slot_of(const ki_named *named, const char *name) {
    const size_t mask = named->n_slots - 1;
    size_t at = (size_t)ki_checksum(name, strlen(name), 0) & mask;
    while (named->slot[at] && strcmp(named->entries[named->slot[at] - 1].name, name) != 0)
        at = (at + 1) & mask;
    return at;
}

static entry *find(const ki_named *named, const char *name) {
    const uint32_t i = named->n_slots > 0 ? named->slot[slot_of(named, name)] : 0;
    return i > 0 ? &named->entries[i - 1] : NULL;
}

/* Room for one more, so that at least half of the slots stay empty. */
static kith_status grow_slots(ki_named *named, kith_error *err) {
    if (2 * (named->n + 1) <= named->n_slots) return KITH_OK;
    const size_t n = named->n_slots ? 2 * named->n_slots : LEAST_SLOTS;
    uint32_t *slot = NULL;
    KI_TRY(ki_zalloc_or(&slot, n, sizeof *slot, "the names of the tensors", err));
    ki_free(named->slot);
    named->slot = slot;
    named->n_slots = n;
    for (size_t i = 0; i < named->n; i++) slot[slot_of(named, named->entries[i].name)] = (uint32_t)i + 1;
    return KITH_OK;
}

static kith_status add_entry(ki_named *named, const char *name, const char *theirs, const ki_names_rule *rule,
                             entry **ret, kith_error *err) {
    KI_TRY(ki_grow(&named->entries, &named->capacity, named->n + 1, sizeof *named->entries,
                   "the names of the tensors", err));
    KI_TRY(grow_slots(named, err));
    entry *e = &named->entries[named->n];
    const bool joins = rule && rule->change == KI_NAMES_JOIN;
    *e = (entry){.theirs = theirs, .rule = rule, .n_parts = joins ? rule->of : 1};
    ki_snprintf(e->name, sizeof e->name, "%s", name);
    named->slot[slot_of(named, e->name)] = (uint32_t)++named->n;
    *ret = e;
    return KITH_OK;
}

static kith_status fail_twice(const char *name, const char *theirs, const char *other, kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "tensors %.80s and %.80s are both %.80s; wanted one", other, theirs,
                   name);
}

/* The tensor becomes (a part of) `name`. If that is there already, it keeps its own and fits nothing. */
static kith_status put(ki_named *named, const char *name, const char *theirs, const ki_names_rule *rule,
                       kith_error *err) {
    const bool joins = rule && rule->change == KI_NAMES_JOIN;
    const int part = joins ? rule->part : 0;
    entry *e = find(named, name);
    if (e && !(joins && e->rule && e->rule->change == KI_NAMES_JOIN && !e->part[part].data)) {
        const entry *own = find(named, theirs);
        if (own && strcmp(own->theirs, theirs) != 0) return fail_twice(name, theirs, own->theirs, err);
        if (own) return KITH_OK;
        KI_TRY(add_entry(named, theirs, theirs, NULL, &e, err));
        return kith_tensors_get(named->tensors, theirs, &e->part[0], err);
    }
    if (!e) KI_TRY(add_entry(named, name, theirs, rule, &e, err));
    e->n_there++;
    return kith_tensors_get(named->tensors, theirs, &e->part[part], err);
}

static kith_status fail_long(const char *name, kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "the name of tensor '%.60s…' is longer than %d bytes", name,
                   KI_NAMES_LONGEST - 1);
}

/* Does the rule have something to say of a tensor? `inner`: its name without the prefix, as the rules before left it; NULL: the tensor is not
 * below the prefix. */
static bool rule_fits(const ki_names_rule *rule, const char *whole, const char *inner,
                      ki_names_match *match) {
    if (rule->theirs[0] == '/') return ki_names_matches(rule->theirs + 1, whole, match);
    return inner && ki_names_matches(rule->theirs, inner, match);
}

/* One tensor through the rules. */
static kith_status rename_one(ki_named *named, const char *whole, const char *inner, kith_error *err) {
    char now[KI_NAMES_LONGEST], next[KI_NAMES_LONGEST];
    const ki_names_rule *rule = named->table ? named->table->rules : NULL;
    bool is_cut = false;
    if (inner && ki_snprintf(now, sizeof now, "%s", inner) >= KI_NAMES_LONGEST) return fail_long(whole, err);
    for (; rule && rule->theirs; rule++) {
        ki_names_match match;
        if (!rule_fits(rule, whole, inner ? now : NULL, &match)) continue;
        if (!rule->ours) return KITH_OK;
        if (!ki_names_fill(rule->ours, &match, next, sizeof next)) return fail_long(whole, err);
        if (rule->change == KI_NAMES_AGAIN) {
            memcpy(now, next, sizeof now);
            continue;
        }
        KI_TRY(put(named, next, whole, rule, err));
        is_cut = rule->change == KI_NAMES_CUT;
        if (!is_cut) return KITH_OK;
    }
    return inner && !is_cut ? put(named, now, whole, NULL, err) : KITH_OK;
}

static kith_status rename_all(ki_named *named, const char *outer, kith_error *err) {
    const size_t n = strlen(named->prefix);
    for (int64_t i = 0; i < kith_tensors_count(named->tensors); i++) {
        const char *name = kith_tensors_name(named->tensors, i);
        if (!begins(name, outer)) continue;
        KI_TRY(rename_one(named, name, begins(name, named->prefix) ? name + n : NULL, err));
    }
    return KITH_OK;
}

kith_status ki_named_new(const kith_tensors *tensors, const char *prefix, ki_named **ret_named,
                         kith_error *err) {
    ki_named *named = NULL;
    KI_TRY(ki_zalloc_or(&named, 1, sizeof *named, "the names of the tensors", err));
    named->tensors = tensors;
    kith_status status = find_table(named, prefix, err);
    if (status == KITH_OK) status = rename_all(named, prefix, err);
    if (status == KITH_OK)
        *ret_named = named;
    else
        ki_named_free(named);
    return status;
}

void ki_named_free(ki_named *named) {
    if (named) {
        ki_free(named->entries);
        ki_free(named->slot);
    }
    ki_free(named);
}

const ki_naming *ki_named_table(const ki_named *named) { return named->table; }
int ki_named_count(const ki_named *named) { return (int)named->n; }
const char *ki_named_name(const ki_named *named, int i) { return named->entries[i].name; }
const char *ki_named_theirs(const ki_named *named, int i) { return named->entries[i].theirs; }

/* ---- shapes ---- */

/* The first axis that is not 1, which is the one that parts are along; the last axis at most. */
static int first_axis(const kith_array *view) {
    int i = 0;
    while (i < view->n_dims - 1 && view->dim[i] == 1) i++;
    return i;
}

/* All parts must be there, and agree but in their first axis. */
static bool join_shape(const entry *e, kith_array *ret) {
    const kith_array *first = &e->part[0];
    if (e->n_there != e->n_parts || first->n_dims < 1) return false;
    *ret = *first;
    for (int i = 1; i < e->n_parts; i++) {
        const kith_array *p = &e->part[i];
        if (p->n_dims != first->n_dims || p->dtype != first->dtype) return false;
        for (int k = 1; k < p->n_dims; k++) {
            if (p->dim[k] != first->dim[k]) return false;
        }
        if (p->dim[0] > INT64_MAX - ret->dim[0]) return false;
        ret->dim[0] += p->dim[0];
    }
    return true;
}

static bool shape_of(const entry *e, kith_array *ret) {
    const ki_names_change change = e->rule ? e->rule->change : KI_NAMES_SAME;
    *ret = e->part[0];
    ret->data = NULL;
    if (change == KI_NAMES_JOIN) {
        if (!join_shape(e, ret)) return false;
        ret->data = NULL;
    } else if (change == KI_NAMES_CUT) {
        const int axis = first_axis(ret);
        if (ret->n_dims < 1 || ret->dim[axis] % e->rule->of != 0) return false;
        ret->dim[axis] = ret->dim[axis] / e->rule->of * e->rule->count;
    } else if (change == KI_NAMES_TRANSPOSE) {
        if (ret->n_dims != 2) return false;
        ret->dim[0] = e->part[0].dim[1];
        ret->dim[1] = e->part[0].dim[0];
    }
    return true;
}

bool ki_named_get(const ki_named *named, const char *name, kith_array *ret_shape) {
    const entry *e = find(named, name);
    kith_array shape;
    if (!e || !shape_of(e, &shape)) return false;
    *ret_shape = shape;
    return true;
}

int64_t ki_named_extent(const ki_named *named, const char *name, int axis) {
    kith_array shape;
    if (!ki_named_get(named, name, &shape)) return 0;
    const int first = first_axis(&shape), at = axis < 0 ? shape.n_dims + axis : first + axis;
    return at >= 0 && at < shape.n_dims && shape.dim[at] <= KI_NAMES_MOST_EXTENT ? shape.dim[at] : 0;
}

int64_t ki_named_depth(const ki_named *named, const char *pattern) {
    int64_t most = 0;
    for (size_t i = 0; i < named->n; i++) {
        ki_names_match m;
        if (ki_names_matches(pattern, named->entries[i].name, &m) && m.n > 0 && m.number[0] >= most)
            most = m.number[0] + 1;
    }
    return most;
}

bool ki_named_file_has(const ki_named *named, const char *pattern) {
    return has_sign(named->tensors, named->prefix, pattern);
}

/* ---- values ---- */

/* Elements first … first + n of a tensor; `transpose`: as [b, a]. */
static kith_status copy(const kith_array *from, int64_t first, int64_t n, bool transpose, float *to,
                        kith_error *err) {
    kith_array part = {.dtype = from->dtype, .n_dims = 1, .dim = {n}}, values = {0};
    part.data = (char *)from->data + (size_t)first * kith_dtype_bytes(from->dtype);
    if (from->dtype == KITH_F32) {
        values = part;
    } else {
        KI_TRY(kith_array_convert(&part, KITH_F32, &values, err));
    }
    const float *v = values.data;
    if (transpose) {
        for (int64_t a = 0; a < from->dim[0]; a++)
            for (int64_t b = 0; b < from->dim[1]; b++) to[b * from->dim[0] + a] = v[a * from->dim[1] + b];
    } else {
        memcpy(to, v, (size_t)n * sizeof *to);
    }
    if (values.data != part.data) kith_array_release(&values);
    return KITH_OK;
}

kith_status ki_named_values(const ki_named *named, const char *name, float *ret_values, int64_t n,
                            kith_error *err) {
    const entry *e = find(named, name);
    kith_array shape;
    if (!e || !shape_of(e, &shape)) return ki_fail(err, KITH_ENOTFOUND, "there is no tensor %s", name);
    if (kith_array_count(&shape) != n)
        return ki_fail(err, KITH_ESHAPE, "tensor %s has %lld numbers, wanted %lld", name,
                       (long long)kith_array_count(&shape), (long long)n);
    const ki_names_rule *rule = e->rule;
    const ki_names_change change = rule ? rule->change : KI_NAMES_SAME;
    const int64_t whole = kith_array_count(&e->part[0]);
    if (change == KI_NAMES_CUT)
        return copy(&e->part[0], whole / rule->of * rule->part, n, false, ret_values, err);
    if (change == KI_NAMES_TRANSPOSE) return copy(&e->part[0], 0, n, true, ret_values, err);
    for (int i = 0; i < e->n_parts; i++) {
        const int64_t m = kith_array_count(&e->part[i]);
        KI_TRY(copy(&e->part[i], 0, m, false, ret_values, err));
        ret_values += m;
    }
    return KITH_OK;
}
