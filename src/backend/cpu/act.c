/* act: one pass over memory in either direction; backward computes the function again from the source, which costs less than
 * another map to keep. A sigmoid makes 1/2 of the zeros that pad a blocked map: they are cleared. */
#include "backend/cpu/act.h"
#include "backend/cpu/act_math.h"
#include "backend/cpu/cpu.h"

/* Each function and its slope. */
CPU_INLINE float gelu(float x) { return x * cpu_normal_below(x, cpu_normal_density(x)); }
CPU_INLINE float gelu_slope(float x) {
    const float density = cpu_normal_density(x);
    return cpu_normal_below(x, density) + x * density * 0.39894228f;
}

/* (1 + tanh(u)) / 2 is sigmoid(2 u); here 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3). */
CPU_INLINE float gelu_tanh(float x) { return x * cpu_sigmoid(x * (1.59576912f + 0.07135481f * x * x)); }
CPU_INLINE float gelu_tanh_slope(float x) {
    const float s = cpu_sigmoid(x * (1.59576912f + 0.07135481f * x * x));
    return s + x * s * (1 - s) * (1.59576912f + 3 * 0.07135481f * x * x);
}

CPU_INLINE float quick_gelu(float x) { return x * cpu_sigmoid(1.702f * x); }
CPU_INLINE float quick_gelu_slope(float x) {
    const float s = cpu_sigmoid(1.702f * x);
    return s + 1.702f * x * s * (1 - s);
}

CPU_INLINE float silu(float x) { return x * cpu_sigmoid(x); }
CPU_INLINE float silu_slope(float x) {
    const float s = cpu_sigmoid(x);
    return s + x * s * (1 - s);
}

CPU_INLINE float sigmoid(float x) { return cpu_sigmoid(x); }
CPU_INLINE float sigmoid_slope(float x) {
    const float s = cpu_sigmoid(x);
    return s * (1 - s);
}

CPU_INLINE float hard_sigmoid(float x) {
    const float y = x * (1.0f / 6) + 0.5f, above = y > 0 ? y : 0;
    return above < 1 ? above : 1;
}
CPU_INLINE float hard_sigmoid_slope(float x) { return x * x < 9 ? 1.0f / 6 : 0; }

CPU_INLINE float hard_swish(float x) { return x * hard_sigmoid(x); }
CPU_INLINE float hard_swish_slope(float x) {
    const float inner = x * (1.0f / 3) + 0.5f, outer = x > 0 ? 1 : 0;
    return x * x < 9 ? inner : outer;
}

#define LOOPS(name)                                                                                \
    CPU_WIDE static void name##_forward(const float *src, float *dst, int64_t n) {                 \
        for (int64_t i = 0; i < n; i++) dst[i] = name(src[i]);                                     \
    }                                                                                              \
    CPU_WIDE static void name##_backward(const float *src, const float *diff_dst, float *diff_src, \
                                         int64_t n) {                                              \
        for (int64_t i = 0; i < n; i++) diff_src[i] = diff_dst[i] * name##_slope(src[i]);          \
    }
LOOPS(gelu)
LOOPS(gelu_tanh)
LOOPS(quick_gelu)
LOOPS(silu)
LOOPS(sigmoid)
LOOPS(hard_swish)
LOOPS(hard_sigmoid)
#undef LOOPS

typedef struct function {
    cpu_act_fn *forward;
    void (*backward)(const float *src, const float *diff_dst, float *diff_src, int64_t n);
    bool changes_zero;
} function;

static const function functions[] = {
    [KI_ACT_GELU] = {gelu_forward, gelu_backward, false},
    [KI_ACT_GELU_TANH] = {gelu_tanh_forward, gelu_tanh_backward, false},
    [KI_ACT_QUICK_GELU] = {quick_gelu_forward, quick_gelu_backward, false},
    [KI_ACT_SILU] = {silu_forward, silu_backward, false},
    [KI_ACT_SIGMOID] = {sigmoid_forward, sigmoid_backward, true},
    [KI_ACT_HARD_SWISH] = {hard_swish_forward, hard_swish_backward, false},
    [KI_ACT_HARD_SIGMOID] = {hard_sigmoid_forward, hard_sigmoid_backward, true},
};

cpu_act_fn *cpu_act_of(ki_act how) { return functions[how].forward; }

typedef struct act {
    ki_kernel base;
    ki_edge edge;
    const function *function;
    ki_binding b;
} act;

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    act *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_act, sizeof *k, &k, err));
    k->edge = spec->dst;
    k->function = &functions[spec->attr->act.how];
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((act *)kernel)->b = *binding;
    return KITH_OK;
}

static void forward_range(void *context, int64_t begin, int64_t end) {
    const act *k = context;
    k->function->forward((const float *)k->b.src[0] + begin, (float *)k->b.dst + begin, end - begin);
}

static void backward_range(void *context, int64_t begin, int64_t end) {
    const act *k = context;
    k->function->backward((const float *)k->b.src[0] + begin, (const float *)k->b.diff_dst[0] + begin,
                          (float *)k->b.diff_src[0] + begin, end - begin);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const act *k = (act *)kernel;
    ki_parallel_for(cpu_count(&k->edge), 4096, forward_range, kernel);
    if (k->function->changes_zero) cpu_clear_padding(&k->edge, k->b.dst);
    return KITH_OK;
}

/* The padding of diff_dst is 0, and so is that of diff_src. */
static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const act *k = (act *)kernel;
    if (k->b.diff_src[0]) ki_parallel_for(cpu_count(&k->edge), 4096, backward_range, kernel);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_act = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
