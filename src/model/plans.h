/* The plans of a model: a network planned for a tap, a format of its input and a number of images, each with its memory. Those
 * that were used last are kept, so that calls which take turns (queries of one picture, of sixteen, explanations) plan once. */
#ifndef KI_MODEL_PLANS_H
#define KI_MODEL_PLANS_H

#include "embed/embedder.h"
#include "kith/model.h"

enum { KI_MOST_PLANS = 6 };

typedef struct ki_model_plan {
    ki_embedder *embedder; /* NULL: none */
    const char *tap;       /* the graph's */
    ki_batch_format format;
    int64_t batch;
    kith_resize resize; /* of the embedder's transform */
    int resize_to;
    uint64_t used; /* the larger, the later */
} ki_model_plan;

/* All zero: no plans. */
typedef struct ki_plans {
    ki_model_plan plan[KI_MOST_PLANS];
    uint64_t n_uses;
} ki_plans;

typedef enum ki_plan_source {
    KI_PLAN_ITEMS,  /* images that a loader brings, in the format that suits the backend */
    KI_PLAN_PIXELS, /* decoded images */
    KI_PLAN_FLOATS, /* the network's input */
} ki_plan_source;

/* The embedder that has the tap planned for `batch` images; it stays the model's, and valid until the next call. `o` says how
 * images are resized and by how many threads they are decoded; NULL for floats. Plans are dropped, the one that was used longest
 * ago first, when there are more than KI_MOST_PLANS, or when they hold more than twice the model's most images. */
kith_status ki_model_plan_get(kith_model *model, ki_plan_source source, const char *tap, int64_t batch,
                              const kith_embed_options *o, ki_embedder **ret_embedder, kith_error *err);

void ki_plans_release(ki_plans *plans);

#endif
