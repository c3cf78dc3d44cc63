/* Looking at the photos before anything is computed: what is left out, and which classes are held out for the test. The result is
 * photos.csv in the run folder, which every run that follows takes its data from. What needs vectors comes later (suspects.c). */
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/dataset/table.h"
#include "embed/embedder.h"
#include "tune/findings.h"
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

/* The set has only what stays. */
static void drop(look *k) {
    kith_dataset *set = k->set;
    size_t n = 0;
    for (size_t i = 0; i < set->n_items; i++) {
        if (!k->is_out[i]) set->item[n++] = set->item[i];
    }
    memset(k->is_out, 0, set->n_items * sizeof *k->is_out);
    set->n_items = n;
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

/* ---- the doctor ---- */

static int on_progress(void *user, int64_t n_done, int64_t n_all) {
    return ki_tune_busy(((look *)user)->tune, n_done, n_all);
}

/* Where more than one photo in so many looks like another, that is how these pictures are (products on white, drawings of one kind). */
enum { MOST_ALIKE = 10 };
/* Then only those that are equal but for how they were saved are the same. */
static const double EQUAL = 0.999;

static int64_t n_alike(const kith_findings *found) {
    int64_t n = 0;
    for (int64_t i = 0; i < found->n_items; i++)
        n += found->why_out[i] >= 0 && found->findings[found->why_out[i]].kind != KITH_FINDING_UNREADABLE;
    return n;
}

/* The pictures: those that cannot be read whole, or are there more than once in whatever size. */
static kith_status examine(look *k, kith_error *err) {
    ki_tune *t = k->tune;
    kith_findings found = {0};
    ki_tune_tally tally = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    options.progress = on_progress;
    options.user = k;
    ki_snprintf(t->busy, sizeof t->busy, "comparing the photos");
    kith_status status = kith_dataset_examine(k->set, &options, &found, err);
    if (status == KITH_OK && n_alike(&found) * MOST_ALIKE > found.n_items) {
        ki_tune_say(t,
                    "%lld of %lld photos look like another: only those that are equal are taken for the same",
                    (long long)n_alike(&found), (long long)found.n_items);
        kith_findings_release(&found);
        options.likeness = EQUAL;
        status = kith_dataset_examine(k->set, &options, &found, err);
    }
    if (status == KITH_ECANCELED) status = ki_tune_stopped(err);
    if (status == KITH_OK) status = ki_tune_keep_findings(t, k->set, &found, false, &tally, err);
    if (status == KITH_OK) status = ki_tune_count_findings(t, &tally, err);
    for (size_t i = 0; i < k->set->n_items && status == KITH_OK; i++) k->is_out[i] |= found.why_out[i] >= 0;
    kith_findings_release(&found);
    return status;
}

/* ---- the split ---- */

static bool has_own_split(const kith_dataset *set) {
    return strcmp(set->kind->name, "folder") != 0 || ki_folder_has_parts(set->root);
}

/* Whatever does not test trains. A copy is judged before it is drawn which classes test: unless the set says it, all train. */
static void settle_split(look *k) {
    const bool is_own = has_own_split(k->set);
    for (size_t i = 0; i < k->set->n_items; i++) {
        uint8_t *split = &k->set->item[i].split;
        if (!is_own || *split == KITH_SPLIT_VALIDATION) *split = KITH_SPLIT_TRAIN;
    }
}

/* A third of the classes that have two photos or more, drawn by the seed. */
static kith_status hold_out(look *k, kith_error *err) {
    kith_dataset *set = k->set;
    kith_status status = KITH_OK;
    int64_t *order = NULL, n = 0, n_able = 0;
    bool *tests = NULL;
    if (has_own_split(set)) return KITH_OK;
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
    for (size_t c = 0; c < k->set->n_classes; c++) n += k->n_of[c] > 1;
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
    t->n_found = (int64_t)k->set->n_items;
    count(k);
    KI_TRY(check_classes(k, err));
    KI_TRY(limit(k, err));
    drop(k);
    settle_split(k);
    KI_TRY(examine(k, err));
    count(k);
    KI_TRY(check_classes(k, err));
    KI_TRY(hold_out(k, err));
    count(k);
    for (size_t c = 0; c < k->set->n_classes; c++) t->n_used += k->n_of[c];
    return write_list(k, err);
}

static kith_status remember(ki_tune *t, kith_error *err) {
    const struct {
        const char *key;
        int64_t *value;
    } facts[] = {
        {"photos found", &t->n_found}, {"unreadable photos", &t->n_unread}, {"photos used", &t->n_used}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        double value = 0;
        KI_TRY(ki_tune_decide(t, facts[i].key, (double)*facts[i].value, &value, err));
        *facts[i].value = (int64_t)value;
    }
    return KITH_OK;
}

kith_status ki_tune_look(ki_tune *t, kith_error *err) {
    kith_status status = KITH_OK;
    look k = {.tune = t};
    if (!ki_tune_has_decided(t, "photos used")) {
        KI_CHECK(kith_dataset_open("auto", t->options->photos, &k.set, err));
        KI_CHECK(inspect(&k, err));
    }
    KI_CHECK(remember(t, err));
    ki_tune_tell_findings(t, KI_TUNE_BY_FILES);
done:
    ki_free(k.is_out);
    ki_free(k.n_of);
    kith_dataset_free(k.set);
    return status;
}
