/* The descriptors that a term of the objective makes at test time (HORDE: all orders), after the normalised embedding,
 * as a describer for the embedder (embed/forward.h). They are computed where the network runs. */
#ifndef KI_DESCRIBE_H
#define KI_DESCRIBE_H

#include "embed/forward.h"
#include "objective/objective.h"

typedef struct ki_description ki_description;

/* Everything behind a pointer is borrowed and must outlive the description. The objective's host values are used as
 * they are when the embedder makes its plan (ki_learner_pull). KITH_EINVAL when no term has descriptors. */
kith_status ki_description_new(ki_backend *backend, const ki_net *net, const ki_params *params,
                               ki_objective *objective, ki_description **ret_description, kith_error *err);
void ki_description_free(ki_description *description); /* NULL is fine */

/* Valid as long as the description. */
const ki_describer *ki_description_describer(const ki_description *description);

#endif
