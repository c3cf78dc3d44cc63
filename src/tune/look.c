/* Looking at the photos before anything is computed: what is left out, and which classes are held out for the test. The result is
 * photos.csv in the run folder, which every run that follows takes its data from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/dataset/table.h"
#include "embed/embedder.h"
#include "io/tar_file.h"
#include "kith/eval.h"
#include "tune/tune.h"

enum { LEAST_FOR_TEST = 6, PROBED = 64 };
/* Of the time, for the first view of all photos. */
static const double FIRST_VIEW = 0.3;

typedef struct look {
    ki_tune *tune;
    kith_dataset *set;
    bool *is_out;  /* [n_items] */
    int64_t *n_of; /* [n_classes] photos that stay */
} look;

/* ---- photos that are there twice ---- */

typedef struct file {
    int64_t bytes;
    size_t item;
    char hash[65];
} file;

static int by_size(const void *a, const void *b) {
    const file *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static int by_hash(const void *a, const void *b) {
    const file *x = a, *y = b;
    const int order = strcmp(x->hash, y->hash);
    if (order != 0) return order;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Files of the same bytes: of one class the first stays; of several classes none does, because one of the labels is wrong. A test photo
 * stays before one that trains. */
static void settle(look *k, const file *same, size_t n) {
    const ki_item *item = k->set->item;
    bool is_one_class = true;
    size_t stays = 0;
    for (size_t i = 1; i < n; i++) {
        is_one_class &= item[same[i].item].label == item[same[0].item].label;
        if (item[same[i].item].split == KITH_SPLIT_TEST && item[same[stays].item].split != KITH_SPLIT_TEST)
            stays = i;
    }
    for (size_t i = 0; i < n; i++) {
        if (is_one_class && i == stays) continue;
        k->is_out[same[i].item] = true;
        if (is_one_class)
            k->tune->n_duplicates++;
        else
            k->tune->n_conflicts++;
    }
}

/* Only files of the same size are read. */
static void hash_equal_sizes(file *files, size_t n, const kith_dataset *set) {
    for (size_t i = 0; i < n; i++) {
        const bool has_twin = (i > 0 && files[i - 1].bytes == files[i].bytes) ||
                              (i + 1 < n && files[i + 1].bytes == files[i].bytes);
        kith_error ignored;
        if (!has_twin || kith_file_hash(set->item[files[i].item].path, files[i].hash, &ignored) != KITH_OK)
            files[i].hash[0] = '\0';
    }
}

static kith_status find_duplicates(look *k, kith_error *err) {
    kith_status status = KITH_OK;
    file *files = NULL;
    size_t n = 0;
    if (k->set->pixels) return KITH_OK;
    KI_CHECK(ki_zalloc_or(&files, k->set->n_items + 1, sizeof *files, "files", err));
    for (size_t i = 0; i < k->set->n_items; i++) {
        int64_t bytes = 0;
        if (k->is_out[i] || !ki_member_look(k->set->item[i].path, &bytes, NULL)) continue;
        files[n++] = (file){.bytes = bytes, .item = i};
    }
    qsort(files, n, sizeof *files, by_size);
    hash_equal_sizes(files, n, k->set);
    qsort(files, n, sizeof *files, by_hash);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && *files[i].hash && strcmp(files[end].hash, files[i].hash) == 0;) end++;
        if (end - i > 1) settle(k, files + i, end - i);
    }
done:
    ki_free(files);
    return status;
}

/* ---- more photos than there is time for ---- */

static double seconds_of_photo(look *k, kith_error *err) {
    ki_tune *t = k->tune;
    ki_embedder *embedder = NULL;
    ki_vectors v = {0};
    int64_t item[PROBED], n = (int64_t)k->set->n_items < PROBED ? (int64_t)k->set->n_items : PROBED;
    double seconds = 0;
    for (int64_t i = 0; i < n; i++) item[i] = i * ((int64_t)k->set->n_items / n);
    const ki_embedder_settings settings = {.backend = t->backend,
                                           .net = &t->test_net,
                                           .params = t->params,
                                           .transform = t->test_transform,
                                           .batch = 16};
    const ki_embed_request request = {
        .set = k->set, .items = item, .n = n, .tap = "pooled", .most_bad = -1, .on_host = true};
    for (int round = 0; round < 2; round++) { /* the first one makes the plan */
        const double began = ki_seconds_now();
        if (!embedder && ki_embedder_new(&settings, &embedder, err) != KITH_OK) break;
        if (ki_embedder_items(embedder, &request, &v, err) != KITH_OK) break;
        seconds = (ki_seconds_now() - began) / (double)n;
        ki_vectors_release(&v);
    }
    ki_embedder_free(embedder);
    return seconds;
}

/* The most photos of a class for which all classes have at most `most`. */
static int64_t most_of_class(const look *k, int64_t most) {
    int64_t cap = 2;
    for (;; cap++) {
        int64_t n = 0, n_below = 0;
        for (size_t c = 0; c < k->set->n_classes; c++) {
            n += k->n_of[c] < cap + 1 ? k->n_of[c] : cap + 1;
            n_below += k->n_of[c] > cap;
        }
        if (n > most || n_below == 0) return cap;
    }
}

static kith_status limit(look *k, kith_error *err) {
    ki_tune *t = k->tune;
    kith_error why = {0};
    int64_t *order = NULL, *left = NULL, n = 0;
    kith_status status = KITH_OK;
    const double seconds = seconds_of_photo(k, &why);
    for (size_t c = 0; c < k->set->n_classes; c++) n += k->n_of[c];
    if (!(seconds > 0)) {
        if (err) *err = why;
        return why.status ? why.status : ki_fail(err, KITH_EFORMAT, "no photo could be read");
    }
    const double room = FIRST_VIEW * t->seconds_allowed / seconds;
    if ((double)n <= room) return KITH_OK;
    const int64_t cap = most_of_class(k, (int64_t)room);
    KI_CHECK(ki_alloc_or(&order, k->set->n_items, sizeof *order, "an order", err));
    KI_CHECK(ki_zalloc_or(&left, k->set->n_classes, sizeof *left, "classes", err));
    for (size_t i = 0; i < k->set->n_items; i++) order[i] = (int64_t)i;
    ki_rng rng = ki_rng_at((uint64_t)t->options->seed, KI_RNG_SPLIT, 0x11317, 0);
    ki_rng_shuffle(&rng, order, (int64_t)k->set->n_items);
    for (size_t i = 0; i < k->set->n_items; i++) {
        const int32_t label = k->set->item[order[i]].label;
        if (k->is_out[order[i]]) continue;
        if (left[label]++ < cap) continue;
        k->is_out[order[i]] = true;
        k->n_of[label]--;
    }
    ki_tune_say(t,
                "there is time for %lld photos of each class; with more --minutes and another --out all %lld "
                "photos are used",
                (long long)cap, (long long)n);
done:
    ki_free(order);
    ki_free(left);
    return status;
}

/* ---- the split ---- */

static bool has_own_split(const kith_dataset *set) {
    return strcmp(set->kind->name, "folder") != 0 || ki_folder_has_parts(set->root);
}

/* A third of the classes that have two photos or more, drawn by the seed. */
static kith_status hold_out(look *k, kith_error *err) {
    kith_dataset *set = k->set;
    kith_status status = KITH_OK;
    int64_t *order = NULL, n = 0, n_able = 0;
    bool *tests = NULL;
    if (has_own_split(set)) {
        for (size_t i = 0; i < set->n_items; i++) {
            if (set->item[i].split == KITH_SPLIT_VALIDATION) set->item[i].split = KITH_SPLIT_TRAIN;
        }
        return KITH_OK;
    }
    KI_CHECK(ki_alloc_or(&order, set->n_classes, sizeof *order, "classes", err));
    KI_CHECK(ki_zalloc_or(&tests, set->n_classes, sizeof *tests, "classes", err));
    for (size_t c = 0; c < set->n_classes; c++) {
        order[c] = (int64_t)c;
        n += k->n_of[c] > 0;
        n_able += k->n_of[c] > 1;
    }
    ki_rng rng = ki_rng_at((uint64_t)k->tune->options->seed, KI_RNG_SPLIT, 0x7e57, 0);
    ki_rng_shuffle(&rng, order, (int64_t)set->n_classes);
    int64_t wanted = n >= LEAST_FOR_TEST ? (n + 1) / 3 : 0;
    if (wanted > n_able - 2) wanted = n_able - 2;
    for (size_t c = 0; c < set->n_classes && wanted > 0; c++) {
        if (k->n_of[order[c]] < 2) continue;
        tests[order[c]] = true;
        wanted--;
    }
    for (size_t i = 0; i < set->n_items; i++)
        set->item[i].split = tests[set->item[i].label] ? KITH_SPLIT_TEST : KITH_SPLIT_TRAIN;
done:
    ki_free(order);
    ki_free(tests);
    return status;
}

/* ---- photos.csv ---- */

static kith_status write_list(const look *k, kith_error *err) {
    ki_path path, image;
    kith_status status = KITH_OK;
    ki_buffer text = {.err = err};
    const ki_list_rows m = ki_list_rows_of(k->set);
    ki_list_rows_head(&m, &text);
    for (size_t i = 0; i < k->set->n_items; i++) {
        const ki_item *item = &k->set->item[i];
        if (k->is_out[i]) continue;
        KI_CHECK(ki_path_absolute(item->path, &image, err));
        ki_list_rows_row(&m, k->set, item, image.s, (kith_split)item->split, &text);
    }
    KI_CHECK(text.status);
    KI_CHECK(ki_path_print(&path, err, "%s/photos.csv", k->tune->folder));
    KI_CHECK(ki_file_write(path.s, text.data, text.n, err));
done:
    ki_buffer_release(&text);
    return status;
}

static void count(const look *k) {
    for (size_t c = 0; c < k->set->n_classes; c++) k->n_of[c] = 0;
    for (size_t i = 0; i < k->set->n_items; i++) k->n_of[k->set->item[i].label] += !k->is_out[i];
}

static kith_status check_classes(look *k, kith_error *err) {
    int64_t n = 0;
    for (size_t c = 0; c < k->set->n_classes; c++) {
        n += k->n_of[c] > 1;
        k->tune->n_alone += k->n_of[c] == 1;
    }
    if (n >= 3) return KITH_OK;
    ki_fail(err, KITH_EINVAL,
            "%s has %lld class%s of two photos or more; wanted 3, to train on some and to see on others what "
            "it brings",
            k->set->root, (long long)n, n == 1 ? "" : "es");
    return ki_hint(
        err, KITH_EINVAL,
        "add classes (a folder each), or search with the model as it is: kith search PHOTOS PHOTO.jpg");
}

static kith_status check_kind(const kith_dataset *set, kith_error *err) {
    if (!set->rows && !set->pixels) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "%s holds %s; wanted photos in files of their own", set->root,
            set->rows ? "features" : "images in one file");
    return ki_hint(err, KITH_EUNSUPPORTED, "write a recipe: recipes/features.yaml, recipes/quickstart.yaml");
}

static kith_status inspect(look *k, kith_error *err) {
    ki_tune *t = k->tune;
    KI_TRY(check_kind(k->set, err));
    KI_TRY(ki_zalloc_or(&k->is_out, k->set->n_items, sizeof *k->is_out, "photos", err));
    KI_TRY(ki_zalloc_or(&k->n_of, k->set->n_classes, sizeof *k->n_of, "classes", err));
    KI_TRY(ki_tune_find_unread(t, k->set, k->is_out, err));
    KI_TRY(find_duplicates(k, err));
    count(k);
    KI_TRY(check_classes(k, err));
    KI_TRY(limit(k, err));
    KI_TRY(hold_out(k, err));
    count(k);
    t->n_found = (int64_t)k->set->n_items;
    for (size_t c = 0; c < k->set->n_classes; c++) t->n_used += k->n_of[c];
    return write_list(k, err);
}

static kith_status remember(ki_tune *t, kith_error *err) {
    const struct {
        const char *key;
        int64_t *value;
    } facts[] = {{"photos found", &t->n_found},       {"photos used", &t->n_used},
                 {"duplicates", &t->n_duplicates},    {"photos of two classes", &t->n_conflicts},
                 {"unreadable photos", &t->n_unread}, {"classes of one photo", &t->n_alone}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        double value = 0;
        KI_TRY(ki_tune_decide(t, facts[i].key, (double)*facts[i].value, &value, err));
        *facts[i].value = (int64_t)value;
    }
    return KITH_OK;
}

static void say_left_out(ki_tune *t, int64_t n, const char *one, const char *several) {
    if (n)
        ki_tune_say(t, "left out: %lld photo%s %s", (long long)n, n == 1 ? "" : "s", n == 1 ? one : several);
}

kith_status ki_tune_look(ki_tune *t, kith_error *err) {
    kith_status status = KITH_OK;
    look k = {.tune = t};
    if (!ki_tune_has_decided(t, "classes of one photo")) {
        KI_CHECK(kith_dataset_open("auto", t->options->photos, &k.set, err));
        KI_CHECK(inspect(&k, err));
    }
    KI_CHECK(remember(t, err));
    say_left_out(t, t->n_duplicates, "that is there twice", "that are there twice");
    say_left_out(t, t->n_conflicts, "that is in two classes, because one of these is wrong",
                 "that are in two classes, because one of these is wrong");
    if (t->n_alone)
        ki_tune_say(t, "%lld class%s one photo: it can train, but not judge", (long long)t->n_alone,
                    t->n_alone == 1 ? " has" : "es have");
done:
    ki_free(k.is_out);
    ki_free(k.n_of);
    kith_dataset_free(k.set);
    return status;
}
