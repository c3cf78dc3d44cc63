/* How a data set differs from what it was, in words that name classes and images.
 *
 * Both sides become rows (path, class, split). Rows sorted by class show which classes were added, were
 * removed or are in other splits. Rows sorted by path show the same for images, unless their class explains it
 * already. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"

typedef struct row {
    ki_text path, class_; /* no path: the row stands for a class */
    uint8_t split;
} row;

/* What happened to a class as a whole. Then it is not repeated for each of its images. */
typedef enum fate { STAYED, CAME_OR_WENT, MOVED } fate;

typedef struct group { /* a class */
    ki_text name;
    uint8_t splits; /* the splits of its rows: one bit each */
    fate fate;
} group;

typedef struct side {
    row *rows; /* [n], sorted by class, later by path */
    size_t n, capacity;
    group *groups; /* [n_groups], sorted by name */
    size_t n_groups;
} side;

enum { MOST_NAMES = 3, NAME_BYTES = 48 };

/* What happened, how often, and the first names. */
typedef struct change {
    const char *what; /* "class", "image": the plural is made from it */
    const char *verb;
    int64_t n;
    char name[MOST_NAMES][NAME_BYTES + 40];
} change;

static int compare_texts(ki_text a, ki_text b) {
    const int order = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_class(const void *left, const void *right) {
    return compare_texts(((const row *)left)->class_, ((const row *)right)->class_);
}

static int by_path(const void *left, const void *right) {
    const row *a = left, *b = right;
    int order = compare_texts(a->path, b->path);
    if (!order) order = compare_texts(a->class_, b->class_);
    return order ? order : (int)a->split - (int)b->split;
}

static int by_name(const void *left, const void *right) {
    return compare_texts(((const group *)left)->name, ((const group *)right)->name);
}

static void side_release(side *s) {
    ki_free(s->rows);
    ki_free(s->groups);
}

static kith_status add_row(side *s, row r, bool folds_differ, kith_error *err) {
    if (folds_differ && r.split == KITH_SPLIT_VALIDATION) r.split = KITH_SPLIT_TRAIN;
    KI_TRY(ki_grow(&s->rows, &s->capacity, s->n + 1, sizeof *s->rows, "a list of images", err));
    s->rows[s->n++] = r;
    return KITH_OK;
}

static kith_status read_then(ki_table *t, bool folds_differ, side *ret, bool *ret_has_paths,
                             kith_error *err) {
    bool more = false;
    KI_TRY(ki_table_next(t, &more, err));
    const int path = ki_table_column(t, "path"), split = ki_table_column(t, "split");
    const int class_ = ki_table_column(t, path < 0 ? "class" : "label");
    if (!more || class_ < 0 || split < 0)
        return ki_lines_fail(&t->lines, t->line, "a header with path, label and split, or class and split",
                             err);
    *ret_has_paths = path >= 0;
    for (;;) {
        KI_TRY(ki_table_next(t, &more, err));
        if (!more) return KITH_OK;
        row r = {
            .path = ki_table_field(t, path), .class_ = ki_table_field(t, class_), .split = KITH_N_SPLITS};
        for (int s = 0; s < KITH_N_SPLITS; s++) {
            if (ki_text_is(ki_table_field(t, split), kith_split_name((kith_split)s))) r.split = (uint8_t)s;
        }
        if (r.split == KITH_N_SPLITS)
            return ki_lines_fail(&t->lines, t->line, "train, validation or test as split", err);
        KI_TRY(add_row(ret, r, folds_differ, err));
    }
}

/* A list of classes without paths does not contain classes that are only in the test split. */
static kith_status read_now(const kith_dataset *set, bool folds_differ, bool has_paths, side *ret,
                            kith_error *err) {
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        if (!has_paths && item->split == KITH_SPLIT_TEST) continue;
        const char *path = has_paths ? ki_dataset_item_name(set, i) : "", *key = set->class_[item->label].key;
        const row r = {{path, strlen(path)}, {key, strlen(key)}, item->split};
        KI_TRY(add_row(ret, r, folds_differ, err));
    }
    return KITH_OK;
}

static kith_status make_groups(side *s, kith_error *err) {
    KI_TRY(ki_zalloc_or(&s->groups, s->n, sizeof *s->groups, "classes", err));
    if (s->n) qsort(s->rows, s->n, sizeof *s->rows, by_class);
    for (size_t i = 0; i < s->n; i++) {
        if (i == 0 || by_class(&s->rows[i - 1], &s->rows[i]) != 0)
            s->groups[s->n_groups++].name = s->rows[i].class_;
        s->groups[s->n_groups - 1].splits |= (uint8_t)(1u << s->rows[i].split);
    }
    return KITH_OK;
}

static bool has_fate(const side *s, ki_text name, fate wanted) {
    const group key = {.name = name};
    const group *found = bsearch(&key, s->groups, s->n_groups, sizeof *s->groups, by_name);
    return found && found->fate == wanted;
}

static const char *splits_text(uint8_t splits, char *buf, size_t bytes) {
    int used = 0;
    for (int s = 0; s < KITH_N_SPLITS; s++) {
        if (splits >> s & 1)
            used += ki_snprintf(buf + used, bytes - (size_t)used, "%s%s", used ? " and " : "",
                                kith_split_name((kith_split)s));
    }
    return buf;
}

/* The end of a long name says more than its beginning. */
static char *note(change *c, ki_text name) {
    if (c->n++ >= MOST_NAMES) return NULL;
    char *to = c->name[c->n - 1];
    const char *from = name.s, *end = name.s + name.n;
    const bool is_long = name.n > NAME_BYTES;
    if (is_long) from = end - (NAME_BYTES - 3);
    while (is_long && from < end && ((unsigned char)*from & 0xc0) == 0x80) from++;
    const int n = ki_snprintf(to, sizeof c->name[0], "%s%.*s", is_long ? "…" : "", (int)(end - from), from);
    return to + n;
}

static void note_moved(change *c, const group *then, const group *now) {
    char from[40], to[40];
    char *at = note(c, then->name);
    if (at)
        ki_snprintf(at, (size_t)(c->name[c->n - 1] + sizeof c->name[0] - at), " from %s to %s",
                    splits_text(then->splits, from, sizeof from), splits_text(now->splits, to, sizeof to));
}

enum { CLASS_REMOVED, CLASS_ADDED, CLASS_MOVED, IMAGE_REMOVED, IMAGE_ADDED, IMAGE_MOVED, N_CHANGES };

static void compare_classes(side *then, side *now, change *changes) {
    for (size_t i = 0, k = 0; i < then->n_groups || k < now->n_groups;) {
        group *a = i < then->n_groups ? &then->groups[i] : NULL;
        group *b = k < now->n_groups ? &now->groups[k] : NULL;
        const int order = !a ? 1 : !b ? -1 : compare_texts(a->name, b->name);
        if (order < 0) {
            note(&changes[CLASS_REMOVED], a->name);
            a->fate = CAME_OR_WENT;
        } else if (order > 0) {
            note(&changes[CLASS_ADDED], b->name);
            b->fate = CAME_OR_WENT;
        } else if (a->splits != b->splits) {
            note_moved(&changes[CLASS_MOVED], a, b);
            a->fate = MOVED;
        }
        i += order <= 0;
        k += order >= 0;
    }
}

/* Keep only the rows that the other side lacks. An image may be listed more than once: each row cancels one
 * row of the other side. */
static void drop_equal(side *then, side *now) {
    size_t n_then = 0, n_now = 0;
    if (then->n) qsort(then->rows, then->n, sizeof *then->rows, by_path);
    if (now->n) qsort(now->rows, now->n, sizeof *now->rows, by_path);
    for (size_t i = 0, k = 0; i < then->n || k < now->n;) {
        const int order = i == then->n ? 1 : k == now->n ? -1 : by_path(&then->rows[i], &now->rows[k]);
        if (order < 0) then->rows[n_then++] = then->rows[i];
        if (order > 0) now->rows[n_now++] = now->rows[k];
        i += order <= 0;
        k += order >= 0;
    }
    then->n = n_then;
    now->n = n_now;
}

static void compare_images(side *then, side *now, change *changes) {
    drop_equal(then, now);
    for (size_t i = 0, k = 0; i < then->n || k < now->n;) {
        const row *a = i < then->n ? &then->rows[i] : NULL, *b = k < now->n ? &now->rows[k] : NULL;
        const int order = !a ? 1 : !b ? -1 : compare_texts(a->path, b->path);
        if (order < 0) {
            if (!has_fate(then, a->class_, CAME_OR_WENT)) note(&changes[IMAGE_REMOVED], a->path);
        } else if (order > 0) {
            if (!has_fate(now, b->class_, CAME_OR_WENT)) note(&changes[IMAGE_ADDED], b->path);
        } else if (by_class(a, b) != 0 || !has_fate(then, a->class_, MOVED)) {
            note(&changes[IMAGE_MOVED], a->path);
        }
        i += order <= 0;
        k += order >= 0;
    }
}

/* "2 classes removed (a, b), 7 images added (c/1.png, c/2.png, c/3.png and 4 more)". */
static void put_changes(const change *changes, ki_buffer *ret) {
    int n_kinds = 0;
    for (int i = 0; i < N_CHANGES; i++) n_kinds += changes[i].n > 0;
    const int most = n_kinds <= 2 ? MOST_NAMES : n_kinds <= 3 ? 2 : 1;
    const char *between = "";
    for (int i = 0; i < N_CHANGES; i++) {
        const change *c = &changes[i];
        if (c->n == 0) continue;
        const char *plural = c->n == 1 ? "" : i < IMAGE_REMOVED ? "es" : "s";
        ki_buffer_put(ret, "%s%lld %s%s %s (", between, (long long)c->n, c->what, plural, c->verb);
        for (int k = 0; k < most && k < c->n; k++) ki_buffer_put(ret, "%s%s", k ? ", " : "", c->name[k]);
        if (c->n > most) ki_buffer_put(ret, " and %lld more", (long long)c->n - most);
        ki_buffer_put(ret, ")");
        between = ", ";
    }
}

kith_status ki_dataset_compare(const kith_dataset *set, const char *path, bool folds_differ, ki_buffer *ret,
                               kith_error *err) {
    kith_status status;
    ki_bytes bytes = {0};
    side then = {0}, now = {0};
    bool has_paths = false;
    change changes[N_CHANGES] = {
        {.what = "class", .verb = "removed"}, {.what = "class", .verb = "added"},
        {.what = "class", .verb = "moved"},   {.what = "image", .verb = "removed"},
        {.what = "image", .verb = "added"},   {.what = "image", .verb = "in another class or split"}};
    ki_table table = {0};
    KI_CHECK(ki_bytes_read(&bytes, path, err));
    table = ki_table_of(path, (const char *)bytes.data, bytes.n);
    KI_CHECK(read_then(&table, folds_differ, &then, &has_paths, err));
    KI_CHECK(read_now(set, folds_differ, has_paths, &now, err));
    KI_CHECK(make_groups(&then, err));
    KI_CHECK(make_groups(&now, err));
    compare_classes(&then, &now, changes);
    if (has_paths) compare_images(&then, &now, changes);
    put_changes(changes, ret);
    status = ret->status;
done:
    side_release(&then);
    side_release(&now);
    ki_table_release(&table);
    ki_bytes_release(&bytes);
    return status;
}
