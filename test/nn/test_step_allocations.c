/* A training step takes no memory once the first has run: the library's own counter stands still,
 * and malloc is not called by kith at all. (oneDNN's execute makes a map of its arguments on each
 * call, and LLVM's OpenMP takes memory for some parallel regions; calls from their libraries are
 * counted apart and shown.) */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitizer.h"
#include "kith/log.h"
#include "nn/plan.h"
#include "support/small_net.h"
#include "support/testing.h"

#define TESTING_ALONE /* the malloc below is that of the whole program */

static atomic_bool counts;
static atomic_int n_ours, n_openmp, n_foreign;

/* A sanitizer has a malloc of its own, which must be the process's. */
#define IS_INTERPOSED (!KI_ASAN && !KI_TSAN)

#if IS_INTERPOSED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t n);
void *__libc_memalign(size_t align, size_t n);

/* Ours: called from the code of this executable, into which the library is linked. */
static void note(void *caller) {
    static _Thread_local bool is_inside; /* dladdr may allocate */
    if (!atomic_load(&counts) || is_inside) return;
    is_inside = true;
    Dl_info self, info;
    const bool known = dladdr((void *)(uintptr_t)&note, &self) && dladdr(caller, &info);
    if (!known || info.dli_fbase == self.dli_fbase)
        atomic_fetch_add(&n_ours, 1);
    else if (strstr(info.dli_fname, "omp"))
        atomic_fetch_add(&n_openmp, 1);
    else
        atomic_fetch_add(&n_foreign, 1);
    is_inside = false;
}

#define EXPORTED __attribute__((visibility("default"), noinline))
EXPORTED void *malloc(size_t n) {
    note(__builtin_return_address(0));
    return __libc_malloc(n);
}
EXPORTED void *calloc(size_t n, size_t size) {
    note(__builtin_return_address(0));
    return __libc_calloc(n, size);
}
EXPORTED void *realloc(void *ptr, size_t n) {
    note(__builtin_return_address(0));
    return __libc_realloc(ptr, n);
}
EXPORTED void *aligned_alloc(size_t align, size_t n) {
    note(__builtin_return_address(0));
    return __libc_memalign(align, n);
}
EXPORTED int posix_memalign(void **ret_ptr, size_t align, size_t n) {
    note(__builtin_return_address(0));
    *ret_ptr = __libc_memalign(align, n);
    return *ret_ptr ? 0 : 12;
}
#endif

enum { MB = 4, N_STEPS = 3 };

typedef struct trainer {
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
    ki_real *input, *tap, *moments;
    ki_optim_clock *clock;
    double *norm_sq;
    int64_t n_input, n_tap;
} trainer;

static void trainer_init(trainer *t, const char *backend) {
    kith_error err;
    ki_shape shape;
    *t = (trainer){.n_input = (int64_t)MB * SMALL_NET_C * SMALL_NET_H * SMALL_NET_W};
    assert_ok(ki_backend_open(backend, NULL, &t->backend, &err), &err);
    assert_ok(ki_graph_new(&t->graph, &err), &err);
    small_net_build(t->graph, true);
    assert_ok(ki_params_new(t->graph, t->backend, &t->params, &err), &err);
    const ki_plan_options options = {.mb = MB, .mode = KI_TRAIN, .grad_taps = {"map", "embedding", "logits"}};
    assert_ok(ki_plan_new(t->graph, t->params, t->backend, &options, &t->plan, &err), &err);
    assert_ok(ki_plan_tap_shape(t->plan, "embedding", &shape, &err), &err);
    t->n_tap = ki_shape_count(&shape);
    t->input = calloc((size_t)t->n_input, sizeof *t->input);
    t->tap = calloc((size_t)t->n_tap, sizeof *t->tap);
    for (int64_t i = 0; i < t->n_input; i++) t->input[i] = (ki_real)(i % 17) / 8 - 1;
    void *moments = NULL;
    const size_t bytes = 2 * (size_t)ki_params_trained_n(t->params) * sizeof(ki_real);
    assert_ok(t->backend->type->memory.alloc(t->backend, bytes, &moments, &err), &err);
    assert_ok(t->backend->type->memory.zero(t->backend, moments, bytes, &err), &err);
    t->moments = moments;
    void *ptr = NULL;
    assert_ok(t->backend->type->memory.alloc(t->backend, sizeof *t->clock, &ptr, &err), &err);
    t->clock = ptr;
    assert_ok(t->backend->type->memory.alloc(t->backend, sizeof *t->norm_sq, &ptr, &err), &err);
    t->norm_sq = ptr;
}

static void trainer_release(trainer *t) {
    free(t->input);
    free(t->tap);
    t->backend->type->memory.free(t->backend, t->moments);
    t->backend->type->memory.free(t->backend, t->clock);
    t->backend->type->memory.free(t->backend, t->norm_sq);
    ki_plan_free(t->plan);
    ki_params_free(t->params);
    ki_graph_free(t->graph);
    ki_backend_close(t->backend);
}

static kith_status trainer_step(trainer *t, int64_t number, kith_error *err) {
    const int64_t n = ki_params_trained_n(t->params);
    KI_TRY(ki_params_zero_diffs(t->params, err));
    KI_TRY(ki_plan_set_input(t->plan, t->input, err));
    KI_TRY(ki_plan_forward(t->plan, err));
    KI_TRY(ki_plan_read(t->plan, "embedding", t->tap, err));
    KI_TRY(ki_plan_set_grad(t->plan, "embedding", t->tap, err));
    KI_TRY(ki_plan_backward(t->plan, err));
    const ki_optim_clock now = {.lr = 1e-3, .t = number};
    KI_TRY(t->backend->type->memory.upload(t->backend, t->clock, &now, sizeof now, err));
    const ki_optim_run run = {.n = n,
                              .value = ki_params_values(t->params),
                              .diff = ki_params_diffs(t->params),
                              .m = t->moments,
                              .v = t->moments + n,
                              .lr = 1};
    const ki_optim_step adam = {.kind = KI_OPTIM_ADAM,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .diff_scale = 1,
                                .max_norm = 1,
                                .norm_sq = t->norm_sq,
                                .clock = t->clock,
                                .n_runs = 1,
                                .runs = &run};
    KI_TRY(t->backend->type->optimizers.sum_squares(t->backend, 1, &run, t->norm_sq, err));
    KI_TRY(t->backend->type->optimizers.update(t->backend, &adam, err));
    ki_params_touch(t->params);
    return t->backend->type->memory.sync(t->backend, err);
}

static void check_backend(const char *backend, bool is_alone) {
    trainer t;
    kith_error err;
    trainer_init(&t, backend);
    assert_ok(trainer_step(&t, 1, &err), &err);

    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    atomic_store(&n_ours, 0);
    atomic_store(&n_openmp, 0);
    atomic_store(&n_foreign, 0);
    atomic_store(&counts, true);
    kith_status status = KITH_OK;
    for (int i = 0; i < N_STEPS && status == KITH_OK; i++) status = trainer_step(&t, 2 + i, &err);
    atomic_store(&counts, false);
    kith_memory_stats_get(&after);

    assert_ok(status, &err);
    print_message("%s: calls to malloc in %d steps: %d by kith, %d by OpenMP, %d by other libraries\n",
                  backend, N_STEPS, atomic_load(&n_ours), atomic_load(&n_openmp), atomic_load(&n_foreign));
    assert_int_equal(after.n_allocations, before.n_allocations);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(atomic_load(&n_ours), 0);
    if (is_alone) assert_int_equal(atomic_load(&n_foreign), 0);
    trainer_release(&t);
}

static void test_ref(void **state) {
    (void)state;
    check_backend("ref", true);
}

static void test_cpu(void **state) {
    (void)state;
    check_backend("cpu", false);
}

/* The counter itself must be able to see a call. */
static void test_malloc_is_seen(void **state) {
    (void)state;
    if (!IS_INTERPOSED) skip();
    atomic_store(&n_ours, 0);
    atomic_store(&n_foreign, 0);
    atomic_store(&counts, true);
    void *volatile ours = malloc(100);
    void *volatile theirs = strdup("made by libc");
    atomic_store(&counts, false);
    assert_int_equal(atomic_load(&n_ours), 1);
    assert_int_equal(atomic_load(&n_foreign), 1);
    free(ours);
    free(theirs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malloc_is_seen),
        cmocka_unit_test(test_ref),
        cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests_name("nn/step allocations", tests, NULL, NULL);
}
