/* The proxies as a parameter. */
#include "objective/proxy/proxies.h"

#include <math.h>

#include "base/start.h"
#include "comm/comm.h"

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
    int64_t first = 0, n_own = sizes->n_classes;
    if (sizes->n_parts > 1) ki_comm_part(sizes->n_classes, sizes->part, sizes->n_parts, &first, &n_own);
    return ki_state_add_part(list, "proxies", KI_SHAPE2(n, sizes->embedding), first * n_centers,
                             n_own * n_centers, KI_INIT_UNIFORM,
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
