/* A teacher: a network that sees every batch beside the one that learns, and is not changed (docs/adr/0150). What it says of a batch is
 * its embedding where it has one, else its pooled features: a tap of the objective (objective/reg/tap.h). */
#ifndef KI_TEACHER_H
#define KI_TEACHER_H

#include "net/net.h"
#include "nn/plan.h"

typedef struct ki_teacher {
    ki_net net;
    ki_params *params;
    char hash[65]; /* SHA-256 of its file */
} ki_teacher;

typedef struct ki_recipe ki_recipe;

/* Open teacher number t of a recipe for images of `side` pixels and c channels, or for features of c numbers (side 1). Errors name the
 * teacher; release it also after one. */
kith_status ki_teacher_open(const ki_recipe *recipe, int t, int64_t c, int64_t side, ki_backend *backend,
                            ki_teacher *ret_teacher, kith_error *err);
void ki_teacher_release(ki_teacher *teacher); /* fine on a zeroed struct */

/* Numbers that it says of an image. */
int64_t ki_teacher_width(const ki_teacher *teacher);

/* A plan for batches of mb images, and where it has what it says: [mb, width] floats. */
kith_status ki_teacher_plan(const ki_teacher *teacher, ki_backend *backend, int64_t mb, ki_plan **ret_plan,
                            ki_edge *ret_edge, void **ret_rows, kith_error *err);

#endif
