/* An examination of a data set while it is made: what has been found so far. */
#ifndef KI_DOCTOR_H
#define KI_DOCTOR_H

#include "base/arena.h"
#include "data/dataset/dataset.h"
#include "data/transform/resample.h"
#include "kith/doctor.h"
#include "kith/knn.h"
#include "kith/model.h"

typedef struct ki_doctor {
    const kith_dataset *set;
    const kith_doctor_options *options;
    kith_finding *findings; /* their texts are in the arena until the end */
    int64_t *items;         /* of all findings */
    size_t n, n_findings_room, n_listed, n_items_room;
    int64_t n_items;       /* of the set */
    int64_t *why_out;      /* [n_items]: as kith_findings has it */
    int64_t *group;        /* [n_items]: the group of the same picture that an item is in; -1: none */
    bool are_pictures;     /* though the set holds rows: they are what a network says of pictures */
    int64_t n_done, n_all; /* progress */
    ki_arena arena;
} ki_doctor;

/* Begin a finding. Its items follow by ki_doctor_item; is_out: the finding leaves the item out. */
kith_status ki_doctor_add(ki_doctor *doctor, kith_finding_kind kind, double score, int64_t label,
                          kith_error *err, const char *fmt, ...) KITH_PRINTF(6, 7);
kith_status ki_doctor_item(ki_doctor *doctor, int64_t item, bool is_out, kith_error *err);

/* The class of an item; -1: none. */
int64_t ki_doctor_label(const ki_doctor *doctor, int64_t item);
static inline bool ki_doctor_is_test(const ki_doctor *doctor, int64_t item) {
    return doctor->set->item[item].split == KITH_SPLIT_TEST;
}

/* The progress of one pass: a kith_progress_fn whose `user` is the doctor. The next pass begins after n_done. */
int ki_doctor_tell(void *doctor, int64_t n_done, int64_t n_all);

/* The passes, in this order: later ones pass over what earlier ones leave out. */
kith_status ki_doctor_look(ki_doctor *doctor, kith_error *err);    /* each image by itself */
kith_status ki_doctor_same(ki_doctor *doctor, kith_error *err);    /* the same picture more than once */
kith_status ki_doctor_compare(ki_doctor *doctor, kith_error *err); /* by vectors */
kith_status ki_doctor_count(ki_doctor *doctor,
                            kith_error *err); /* the classes, and files that are no items */

/* For layers above: only what is found by vectors (options->vectors), of a set whose pictures were looked at before. Its items may be
 * rows of features by now. */
kith_status ki_doctor_by_vectors(const kith_dataset *set, const kith_doctor_options *options,
                                 kith_findings *ret_findings, kith_error *err);

/* ---- by vectors: the parts of ki_doctor_compare ---- */

/* Neighbours of each row that are kept. */
enum { KI_DOCTOR_NEAREST = 20 };

/* The vectors of the items that no earlier pass leaves out. */
typedef struct ki_doctor_rows {
    kith_array unit; /* [n, dim], of length 1 */
    int64_t n, dim;
    int64_t *item;  /* [n] of the set, rising */
    int64_t *label; /* [n]; -1: none */
    int64_t *count; /* [classes of the set]: rows */
    kith_neighbor
        *near;      /* [n, KI_DOCTOR_NEAREST], the nearest first; the tails of few rows have the index -1 */
    bool *is_named; /* [n]: its label looks wrong */
} ki_doctor_rows;

kith_status ki_doctor_labels(ki_doctor *doctor, ki_doctor_rows *rows, kith_error *err);
kith_status ki_doctor_odd(ki_doctor *doctor, const ki_doctor_rows *rows, kith_error *err);
kith_status ki_doctor_near(ki_doctor *doctor, const ki_doctor_rows *rows, kith_error *err);
/* model: that made the rows. */
kith_status ki_doctor_shortcut(ki_doctor *doctor, const ki_doctor_rows *rows, kith_model *model,
                               kith_error *err);
/* Images that it will tell the progress of, at most; 0: it is left out. */
int64_t ki_doctor_shortcut_room(const ki_doctor *doctor);

/* How sharp an image is, as kith_doctor_options has it; NaN: too small or too flat to tell. `scratch` and the images are
 * memory to use. */
kith_status ki_doctor_sharpness(const ki_image *image, ki_resampler *scratch, ki_image small[2], double *ret,
                                kith_error *err);

#endif
