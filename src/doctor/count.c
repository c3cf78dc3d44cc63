/* The classes: with one image, without any, with far more than others, counted after what is left out. And the files that are no
 * items of the set. */
#include <stdlib.h>

#include "base/alloc.h"
#include "doctor/doctor.h"

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Images of the median class, of those that have any. sorted: scratch, one for each class. */
static int64_t median_of(const int64_t *count, int64_t n, int64_t *sorted) {
    int64_t n_used = 0;
    for (int64_t c = 0; c < n; c++) {
        if (count[c] > 0) sorted[n_used++] = count[c];
    }
    if (n_used == 0) return 0;
    qsort(sorted, (size_t)n_used, sizeof *sorted, by_value);
    return sorted[(n_used - 1) / 2];
}

static kith_status say_single(ki_doctor *d, int64_t label, int64_t item, kith_error *err) {
    KI_TRY(ki_doctor_add(d, KITH_FINDING_SINGLE, 0, label, err, "the class %s has one image: %s",
                         d->set->class_[label].name, ki_dataset_item_name(d->set, (size_t)item)));
    return ki_doctor_item(d, item, false, err);
}

static kith_status say_classes(ki_doctor *d, const int64_t *count, const int64_t *last, int64_t median,
                               kith_error *err) {
    for (int64_t c = 0; c < (int64_t)d->set->n_classes; c++) {
        const ki_class *of = &d->set->class_[c];
        const double times = median > 0 ? (double)count[c] / (double)median : 0;
        if (of->is_none) continue;
        if (count[c] == 1) KI_TRY(say_single(d, c, last[c], err));
        if (count[c] == 0)
            KI_TRY(ki_doctor_add(d, KITH_FINDING_EMPTY, 0, c, err, "the class %s has no image%s", of->name,
                                 of->n_images > 0 ? " once what is wrong is left out" : ""));
        if (times > d->options->most_uneven)
            KI_TRY(ki_doctor_add(
                d, KITH_FINDING_UNEVEN, times, c, err,
                "the class %s has %lld images, %.3g times those of the median class, which has %lld",
                of->name, (long long)count[c], times, (long long)median));
    }
    return KITH_OK;
}

static kith_status say_files(ki_doctor *d, kith_error *err) {
    const kith_dataset *set = d->set;
    const int64_t n_missing = kith_dataset_n_missing(set), n_unread = kith_dataset_n_unread(set);
    const int64_t n_shards = ki_unread_n_shards(&set->unread);
    for (int64_t i = 0; i < n_shards; i++)
        KI_TRY(ki_doctor_add(d, KITH_FINDING_UNREADABLE, 0, -1, err, "%s", set->unread.shard[i].why));
    if (n_missing > 0)
        KI_TRY(ki_doctor_add(d, KITH_FINDING_MISSING, (double)n_missing, -1, err,
                             "%lld listed file%s not exist, the first is %s", (long long)n_missing,
                             n_missing == 1 ? " does" : "s do", kith_dataset_missing(set, 0)));
    if (n_unread > set->unread.n_of[KI_UNREAD_SHARD])
        KI_TRY(ki_doctor_add(d, KITH_FINDING_NOT_READ, (double)n_unread, -1, err,
                             "not read: %s; the first is %s", kith_dataset_unread_kinds(set),
                             kith_dataset_unread(set, 0)));
    return KITH_OK;
}

kith_status ki_doctor_count(ki_doctor *d, kith_error *err) {
    kith_status status;
    const size_t n = d->set->n_classes;
    int64_t *count = NULL, *last = NULL, *sorted = NULL;
    KI_CHECK(ki_zalloc_or(&count, n, sizeof *count, "class counts", err));
    KI_CHECK(ki_zalloc_or(&last, n, sizeof *last, "class counts", err));
    KI_CHECK(ki_zalloc_or(&sorted, n, sizeof *sorted, "class counts", err));
    for (int64_t i = 0; i < d->n_items; i++) {
        const int64_t label = ki_doctor_label(d, i);
        if (label < 0 || d->why_out[i] >= 0) continue;
        count[label]++;
        last[label] = i;
    }
    KI_CHECK(say_classes(d, count, last, median_of(count, (int64_t)n, sorted), err));
    status = say_files(d, err);
done:
    ki_free(count);
    ki_free(last);
    ki_free(sorted);
    return status;
}
