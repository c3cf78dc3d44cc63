/* An ensemble of heads out of a plain network: the backbone's record says where (docs/adr/0060).
 *
 *     … ─ map ┬ copy of the tower ─ 1x1 convolution ┐
 *             └───────────────────────────── attend ─ the rest, a row for each head */
#ifndef KI_ENSEMBLE_H
#define KI_ENSEMBLE_H

#include "net/backbone.h"

typedef struct ki_ensemble {
    int64_t heads;
    double mask_gain, mask_bias; /* how the masks start (kith_model_options) */
} ki_ensemble;

/* Adds to `graph` what `plain`, a backbone's graph up to node *map, becomes with several heads. *map is then the node of the
 * map in `graph`, a row for each head. KITH_EINTERNAL: the record names a tower that the backbone does not have; otherwise errors
 * are kept by the graph. */
kith_status ki_ensemble_add(ki_graph *graph, const ki_graph *plain, const ki_tower *tower, ki_ensemble how,
                            int *map, kith_error *err);

#endif
