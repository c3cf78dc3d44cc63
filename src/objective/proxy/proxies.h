/* What the proxy losses share: the parameter, and cross entropy over rows of proxies. */
#ifndef KI_OBJECTIVE_PROXIES_H
#define KI_OBJECTIVE_PROXIES_H

#include "objective/loss/loss.h"

/* How proxies start: uniform in ±0.1, in ±1/sqrt(classes) (JRD's code: 0.1 for the 100 classes of CUB, 0.0094 for SOP's
 * 11,318), or as the rows of a linear layer by one of the usual rules (base/start.h). Their length does not matter to a
 * loss, but it decides how far a step rotates them. */
typedef enum ki_proxy_init {
    KI_PROXY_UNIFORM,
    KI_PROXY_CLASSES,
    KI_PROXY_HE,
    KI_PROXY_GLOROT,
    KI_PROXY_CAFFE,
    KI_PROXY_TORCH,
} ki_proxy_init;
extern const char *const ki_proxy_init_names[];

#define KI_PROXY_INIT_OPTION(settings)                                                             \
    KI_OPTION_LATER(CHOICE, settings, init, KI_PROXY_UNIFORM, ki_proxy_init_names,                 \
                    "start of the proxies: within 0.1, 1 / sqrt(classes), or as a linear layer's", \
                    "classes: JRD code")

/* Which share of the classes takes part in a step (proxy/columns.h); 1: all. */
#define KI_PROXY_SAMPLE_OPTION(settings)                                                            \
    KI_OPTION_LATER(REAL, settings, sample, 1, 1e-9, 1,                                             \
                    "share of the classes in a step: those of the batch, the rest drawn at random", \
                    "An et al., Partial FC, 2021: 0.1")

/* Adds "proxies" [n_classes * n_centers, embedding], or this rank's share of them; init is a ki_proxy_init. */
kith_status ki_proxies_add(ki_state_list *list, const char *method, const ki_sizes *sizes, int64_t n_centers,
                           int init, double lr_multiplier, kith_error *err);

/* The classes of saved proxies, n_centers rows each; 0: there are none. */
int64_t ki_proxies_saved(const ki_saved *saved, int64_t n_centers);
/* The same as `saved_classes` of a loss with one proxy per class. */
int64_t ki_proxies_saved_classes(const void *settings, const ki_saved *saved);

/* A loss that is a cross entropy over the columns of a row:
 *
 *   L = mean_i -ln( e^(scale own_i) / (e^(scale own_i) + sum_j e^(scale s_ij)) ) over the kept negatives j
 *
 * where own_i stands for the cosine to the own class. An item whose own column is not kept contributes 0. */
typedef struct ki_cross_entropy {
    ki_real scale;
    /* own as a function of the cosine s, and d own / d s. NULL: s itself. */
    ki_real (*own)(const void *settings, ki_real s, ki_real *ret_slope);
    const void *settings;
    bool others_alone; /* own is not in the denominator; an item without negatives contributes 0 */
} ki_cross_entropy;

/* Value and g. With columns over ranks (ki_pairs.comm) the rows' largest cosines and sums are joined in the order of the
 * ranks: the value is the same bits on all of them, and g is this rank's columns. */
kith_status ki_cross_entropy_mean(const ki_loss_in *in, ki_loss_out *out, const ki_cross_entropy *form,
                                  kith_error *err);

#endif
