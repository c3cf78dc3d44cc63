/* The descriptors that a term of the objective makes at test time (HORDE: all orders), after the normalised embedding,
 * as a describer for the embedder (embed/forward.h). They are computed where the network runs. */
#ifndef KI_DESCRIBE_H
#define KI_DESCRIBE_H

#include "embed/forward.h"
#include "train/learner.h"

typedef struct ki_description ki_description;

/* Of the learner's network and objective, as they are whenever a row is made: it may be kept while the learner goes on.
 * The learner must outlive it. KITH_EINVAL when no term has descriptors. */
kith_status ki_description_new(ki_learner *learner, ki_description **ret_description, kith_error *err);
void ki_description_free(ki_description *description); /* NULL is fine */

/* Valid as long as the description. */
const ki_describer *ki_description_describer(const ki_description *description);

#endif
