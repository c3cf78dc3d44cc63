/* One of two sides of a comparison: the same network on two backends, with the same parameters, fed the same drawn
 * images and gradients. Mistakes fail the running test. */
#ifndef KITH_NET_SIDE_H
#define KITH_NET_SIDE_H

#include "nn/plan.h"

enum { NET_SIDE_MOST = 1 << 16 }; /* numbers of any tensor of the network */

typedef struct net_side {
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
    int64_t mb;
    ki_real *buffer; /* [NET_SIDE_MOST] */
} net_side;

/* Owns backend and graph from now on. Parameters are moved away from their initial values by `span`
 * (small_net_shake). */
void net_side_init(net_side *side, ki_backend *backend, ki_graph *graph, double span,
                   const ki_plan_options *options);
void net_side_release(net_side *side);

int64_t net_side_input_count(const net_side *side);
/* With the batch. Like all counts here, it is checked to fit the buffer. */
int64_t net_side_tap_count(const net_side *side, const char *tap);

/* Forward of images drawn from `stream`; waits. */
void net_side_forward(net_side *side, uint32_t stream);
/* Backward of gradients drawn from `stream` at the taps, a list that ends with NULL; waits. */
void net_side_backward(net_side *side, const char *const *taps, uint32_t stream);

/* Into the buffer: the values at a tap; the gradient of a parameter, or its value where it is not trained. Return
 * how many. */
int64_t net_side_read_tap(net_side *side, const char *tap);
int64_t net_side_read_param(net_side *side, const char *name);

/* The buffers of a and b are alike: |a - b| <= tolerance |b| over n numbers. Returns how far off they are. */
double net_side_near(const char *what, const net_side *a, const net_side *b, int64_t n, double tolerance);
/* The same for the values at each of the taps. Returns the worst. */
double net_side_taps_near(net_side *a, net_side *b, const char *const *taps, double tolerance);

#endif
