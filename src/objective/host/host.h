/* One evaluation on the host; only for the files of this folder. All its memory is from the objective's work stack. */
#ifndef KI_OBJECTIVE_HOST_H
#define KI_OBJECTIVE_HOST_H

#include "objective/proxy/columns.h"
#include "objective/state.h"

typedef struct ki_evaluation {
    ki_objective *o;
    const ki_batch *batch; /* whole, except for its map */
    ki_share share;
    int64_t m, dim;
    int64_t n_labelled;       /* rows that have a class: the first ones */
    int64_t n_rows, row_dim;  /* the embedding as the loss sees it: a row for each head of each image */
    const int32_t *row_label; /* [n_rows] */
    ki_real *unit, *norm; /* the normalised embedding and its lengths [n_rows], where the schedule uses it */
    ki_real *slot[KI_N_SLOTS]; /* sums of gradients; NULL: not in the schedule */
    ki_real **diff_param;      /* for each parameter of the objective */
    ki_real *logits, *proxies_unit, *proxies_norm;
    int64_t n_pos, n_neg;
    bool is_empty;
    double total;
} ki_evaluation;

/* Memory of work, cleared. */
kith_status ki_take_zeros(ki_work *work, int64_t n, const char *what, ki_real **ret, kith_error *err);
/* dst += scale * src; nothing where one is NULL or the scale is 0. */
void ki_add_scaled(ki_real *dst, const ki_real *src, ki_real scale, int64_t n);
/* The place of a parameter in the objective's list. */
size_t ki_param_index(const ki_objective *o, const ki_state *param);

/* evaluate.c. Releases what the evaluation before this one took: */
void ki_evaluation_forget(ki_objective *objective);
/* Sizes, from the batch. */
void ki_evaluation_begin(ki_evaluation *e);
/* `unit` and `norm`. */
kith_status ki_evaluation_normalize(ki_evaluation *e, kith_error *err);
/* What a regularizer gets. */
ki_reg_in ki_evaluation_reg_in(ki_evaluation *e, size_t i);

/* run_loss.c: the loss and its miner on embeddings. */
typedef struct ki_loss_rows {
    const ki_real *x; /* [n, dim], used as they are */
    int64_t n, dim;
    const int32_t *label;
    int64_t heads; /* whose rows come in turn */
} ki_loss_rows;

/* What a loss compares rows with, if it is proxies. */
typedef struct ki_loss_proxies {
    ki_proxy_columns_of of;
    ki_proxy_columns columns;
    int64_t dim;          /* numbers of a proxy as it is learned; the view may have only the first of them */
    ki_real *unit, *norm; /* normalised, and their lengths */
} ki_loss_proxies;

/* The embedding of the batch as the loss sees it, with its labels. */
kith_status ki_loss_rows_of(ki_evaluation *e, ki_loss_rows *ret_rows, kith_error *err);
/* The view the loss sees: built, mined, measured. */
kith_status ki_loss_pairs(ki_evaluation *e, const ki_loss_rows *rows, ki_state *const *param, bool use_memory,
                          ki_pairs *ret_pairs, ki_loss_proxies *ret_proxies, kith_error *err);
/* Buffers for the gradients of the loss's own parameters, except its proxies', which come by the chain rule. */
kith_status ki_loss_take_diffs(ki_evaluation *e, ki_state *const *param, ki_real ***ret, kith_error *err);
/* Value and gradients, with parameters `param`: diff_x is assigned, diff_param is added to (NULL entries are skipped).
 * is_main: with the cross-batch memory, and counting pairs. */
kith_status ki_loss_run(ki_evaluation *e, const ki_loss_rows *rows, ki_state *const *param,
                        ki_real *const *diff_param, bool is_main, double *ret_value, ki_real *diff_x,
                        kith_error *err);

/* nested.c. The loss on the first numbers of the embedding, width number i: its share is added to slot `to`, to the parameters'
 * gradients and to the value. */
kith_status ki_loss_run_nested(ki_evaluation *e, size_t i, ki_slot to, kith_error *err);
/* The first `width` numbers of every row [n, dim], side by side in memory of work; the rows themselves where that is all. */
kith_status ki_rows_cut(ki_work *work, const ki_real *x, int64_t n, int64_t dim, int64_t width,
                        const ki_real **ret_rows, kith_error *err);
/* dst [n, dim] += scale * src [n, width], in the first columns. */
void ki_rows_add_cut(const ki_real *src, ki_real scale, int64_t n, int64_t dim, int64_t width, ki_real *dst);

#endif
