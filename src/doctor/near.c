/* Pictures that are almost the same: two of a burst, a crop. */
#include "doctor/doctor.h"

enum { NEAREST = 4 }; /* neighbours that are looked at */

static kith_status say_near(ki_doctor *d, int64_t a, int64_t b, double score, kith_error *err) {
    const bool leaks = ki_doctor_is_test(d, a) != ki_doctor_is_test(d, b);
    const kith_dataset *set = d->set;
    const char *x = ki_dataset_item_name(set, (size_t)a), *y = ki_dataset_item_name(set, (size_t)b);
    const char *one = kith_split_name((kith_split)set->item[a].split),
               *other = kith_split_name((kith_split)set->item[b].split);
    KI_TRY(leaks ? ki_doctor_add(d, KITH_FINDING_NEAR_LEAK, score, -1, err,
                                 "%s (%s) and %s (%s) look almost the same (cosine %.3f)", x, one, y, other,
                                 score)
                 : ki_doctor_add(d, KITH_FINDING_NEAR, score, -1, err,
                                 "%s and %s look almost the same (cosine %.3f)", x, y, score));
    KI_TRY(ki_doctor_item(d, a, false, err));
    return ki_doctor_item(d, b, false, err);
}

/* The nearest neighbours of a row that are near: one on its own side, one on the other. */
static kith_status ask_row(ki_doctor *d, const ki_doctor_rows *rows, int64_t row, kith_error *err) {
    const int64_t item = rows->item[row];
    bool is_done[2] = {false, false};
    if (d->why_out[item] >= 0) return KITH_OK;
    for (int h = 0; h < NEAREST; h++) {
        const kith_neighbor *near = &rows->near[row * KI_DOCTOR_NEAREST + h];
        if (near->index < 0 || !(near->score >= d->options->near)) return KITH_OK;
        const int64_t other = rows->item[near->index];
        const bool leaks = ki_doctor_is_test(d, item) != ki_doctor_is_test(d, other);
        if (is_done[leaks] || d->why_out[other] >= 0) continue;
        if (d->group[item] >= 0 && d->group[item] == d->group[other]) continue;
        is_done[leaks] = true;
        /* Of two rows that are each other's nearest, the first speaks. */
        bool is_mutual = false;
        for (int k = 0; k < NEAREST && near->index < row; k++) {
            const kith_neighbor *back = &rows->near[near->index * KI_DOCTOR_NEAREST + k];
            is_mutual |= back->index == row;
            if (back->index < 0 || back->index == row) break;
            const int64_t third = rows->item[back->index];
            if ((ki_doctor_is_test(d, third) != ki_doctor_is_test(d, other)) == leaks &&
                d->why_out[third] < 0)
                break;
        }
        if (!is_mutual) KI_TRY(say_near(d, item, other, near->score, err));
    }
    return KITH_OK;
}

kith_status ki_doctor_near(ki_doctor *d, const ki_doctor_rows *rows, kith_error *err) {
    for (int64_t i = 0; i < rows->n; i++) KI_TRY(ask_row(d, rows, i, err));
    return KITH_OK;
}
