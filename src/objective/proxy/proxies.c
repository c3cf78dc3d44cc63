/* The proxies as a parameter, and cross entropy over a row of them. */
#include "objective/proxy/proxies.h"

#include <math.h>

#include "core/start.h"

const char *const ki_proxy_init_names[] = {"uniform", "classes", "he", "glorot", "caffe", "torch", NULL};

static double bound_of(int init, int64_t n_classes, int64_t n_rows, int64_t dim) {
    if (init == KI_PROXY_UNIFORM) return 0.1;
    if (init == KI_PROXY_CLASSES) return sqrt(1 / (double)n_classes);
    return ki_start_bound((ki_start)(init - KI_PROXY_HE), dim, n_rows);
}

kith_status ki_proxies_add(ki_state_list *list, const char *method, const ki_sizes *sizes, int64_t n_centers,
                           int init, double lr_multiplier, kith_error *err) {
    if (!sizes->n_classes) return ki_fail_size(err, method, "the number of classes");
    if (!sizes->embedding) return ki_fail_size(err, method, "the embedding's dimension");
    const int64_t n = sizes->n_classes * n_centers;
    return ki_state_add(list, "proxies", KI_SHAPE2(n, sizes->embedding), KI_INIT_UNIFORM,
                        bound_of(init, sizes->n_classes, n, sizes->embedding), lr_multiplier, err);
}

int64_t ki_proxies_saved(const ki_saved *saved, int64_t n_centers) {
    ki_shape shape;
    return ki_saved_shape(saved, "proxies", 2, &shape) ? shape.dim[0] / n_centers : 0;
}

int64_t ki_proxies_saved_classes(const void *settings, const ki_saved *saved) {
    (void)settings;
    return ki_proxies_saved(saved, 1);
}

double ki_cross_entropy_row(const ki_pairs *pairs, const ki_row *row, int64_t y, ki_real own, ki_real slope,
                            ki_real scale, ki_real weight) {
    if (row->pair[y] != KI_PAIR_POSITIVE) return 0;
    const ki_vec *vec = pairs->vec;
    const ki_real other = vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    const ki_real most = own > other ? own : other;
    const ki_real e_own = ki_exp(scale * (own - most));
    const ki_real others = vec->exp(row->s, row->pair, KI_PAIR_NEGATIVE, scale, most, row->g, row->n);
    const ki_real factor = weight * scale / (e_own + others);
    vec->scale(row->pair, KI_PAIR_NEGATIVE, factor, row->g, row->n);
    /* e_own - (e_own + others), without the subtraction, so that an item with a small loss keeps its digits. */
    row->g[y] = -factor * others * slope;
    return (double)(scale * (most - own)) + log1p((double)others + ((double)e_own - 1));
}
