/* Optimizers: tables of runs for optim.cu, KI_CUDA_RUNS at a time. Runs without values are left out. */
#include "backend/cuda/optim/optim.h"

#include <math.h>

#include "backend/cuda/cuda.h"

/* Fills the table from runs[from] on; returns how many it took. */
static int take_runs(ki_cuda_update *u, const ki_optim_run *runs, int from, int n_runs) {
    int i = from;
    u->n_runs = 0;
    for (; i < n_runs && u->n_runs < KI_CUDA_RUNS; i++)
        u->run[u->n_runs++] = (ki_cuda_run){.value = runs[i].value,
                                            .diff = runs[i].diff,
                                            .m = runs[i].m,
                                            .v = runs[i].v,
                                            .n = runs[i].n,
                                            .start = runs[i].start,
                                            .lr = runs[i].lr,
                                            .decay = runs[i].decay,
                                            .decoupled = runs[i].decoupled};
    return i - from;
}

kith_status ki_cuda_optim(ki_backend *backend, const ki_optim_step *step, kith_error *err) {
    const cuda_backend *cuda = ki_cuda_of(backend);
    const cudaStream_t stream = ki_cuda_stream(backend);
    const bool clips = step->max_norm > 0;
    ki_cuda_update u = {.kind = step->kind == KI_OPTIM_ADAM  ? 0
                                : step->kind == KI_OPTIM_SGD ? 1
                                                             : 2,
                        .nesterov = step->nesterov,
                        .beta1 = (float)step->beta1,
                        .beta2 = (float)step->beta2,
                        .rest1 = (float)(1 - step->beta1),
                        .rest2 = (float)(1 - step->beta2),
                        .eps = (float)step->eps,
                        .log_beta1 = log(step->beta1),
                        .log_beta2 = log(step->beta2),
                        .diff_scale = step->diff_scale,
                        .max_norm = step->max_norm,
                        .lr = &step->clock->lr,
                        .t = &step->clock->t,
                        .sum = cuda->sums + KI_CUDA_SUMS - 1};
    for (int from = 0; clips && from < step->n_runs;) {
        const int n = take_runs(&u, step->runs, from, step->n_runs);
        u.norm_sq = step->norm_sq + from;
        KI_CUDA(ki_cuda_optim_norm(stream, &u, from == 0));
        from += n;
    }
    for (int from = 0; from < step->n_runs;) {
        from += take_runs(&u, step->runs, from, step->n_runs);
        KI_CUDA(ki_cuda_optim_update(stream, &u));
    }
    return KITH_OK;
}

kith_status ki_cuda_sum_squares(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                                kith_error *err) {
    const cuda_backend *cuda = ki_cuda_of(backend);
    const cudaStream_t stream = ki_cuda_stream(backend);
    ki_cuda_update u = {0};
    KI_CUDA(cudaMemsetAsync(dst, 0, (size_t)n_runs * sizeof *dst, stream)); /* runs of no values */
    for (int from = 0; from < n_runs;) {
        const int n = take_runs(&u, runs, from, n_runs);
        KI_CUDA(ki_cuda_sum_squares_of(stream, &u, dst + from, cuda->sums, KI_CUDA_SUMS - 1, cuda->counters));
        from += n;
    }
    return KITH_OK;
}
