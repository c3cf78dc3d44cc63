/* A small network with every kind of node: convolutions with and without bias, batch norms, ReLUs
 * after each kind of producer, both poolings, LRN, an inception-like block, a residual block, global
 * pooling, linear, L2 norm, softmax cross-entropy. */
#ifndef KITH_SMALL_NET_H
#define KITH_SMALL_NET_H

#include "nn/params.h"

enum { SMALL_NET_C = 3, SMALL_NET_H = 13, SMALL_NET_W = 12, SMALL_NET_CLASSES = 5 };

/* Taps: map, pooled, embedding, logits. `dropout` puts one before the embedding. */
void small_net_build(ki_graph *graph, bool dropout);
ki_graph *small_net_graph(bool dropout); /* the same in a new graph */

/* Move every parameter away from its initial value, by up to half of `span`; at the initial values a mistake in
 * the folding of a batch norm would hardly show. The random numbers depend on the parameter's name, because each
 * backend has its own order of parameters. `buffer` has room for any parameter. */
void small_net_shake(ki_params *params, double span, ki_real *buffer);

#endif
