/* Timing what there is for a pass, and picking the fastest.
 *
 * A candidate is run twice, then several times as a captured graph, which is how it will run: one that cannot be
 * captured is of no use. The fastest weight gradient in bf16 must also pass a test of its rounding (rounding.h). */
#include "backend/cuda/conv/trials.h"

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/conv/rounding.h"
#include "core/clock.h"
#include "core/log.h"

#define FINALISTS 1.08 /* times the fastest: looked at again */

/* Scratch tensors with numbers in them, as large as the pass and its candidates need. */
static kith_status make_tensors(ki_trial *t, ki_conv_io *ret_io, kith_error *err) {
    const ki_conv_problem *p = t->problem;
    const size_t each = ki_number_bytes(p->type);
    size_t workspace_bytes = 0;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (a && a->workspace_bytes > workspace_bytes) workspace_bytes = a->workspace_bytes;
    }
    const size_t bytes[] = {(size_t)(p->mb * p->src.image) * each,
                            (size_t)(p->mb * p->dst.image) * each,
                            (size_t)(p->oc * p->kh * p->kw * p->ic) * sizeof(float),
                            (size_t)p->oc * sizeof(float),
                            (size_t)(p->mb * p->src.image) * each,
                            workspace_bytes};
    enum { N = sizeof bytes / sizeof bytes[0] };
    char *at[N];
    size_t total = 0, filled = 0;
    for (int i = 0; i < N; i++) {
        if (i == N - 1) filled = total;
        total += ki_round_up(bytes[i], 256);
    }
    if (total > t->libraries->trial_bytes) {
        ki_cuda_free(t->backend, t->libraries->trial);
        t->libraries->trial = NULL;
        t->libraries->trial_bytes = 0;
        KI_TRY(ki_cuda_alloc(t->backend, total, &t->libraries->trial, err));
        t->libraries->trial_bytes = total;
    }
    at[0] = t->libraries->trial;
    for (int i = 1; i < N; i++) at[i] = at[i - 1] + ki_round_up(bytes[i - 1], 256);
    KI_CUDA(ki_cuda_noise(t->libraries->trial, filled, 1, ki_cuda_of(t->backend)->stream));
    *ret_io = (ki_conv_io){.src = at[0],
                           .dst = at[1],
                           .diff_dst = at[1],
                           .weights = at[2],
                           .diff_weights = at[2],
                           .diff_master = (float *)(void *)at[2],
                           .bias = (const float *)(const void *)at[3],
                           .bias_stored = at[3],
                           .diff_src = at[4],
                           .workspace = at[N - 1]};
    return KITH_OK;
}

/* A device that no longer answers fails every further call: then there is nothing to choose from. */
static kith_status device_lives(const ki_trial *t, kith_error *err) {
    KI_CUDA(cudaStreamSynchronize(ki_cuda_of(t->backend)->stream));
    return KITH_OK;
}

static kith_status time_all(ki_trial *t, const ki_conv_io *io, kith_error *err) {
    double best = 1e9;
    for (int i = 0; i < t->n; i++) {
        ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (!a) continue;
        if (a->seconds > 0) { /* timed before */
            if (a->seconds < best) best = a->seconds;
            continue;
        }
        if (ki_conv_time(a, io, best, &a->seconds, &t->why) != KITH_OK) {
            KI_TRY(device_lives(t, err));
            ki_log(KITH_LOG_DEBUG, "%s: %s", a->text, t->why.message);
            ki_conv_algorithm_free(a);
            t->candidate[i].algorithm = NULL;
            continue;
        }
        t->stats.n_timed++;
        ki_log(KITH_LOG_DEBUG, "%8.1f us  %6.1f MiB  %s", 1e6 * a->seconds,
               (double)a->workspace_bytes / (1 << 20), a->text);
        if (a->seconds < best) best = a->seconds;
    }
    return KITH_OK;
}

kith_status ki_trial_time(ki_trial *t, ki_conv_io *ret_io, kith_error *err) {
    KI_TRY(make_tensors(t, ret_io, err));
    return time_all(t, ret_io, err);
}

static int fastest(const ki_trial *t) {
    int best = -1;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (a && (best < 0 || a->seconds < t->candidate[best].algorithm->seconds)) best = i;
    }
    return best;
}

/* The fastest few are often a few percent apart, which a short look does not tell reliably. */
static kith_status time_finalists(ki_trial *t, const ki_conv_io *io, kith_error *err) {
    const int first = fastest(t);
    if (first < 0) return KITH_OK;
    const double limit = FINALISTS * t->candidate[first].algorithm->seconds;
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        const ki_conv_algorithm *a = t->candidate[i].algorithm;
        n += a && a->seconds <= limit;
    }
    for (int i = 0; n > 1 && i < t->n; i++) {
        ki_conv_algorithm *a = t->candidate[i].algorithm;
        if (!a || a->seconds > limit) continue;
        KI_TRY(ki_conv_time_closely(a, io, &a->seconds, err));
        ki_log(KITH_LOG_DEBUG, "%8.1f us at a closer look  %s", 1e6 * a->seconds, a->text);
    }
    return KITH_OK;
}

kith_status ki_trial_pick(ki_trial *t, ki_conv_algorithm **ret_best, kith_error *err) {
    ki_conv_io io;
    ki_conv_algorithm *least = NULL;
    double least_off = 1e9;
    const double begin = ki_seconds_now();
    const bool checks = ki_conv_can_check_rounding(t->problem);
    kith_status status = KITH_OK;
    KI_CHECK(ki_trial_time(t, &io, err));
    if (fastest(t) >= 0) {
        ki_trial_collect_tiles(t, t->candidate[fastest(t)].algorithm->seconds);
        KI_CHECK(ki_trial_time(t, &io, err));
    }
    KI_CHECK(time_finalists(t, &io, err));
    for (int best = fastest(t); best >= 0; best = fastest(t)) {
        ki_conv_algorithm *a = t->candidate[best].algorithm;
        double off = 0;
        if (checks && !ki_conv_accumulates(a))
            KI_CHECK(ki_conv_rounding(t->backend, t->problem, a, &io, &off, err));
        t->candidate[best].algorithm = NULL;
        if (off < least_off) {
            ki_conv_algorithm_free(least);
            least = a;
            least_off = off;
        } else {
            ki_conv_algorithm_free(a);
        }
        if (least_off <= KI_CONV_ROUNDING) break;
        t->stats.n_wrong++;
    }
    if (least && least_off > KI_CONV_ROUNDING)
        ki_log(KITH_LOG_WARNING, "a weight gradient is off by %.2g of itself: %s", least_off, least->text);
    *ret_best = least;
    least = NULL;
done:
    ki_conv_algorithm_free(least);
    t->stats.time_seconds = ki_seconds_now() - begin;
    return status;
}
