/* Groups: items that must not be parted between training, validation and test, such as the photos of one session. Classes that share a
 * group are one unit: they are held out together. */
#include "base/alloc.h"
#include "base/log.h"
#include "data/dataset/dataset.h"

int64_t kith_dataset_n_groups(const kith_dataset *set) { return set ? set->n_groups : 0; }

kith_status ki_dataset_group(kith_dataset *set, const char *name, size_t n, int32_t *ret_group,
                             kith_error *err) {
    int32_t number = 0;
    if (!set->groups) KI_TRY(ki_dataset_new(NULL, "", &set->groups, err));
    KI_TRY(ki_dataset_class(set->groups, name, n, &number, err));
    set->n_groups = (int64_t)set->groups->n_classes;
    *ret_group = number + 1;
    return KITH_OK;
}

static int32_t unit_of(int32_t *unit, int32_t c) {
    while (unit[c] != c) c = unit[c] = unit[unit[c]];
    return c;
}

kith_status ki_dataset_units(const kith_dataset *set, bool with_test, int32_t **ret_unit, kith_error *err) {
    kith_status status = KITH_OK;
    int32_t *unit = NULL, *first = NULL;
    KI_CHECK(ki_alloc_or(&unit, set->n_classes, sizeof *unit, "classes", err));
    KI_CHECK(ki_alloc_or(&first, (size_t)set->n_groups + 1, sizeof *first, "groups", err));
    for (size_t c = 0; c < set->n_classes; c++) unit[c] = (int32_t)c;
    for (int64_t g = 0; g <= set->n_groups; g++) first[g] = -1;
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        if (!item->group || item->label < 0 || (!with_test && item->split == KITH_SPLIT_TEST)) continue;
        if (first[item->group] < 0) first[item->group] = item->label;
        const int32_t a = unit_of(unit, first[item->group]), b = unit_of(unit, item->label);
        if (a < b)
            unit[b] = a;
        else
            unit[a] = b;
    }
    for (size_t c = 0; c < set->n_classes; c++) unit[c] = unit_of(unit, (int32_t)c);
    *ret_unit = unit;
    unit = NULL;
done:
    ki_free(unit);
    ki_free(first);
    return status;
}

kith_status ki_dataset_check_groups(const kith_dataset *set, kith_error *err) {
    kith_status status = KITH_OK;
    int8_t *split = NULL;
    if (!set->groups) return KITH_OK;
    KI_TRY(ki_alloc_or(&split, (size_t)set->n_groups + 1, 1, "groups", err));
    for (int64_t g = 0; g <= set->n_groups; g++) split[g] = -1;
    for (size_t i = 0; i < set->n_items && status == KITH_OK; i++) {
        const ki_item *item = &set->item[i];
        if (!item->group) continue;
        if (split[item->group] < 0) split[item->group] = (int8_t)item->split;
        if (split[item->group] == (int8_t)item->split) continue;
        status =
            ki_fail(err, KITH_EINVAL, "the group '%.200s' is in %s and, with %.300s, in %s",
                    set->groups->class_[item->group - 1].key, kith_split_name((kith_split)split[item->group]),
                    item->path, kith_split_name((kith_split)item->split));
        ki_hint(err, status, "a group stays together: put all of it into one split, or leave its name out");
    }
    ki_free(split);
    return status;
}

kith_status ki_dataset_halve(kith_dataset *set, kith_error *err) {
    const int32_t n = (int32_t)set->n_classes, n_train = (n + 1) / 2;
    int32_t *unit = NULL, *size = NULL, n_so_far = 0;
    bool *trains = NULL;
    kith_status status = KITH_OK;
    if (!set->groups) return ki_dataset_split_at(set, n_train), KITH_OK;
    KI_CHECK(ki_dataset_units(set, true, &unit, err));
    KI_CHECK(ki_zalloc_or(&size, set->n_classes, sizeof *size, "classes", err));
    KI_CHECK(ki_zalloc_or(&trains, set->n_classes, sizeof *trains, "classes", err));
    for (int32_t c = 0; c < n; c++) size[unit[c]]++;
    for (int32_t c = 0; c < n; c++) {
        if (unit[c] != c || (n_so_far > 0 && n_so_far + size[c] > n_train)) continue;
        trains[c] = true;
        n_so_far += size[c];
    }
    if (n > 1 && n_so_far == n)
        ki_log(KITH_LOG_WARNING,
               "%s: groups join all %d classes into one: no class can be held out for the test; add a column "
               "split, or leave out the groups that reach over classes",
               set->root, (int)n);
    for (size_t i = 0; i < set->n_items; i++)
        set->item[i].split = trains[unit[set->item[i].label]] ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST;
done:
    ki_free(unit);
    ki_free(size);
    ki_free(trains);
    return status;
}
