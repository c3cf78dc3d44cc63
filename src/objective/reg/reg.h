/* A regularizer: a value from the taps it names, its gradients at these taps, and possibly parameters of its own.
 * NAME.h has its settings, NAME.c one record `ki_reg_NAME`, NAME.cu the same for a device (cuda/reg.h); one row in
 * table.def serves both. docs/adding-a-regularizer.md walks through one.
 *
 * One contract on every device: a term ASSIGNS its plain value, and ADDS weight times its gradients to sums that it shares
 * with other terms. The engine handles warm-up and normalize, and clears the sums; only the map is special (assigns_map). On the
 * host ki_reg_take_diff and ki_reg_add_diff do the weighting for formulas that give plain gradients. */
#ifndef KI_OBJECTIVE_REG_H
#define KI_OBJECTIVE_REG_H

#include "base/variant.h"
#include "objective/method.h"
#include "objective/reg/tap.h"
#include "objective/vec.h"
#include "objective/work.h"

/* "map", "pooled", "embedding", "logits", "weight", "teacher", "teacher_1" … */
const char *ki_tap_name(ki_tap tap);

typedef struct ki_tap_data {
    const ki_real *data; /* NULL: the tap is not given */
    int64_t rows, cols;  /* map: m and c * h * w */
    int64_t c, hw;       /* map only */
} ki_tap_data;

typedef struct ki_share ki_share;
typedef struct ki_reg_in ki_reg_in;
typedef struct ki_reg_out ki_reg_out;
struct ki_reg_in {
    const void *settings;
    int64_t m;
    const int32_t *label;       /* [m]; with counts_all the last ones may be -1: no class */
    int64_t n_classes;          /* labels are below it; 0: not known */
    ki_tap_data tap[KI_N_TAPS]; /* the map: this rank's rows, the others all m */
    const ki_share *share;      /* which rows those are: ki_reg_first, ki_reg_gather */
    bool normalized;            /* the embedding tap is L2-normalised, head by head */
    int64_t heads; /* vectors side by side in a row of the embedding: [m, dim] is [m * heads, dim / heads] */
    double weight; /* of this step, after warm-up */
    /* Nobody has written the map's gradient yet: assign it. Otherwise add, as everywhere. */
    bool assigns_map;
    size_t n_params;
    ki_state *const *param;
    uint64_t seed, step; /* random choices: (seed, KI_RNG_REGULARIZER, step, …) */
    const ki_vec *vec;
    ki_work *work; /* take what is needed; it is released afterwards */
    /* The objective's own loss and miner on other embeddings x [m, dim] (used as they are, not normalised; no
     * cross-batch memory): value, and diff_x [m, dim] assigned, both plain. The loss uses its own copy of its parameters:
     * param[first …) are the n_loss_params parameters that ki_state_add_loss made, and their plain gradients are
     * added to diff_param[first …). */
    size_t n_loss_params;
    kith_status (*repeat_loss)(const ki_reg_in *in, ki_real *const *diff_param, size_t first,
                               const ki_real *x, int64_t dim, double *ret_value, ki_real *diff_x,
                               kith_error *err);
    struct ki_evaluation *evaluation; /* for repeat_loss */
};

struct ki_reg_out {
    double value; /* plain; 0 before */
    ki_real *diff
        [KI_N_TAPS]; /* add to them; same shapes as the taps; NULL for taps it does not read, and for teachers */
    ki_real *const *diff_param; /* for each of param: add to it; NULL for those that are not learned */
};

/* For formulas that give the plain gradient at a tap: a cleared buffer for it, and adding weight times the buffer. */
kith_status ki_reg_take_diff(const ki_reg_in *in, ki_tap tap, ki_real **ret_diff, kith_error *err);
void ki_reg_add_diff(const ki_reg_in *in, const ki_reg_out *out, ki_tap tap, const ki_real *diff);
/* The same for all parameters; NULL for those that are not learned. With a weight of 1 they are the sums themselves, which
 * saves a copy of what may be the largest arrays. */
kith_status ki_reg_take_params(const ki_reg_in *in, const ki_reg_out *out, ki_real *const **ret_diff,
                               kith_error *err);
void ki_reg_add_params(const ki_reg_in *in, const ki_reg_out *out, ki_real *const *diff);

/* What a term made of its rows of the map, [rows of the map, cols], as [m, cols]. Without ranks it is `own` itself. */
kith_status ki_reg_gather(const ki_reg_in *in, ki_real *own, int64_t cols, ki_real **ret_all,
                          kith_error *err);
/* The row of m that the map's first row belongs to. */
int64_t ki_reg_first(const ki_reg_in *in);

/* A tap of a whole data set: x [n, dim], and labels in 0 … n_classes - 1. */
typedef struct ki_features {
    const ki_real *x;
    const int32_t *label;
    int64_t n, dim;
} ki_features;

typedef struct ki_reg {
    ki_method method;
    /* Taps it reads, KI_TAP_BIT(…) of each; `taps_of` instead when the settings decide. */
    unsigned taps;
    kith_status (*taps_of)(const void *settings, unsigned *ret_taps, kith_error *err);
    /* It counts all rows of a batch. Without this it gets only those that have a class (ki_batch), as the loss does. */
    bool counts_all;
    bool normalize; /* default of the recipe's `normalize` */
    /* Its gradient at the embedding trains the embedding layer and no earlier layer: default of the recipe's
     * `stops_at_embedding`. */
    bool stops_at_embedding;
    /* Fills in what the recipe left open, from a saved state (NULL: there is none) or from a default that needs
     * more than an option can say. NULL: nothing to fill in. */
    void (*complete)(void *settings, const ki_saved *saved);
    /* How many classes a saved state was made for; 0: it does not say. NULL: nothing of it is per class. */
    int64_t (*saved_classes)(const void *settings, const ki_saved *saved);
    kith_status (*params)(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err);
    /* For a term that starts from the network's values for the training images before the first step: the tap
     * it needs, and the function that gets all of them. start NULL: nothing; `starts` says whether the settings
     * need it (NULL: always). */
    ki_tap starts_from;
    bool (*starts)(const void *settings);
    kith_status (*start)(const void *settings, const ki_features *features, ki_state *const *param,
                         kith_error *err);
    kith_status (*eval)(const ki_reg_in *in, ki_reg_out *out, kith_error *err);
    /* Descriptors for test time, in addition to the embedding: dst [m, describe_dim], describe_n of them side
     * by side and equally wide; both depend only on the settings. NULL: none. */
    int64_t (*describe_dim)(const ki_reg_in *in);
    int64_t (*describe_n)(const ki_reg_in *in);
    kith_status (*describe)(const ki_reg_in *in, ki_real *dst, kith_error *err);
    /* What can be scored with these descriptors: part 0 of a row is the normalised embedding, part i the i-th descriptor.
     * Writes at most `most` to ret_list, in the order they are shown in, and returns how many there are. NULL: none. */
    size_t (*variants)(const void *settings, ki_variant *ret_list, size_t most);
} ki_reg;

#define X(name, device) extern const ki_reg ki_reg_##name;
#include "objective/reg/table.def"
#undef X

const ki_reg *ki_reg_at(size_t i);
kith_status ki_reg_find(const char *name, const ki_reg **ret_reg, kith_error *err);

#endif
