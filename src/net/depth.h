/* How deep a network's parameters lie, for rates that fall with depth (optim.layer_decay).
 *
 * Depth 0 is the stem, then each block is a layer, and what follows the last block, with the heads, is layer n + 1. The rate of a
 * parameter of depth d is multiplied by decay^(n + 1 - d). So do BEiT's and MAE's code. timm's param_groups_layer_decay differs in
 * one place: it counts a norm behind the last block to that block.
 *
 * Blocks are found by the names of nodes, in the graph's order: `WORD.K.…` (layer1.0.conv1, blocks.11.attn) or `WORD.S.blocks.K.…`
 * (stages.2.blocks.5.mlp). What lies between two blocks, as a downsampling, belongs to the second, as in timm. In a network without
 * such names a layer begins at each convolution or linear layer whose first part of the name is new (inception3a, block1), and the first of
 * them is the stem; or the backbone's record lists its layers. */
#ifndef KI_DEPTH_H
#define KI_DEPTH_H

#include "net/net.h"

typedef struct ki_depths {
    int n;      /* blocks */
    int *depth; /* [nodes of the graph] 0 … n + 1 */
} ki_depths;

/* Release with ki_depths_release. */
kith_status ki_depths_find(const ki_net *net, ki_depths *ret_depths, kith_error *err);
void ki_depths_release(ki_depths *depths); /* fine on a zeroed struct */
/* What the rate of the node's parameters is multiplied by. */
double ki_depths_rate(const ki_depths *depths, int node, double decay);

/* Is `name` the layer, or does it begin with it and a dot or an underscore? */
bool ki_layer_has(const char *layer, const char *name);

#endif
