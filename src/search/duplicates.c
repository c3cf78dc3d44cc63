/* Groups of the same picture: candidates from the vectors or from very small pictures, decisions from small ones.
 *
 * Every item is read once for its signature. A pair is looked at when one is among the nearest neighbours of the other, or
 * both files have the same contents. Pairs that are the same picture join groups. A network that was not trained with mirror
 * images may put one far from its picture; so the 8 x 8 values of signatures, also mirrored, give candidates too, as long as
 * comparing all of them takes seconds. */
#include "kith/duplicates.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "data/dataset/dataset.h"
#include "kith/knn.h"
#include "search/signature.h"

enum { PART = 1024 };           /* items searched, or read, between two looks at progress */
enum { MOST_BY_LOOKS = 65536 }; /* pictures whose signatures are all compared: 2.7e11 products */

KI_OPTIONS_INIT(kith_duplicates_options, .n_candidates = 8, .least = KI_SIGNATURE_SAME)

/* What is known of an item before its picture is read. */
typedef struct entry {
    int64_t id, bytes;
    const char *path; /* NULL: none */
    char hash[65];    /* "": not known */
    int64_t parent;   /* of its group (union-find); itself for the first */
} entry;

typedef struct finder {
    const kith_index *index; /* or … */
    const kith_dataset *set; /* … a data set, whose items are the entries */
    const kith_duplicates_options *options;
    int64_t *ids;
    entry *entry;            /* [n], by ascending id */
    ki_signature *signature; /* [n] */
    int64_t n, n_done;
    ki_arena arena;
} finder;

static kith_status list_entries(finder *f, kith_error *err) {
    KI_TRY(kith_index_ids(f->index, f->options->where, &f->ids, &f->n, err));
    KI_TRY(ki_zalloc_or(&f->entry, (size_t)f->n, sizeof *f->entry, "items", err));
    KI_TRY(ki_zalloc_or(&f->signature, (size_t)f->n, sizeof *f->signature, "signatures", err));
    for (int64_t i = 0; i < f->n; i++) {
        entry *e = &f->entry[i];
        kith_index_item item;
        KI_TRY(kith_index_item_get(f->index, f->ids[i], &item, err));
        *e = (entry){.id = f->ids[i], .bytes = item.bytes, .parent = i};
        if (item.hash && strlen(item.hash) == 64) memcpy(e->hash, item.hash, 65);
        const char *folder = f->options->folder;
        const bool is_far = item.path && item.path[0] != '/' && folder && *folder;
        if (item.path)
            e->path = is_far ? ki_arena_printf(&f->arena, "%s/%s", folder, item.path)
                             : ki_arena_strdup(&f->arena, item.path);
        const bool has_failed = item.path && !e->path;
        kith_index_item_release(&item);
        if (has_failed) return ki_fail_memory(err, 1, "a path");
    }
    return KITH_OK;
}

static kith_status list_items(finder *f, kith_error *err) {
    f->n = (int64_t)f->set->n_items;
    KI_TRY(ki_zalloc_or(&f->entry, (size_t)f->n, sizeof *f->entry, "items", err));
    KI_TRY(ki_zalloc_or(&f->signature, (size_t)f->n, sizeof *f->signature, "signatures", err));
    for (int64_t i = 0; i < f->n; i++) f->entry[i] = (entry){.id = i, .bytes = -1, .parent = i};
    return KITH_OK;
}

/* ---- signatures ---- */

/* The pixels of an entry. What cannot be read is left out, so the reasons are not kept. */
static kith_status decode(const finder *f, int64_t i, ki_bytes *file, ki_image *image) {
    const ki_decode how = {.least_side = KI_SIGNATURE_LEAST_SIDE, .background = {255, 255, 255}};
    if (f->set) return ki_dataset_pixels(f->set, i, &how, file, image, NULL);
    if (!f->entry[i].path) return KITH_ENOTFOUND;
    KI_TRY(ki_bytes_read(file, f->entry[i].path, NULL));
    return ki_image_decode(file->data, file->n, &how, image, NULL);
}

typedef struct reading {
    finder *finder;
    int64_t begin;
} reading;

/* An image that cannot be read keeps a signature that is like no other. */
static void read_some(void *context, int64_t begin, int64_t end) {
    const reading *r = context;
    ki_bytes file = {0};
    ki_image image = {0}, small = {0};
    ki_resampler scratch = {0};
    for (int64_t i = r->begin + begin; i < r->begin + end; i++) {
        ki_signature *to = &r->finder->signature[i];
        if (decode(r->finder, i, &file, &image) != KITH_OK) continue;
        if (ki_signature_make(&image, &scratch, &small, to, NULL) != KITH_OK) to->is_there = false;
    }
    ki_bytes_release(&file);
    ki_image_release(&image);
    ki_image_release(&small);
    ki_resampler_release(&scratch);
}

/* In an index reading is the first half of the work, searching the second. */
static kith_status tell(finder *f, int64_t n, kith_error *err) {
    f->n_done += n;
    if (!f->options->progress ||
        f->options->progress(f->options->user, f->index ? f->n_done / 2 : f->n_done, f->n) == 0)
        return KITH_OK;
    return ki_fail(err, KITH_ECANCELED, "stopped on request");
}

static kith_status read_pictures(finder *f, kith_error *err) {
    for (int64_t begin = 0; begin < f->n; begin += PART) {
        const int64_t n = f->n - begin < PART ? f->n - begin : PART;
        reading r = {f, begin};
        ki_parallel_for(n, 1, read_some, &r);
        KI_TRY(tell(f, n, err));
    }
    return KITH_OK;
}

/* ---- groups ---- */

static int64_t root_of(finder *f, int64_t i) {
    while (f->entry[i].parent != i) i = f->entry[i].parent = f->entry[f->entry[i].parent].parent;
    return i;
}

static void join(finder *f, int64_t a, int64_t b) {
    const int64_t x = root_of(f, a), y = root_of(f, b);
    if (x < y)
        f->entry[y].parent = x;
    else
        f->entry[x].parent = y;
}

static int by_id(const void *a, const void *b) {
    const int64_t x = ((const entry *)a)->id, y = ((const entry *)b)->id;
    return (x > y) - (x < y);
}

/* The candidates of items `begin` … `begin + n - 1`, and what was decided. */
typedef struct pairing {
    const finder *finder;
    int64_t begin, k;
    int64_t *other; /* [n, k] candidates as entries, -1: none; afterwards only those that are the same */
} pairing;

static void decide_some(void *context, int64_t begin, int64_t end) {
    const pairing *p = context;
    const finder *f = p->finder;
    for (int64_t at = begin * p->k; at < end * p->k; at++) {
        const int64_t i = p->begin + at / p->k, k = p->other[at];
        bool mirrored = false;
        if (k < 0) continue;
        const double likeness = k == i ? -1
                                       : ki_signature_likeness(&f->signature[i < k ? i : k],
                                                               &f->signature[i < k ? k : i], &mirrored);
        if (likeness < f->options->least) p->other[at] = -1;
    }
}

static void decide(finder *f, int64_t begin, int64_t n, int64_t k, int64_t *other) {
    pairing p = {f, begin, k, other};
    ki_parallel_for(n, 1, decide_some, &p);
    for (int64_t at = 0; at < n * k; at++) {
        if (other[at] >= 0) join(f, begin + at / k, other[at]);
    }
}

static kith_status pair_part(finder *f, int64_t begin, int64_t n, kith_array *rows, int64_t *other,
                             kith_error *err) {
    kith_status status;
    kith_hits hits = {0};
    const int64_t k = f->options->n_candidates;
    KITH_OPTIONS(kith_search_options, search);
    search.k = k;
    search.where = f->options->where;
    search.self = f->ids + begin;
    rows->dim[0] = n;
    KI_CHECK(kith_index_vectors(f->index, f->ids + begin, n, rows->data, err));
    KI_CHECK(kith_index_search(f->index, rows, &search, &hits, err));
    for (int64_t q = 0; q < n; q++) {
        const kith_hit *hit = hits.hits + hits.begin[q];
        for (int64_t h = 0; h < k; h++) {
            const entry key = {.id = h < hits.begin[q + 1] - hits.begin[q] ? hit[h].id : -1};
            const entry *found = bsearch(&key, f->entry, (size_t)f->n, sizeof key, by_id);
            other[q * k + h] = found ? found - f->entry : -1;
        }
    }
    decide(f, begin, n, k, other);
done:
    kith_hits_release(&hits);
    return status;
}

static kith_status pair_by_vectors(finder *f, kith_error *err) {
    kith_status status = KITH_OK;
    kith_index_info info;
    kith_array rows = {0};
    int64_t *other = NULL;
    kith_index_info_get(f->index, &info);
    KI_CHECK(
        ki_alloc_or(&other, (size_t)(PART * f->options->n_candidates), sizeof *other, "candidates", err));
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){f->n < PART ? f->n : PART, info.dim}, &rows, err));
    for (int64_t begin = 0; begin < f->n; begin += PART) {
        const int64_t n = f->n - begin < PART ? f->n - begin : PART;
        KI_CHECK(pair_part(f, begin, n, &rows, other, err));
        KI_CHECK(tell(f, n, err));
    }
done:
    kith_array_release(&rows);
    ki_free(other);
    return status;
}

enum { LOOKS = KI_SIGNATURE_COARSE * KI_SIGNATURE_COARSE };

/* Candidates by the signatures' 8 x 8 values: of each picture, or of its mirror image. */
static kith_status pair_by_looks(finder *f, bool mirrored, kith_error *err) {
    kith_status status;
    kith_array rows = {0}, asked = {0};
    kith_gallery *gallery = NULL;
    kith_neighbor *near = NULL;
    int64_t *other = NULL;
    const int64_t k = f->options->n_candidates;
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){f->n, LOOKS}, &rows, err));
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){f->n, LOOKS}, &asked, err));
    KI_CHECK(ki_alloc_or(&near, (size_t)(f->n * k), sizeof *near, "candidates", err));
    KI_CHECK(ki_alloc_or(&other, (size_t)(f->n * k), sizeof *other, "candidates", err));
    for (int64_t i = 0; i < f->n; i++) {
        memcpy((float *)rows.data + i * LOOKS, f->signature[i].coarse, LOOKS * sizeof(float));
        ki_signature_looks(&f->signature[i], mirrored, (float *)asked.data + i * LOOKS);
    }
    KI_CHECK(kith_gallery_new(&rows, NULL, &gallery, err));
    KI_CHECK(kith_gallery_search(gallery, &asked, NULL, k, near, err));
    for (int64_t i = 0; i < f->n * k; i++) other[i] = near[i].index;
    decide(f, 0, f->n, k, other);
done:
    kith_gallery_free(gallery);
    kith_array_release(&rows);
    kith_array_release(&asked);
    ki_free(near);
    ki_free(other);
    return status;
}

static int by_contents(const void *a, const void *b) {
    const entry *const *x = a, *const *y = b;
    const int order = strcmp((*x)->hash, (*y)->hash);
    return order ? order : by_id(*x, *y);
}

static kith_status pair_by_contents(finder *f, kith_error *err) {
    const entry **list = NULL;
    KI_TRY(ki_alloc_or(&list, (size_t)f->n, sizeof *list, "items", err));
    for (int64_t i = 0; i < f->n; i++) list[i] = &f->entry[i];
    if (f->n > 0) qsort(list, (size_t)f->n, sizeof *list, by_contents);
    for (int64_t i = 1; i < f->n; i++) {
        if (list[i]->hash[0] && strcmp(list[i]->hash, list[i - 1]->hash) == 0)
            join(f, list[i] - f->entry, list[i - 1] - f->entry);
    }
    ki_free(list);
    return KITH_OK;
}

/* ---- the result ---- */

/* A member of a group while they are put in order. */
typedef struct member {
    int64_t root, size; /* of its group */
    int64_t bytes, place;
} member;

/* Larger groups first, then those of lower ids; in a group larger files first. */
static int by_group(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    if (x->root != y->root) return x->root > y->root ? 1 : -1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

static kith_duplicate describe(const finder *f, int64_t first, int64_t i) {
    const entry *a = &f->entry[first], *b = &f->entry[i];
    kith_duplicate d = {.id = b->id, .is_same_file = a == b || (b->hash[0] && strcmp(a->hash, b->hash) == 0)};
    d.likeness = d.is_same_file ? 1
                                : ki_signature_likeness(&f->signature[first < i ? first : i],
                                                        &f->signature[first < i ? i : first], &d.is_mirrored);
    return d;
}

static kith_status collect(finder *f, kith_duplicates *ret, kith_error *err) {
    kith_status status;
    member *list = NULL;
    int64_t *size = NULL, n = 0;
    KI_CHECK(ki_alloc_or(&list, (size_t)f->n, sizeof *list, "groups", err));
    KI_CHECK(ki_zalloc_or(&size, (size_t)f->n, sizeof *size, "groups", err));
    for (int64_t i = 0; i < f->n; i++) size[root_of(f, i)]++;
    for (int64_t i = 0; i < f->n; i++) {
        const int64_t root = root_of(f, i);
        if (size[root] > 1) list[n++] = (member){root, size[root], f->entry[i].bytes, i};
        ret->n_groups += root == i && size[root] > 1;
        ret->n_looked_at += f->signature[i].is_there;
        ret->n_unread += !f->signature[i].is_there;
    }
    if (n > 0) qsort(list, (size_t)n, sizeof *list, by_group);
    KI_CHECK(ki_zalloc_or(&ret->begin, (size_t)ret->n_groups + 1, sizeof *ret->begin, "groups", err));
    KI_CHECK(ki_alloc_or(&ret->pictures, (size_t)n, sizeof *ret->pictures, "groups", err));
    int64_t group = -1;
    for (int64_t k = 0; k < n; k++) {
        if (k == 0 || list[k].root != list[k - 1].root) ret->begin[++group] = k;
        ret->pictures[k] = describe(f, list[ret->begin[group]].place, list[k].place);
    }
    ret->begin[ret->n_groups] = n;
done:
    ki_free(list);
    ki_free(size);
    return status;
}

static kith_status check(const kith_duplicates_options *o, kith_error *err) {
    if (o->n_candidates >= 1 && o->n_candidates <= 100 && o->least >= 0 && o->least <= 1) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%lld candidates, likeness %g; wanted 1 to 100, and 0 to 1",
                   (long long)o->n_candidates, o->least);
}

static kith_status find(finder *f, kith_duplicates *ret, kith_error *err) {
    KI_TRY(f->set ? list_items(f, err) : list_entries(f, err));
    KI_TRY(read_pictures(f, err));
    KI_TRY(pair_by_contents(f, err));
    if (f->n > 0 && f->index) KI_TRY(pair_by_vectors(f, err));
    if (f->n > 0 && (f->set || f->n <= MOST_BY_LOOKS)) {
        KI_TRY(pair_by_looks(f, false, err));
        KI_TRY(pair_by_looks(f, true, err));
    }
    return collect(f, ret, err);
}

static kith_status run(finder *f, kith_duplicates *ret, kith_error *err) {
    kith_duplicates found = {0};
    kith_status status = check(f->options, err);
    if (status == KITH_OK) status = find(f, &found, err);
    if (status == KITH_OK)
        *ret = found;
    else
        kith_duplicates_release(&found);
    kith_ids_free(f->ids);
    ki_free(f->entry);
    ki_free(f->signature);
    ki_arena_release(&f->arena);
    return status;
}

kith_status kith_duplicates_find(const kith_index *index, const kith_duplicates_options *options,
                                 kith_duplicates *ret_duplicates, kith_error *err) {
    KI_NEED(err, index, ret_duplicates);
    KI_OPTIONS_TAKE(kith_duplicates_options, o, options, err);
    finder f = {.index = index, .options = &o};
    return run(&f, ret_duplicates, err);
}

kith_status kith_dataset_duplicates(const kith_dataset *dataset, const kith_duplicates_options *options,
                                    kith_duplicates *ret_duplicates, kith_error *err) {
    KI_NEED(err, dataset, ret_duplicates);
    KI_OPTIONS_TAKE(kith_duplicates_options, o, options, err);
    finder f = {.set = dataset, .options = &o};
    return run(&f, ret_duplicates, err);
}

void kith_duplicates_release(kith_duplicates *d) {
    if (!d) return;
    ki_free(d->begin);
    ki_free(d->pictures);
    *d = (kith_duplicates){0};
}
