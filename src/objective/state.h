/* The inside of an objective; only for the files of this folder. */
#ifndef KI_OBJECTIVE_STATE_H
#define KI_OBJECTIVE_STATE_H

#include "base/arena.h"
#include "objective/nested.h"
#include "objective/objective.h"
#include "objective/schedule.h"

typedef struct ki_loss_use ki_loss_use;

struct ki_state_list {
    ki_arena *arena;
    const ki_loss_use *loss; /* for ki_state_add_loss */
    const ki_sizes *sizes;
    const char *prefix; /* before every name; NULL: none */
    ki_state **item;    /* every parameter of the objective, once */
    size_t n, capacity;
    ki_state **added; /* those of the method whose params function is running */
    size_t n_added, added_capacity;
    bool is_for_check; /* only shapes, no values */
};

/* A method as a recipe describes it: record, settings, its parameters. */
struct ki_loss_use {
    const ki_loss *record; /* NULL: loss none */
    void *settings;
    bool normalize;
    ki_state **param;
    size_t n_params;
};

typedef struct ki_reg_use {
    const ki_reg *record;
    void *settings;
    bool normalize, stops;
    double weight;
    int64_t warmup;
    unsigned taps;
    ki_state **param;
    size_t n_params;
} ki_reg_use;

/* The cross-batch memory: a ring of past embeddings as the loss saw them, held in buffers so that it
 * is saved and restored with the parameters. */
typedef struct ki_memory {
    int64_t size;        /* 0: none */
    int64_t warmup;      /* steps before its columns count (it fills from the first) */
    ki_state *embedding; /* [size, dim] */
    ki_state *label;     /* [size] */
    ki_state *state;     /* [2]: how many are filled, where the next goes */
} ki_memory;

struct ki_objective {
    ki_arena arena;
    ki_sizes sizes; /* heads: from 1 */
    uint64_t seed;
    ki_loss_use loss;
    const ki_miner *miner;
    void *miner_settings;
    ki_memory memory;
    ki_nested nested;
    ki_reg_use *reg;
    size_t n_regs;
    ki_state_list params;
    ki_state *proxies; /* where logits come from; NULL when no term reads them */
    unsigned taps;
    ki_objective_schedule schedule;
    size_t n_terms;
    ki_term *term;
    int64_t n_empty;
    bool is_quiet; /* ki_objective_hush */
    const ki_vec *vec;
    ki_work work;
    size_t work_peak;
    /* Of the last ki_objective_weights: the first class held here, and which of them the columns are (NULL: all). */
    int64_t first_class;
    const int32_t *column_class;
};

/* The share of the classes that takes part in a step. */
double ki_objective_sample(const ki_objective *objective);

/* ranks.c. This rank's part of a batch: */
struct ki_share {
    ki_comm *comm;         /* NULL: the batch is whole */
    int64_t first, n;      /* rows of the whole that are this rank's */
    const int64_t *counts; /* [size] rows of every rank */
};
/* The whole batch, except for its map, in work memory; checked. */
kith_status ki_batch_gather(ki_objective *objective, const ki_batch *own, ki_batch *ret_whole,
                            ki_share *ret_share, kith_error *err);
/* Make the gradients of parameters that every rank has a part of whole. */
kith_status ki_params_sum_shares(ki_objective *objective, const ki_share *share, ki_real *const *diff,
                                 kith_error *err);

/* params.c */
kith_status ki_states_collect(ki_objective *objective, kith_error *err);
void ki_states_free(ki_state_list *list);

/* memory.c */
kith_status ki_memory_parse(const ki_value *section, ki_memory *memory, kith_error *err);
kith_status ki_memory_params(ki_memory *memory, const ki_sizes *sizes, ki_state_list *list, kith_error *err);
/* How many remembered columns count at this step. */
int64_t ki_memory_columns(const ki_memory *memory, uint64_t step);
/* Labels of the columns as integers, [ki_memory_columns]. */
void ki_memory_labels(const ki_memory *memory, int64_t n, int32_t *label);
void ki_memory_push(ki_memory *memory, const ki_real *x, const int32_t *label, int64_t m, int64_t dim);

#endif
