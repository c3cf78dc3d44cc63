/* The ensemble of a backbone: its own nodes, with an attention at the place that its record names. */
#include "net/ensemble.h"

/* The map as each of the heads sees it: times the sigmoid of a 1x1 convolution, of its own, of the tower's last map. */
static int attend(ki_graph *graph, int map, int tower, ki_ensemble how) {
    if (map < 0) return map; /* the graph keeps the error */
    const ki_conv_attr attr = {.oc = how.heads * ki_graph_node(graph, map)->shape.dim[1],
                               .kh = 1,
                               .kw = 1,
                               .sh = 1,
                               .sw = 1,
                               .bias = true,
                               .start = KI_START_GLOROT,
                               .gain = how.mask_gain,
                               .fill = how.mask_bias,
                               .layers = how.heads};
    return ki_graph_attend(graph, KI_TOWER, map, ki_graph_conv(graph, KI_TOWER ".heads", tower, attr));
}

kith_status ki_ensemble_add(ki_graph *graph, const ki_graph *plain, const ki_tower *tower, ki_ensemble how,
                            int *map, kith_error *err) {
    KI_TRY(ki_graph_check(plain, err));
    const int first = ki_graph_find(plain, tower->first), end = ki_graph_find(plain, tower->end);
    if (first < 1 || end <= first || end > *map)
        return ki_fail(err, KITH_EINTERNAL,
                       "the tower from %s to before %s is nodes %d to %d; wanted nodes between 1 and %d",
                       tower->first, tower->end, first, end, *map);
    const int split = ki_graph_node(plain, first)->src[0];
    int x = ki_graph_copy(graph, -1, (ki_graph_span){.from = plain, .last = split});
    /* Without strides, so that the masks lie on the pixels of the map. */
    const ki_graph_span own = {
        .from = plain, .first = first, .last = end - 1, .prefix = KI_TOWER ".", .no_strides = true};
    x = attend(graph, x, ki_graph_copy(graph, x, own), how);
    *map = ki_graph_copy(graph, x, (ki_graph_span){.from = plain, .first = split + 1, .last = *map});
    return KITH_OK;
}
