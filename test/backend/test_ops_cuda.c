/* Every line of the case files on backend cuda against backend ref, in float32 and bf16, on whole maps and on slices of
 * wider ones: output, gradients of all sources and parameters, running statistics. Without a device the kernels
 * run in the emulator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/op_check.h"
#include "support/testing.h"

typedef struct side {
    const char *name;
    ki_precision precision;
    int64_t gap;
    double tolerance;
} side;

/* Slices of 8 (packs of 16 bytes still fit) and of 3 channels more (they do not). */
static const side sides[] = {
    {"float32", KI_FLOAT32, 0, 1e-5},
    {"float32 in slices", KI_FLOAT32, 8, 1e-5},
    {"float32 in odd slices", KI_FLOAT32, 3, 1e-5},
    {"bf16", KI_BF16, 0, 2e-2},
    {"bf16 in slices", KI_BF16, 8, 2e-2},
};

static ki_backend *ref, *cuda[2];

/* ref computes on what bf16 keeps of the values, as the device does: a convolution's weights and bias too, or a
 * ReLU behind it would cut at other places. */
static void round_values(op_run *run) {
    for (int i = 0; i < run->c->n_src; i++) {
        if (run->c->src[i].n_dims == 2) continue;
        for (int64_t j = 0; j < run->n_src[i]; j++)
            run->src[i][j] = ki_bf16_to_float(ki_float_to_bf16(run->src[i][j]));
    }
    for (int64_t j = 0; run->spec.dst.shape.n_dims != 2 && j < run->n_dst; j++)
        run->diff_dst[j] = ki_bf16_to_float(ki_float_to_bf16(run->diff_dst[j]));
    for (int i = 0; run->c->kind == KI_OP_CONV2D && i < run->n_params; i++) {
        op_param *p = &run->param[i];
        for (int64_t j = 0; j < p->n; j++) p->value[j] = ki_bf16_to_float(ki_float_to_bf16(p->value[j]));
    }
}

static void forward(op_run *run, const op_case *c, const side *s) {
    kith_error err;
    if (op_run_forward(run, &err) != KITH_OK)
        fail_msg("%s in %s: forward: %s", c->line, s->name, err.message);
}

static void backward(op_run *run, const op_case *c, const side *s) {
    kith_error err;
    if (run->spec.mode == KI_TRAIN && op_run_backward(run, &err) != KITH_OK)
        fail_msg("%s in %s: backward: %s", c->line, s->name, err.message);
}

/* In bf16 an output next to 0 may be rounded to either side of a ReLU, and a gradient that passes one and not the
 * other says nothing of backward: there none is sent. A few in a thousand. */
static void leave_out_flips(op_run *a, op_run *b, const op_case *c, const side *s) {
    int64_t n = 0;
    if (!c->relu || s->precision != KI_BF16) return;
    for (int64_t j = 0; j < a->n_dst; j++) {
        if ((a->dst[j] > 0) == (b->dst[j] > 0)) continue;
        a->diff_dst[j] = b->diff_dst[j] = 0;
        n++;
    }
    if (n > 2 + a->n_dst / 200)
        fail_msg("%s in %s: %lld of %lld values are on the other side of the ReLU", c->line, s->name,
                 (long long)n, (long long)a->n_dst);
}

static void compare_case(const side *s, const op_case *c, double *worst) {
    op_run a, b;
    kith_error err;
    if (op_run_init_sliced(&a, c, cuda[s->precision], s->gap, &err) != KITH_OK)
        fail_msg("%s in %s: %s", c->line, s->name, err.message);
    assert_ok(op_run_init(&b, c, ref, &err), &err);
    if (s->precision == KI_BF16) {
        round_values(&a);
        round_values(&b);
    }
    forward(&a, c, s);
    forward(&b, c, s);
    leave_out_flips(&a, &b, c, s);
    backward(&a, c, s);
    backward(&b, c, s);
    op_check_near(&a, &b, s->name, s->tolerance, worst);
    if (!op_run_gaps_are_intact(&a)) fail_msg("%s in %s: written between the pixels", c->line, s->name);
    op_run_release(&a);
    op_run_release(&b);
}

static int open_all(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        cuda[i] = op_backend("cuda", &(ki_backend_options){.precision = i ? KI_BF16 : KI_FLOAT32});
    ref = op_backend("ref", NULL);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    ki_backend_close(cuda[0]);
    ki_backend_close(cuda[1]);
    ki_backend_close(ref);
    return 0;
}

/* The emulator takes small cases in every way and large ones in one way each, and leaves out large convolutions, which
 * there are loops of the test's own. */
static bool is_taken(const op_case *c, size_t side_number, int number) {
#ifdef KI_EMULATE_TESTS
    int64_t n = 0;
    for (int i = 0; i < c->n_src; i++) n += ki_shape_count(&c->src[i]);
    const ki_conv_attr *conv = &c->attr.conv;
    if (c->kind == KI_OP_CONV2D &&
        (double)n * (double)(conv->oc / (conv->groups ? conv->groups : 1) * conv->kh * conv->kw) > 2e7)
        return false;
    return n < 10000 || (size_t)number % N_ROWS(sides) == side_number;
#else
    (void)c, (void)side_number, (void)number;
    return true;
#endif
}

static void compare_op(ki_op_kind kind) {
    op_case cases[2 * OP_MAX_CASES];
    int n = op_cases_read(ki_op_name(kind), cases);
    n += op_cases_read("small", cases + n);
    if (!cuda[0]->type->kernels.of[kind]) {
        print_message("no kernel for %s\n", ki_op_name(kind));
        skip();
    }
    for (size_t s = 0; s < N_ROWS(sides); s++) {
        double worst = 0;
        int n_compared = 0;
        for (int i = 0; i < n; i++) {
            if (cases[i].kind != kind || !is_taken(&cases[i], s, i)) continue;
            compare_case(&sides[s], &cases[i], &worst);
            n_compared++;
        }
        print_message("%3d cases of %s in %s, worst %.2g\n", n_compared, ki_op_name(kind), sides[s].name,
                      worst);
    }
}

#define X(NAME, name) \
    static void test_##name(void **state) { (void)state, compare_op(KI_OP_##NAME); }
#include "device/op.def"
#undef X

int main(void) {
    const struct CMUnitTest tests[] = {
#define X(NAME, name) cmocka_unit_test(test_##name),
#include "device/op.def"
#undef X
    };
    return cmocka_run_group_tests_name("backend/cuda against ref", tests, open_all, close_all);
}
