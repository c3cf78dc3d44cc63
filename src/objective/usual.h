/* What the layers above need to know about methods without naming any: what to time by default, what to try first,
 * and what to try when training goes wrong. */
#ifndef KI_OBJECTIVE_USUAL_H
#define KI_OBJECTIVE_USUAL_H

/* An objective section for a training step that is timed. */
extern const char ki_usual_section[];
/* Losses that are timed, "LOSS" or "LOSS+MINER"; NULL past the end. */
const char *ki_usual_loss_at(int i);

/* Ways to train that are worth trying on new data, the simplest first; docs/choosing.md says what each has shown. */
typedef struct ki_usual_way {
    const char *name, *objective; /* the section */
    const char *optim;            /* more keys of that section, beginning with ", " */
} ki_usual_way;

/* For an embedding layer on a network that does not change; NULL past the end. */
const ki_usual_way *ki_usual_head_at(int i);
/* What of the network learns. */
typedef enum ki_usual_part {
    KI_USUAL_ALL,
    KI_USUAL_LAST, /* its second half */
    KI_USUAL_LORA, /* low-rank additions to its linear layers */
} ki_usual_part;

/* For the network; NULL past the end. Those that are tried first where there is time for few come first. */
typedef struct ki_usual_fine {
    ki_usual_way way;
    ki_usual_part part;
    double lr;
} ki_usual_fine;
const ki_usual_fine *ki_usual_fine_at(int i);

/* Miners to try when all embeddings have become alike, and when the loss stays at its margin. */
extern const char ki_advice_easier_pairs[];
extern const char ki_advice_margin[];

#endif
