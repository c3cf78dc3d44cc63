/* Nothing reads beside its batch: every golden case with taps that lie between NaNs gives the same bits as without, and
 * one with taps between pages that may not be touched gives anything at all. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/parallel.h"
#include "objective/taps.h"

enum { FLANK = 4096 }; /* numbers on each side: more than a row of any tap */

static double total_of(golden_case *c, double *ret_gradients) {
    kith_error err = {0};
    ki_result result;
    assert_ok(ki_objective_evaluate(c->made.objective, &c->batch, &result, &err), &err);
    *ret_gradients = 0;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        const int64_t n = c->batch.tap[tap].rows * c->batch.tap[tap].cols;
        for (int64_t i = 0; result.diff[tap] && i < n; i++)
            *ret_gradients += fabs((double)result.diff[tap][i]);
    }
    for (int64_t i = 0; result.diff_stopped && i < c->batch.m * c->batch.tap[KI_TAP_EMBEDDING].cols; i++)
        *ret_gradients += fabs((double)result.diff_stopped[i]);
    return result.total;
}

static ki_real *between_nans(const ki_real *src, int64_t n) {
    ki_real *all = ki_alloc((size_t)(n + 2 * FLANK), sizeof *all);
    for (int64_t i = 0; i < n + 2 * FLANK; i++)
        all[i] = i >= FLANK && i < n + FLANK ? src[i - FLANK] : (ki_real)NAN;
    return all;
}

static void check_case(golden_case *c) {
    ki_real *flanked[KI_N_TAPS] = {0};
    double gradients = 0, wanted_gradients = 0;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        ki_tap_data *data = &c->batch.tap[tap];
        if (!data->data) continue;
        flanked[tap] = between_nans(data->data, data->rows * data->cols);
        data->data = flanked[tap] + FLANK;
    }
    const double found = total_of(c, &gradients);
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (c->batch.tap[tap].data) c->batch.tap[tap].data = c->tap[tap];
    }
    if (strstr(c->recipe, "memory")) { /* the second evaluation sees the first one's items */
        if (!isfinite(found) || !isfinite(gradients))
            fail_msg("%s: %g, gradients %g", c->key, found, gradients);
    } else {
        const double wanted = total_of(c, &wanted_gradients);
        if (found != wanted || gradients != wanted_gradients)
            fail_msg("%s: %.9g, gradients %.9g between NaNs; %.9g, %.9g without", c->key, found, gradients,
                     wanted, wanted_gradients);
    }
    for (int tap = 0; tap < KI_N_TAPS; tap++) ki_free(flanked[tap]);
}

static void test_between_nans(void **state) {
    (void)state;
    assert_true(cases_walk(check_case) > 200);
}

/* A copy of n numbers that begins, or ends, where a page begins that may not be touched: reading one number too many ends
 * the program, used or not. */
typedef struct fenced {
    char *all;
    size_t bytes;
    ki_real *data;
} fenced;

static fenced between_fences(const ki_real *src, int64_t n, bool at_end) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)n * sizeof *src;
    const size_t inside = (bytes + page - 1) / page * page;
    fenced f = {.bytes = inside + 2 * page};
    f.all = mmap(NULL, f.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f.all != MAP_FAILED);
    assert_int_equal(mprotect(f.all + page, inside, PROT_READ | PROT_WRITE), 0);
    f.data = (ki_real *)(void *)(f.all + page + (at_end ? inside - bytes : 0));
    memcpy(f.data, src, bytes);
    return f;
}

static void check_fenced_case(golden_case *c) {
    for (int at_end = 0; at_end <= 1; at_end++) {
        fenced f[KI_N_TAPS] = {0};
        double gradients = 0;
        for (int tap = 0; tap < KI_N_TAPS; tap++) {
            ki_tap_data *data = &c->batch.tap[tap];
            if (!data->data) continue;
            f[tap] = between_fences(c->tap[tap], data->rows * data->cols, at_end);
            data->data = f[tap].data;
        }
        const double found = total_of(c, &gradients);
        if (!isfinite(found) || !isfinite(gradients))
            fail_msg("%s: %g, gradients %g", c->key, found, gradients);
        for (int tap = 0; tap < KI_N_TAPS; tap++) {
            if (f[tap].all) munmap(f[tap].all, f[tap].bytes);
        }
    }
}

static void test_between_fences(void **state) {
    (void)state;
    assert_true(cases_walk(check_fenced_case) > 200);
}

/* Most terms see the normalised embedding, which is a copy. */
static void test_embedding_as_it_is(void **state) {
    (void)state;
    static const char *const terms[] = {"energy_confusion", "entropy", "intra_class", "global_orthogonal",
                                        "norm_l2",          "density", "joint_mmd"};
    taps t;
    taps_fill(&t, 2);
    ki_real *flanked = between_nans(t.x, TAPS_M * TAPS_D);
    fenced f[2] = {between_fences(t.x, TAPS_M * TAPS_D, false), between_fences(t.x, TAPS_M * TAPS_D, true)};
    const ki_real *const places[] = {flanked + FLANK, f[0].data, f[1].data};
    for (size_t i = 0; i < N_ROWS(terms) * N_ROWS(places); i++) {
        const char *term = terms[i / N_ROWS(places)];
        char recipe[256];
        kith_error err = {0};
        ki_result result;
        t.batch.tap[KI_TAP_EMBEDDING].data = places[i % N_ROWS(places)];
        snprintf(recipe, sizeof recipe,
                 "loss: {name: contrastive, distance: euclidean, normalize: false}\n"
                 "regularizers: [{name: %s, normalize: false}]",
                 term);
        made m = made_of(recipe, &taps_sizes);
        assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
        if (!isfinite(result.total))
            fail_msg("%s is %g in place %zu", term, result.total, i % N_ROWS(places));
        made_free(&m);
    }
    for (int i = 0; i < 2; i++) munmap(f[i].all, f[i].bytes);
    ki_free(flanked);
}

int main(void) {
    ki_threads_set(1); /* the batches are small: threads would only wait for each other */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_between_nans),
                                       cmocka_unit_test(test_between_fences),
                                       cmocka_unit_test(test_embedding_as_it_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
