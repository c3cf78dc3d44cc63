/* What the proxy losses share: the parameter, and cross entropy over one row of proxies. */
#ifndef KI_OBJECTIVE_PROXIES_H
#define KI_OBJECTIVE_PROXIES_H

#include "objective/loss/loss.h"

/* How proxies start: uniform in ±0.1, in ±1/sqrt(classes) (JRD's code: 0.1 for the 100 classes of CUB, 0.0094 for SOP's
 * 11,318), or as the rows of a linear layer by one of the usual rules (core/start.h). Their length does not matter to a
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

/* Adds "proxies" [n_classes * n_centers, embedding]; init is a ki_proxy_init. */
kith_status ki_proxies_add(ki_state_list *list, const char *method, const ki_sizes *sizes, int64_t n_centers,
                           int init, double lr_multiplier, kith_error *err);

/* The classes of saved proxies, n_centers rows each; 0: there are none. */
int64_t ki_proxies_saved(const ki_saved *saved, int64_t n_centers);
/* The same as `saved_classes` of a loss with one proxy per class. */
int64_t ki_proxies_saved_classes(const void *settings, const ki_saved *saved);

/* -ln( e^(scale own) / (e^(scale own) + sum_j e^(scale s_j)) ) over the kept negatives j of the row, where
 * `own` replaces the cosine s_y of column y and `slope` is d own / d s_y. g receives weight * the derivative
 * by s. 0 when column y is not kept. */
double ki_cross_entropy_row(const ki_pairs *pairs, const ki_row *row, int64_t y, ki_real own, ki_real slope,
                            ki_real scale, ki_real weight);

#endif
