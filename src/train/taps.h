/* Taps: where an objective reads a network. Learners and the describer share this: the taps that a plan is asked
 * for, and their addresses for an engine. */
#ifndef KI_TAPS_H
#define KI_TAPS_H

#include "nn/plan.h"
#include "objective/engine.h"

/* Taps that the network has; the tap of the weight is a parameter. */
enum { KI_N_NET_TAPS = 3 };
extern const ki_tap ki_net_taps[KI_N_NET_TAPS];

/* Write the names of the network's taps in the set `taps` (KI_TAP_BIT of each) one after the other; the rest of
 * ret_names, a list of ki_plan_options, is left as it is. */
void ki_taps_list(unsigned taps, const char **ret_names);
/* The master weights of the embedding layer. */
kith_status ki_taps_weight(const ki_params *params, const ki_param **ret_weight, kith_error *err);

/* Where the plan has the objective's taps and reads their gradients. Without training, a tap's own address is given
 * for its gradient, because an engine that evaluates nothing writes nothing there. */
kith_status ki_taps_engine(ki_plan *plan, const ki_objective *objective, const ki_param *weight, bool trains,
                           ki_engine_batch *batch, kith_error *err);
/* The same for a batch of which this rank has no image: taps of 0 rows, whose addresses are never read. */
kith_status ki_taps_empty(const ki_graph *graph, const ki_objective *objective, const ki_param *weight,
                          ki_engine_batch *batch, kith_error *err);
/* Zeroed backend memory [batch, dim] for the gradient that stops at the embedding; NULL when there is none. */
kith_status ki_taps_stopped(ki_backend *backend, const ki_objective *objective, int64_t batch, int64_t dim,
                            ki_real **ret_stopped, kith_error *err);

#endif
