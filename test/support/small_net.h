/* A small network with every kind of node: convolutions with and without bias, batch norms, ReLUs
 * after each kind of producer, both poolings, LRN, an inception-like block, a residual block, global
 * pooling, linear, L2 norm, softmax cross-entropy. */
#ifndef KITH_SMALL_NET_H
#define KITH_SMALL_NET_H

#include "nn/graph.h"

enum { SMALL_NET_C = 3, SMALL_NET_H = 13, SMALL_NET_W = 12, SMALL_NET_CLASSES = 5 };

/* Taps: map, pooled, embedding, logits, loss. `dropout` puts one before the embedding. */
void small_net_build(ki_graph *graph, bool dropout);

#endif
