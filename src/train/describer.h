/* Describer: images to the descriptors that a term of the objective has for test time (HORDE: all orders), behind
 * the normalised embedding. One batch at a time, where the network runs. */
#ifndef KI_DESCRIBER_H
#define KI_DESCRIBER_H

#include "objective/objective.h"
#include "train/embedder.h"

typedef struct ki_describer ki_describer;

/* Everything named by a pointer is borrowed and must outlive the describer, but for the transform. The objective's
 * host values are taken as they are now (ki_learner_pull). */
typedef struct ki_describer_settings {
    ki_backend *backend;
    const ki_net *net;
    ki_params *params;
    ki_objective *objective; /* ki_objective_describe_dim > 0 */
    int64_t batch;           /* most images at once */
    ki_batch_format format;
    const kith_transform *transform;
} ki_describer_settings;

kith_status ki_describer_new(const ki_describer_settings *settings, ki_describer **ret_describer,
                             kith_error *err);
void ki_describer_free(ki_describer *describer); /* NULL is fine */

/* Rows [batch->n, ki_objective_describe_dim] are there when the call returns. */
kith_status ki_describer_run(ki_describer *describer, const ki_embedder_batch *batch, float *ret_rows,
                             kith_error *err);

#endif
