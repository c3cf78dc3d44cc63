/* none: no network at all. The input vectors are `pooled`, and the embedding layer is a linear head on them: the usual
 * way to fit features of a large pretrained network to a task. */
#include "net/backbone.h"

static const ki_option options[] = {KI_OPTION_END};

static void build(ki_graph *graph, int input, const void *settings, ki_body *ret_body) {
    (void)graph, (void)settings;
    ret_body->map = input;
}

const ki_backbone ki_backbone_none = {
    .name = "none",
    .summary = "features made elsewhere as they are: the embedding layer alone is trained",
    .source = "ours",
    .classifier = "fc",
    .vector = 512,
    .options = options,
    .build = build,
};
