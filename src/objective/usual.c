/* Methods by name, for timing, for trying and for advice. */
#include "objective/usual.h"

#include <stddef.h>

const char ki_usual_section[] = "{loss: {name: raw}, miner: {name: vthm}}";

const char *ki_usual_loss_at(int i) {
    static const char *const losses[] = {"raw+vthm", "binomial", "contrastive"};
    return i >= 0 && (size_t)i < sizeof losses / sizeof losses[0] ? losses[i] : NULL;
}

/* Proxies start by chance and learn faster than a layer that starts from what the network knows. */
static const ki_usual_way heads[] = {
    {"normsoftmax", "{loss: {name: normsoftmax}}", ", multipliers: {proxies: 10}"},
    {"raw with vthm", "{loss: {name: raw}, miner: {name: vthm, margin: 0.1}}", ""},
    {"softtriple with joint similarity",
     "{loss: {name: softtriple, centers: 4}, "
     "regularizers: [{name: joint_similarity, weight: 1, layers: [embedding]}]}",
     ", multipliers: {proxies: 10}"},
    {"binomial", "{loss: {name: binomial}}", ""},
    {"proxy_anchor", "{loss: {name: proxy_anchor}}", ", multipliers: {proxies: 100}"},
    {"binomial with energy confusion",
     "{loss: {name: binomial}, "
     "regularizers: [{name: energy_confusion, weight: 0.13, form: log}, {name: row_norm_penalty}]}",
     ""},
};

#define SOFTTRIPLE                            \
    "{loss: {name: softtriple, centers: 4}, " \
    "regularizers: [{name: joint_similarity, weight: 1, layers: [pooled, embedding]}]}"

/* Adam's large eps keeps the network near what it was: a weight with small gradients moves little. What LoRA adds begins with small
 * gradients (one factor is 0), so there eps is the usual one. The last stages alone have less to spoil and take a larger rate. */
static const ki_usual_fine fines[] = {
    {{"softtriple with joint similarity, all of the network", SOFTTRIPLE, ", eps: 0.01, weight_decay: 1e-4"},
     KI_USUAL_ALL,
     1e-4},
    {{"softtriple with joint similarity, last stages", SOFTTRIPLE, ", eps: 0.01, weight_decay: 1e-4"},
     KI_USUAL_LAST,
     3e-4},
    {{"softtriple with joint similarity, LoRA", SOFTTRIPLE, ", weight_decay: 1e-4"}, KI_USUAL_LORA, 3e-4},
    {{"binomial, all of the network", "{loss: {name: binomial}}", ", eps: 0.01, weight_decay: 1e-4"},
     KI_USUAL_ALL,
     1e-4},
    {{"binomial, last stages", "{loss: {name: binomial}}", ", eps: 0.01, weight_decay: 1e-4"},
     KI_USUAL_LAST,
     3e-4},
};

const ki_usual_way *ki_usual_head_at(int i) {
    return i >= 0 && (size_t)i < sizeof heads / sizeof heads[0] ? &heads[i] : NULL;
}

const ki_usual_fine *ki_usual_fine_at(int i) {
    return i >= 0 && (size_t)i < sizeof fines / sizeof fines[0] ? &fines[i] : NULL;
}

const char ki_advice_easier_pairs[] = "a miner that keeps easier pairs (semihard or all instead of hard)";
const char ki_advice_margin[] = "miner semihard";
