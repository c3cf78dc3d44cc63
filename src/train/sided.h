/* Sided: the network that learns and its teachers, once for each side of the images that they are trained on. All use the same
 * parameters. A teacher sees the very pixels that the learning network sees, at the batch's side. */
#ifndef KI_SIDED_H
#define KI_SIDED_H

#include "data/transform/crop_sides.h"
#include "train/teacher.h"

typedef struct ki_sided ki_sided;

/* Can the network see images of all these sides with the same parameters? Errors name the side. */
kith_status ki_sided_check(const ki_net *net, const ki_crop_sides *sides, kith_error *err);

/* The networks and the teachers are borrowed. Without sides there is the net's own alone. Errors are those of ki_sided_check. */
kith_status ki_sided_new(const ki_net *net, const ki_teacher *teachers, int n_teachers,
                         const ki_crop_sides *sides, ki_sided **ret_sided, kith_error *err);
void ki_sided_free(ki_sided *sided); /* NULL is fine */

int64_t ki_sided_largest(const ki_sided *sided);
/* NULL: no images have this side. */
const ki_net *ki_sided_net(const ki_sided *sided, int64_t side);
const ki_teacher *ki_sided_teacher(const ki_sided *sided, int t, int64_t side);

#endif
