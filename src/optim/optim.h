/* Optimizers: parameters in groups with their own rates, updated by one backend call per step.
 *
 *     KI_TRY(ki_optim_parse(ki_value_get(recipe, "optim"), &settings, err));
 *     KI_TRY(ki_optim_new(backend, params, n_params, &settings, &optim, err));
 *     each step:  ki_optim_update(optim, ki_schedule_at(&settings.schedule, step, n_steps).lr, err);
 *
 * Groups. A parameter of the network belongs to the backbone or to the embedding layer. A parameter of the
 * objective belongs to its proxies or to its regularizers, which is everything else. "bias" is all biases of
 * the network. Rules of the recipe name a group or a layer and multiply the learning rate or the weight
 * decay; all rules that apply are multiplied together. Parameters with the same numbers that are adjacent in
 * memory (padding to KI_ALIGN between them is allowed and must hold zeros) become one run. So a network
 * without rules is updated in a single pass. */
#ifndef KI_OPTIM_H
#define KI_OPTIM_H

#include "base/option.h"
#include "device/backend.h"
#include "optim/schedule.h"

typedef enum ki_optim_group {
    KI_OPTIM_BACKBONE,
    KI_OPTIM_EMBEDDING,
    KI_OPTIM_PROXIES,      /* the objective's "proxies", also those of a term that repeats the loss */
    KI_OPTIM_REGULARIZERS, /* whatever else the objective learns: density.alpha, horde.w1 */
    KI_OPTIM_N_GROUPS,
} ki_optim_group;

const char *ki_optim_group_name(ki_optim_group group); /* "backbone" */
/* Of a network's parameter ("conv1.weight") or of an objective's ("proxies", "horde.w1"). */
ki_optim_group ki_optim_group_of(const char *name, bool is_objective);

/* What is optimized: borrowed backend memory. */
typedef struct ki_optim_param {
    const char *name; /* copied */
    int64_t n;
    ki_real *value;
    const ki_real *diff;
    bool is_objective; /* learned by the objective, not the network */
    bool is_part;      /* other processes have the rest of it: see ki_optim_measure */
    double lr;         /* its own multiplier, as ki_state has one; 0: 1 */
} ki_optim_param;

typedef struct ki_optim_settings ki_optim_settings;

/* One optimizer: a file with this record and a row of table.def. Its options point into
 * ki_optim_settings; `complete` checks them together and fills in the numbers of a step. */
typedef struct ki_optim_method {
    const char *name, *summary, *source;
    const ki_option *options;
    kith_status (*complete)(const ki_optim_settings *settings, ki_optim_step *step, kith_error *err);
    bool has_m, has_v; /* moments it may keep; m only when step.beta1 > 0 */
    bool decouples;    /* weight decay shrinks values instead of adding to gradients */
} ki_optim_method;

const ki_optim_method *ki_optim_method_at(int i); /* NULL past the end */

/* A rule's key is a group, "bias", a layer ("embedding", "inception_3a", "horde"), a parameter, or a pattern of layers or parameters
 * with *, ? and [0-3]. All rules that hold for a parameter are multiplied. */
typedef struct ki_optim_rule {
    const char *key;
    double lr, decay; /* multipliers; lr 0 never changes the parameters */
} ki_optim_rule;

enum { KI_OPTIM_MOST_RULES = 64 };

/* The `optim:` section of a recipe. Strings and trees point into the document. */
struct ki_optim_settings {
    const ki_optim_method *method;
    /* Every optimizer. */
    double lr, weight_decay, clip;
    int64_t accumulate; /* micro-batches of a step, whose gradients are averaged */
    /* For the caller, who knows the network: the rate of a layer is that of the next times this (ki_optim_param.lr), and how much of
     * their past the averages of its values keep in an update (optim/average.h). */
    double layer_decay; /* 1: all layers have the same rate */
    double ema;         /* 0: no averages */
    const ki_value *multipliers, *decay_multipliers;
    /* Not every optimizer uses these. */
    double beta1, beta2, eps, momentum, alpha;
    bool nesterov;
    ki_schedule_settings schedule; /* with steps or epochs */
    int n_rules;
    ki_optim_rule rule[KI_OPTIM_MOST_RULES];
};

/* What every optimizer takes, for lists and for printing a recipe. `name` is beside these. */
extern const ki_option ki_optim_options[];

/* section NULL: the defaults, which are Adam's. Unknown keys are errors that suggest the nearest. */
kith_status ki_optim_parse(const ki_value *section, ki_optim_settings *ret_settings, kith_error *err);

typedef struct ki_optim ki_optim;

/* Borrows the backend and the parameters' memory for its life. A rule that applies to no parameter is an
 * error: its name is misspelt. */
kith_status ki_optim_new(ki_backend *backend, const ki_optim_param *params, int n_params,
                         const ki_optim_settings *settings, ki_optim **ret_optim, kith_error *err);
void ki_optim_free(ki_optim *optim); /* NULL is fine */

/* One update with learning rate lr from the gradients as they are: tick, then launch. Allocates nothing. */
kith_status ki_optim_update(ki_optim *optim, double lr, kith_error *err);
/* Move the clock on and write it to backend memory. */
kith_status ki_optim_tick(ki_optim *optim, double lr, kith_error *err);
/* Only the backend calls. They are the same every time, so they can be captured. Sums of squares of the
 * gradients are computed here even when nothing is clipped. */
kith_status ki_optim_launch(ki_optim *optim, kith_error *err);
/* The two halves of a launch: the sums of squares, then the step, which clips by them. Between them the sums of runs that are
 * parts must be made those of the whole: `is_part` and `sums` are [ki_optim_n_runs], on the host. */
kith_status ki_optim_measure(ki_optim *optim, kith_error *err);
kith_status ki_optim_apply(ki_optim *optim, kith_error *err);
bool ki_optim_is_part(const ki_optim *optim, int run);
kith_status ki_optim_sums_get(const ki_optim *optim, double *sums, kith_error *err);
kith_status ki_optim_sums_set(ki_optim *optim, const double *sums, kith_error *err);

/* Gradient norms by group of the last update, before clipping and without weight decay; groups that have
 * no parameter, or whose parameters are all left alone, have 0. Waits for the backend. */
kith_status ki_optim_norms(const ki_optim *optim, double ret_norm[KI_OPTIM_N_GROUPS], kith_error *err);

/* The same in two parts, for a device whose queue the host must not wait for: where the last launch left the
 * sums (backend memory, [ki_optim_n_runs]), and the norms from a copy of them on the host. */
const double *ki_optim_sums(const ki_optim *optim);
void ki_optim_norms_of(const ki_optim *optim, const double *sums, double ret_norm[KI_OPTIM_N_GROUPS]);

/* Checkpoints: the number of updates, and arrays by name ("conv1.weight.m") in a fixed order. A parameter
 * that is left alone has none. */
int64_t ki_optim_steps(const ki_optim *optim);
void ki_optim_steps_set(ki_optim *optim, int64_t steps);
int ki_optim_n_states(const ki_optim *optim);
const char *ki_optim_state_name(const ki_optim *optim, int i); /* lives as long as the optimizer */
int64_t ki_optim_state_count(const ki_optim *optim, int i);
/* To and from host memory [count]. get waits for the backend; so does set. */
kith_status ki_optim_state_get(const ki_optim *optim, int i, ki_real *ret_value, kith_error *err);
kith_status ki_optim_state_set(ki_optim *optim, int i, const ki_real *value, kith_error *err);

/* How many runs a step has. */
int ki_optim_n_runs(const ki_optim *optim);

#endif
