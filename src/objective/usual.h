/* What the layers above need to know about methods without naming any: what to time by default, and what to try
 * when training goes wrong. */
#ifndef KI_OBJECTIVE_USUAL_H
#define KI_OBJECTIVE_USUAL_H

/* An objective section for a training step that is timed. */
extern const char ki_usual_section[];
/* Losses that are timed, "LOSS" or "LOSS+MINER"; NULL past the end. */
const char *ki_usual_loss_at(int i);

/* Miners to try when all embeddings have become alike, and when the loss stays at its margin. */
extern const char ki_advice_easier_pairs[];
extern const char ki_advice_margin[];

#endif
