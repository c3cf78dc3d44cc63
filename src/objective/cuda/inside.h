/* The inside of an engine; only for the files of this folder. */
#ifndef KI_OBJECTIVE_CUDA_INSIDE_H
#define KI_OBJECTIVE_CUDA_INSIDE_H

#include "backend/cuda/cuda.h"
#include "objective/cuda/loss.h"
#include "objective/cuda/miner.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/step.h"
#include "objective/engine.h"
#include "objective/state.h"

/* Memory of the pair view: all runs of the loss use it, one after the other. */
typedef struct ki_cuda_room {
    int64_t cells; /* m * ld */
    int64_t n_tallies;
    float *s, *g, *h;
    uint8_t *pair;
    int32_t *pick, *n_pos, *n_neg;
    ki_cuda_tally *tally;
    float *scale, *memory_sum;
} ki_cuda_room;

/* One run of the loss and its miner on embeddings of one width (site.c). */
struct ki_cuda_site {
    ki_engine *engine;
    const ki_cuda_loss *type;
    const ki_cuda_miner *miner;
    ki_cuda_view view;
    ki_cuda_weight weight[3];
    ki_cuda_loss_in in;
    int64_t dim;
    bool is_proxy;
    bool reads_norms; /* the view needs x_sq */
    float *x_sq;      /* [m]: of this run, if they were not computed elsewhere */
    /* proxies */
    ki_cuda_param proxies;
    float *w_unit, *w_norm, *w_sq, *diff_w;
    /* distances */
    float *centred, *mean;
    const float *outer_weight; /* NULL: 1 */
    bool weighs_value;         /* the outer weight counts for the value, too */
    /* The site has the first numbers of what it compares with: of proxies as they are learned, of the memory. */
    float *w_cut, *diff_cut;
};

/* A width: its site, and the embeddings' first numbers as the site sees them. */
typedef struct ki_cuda_nested {
    ki_cuda_site *site;
    int64_t width;
    float *cut, *unit, *norm, *sq, *diff, *diff_cut; /* unit and norm NULL: not normalised */
    float *share;                                    /* of the value and the gradients, on the device */
} ki_cuda_nested;

typedef struct ki_cuda_term {
    const ki_cuda_reg *type;
    ki_cuda_reg_in in;
    ki_cuda_param *param;
    void *self;
    bool is_open;
} ki_cuda_term;

struct ki_engine {
    ki_backend *backend;
    cudaStream_t stream;
    ki_objective *objective;
    ki_engine_batch batch; /* what the engine works on; */
    ki_engine_batch own;   /* over ranks: this rank's rows of it, [first, first + n_own) of m */
    int64_t first, n_own;
    int32_t *all_label;
    int64_t n_labelled;      /* rows of m that have a class: the first ones */
    int64_t m, dim;          /* dim: of the embedding; 0 when no term reads it */
    int64_t n_rows, row_dim; /* the embedding as the loss sees it: a row for each head of each image */

    void **taken; /* device memory */
    size_t n_taken, taken_capacity;
    ki_cuda_site **site; /* runs of the loss; the objective's own is the first */
    size_t n_sites, site_capacity;
    ki_cuda_param *param; /* in the objective's order */
    float *diffs;         /* all their gradients in one piece */
    size_t diffs_bytes;

    ki_cuda_begin begin;
    ki_cuda_ring ring;
    ki_cuda_values *values, *host; /* device, pinned */
    cudaEvent_t fetched;
    cudaEvent_t passed; /* a place in this stream or another, for one to wait for */
    bool is_fetched;
    ki_term *term;
    int64_t n_empty_seen;

    int32_t *label, *row_label;   /* [m], [n_rows] */
    float *unit, *norm, *loss_sq; /* unit: NULL where the schedule does not use it */
    void *slot[KI_N_SLOTS]; /* sums of gradients (objective/schedule.h): the batch's own memory, or ours */
    float *logits, *proxies_unit, *proxies_norm, *diff_proxies;

    ki_cuda_room room;
    ki_cuda_site *loss;     /* NULL: none, or nested */
    ki_cuda_nested *nested; /* one for each width */
    ki_cuda_term *reg;
    void *scratch;
};

/* share.c: memory for the whole batch, before anything else of the engine; filling it; and this rank's part of the gradients.
 * Without ranks they do nothing. */
kith_status ki_engine_share_open(ki_engine *engine, kith_error *err);
kith_status ki_engine_share_gather(ki_engine *engine, kith_error *err);
kith_status ki_engine_share_keep(ki_engine *engine, kith_error *err);
kith_status ki_engine_sum_diffs(ki_engine *engine, kith_error *err);

/* params.c */
kith_status ki_engine_params_open(ki_engine *engine, kith_error *err);
/* Use the parameters of another engine of the objective, in its memory. */
kith_status ki_engine_params_share(ki_engine *engine, const ki_engine *first, kith_error *err);
const ki_cuda_param *ki_engine_param_of(const ki_engine *engine, const ki_state *state);
bool ki_engine_param_at(ki_engine *engine, size_t i, ki_engine_param *ret_param);
kith_status ki_engine_pull(ki_engine *engine, kith_error *err);
kith_status ki_engine_push(ki_engine *engine, kith_error *err);

/* site.c: the loss with parameters `param` (n_params of the objective's loss). is_main: on the embedding, head by head
 * [n_rows, row_dim], with the memory; else on [m, dim]. */
kith_status ki_cuda_site_open(ki_engine *engine, const ki_cuda_param *param, int64_t dim, bool is_main,
                              const float *outer_weight, ki_cuda_site **ret_site, kith_error *err);
/* x_sq NULL: computed here. pairs: where the counts go, or NULL. */
kith_status ki_cuda_site_run(ki_cuda_site *site, const float *x, const float *x_sq, double *value,
                             int64_t *pairs, float *diff_x, kith_error *err);

/* nested.c: the loss on the first numbers of the embedding. */
kith_status ki_cuda_nested_open(ki_engine *engine, const ki_cuda_param *param, kith_error *err);
kith_status ki_cuda_nested_run(ki_engine *engine, size_t i, const float *x, float *diff_x, kith_error *err);

/* The error for a method without a record here: the host's table and this build do not match. */
kith_status ki_cuda_fail_method(kith_error *err, const char *kind, const char *name);

#endif
