/* An objective: loss + miner + weighted regularizers, as a recipe's `objective:` section says.
 *
 *     objective:
 *       loss: {name: binomial, alpha: 2, beta: 50, gamma: 0.5}      # or {name: none}
 *       miner: {name: vthm, margin: 0.1}                            # default: all
 *       memory: {size: 4096, warmup: 1000}                          # cross-batch memory; default: none
 *       regularizers:
 *         - {name: energy_confusion, weight: 0.13, form: log, warmup: 500}
 *
 * Evaluating it on a batch gives the value of every term, and the gradient at every tap and at every
 * parameter it owns. It contains no network; the caller passes in the taps and uses the gradients. */
#ifndef KI_OBJECTIVE_H
#define KI_OBJECTIVE_H

#include "base/value.h"
#include "comm/comm.h"
#include "objective/loss/loss.h"
#include "objective/miner/miner.h"
#include "objective/reg/reg.h"

typedef struct ki_objective ki_objective;

/* `section` is the value of the key `objective` (a map) and must stay valid as long as the objective
 * (options may point into it). Unknown methods and options are errors that suggest the nearest.
 * Parameters are made with the sizes given and initialised from seed. */
kith_status ki_objective_new(const ki_value *section, const ki_sizes *sizes, uint64_t seed,
                             ki_objective **ret_objective, kith_error *err);
void ki_objective_free(ki_objective *objective); /* NULL is fine */

/* The same checks without values, because parameters may be large: what it is made of can be asked, and nothing evaluated. */
kith_status ki_objective_outline(const ki_value *section, const ki_sizes *sizes, ki_objective **ret_objective,
                                 kith_error *err);

/* Does the loss of a checked section take its pairs only from the batch? false: there is no loss, or it compares with
 * proxies or a memory. */
bool ki_objective_needs_pairs(const ki_value *section);

/* Taps that the terms read, KI_TAP_BIT of each: those must be in every batch. */
unsigned ki_objective_taps(const ki_objective *objective);

/* The name of the first term that counts only items with a class; NULL: none does. */
const char *ki_objective_reads_classes(const ki_objective *objective);

/* Terms: the loss, unless it is none, and the regularizers. */
size_t ki_objective_term_count(const ki_objective *objective);
/* The name of term i, as in ki_term. */
const char *ki_objective_term_name(const ki_objective *objective, size_t i);

/* The loss's record (NULL: none), and its columns per class: 0 when it compares items, not proxies. */
const ki_loss *ki_objective_loss(const ki_objective *objective);
int64_t ki_objective_centers(const ki_objective *objective);

/* Parameters, in a fixed order; NULL past the end. Values may be written between evaluations. */
ki_state *ki_objective_param(ki_objective *objective, size_t i);
ki_state *ki_objective_param_named(ki_objective *objective, const char *name); /* NULL: none */
void ki_objective_clear_diffs(ki_objective *objective);
/* No warning of batches without a pair; they are counted all the same. */
void ki_objective_hush(ki_objective *objective);

/* Taps, KI_TAP_BIT of each, that terms need from all training images before the first step (0: none), and passing
 * one to the terms, which changes parameters. KITH_EINVAL names a label outside the classes. */
unsigned ki_objective_start_taps(const ki_objective *objective);
kith_status ki_objective_start(ki_objective *objective, ki_tap tap, const ki_features *features,
                               kith_error *err);

/* Rows without a class come last, and their label is -1: images of a data set that has no labels. The loss, its miner and memory, and
 * terms that do not say counts_all see the rows before them, as if those were the batch. */
typedef struct ki_batch {
    int64_t m;
    const int32_t *label;
    ki_tap_data tap[KI_N_TAPS]; /* un-normalised embedding; LOGITS is the objective's own: leave it empty */
    /* Where gradients at taps, and the part that stops at the embedding, go: assigned, but added to WEIGHT. NULL: to memory of
     * the objective. */
    ki_real *diff[KI_N_TAPS], *diff_stopped;
    uint64_t step; /* for warm-ups and random choices */
    /* Over ranks: m (0 is allowed), label and taps are this rank's rows of one batch that all ranks evaluate together, in the
     * order of the ranks. Values, parameters' gradients and the memory are those of the whole batch on every rank; gradients
     * at taps are those of this rank's rows. The weight tap and its gradient are whole. NULL: the batch is whole. */
    ki_comm *comm;
} ki_batch;

typedef struct ki_term {
    const char *name; /* "binomial", "horde"; a second of the same name is "horde_2" */
    double value;     /* unweighted */
    double weight;    /* of this step: after warm-up */
} ki_term;

/* Borrowed from the objective until its next evaluation. */
typedef struct ki_result {
    double total; /* sum of weight * value */
    size_t n_terms;
    const ki_term *term;
    /* d total / d tap; NULL when no term reads the tap. diff_stopped is the part of the embedding's
     * gradient that must not flow below the embedding layer; it is NOT in diff[KI_TAP_EMBEDDING]. */
    ki_real *diff[KI_N_TAPS];
    ki_real *diff_stopped;
    int64_t n_pos, n_neg; /* pairs the loss counted */
    int64_t n_empty;      /* evaluations so far whose batch had no valid pair: value 0 and this warning */
} ki_result;

/* Over ranks every rank calls this. KITH_ESHAPE, KITH_EINVAL (a label outside the classes), KITH_ENUMERIC (the error says where). Parameter
 * gradients accumulate; tap gradients are assigned. On failure nothing has changed. */
kith_status ki_objective_evaluate(ki_objective *objective, const ki_batch *batch, ki_result *ret_result,
                                  kith_error *err);

/* Pair weights of only the loss on this batch (unified view), and the similarities they belong to, [m, n]
 * with m the items that have a class and n = m, or the number of proxies that take part; allocated with ki_alloc for the caller (ret_similarity may be
 * NULL). With several heads: the sum of their weights and the mean of their similarities. No change to memory or
 * parameters. Proxies that are shared out over ranks: every rank calls this with the same whole batch and its comm, and the
 * columns are its own. */
kith_status ki_objective_weights(ki_objective *objective, const ki_batch *batch, ki_real **ret_weight,
                                 ki_real **ret_similarity, int64_t *ret_n, kith_error *err);

/* The class of column j of the last ki_objective_weights with a proxy loss. Until the next call with the objective. */
int64_t ki_objective_column_class(const ki_objective *objective, int64_t j);

/* Descriptors for test time, [m, dim]: the normalised embedding (if a term reads it), then the descriptors of
 * the first regularizer that has any (HORDE: all its orders). Meant for a PCA afterwards (kith_pca_fit).
 * Labels are not read. Allocated with ki_alloc for the caller. KITH_EINVAL when no term has any. */
kith_status ki_objective_describe(ki_objective *objective, const ki_batch *batch, ki_real **ret_descriptor,
                                  int64_t *ret_dim, kith_error *err);

/* The error when no term has any; it names the methods that have. */
kith_status ki_objective_fail_describe(kith_error *err);

/* Their width, from the sizes the objective was made with; 0 when no term has any. */
int64_t ki_objective_describe_dim(const ki_objective *objective);

/* How many of them belong to the regularizer, and how wide each is. They are at the end of the row; the
 * embedding is before them. */
int64_t ki_objective_describe_n(const ki_objective *objective, int64_t *ret_width);

/* variants.c. What can be scored beside the embedding (base/variant.h), in the order it is shown in: what the regularizer with
 * descriptors lists or, without one, what every network has. Returns how many there are; at most `most` are written. */
size_t ki_objective_variants(const ki_objective *objective, ki_variant *ret_list, size_t most);
/* Does a term list them? Then they are scored unless the recipe says otherwise. */
bool ki_objective_lists_variants(const ki_objective *objective);
/* What a row of ki_objective_describe is made of; without descriptors, the embedding alone. */
ki_parts ki_objective_parts(const ki_objective *objective);

/* The widths of `nested` as "32,64,512"; empty without. */
void ki_objective_nested_text(const ki_objective *objective, char *ret_text, size_t bytes);

/* Most bytes of working memory in use at once so far. */
size_t ki_objective_work_bytes(const ki_objective *objective);

#endif
