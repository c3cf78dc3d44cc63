/* Training a part of a network: frozen layers, and LoRA (Hu et al., "LoRA: low-rank adaptation of large language models", ICLR 2022).
 *
 * With LoRA a linear layer y = x W^T + b becomes y = x W^T + b + s (x A^T) B^T with s = alpha / rank, A [rank, ic] and B [oc, rank],
 * and of the backbone only A and B learn. As nodes:
 *
 *     x ─┬─ NAME (frozen) ───────────────────────────────────────── + NAME.lora ─
 *        └─ NAME.lora_a ─ NAME.lora_scale (frozen) ─ NAME.lora_b ───┘
 *
 * lora_scale is s times the identity [rank, rank]. B is 0 at first, so the network begins as what it was. A model file has W + s B A and is
 * that of a plain network (net/weights.h); a checkpoint has W, A and B (docs/adr/0141). */
#ifndef KI_ADAPT_H
#define KI_ADAPT_H

#include "net/net.h"
#include "nn/params.h"

/* For net.c: freeze, and replace the graph by one with LoRA, before the heads are added. The nodes of `body` are then those of the
 * new graph. */
kith_status ki_adapt_backbone(const ki_adaptation *how, const char *backbone, ki_graph **graph, ki_body *body,
                              kith_error *err);

/* Replace a net and its parameters by the net as `how` says, with the same values; A is drawn by the seed. Nothing if `how` says nothing. */
kith_status ki_adapt(const ki_adaptation *how, uint64_t seed, ki_backend *backend, ki_net *net,
                     ki_params **params, kith_error *err);

/* Is it one of those that LoRA added? */
bool ki_adapt_is_added(const ki_net *net, const char *param);
/* A network without LoRA has merged what it learnt: B becomes 0. */
kith_status ki_adapt_clear(const ki_net *net, ki_params *params, kith_error *err);
/* values [n] of a parameter become those of the plain network: s B A is added to the weights of a layer with LoRA. */
kith_status ki_adapt_merge(const ki_net *net, const ki_params *params, const ki_param *param, ki_real *values,
                           kith_error *err);

#endif
