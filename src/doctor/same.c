/* The same picture more than once: in several classes, in test and in training, or twice in a class. */
#include <string.h>

#include "base/alloc.h"
#include "doctor/doctor.h"
#include "kith/duplicates.h"
#include "kith/eval.h"

enum { MOST_NAMED = 4, MOST_HASHED = 100 };

/* The members of a group, and what is wrong with them together. */
typedef struct spread {
    const kith_duplicate *picture;
    int64_t n;
    double likeness; /* of the least alike */
    bool over_sides, over_classes, is_mirrored;
    bool over_test_classes; /* two in test are of different classes */
    const char *same;       /* in words */
} spread;

static spread spread_of(const ki_doctor *d, const kith_duplicates *found, int64_t group) {
    spread s = {.picture = found->pictures + found->begin[group],
                .n = found->begin[group + 1] - found->begin[group],
                .likeness = 1};
    int64_t test_class = -2;
    for (int64_t i = 0; i < s.n; i++) {
        const int64_t id = s.picture[i].id, label = ki_doctor_label(d, id);
        if (!ki_doctor_is_test(d, id)) continue;
        s.over_test_classes |= test_class != -2 && label != test_class;
        test_class = label;
    }
    for (int64_t i = 1; i < s.n; i++) {
        const kith_duplicate *p = &s.picture[i];
        s.over_sides |= ki_doctor_is_test(d, p->id) != ki_doctor_is_test(d, s.picture[0].id);
        s.over_classes |= ki_doctor_label(d, p->id) != ki_doctor_label(d, s.picture[0].id);
        s.is_mirrored |= p->is_mirrored;
        if (p->likeness < s.likeness) s.likeness = p->likeness;
    }
    return s;
}

/* Are the files equal, byte for byte? Of very large groups nobody asks. */
static bool are_same_files(const ki_doctor *d, const spread *s) {
    char first[65], other[65];
    if (s->n > MOST_HASHED || d->set->item[s->picture[0].id].pixels >= 0) return false;
    if (kith_file_hash(d->set->item[s->picture[0].id].path, first, NULL) != KITH_OK) return false;
    for (int64_t i = 1; i < s->n; i++) {
        if (kith_file_hash(d->set->item[s->picture[i].id].path, other, NULL) != KITH_OK) return false;
        if (strcmp(first, other) != 0) return false;
    }
    return true;
}

static void put_names(const ki_doctor *d, const spread *s, ki_buffer *out) {
    for (int64_t i = 0; i < s->n && i < MOST_NAMED; i++) {
        const ki_item *item = &d->set->item[s->picture[i].id];
        ki_buffer_put(out, "%s%s",
                      i == 0          ? ""
                      : i + 1 == s->n ? " and "
                                      : ", ",
                      ki_dataset_item_name(d->set, (size_t)s->picture[i].id));
        if (s->over_sides) ki_buffer_put(out, " (%s)", kith_split_name((kith_split)item->split));
    }
    if (s->n > MOST_NAMED) ki_buffer_put(out, " and %lld more", (long long)(s->n - MOST_NAMED));
    ki_buffer_add(out, "", 1);
}

/* A finding of the group, without its items. */
static kith_status add(ki_doctor *d, const spread *s, kith_finding_kind kind, const char *where,
                       kith_error *err) {
    ki_buffer names = {.err = err};
    put_names(d, s, &names);
    kith_status status = names.status;
    if (status == KITH_OK)
        status = ki_doctor_add(d, kind, s->likeness, -1, err, "%.900s: %s%s", names.data, s->same, where);
    ki_buffer_release(&names);
    return status;
}

/* Is an earlier member of the same class and on the same side? */
static bool is_again(const ki_doctor *d, const spread *s, int64_t i) {
    const int64_t id = s->picture[i].id;
    for (int64_t k = 0; k < i; k++) {
        const int64_t other = s->picture[k].id;
        if (ki_doctor_label(d, id) == ki_doctor_label(d, other) &&
            ki_doctor_is_test(d, id) == ki_doctor_is_test(d, other))
            return true;
    }
    return false;
}

static kith_status say(ki_doctor *d, const spread *s, kith_error *err) {
    bool any_again = false;
    if (s->over_classes) {
        KI_TRY(add(d, s, KITH_FINDING_CONFLICT, " in several classes", err));
        for (int64_t i = 0; i < s->n; i++) {
            const int64_t id = s->picture[i].id;
            KI_TRY(ki_doctor_item(d, id, s->over_test_classes || !ki_doctor_is_test(d, id), err));
        }
    }
    if (s->over_sides) {
        KI_TRY(add(d, s, KITH_FINDING_LEAK, " in test and in training", err));
        for (int64_t i = 0; i < s->n; i++)
            KI_TRY(ki_doctor_item(d, s->picture[i].id, !ki_doctor_is_test(d, s->picture[i].id), err));
    }
    for (int64_t i = 1; i < s->n && !any_again; i++) any_again = is_again(d, s, i);
    if (!any_again) return KITH_OK;
    KI_TRY(add(d, s, KITH_FINDING_DUPLICATE, "", err));
    for (int64_t i = 0; i < s->n; i++) KI_TRY(ki_doctor_item(d, s->picture[i].id, is_again(d, s, i), err));
    return KITH_OK;
}

kith_status ki_doctor_same(ki_doctor *d, kith_error *err) {
    kith_duplicates found = {0};
    KITH_OPTIONS(kith_duplicates_options, options);
    options.least = d->options->likeness;
    options.progress = ki_doctor_tell;
    options.user = d;
    kith_status status = kith_dataset_duplicates(d->set, &options, &found, err);
    for (int64_t g = 0; g < found.n_groups && status == KITH_OK; g++) {
        spread s = spread_of(d, &found, g);
        s.same = are_same_files(d, &s) ? "the same file"
                 : s.is_mirrored       ? "the same picture, mirrored,"
                                       : "the same picture";
        for (int64_t i = 0; i < s.n; i++) d->group[s.picture[i].id] = g;
        status = say(d, &s, err);
    }
    kith_duplicates_release(&found);
    return status;
}
