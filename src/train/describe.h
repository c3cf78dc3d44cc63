/* What a term of the objective has for test time (HORDE: all orders), behind the normalised embedding, as a describer of
 * the embedder (embed/forward.h): evaluated where the network runs. */
#ifndef KI_DESCRIBE_H
#define KI_DESCRIBE_H

#include "embed/forward.h"
#include "train/learner.h"

typedef struct ki_description ki_description;

/* Of the learner's network and objective, as they are whenever a row is made: it may be kept while the learner goes on.
 * The learner must outlive it. KITH_EINVAL when no term has descriptors. */
kith_status ki_description_new(ki_learner *learner, ki_description **ret_description, kith_error *err);
void ki_description_free(ki_description *description); /* NULL is fine */

/* As long as the description. */
const ki_describer *ki_description_describer(const ki_description *description);

#endif
