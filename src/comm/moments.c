/* Moments of parts put together: with n, mean and m (the sum of squared deviations) of all,
 *
 *   n = sum n_r,  mean = sum n_r mean_r / n,  m = sum m_r + n_r (mean_r - mean)^2
 *
 * Source: Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983. */
#include "comm/moments.h"

#include <string.h>

/* Every rank's n doubles side by side, in memory of the comm. The caller writes its own at own_place first. */
static kith_status gather_doubles(ki_comm *comm, int64_t n, double *own_place, double *all, kith_error *err) {
    int64_t counts[KI_MOST_RANKS];
    for (int r = 0; r < comm->size; r++) counts[r] = n;
    return ki_comm_gather(comm, own_place, counts, sizeof *all, all, err);
}

kith_status ki_comm_moments(ki_comm *comm, double n, double *mean, double *squares, int64_t c, double *ret_n,
                            kith_error *err) {
    const int64_t each = 2 * c + 1;
    void *memory = NULL;
    *ret_n = n;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    KI_TRY(ki_comm_scratch(comm, (size_t)(each * comm->size) * sizeof(double), &memory, err));
    double *all = memory, *own = all + comm->rank * each;
    own[0] = n;
    memcpy(own + 1, mean, (size_t)c * sizeof *own);
    memcpy(own + 1 + c, squares, (size_t)c * sizeof *own);
    KI_TRY(gather_doubles(comm, each, own, all, err));
    double n_all = 0;
    for (int r = 0; r < comm->size; r++) n_all += all[r * each];
    for (int64_t k = 0; k < c; k++) {
        double sum = 0, m = 0;
        for (int r = 0; r < comm->size; r++) sum += all[r * each] * all[r * each + 1 + k];
        mean[k] = sum / n_all;
        for (int r = 0; r < comm->size; r++) {
            const double off = all[r * each + 1 + k] - mean[k];
            m += all[r * each + 1 + c + k] + all[r * each] * off * off;
        }
        squares[k] = m;
    }
    *ret_n = n_all;
    return KITH_OK;
}

kith_status ki_comm_sum_doubles(ki_comm *comm, double *x, int64_t n, kith_error *err) {
    void *memory = NULL;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    KI_TRY(ki_comm_scratch(comm, (size_t)(n * comm->size) * sizeof(double), &memory, err));
    double *all = memory, *own = all + comm->rank * n;
    memcpy(own, x, (size_t)n * sizeof *own);
    KI_TRY(gather_doubles(comm, n, own, all, err));
    for (int64_t i = 0; i < n; i++) {
        x[i] = 0;
        for (int r = 0; r < comm->size; r++) x[i] += all[r * n + i];
    }
    return KITH_OK;
}
