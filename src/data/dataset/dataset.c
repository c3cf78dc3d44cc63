/* Data sets: items, classes and splits, by whichever layout fills them. */
#include "data/dataset/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/log.h"
#include "base/option.h"
#include "io/tar_file.h"

static const ki_dataset_kind *const kinds[] = {
#define X(name) &ki_dataset_##name,
#include "data/dataset/table.def"
#undef X
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static bool is_kind(int64_t i) { return i >= 0 && i < N_KINDS; }
const char *kith_dataset_kind_name(int64_t i) { return is_kind(i) ? kinds[i]->name : NULL; }
const char *kith_dataset_kind_summary(int64_t i) { return is_kind(i) ? kinds[i]->summary : NULL; }

const char *kith_split_name(kith_split split) {
    static const char *const names[KITH_N_SPLITS] = {"train", "validation", "test"};
    if (split == KITH_SPLIT_ALL) return "all";
    return (unsigned)split < KITH_N_SPLITS ? names[split] : "?";
}

const char *kith_dataset_kind(const kith_dataset *set) { return set ? set->kind->name : NULL; }
const char *kith_dataset_root(const kith_dataset *set) { return set ? set->root : NULL; }
int64_t kith_dataset_count(const kith_dataset *set) { return set ? (int64_t)set->n_items : 0; }
int64_t kith_dataset_n_classes(const kith_dataset *set) { return set ? (int64_t)set->n_classes : 0; }
int64_t kith_dataset_n_missing(const kith_dataset *set) { return set ? set->n_missing : 0; }

const char *kith_dataset_class_name(const kith_dataset *set, int64_t label) {
    return set && label >= 0 && (size_t)label < set->n_classes ? set->class_[label].name : NULL;
}

int64_t kith_dataset_class_count(const kith_dataset *set, int64_t label) {
    return set && label >= 0 && (size_t)label < set->n_classes ? set->class_[label].n_images : 0;
}

const char *kith_dataset_missing(const kith_dataset *set, int64_t i) {
    return set && i >= 0 && i < set->n_missing && i < KI_MOST_MISSING_NAMED ? set->missing[i] : NULL;
}

int64_t kith_dataset_n_unread(const kith_dataset *set) { return set ? set->unread.n : 0; }
const char *kith_dataset_unread_kinds(const kith_dataset *set) {
    return set && set->unread.kinds ? set->unread.kinds : "";
}

const char *kith_dataset_unread(const kith_dataset *set, int64_t i) {
    if (!set) return NULL;
    return i >= 0 && i < set->unread.n && i < KI_MOST_UNREAD_NAMED ? set->unread.name[i] : NULL;
}

int64_t kith_dataset_n_nested(const kith_dataset *set) { return set ? set->n_nested : 0; }

const char *kith_dataset_nested(const kith_dataset *set, int64_t i) {
    if (!set) return NULL;
    return i >= 0 && i < set->n_nested && i < KI_MOST_NESTED_NAMED ? set->nested[i] : NULL;
}

kith_item kith_dataset_item(const kith_dataset *set, int64_t i) {
    if (!set || i < 0 || (size_t)i >= set->n_items) return (kith_item){.path = NULL, .label = -1};
    const ki_item *from = &set->item[i];
    return (kith_item){.path = from->path,
                       .label = from->label,
                       .split = (kith_split)from->split,
                       .role = (kith_role)from->role,
                       .has_box = from->has_box,
                       .box = {from->box[0], from->box[1], from->box[2], from->box[3]}};
}

kith_status ki_dataset_new(const ki_dataset_kind *kind, const char *root, kith_dataset **ret_set,
                           kith_error *err) {
    kith_dataset *set = NULL;
    KI_TRY(ki_zalloc_or(&set, 1, sizeof *set, "a data set", err));
    set->kind = kind;
    set->root = ki_arena_strdup(&set->arena, root);
    if (!set->root) {
        kith_dataset_free(set);
        return ki_fail_memory(err, strlen(root), "a data set");
    }
    *ret_set = set;
    return KITH_OK;
}

void kith_dataset_free(kith_dataset *set) {
    if (!set) return;
    ki_arena_release(&set->arena);
    ki_free(set->item);
    ki_free(set->class_);
    ki_free(set->bucket);
    ki_free(set->pixels);
    ki_free(set->told);
    ki_npy_rows_free(set->rows);
    ki_item_views_free(set->views);
    for (size_t i = 0; i < set->n_tars; i++) ki_tar_let_go(set->tar[i]);
    ki_free(set->tar);
    kith_dataset_free(set->groups);
    kith_dataset_free(set->supers);
    for (size_t p = 0; p < set->n_parts; p++) kith_dataset_free(set->part[p]);
    ki_free(set->part);
    ki_free(set->name);
    ki_free(set);
}

static const ki_dataset_kind *find_kind(const char *name) {
    for (int i = 0; i < N_KINDS; i++) {
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    }
    return NULL;
}

const ki_dataset_kind *ki_dataset_kind_at(const char *root) {
    for (int i = 0; i < N_KINDS; i++) {
        if (kinds[i]->found(root)) return kinds[i];
    }
    return NULL;
}

static kith_status choose_kind(const char *name, const char *root, const ki_dataset_kind **ret,
                               kith_error *err) {
    if (name && strcmp(name, "auto") != 0) {
        *ret = find_kind(name);
        if (*ret) return KITH_OK;
        const char *names[N_KINDS];
        for (int i = 0; i < N_KINDS; i++) names[i] = kinds[i]->name;
        return ki_fail_unknown(err, "data set", name, names, N_KINDS);
    }
    *ret = ki_dataset_kind_at(root);
    if (*ret) return KITH_OK;
    if (access(root, R_OK) != 0) return ki_fail(err, KITH_EIO, "%s: there is no such folder or file", root);
    const int64_t n_images = ki_count_images(root);
    if (n_images > 0) {
        ki_fail(err, KITH_EIO, "%s: %jd image%s and no class folders", root, (intmax_t)n_images,
                n_images == 1 ? "" : "s");
        return ki_hint(err, KITH_EIO,
                       "to train, put each class into a folder of its own; as it is it can be indexed (`kith "
                       "index`) and looked through for duplicates (`kith data --duplicates`)");
    }
    ki_fail(err, KITH_EIO, "%s: no data set found", root);
    return ki_hint(err, KITH_EIO,
                   "wanted a folder per class, a .csv manifest, features (.npy) or a known layout: see "
                   "`kith list datasets`");
}

kith_status kith_dataset_open(const char *kind_name, const char *root, kith_dataset **ret_set,
                              kith_error *err) {
    KI_NEED(err, root, ret_set);
    kith_status status = KITH_OK;
    kith_dataset *set = NULL;
    const ki_dataset_kind *kind = NULL;
    KI_TRY(choose_kind(kind_name, root, &kind, err));
    KI_CHECK(ki_dataset_new(kind, root, &set, err));
    KI_CHECK(kind->read(set, root, err));
    if (set->n_items == 0) {
        status = ki_fail(err, KITH_EIO, "%s: the %s data set lists no images", root, kind->name);
        if (set->unread.n)
            ki_hint(err, status, "not read is %.300s; read are " KI_IMAGE_FORMATS, set->unread.name[0]);
        goto done;
    }
    KI_CHECK(ki_dataset_drop_missing(set, err));
    KI_CHECK(ki_dataset_settle(set, err));
    *ret_set = set;
    set = NULL;
done:
    kith_dataset_free(set);
    return status;
}

static uint32_t hash_of(const char *key, size_t n) { /* FNV-1a */
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)key[i]) * 16777619u;
    return hash;
}

static kith_status rehash(kith_dataset *set, kith_error *err) {
    const size_t n = set->n_buckets ? 2 * set->n_buckets : 64;
    int32_t *bucket = NULL;
    KI_TRY(ki_alloc_or(&bucket, n, sizeof *bucket, "class names", err));
    memset(bucket, 0xff, n * sizeof *bucket);
    for (size_t c = 0; c < set->n_classes; c++) {
        size_t b = set->class_[c].hash & (n - 1);
        while (bucket[b] >= 0) b = (b + 1) & (n - 1);
        bucket[b] = (int32_t)c;
    }
    ki_free(set->bucket);
    set->bucket = bucket;
    set->n_buckets = n;
    return KITH_OK;
}

kith_status ki_dataset_class(kith_dataset *set, const char *key, size_t n, int32_t *ret_label,
                             kith_error *err) {
    if (2 * (set->n_classes + 1) > set->n_buckets) KI_TRY(rehash(set, err));
    const uint32_t hash = hash_of(key, n);
    size_t b = hash & (set->n_buckets - 1);
    for (; set->bucket[b] >= 0; b = (b + 1) & (set->n_buckets - 1)) {
        const ki_class *c = &set->class_[set->bucket[b]];
        if (c->hash == hash && strlen(c->key) == n && memcmp(c->key, key, n) == 0)
            return *ret_label = set->bucket[b], KITH_OK;
    }
    if (set->n_classes >= INT32_MAX) return ki_fail(err, KITH_EINVAL, "more than %d classes", INT32_MAX);
    KI_TRY(
        ki_grow(&set->class_, &set->class_capacity, set->n_classes + 1, sizeof *set->class_, "classes", err));
    const char *copy = ki_arena_strndup(&set->arena, key, n);
    if (!copy) return ki_fail_memory(err, n, "a class name");
    set->class_[set->n_classes] = (ki_class){.key = copy, .name = copy, .hash = hash};
    set->bucket[b] = (int32_t)set->n_classes;
    *ret_label = (int32_t)set->n_classes++;
    return KITH_OK;
}

typedef struct sortable {
    const char *key;
    int32_t was;
    bool is_number;
} sortable;

static int compare_keys(const void *a, const void *b) {
    const sortable *x = a, *y = b;
    if (x->is_number != y->is_number) return x->is_number ? -1 : 1;
    const size_t n = strlen(x->key), m = strlen(y->key);
    if (x->is_number && n != m) return n < m ? -1 : 1;
    return strcmp(x->key, y->key);
}

/* Without zeros before it: then the longer one is the larger one. */
static bool is_number(const char *key) {
    return *key && strspn(key, "0123456789") == strlen(key) && (*key != '0' || !key[1]);
}

kith_status ki_dataset_sort_classes(kith_dataset *set, kith_error *err) {
    kith_status status = KITH_OK;
    const size_t n = set->n_classes;
    sortable *order = NULL;
    ki_class *sorted = NULL;
    int32_t *now = NULL;
    KI_CHECK(ki_alloc_or(&order, n, sizeof *order, "classes", err));
    KI_CHECK(ki_alloc_or(&now, n, sizeof *now, "classes", err));
    KI_CHECK(ki_alloc_or(&sorted, n + 1, sizeof *sorted, "classes", err));
    for (size_t c = 0; c < n; c++)
        order[c] = (sortable){set->class_[c].key, (int32_t)c, is_number(set->class_[c].key)};
    if (n) qsort(order, n, sizeof *order, compare_keys);
    for (size_t c = 0; c < n; c++) {
        sorted[c] = set->class_[order[c].was];
        now[order[c].was] = (int32_t)c;
    }
    if (n) memcpy(set->class_, sorted, n * sizeof *sorted);
    for (size_t b = 0; b < set->n_buckets; b++) {
        if (set->bucket[b] >= 0) set->bucket[b] = now[set->bucket[b]];
    }
    for (size_t i = 0; i < set->n_items; i++) {
        if (set->item[i].label >= 0) set->item[i].label = now[set->item[i].label];
    }
done:
    ki_free(order);
    ki_free(now);
    ki_free(sorted);
    return status;
}

kith_status ki_dataset_name_class(kith_dataset *set, int32_t label, const char *name, size_t length,
                                  kith_error *err) {
    const char *copy = ki_arena_strndup(&set->arena, name, length);
    if (!copy) return ki_fail_memory(err, length, "a class name");
    set->class_[label].name = copy;
    return KITH_OK;
}

int64_t kith_dataset_n_super_classes(const kith_dataset *set) {
    return set && set->supers ? (int64_t)set->supers->n_classes : 0;
}

kith_status ki_dataset_super_class(kith_dataset *set, int32_t label, const char *name, size_t n,
                                   kith_error *err) {
    int32_t number = 0;
    if (!set->supers) KI_TRY(ki_dataset_new(NULL, "", &set->supers, err));
    KI_TRY(ki_dataset_class(set->supers, name, n, &number, err));
    ki_class *c = &set->class_[label];
    if (c->super && c->super != number + 1)
        return ki_fail(err, KITH_EFORMAT, "the class '%.200s' is of super-class '%.200s' and of '%.*s'",
                       c->name, set->supers->class_[c->super - 1].key, n > 200 ? 200 : (int)n, name);
    c->super = number + 1;
    return KITH_OK;
}

kith_status ki_dataset_add(kith_dataset *set, const char *folder, const char *path, size_t n, int32_t label,
                           kith_split split, ki_item **ret_item, kith_error *err) {
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)path[i] < 0x20)
            return ki_fail(err, KITH_EFORMAT, "the path '%.*s' has a control character",
                           n > 200 ? 200 : (int)n, path);
    }
    if (n > 4000) return ki_fail(err, KITH_EFORMAT, "a path of %zu bytes; the longest read is 4000", n);
    KI_TRY(ki_grow(&set->item, &set->item_capacity, set->n_items + 1, sizeof *set->item, "items", err));
    const bool alone = !folder || (n > 0 && path[0] == '/');
    const char *whole = alone ? ki_arena_strndup(&set->arena, path, n)
                              : ki_arena_printf(&set->arena, "%s/%.*s", folder, (int)n, path);
    if (!whole) return ki_fail_memory(err, n, "a path");
    ki_item *item = &set->item[set->n_items++];
    *item = (ki_item){
        .path = whole, .label = label, .split = (uint8_t)split, .role = KITH_ROLE_BOTH, .pixels = -1};
    if (ret_item) *ret_item = item;
    return KITH_OK;
}

/* Is it there? A tar file that it lies in is held. */
static kith_status look_for(kith_dataset *set, const char *path, size_t *last, bool *ret_is_there,
                            kith_error *err) {
    ki_tar *tar = ki_tar_hold_of(path);
    *ret_is_there = tar || ki_member_look(path, NULL, NULL);
    if (!tar) return KITH_OK;
    for (size_t k = 0; k < set->n_tars; k++) {
        const size_t i = (*last + k) % set->n_tars;
        if (set->tar[i] != tar) continue;
        ki_tar_let_go(tar);
        return *last = i, KITH_OK;
    }
    const kith_status status =
        ki_grow(&set->tar, &set->tar_capacity, set->n_tars + 1, sizeof *set->tar, "tar files", err);
    if (status == KITH_OK)
        set->tar[set->n_tars++] = tar;
    else
        ki_tar_let_go(tar);
    return status;
}

kith_status ki_dataset_drop_missing(kith_dataset *set, kith_error *err) {
    size_t kept = 0, last_tar = 0;
    for (size_t i = 0; i < set->n_items; i++) {
        bool is_there = set->rows || set->item[i].pixels >= 0;
        if (!is_there) KI_TRY(look_for(set, set->item[i].path, &last_tar, &is_there, err));
        if (is_there) {
            set->item[kept++] = set->item[i];
            continue;
        }
        if (set->n_missing < KI_MOST_MISSING_NAMED) set->missing[set->n_missing] = set->item[i].path;
        set->n_missing++;
    }
    set->n_items = kept;
    if (kept == 0) {
        ki_fail(err, KITH_EIO, "%s: none of the %jd listed images is there", set->root,
                (intmax_t)set->n_missing);
        return ki_hint(err, KITH_EIO, "the first one looked for was %s", set->missing[0]);
    }
    for (size_t i = 0; i < set->n_items; i++) set->class_[set->item[i].label].n_images++;
    if (set->n_missing)
        ki_log(KITH_LOG_WARNING, "%s: %jd listed images are not there, the first is %s", set->root,
               (intmax_t)set->n_missing, set->missing[0]);
    return KITH_OK;
}

kith_status ki_dataset_settle(kith_dataset *set, kith_error *err) {
    if (set->unread.n) {
        KI_TRY(ki_unread_finish(&set->unread, &set->arena, err));
        ki_log(KITH_LOG_WARNING, "not read: %s; the first is %s%s", set->unread.kinds, set->unread.name[0],
               ki_unread_has_formats(&set->unread) ? " (read are " KI_IMAGE_FORMATS ")" : "");
    }
    return ki_zalloc_or(&set->told, set->n_items, sizeof *set->told, "items", err);
}

bool ki_dataset_tell_once(const kith_dataset *set, int64_t item) {
    return !set->told || !atomic_exchange(&set->told[item], 1);
}

void ki_dataset_split_at(kith_dataset *set, int32_t n_train) {
    for (size_t i = 0; i < set->n_items; i++)
        set->item[i].split = set->item[i].label < n_train ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST;
}

kith_status ki_dataset_pixels(const kith_dataset *set, int64_t i, const ki_decode *how, ki_bytes *bytes,
                              ki_image *ret_image, kith_error *err) {
    const ki_item *item = &set->item[i];
    if (set->rows)
        return ki_fail(err, KITH_EUNSUPPORTED, "%s is a row of features; wanted an image", item->path);
    if (item->pixels >= 0) {
        KI_TRY(ki_image_shape(ret_image, set->pixels_w, set->pixels_h, 1, err));
        memcpy(ret_image->data, set->pixels + item->pixels, (size_t)set->pixels_w * (size_t)set->pixels_h);
        return KITH_OK;
    }
    KI_TRY(ki_bytes_read(bytes, item->path, err));
    const kith_status status = ki_image_decode(bytes->data, bytes->n, how, ret_image, err);
    return status == KITH_OK ? status : ki_prefix(err, status, "%s", item->path);
}

kith_status ki_dataset_select(const kith_dataset *set, kith_split split, int64_t **ret_items, int64_t *ret_n,
                              kith_error *err) {
    int64_t *items = NULL, n = 0;
    KI_TRY(ki_alloc_or(&items, set->n_items, sizeof *items, "item indices", err));
    for (size_t i = 0; i < set->n_items; i++) {
        if (split == KITH_SPLIT_ALL || set->item[i].split == split) items[n++] = (int64_t)i;
    }
    *ret_items = items;
    *ret_n = n;
    return KITH_OK;
}

static int compare_counts(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

kith_status kith_dataset_summary(const kith_dataset *set, kith_split split, kith_split_summary *ret,
                                 kith_error *err) {
    KI_NEED(err, set, ret);
    int64_t *count = NULL;
    KI_TRY(ki_zalloc_or(&count, set->n_classes, sizeof *count, "class counts", err));
    kith_split_summary sum = {0};
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        if (item->split != split) continue;
        count[item->label]++;
        sum.n_images++;
        sum.n_query += item->role == KITH_ROLE_QUERY;
        sum.n_gallery += item->role == KITH_ROLE_GALLERY;
    }
    size_t n = 0;
    for (size_t c = 0; c < set->n_classes; c++) {
        if (count[c]) count[n++] = count[c];
    }
    if (n) {
        qsort(count, n, sizeof *count, compare_counts);
        sum.n_classes = (int32_t)n;
        sum.per_class_min = count[0];
        sum.per_class_median = count[(n - 1) / 2];
        sum.per_class_max = count[n - 1];
        while ((size_t)sum.n_single < n && count[sum.n_single] == 1) sum.n_single++;
    }
    ki_free(count);
    *ret = sum;
    return KITH_OK;
}
