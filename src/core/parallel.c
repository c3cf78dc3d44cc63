/* Loops over the one pool of threads. */
#include "core/parallel.h"

#include <omp.h>

int ki_threads(void) { return omp_get_max_threads(); }

void ki_threads_set(int n) { omp_set_num_threads(n > 0 ? n : omp_get_num_procs()); }

void ki_parallel_for(int64_t n, int64_t grain, ki_range_fn fn, void *context) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int64_t n_runs = n / grain;
    if (n_runs > ki_threads()) n_runs = ki_threads();
    if (n_runs <= 1 || omp_in_parallel()) {
        fn(context, 0, n);
        return;
    }
#pragma omp parallel for schedule(static, 1) num_threads((int)n_runs)
    for (int64_t r = 0; r < n_runs; r++) fn(context, n * r / n_runs, n * (r + 1) / n_runs);
}
