/* L2 normalisation of rows, y = x / max(|x|, eps), and its gradient
 * dL/dx = (dL/dy - y (y . dL/dy)) / |x|; where |x| < eps the divisor is a constant. */
#include "base/parallel.h"
#include "objective/pair/pairs.h"

#define EPS ((ki_real)1e-12)
/* How many rows are worth a thread. */
static int64_t grain_of(int64_t dim) { return 1 + 32768 / dim; }

typedef struct job {
    const ki_vec *vec;
    const ki_real *x, *y, *diff_y;
    ki_real *dst, *norm;
    int64_t dim;
    ki_real scale;
    bool assign;
} job;

static void normalize(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t i = begin; i < end; i++) {
        const ki_real *x = j->x + i * j->dim;
        ki_real *y = j->dst + i * j->dim;
        j->norm[i] = ki_sqrt(j->vec->dot(x, x, j->dim));
        const ki_real inverse = 1 / (j->norm[i] > EPS ? j->norm[i] : EPS);
        j->vec->copy(x, inverse, y, j->dim);
    }
}

void ki_rows_normalize(const ki_real *x, int64_t m, int64_t dim, ki_real *y, ki_real *norm) {
    job j = {.vec = ki_vec_get(), .x = x, .dst = y, .norm = norm, .dim = dim};
    ki_parallel_for(m, grain_of(dim), normalize, &j);
}

static void backward(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t i = begin; i < end; i++) {
        const ki_real *y = j->y + i * j->dim, *diff_y = j->diff_y + i * j->dim;
        ki_real *diff_x = j->dst + i * j->dim;
        const bool is_tiny = j->norm[i] < EPS;
        const ki_real inverse = j->scale / (is_tiny ? EPS : j->norm[i]);
        const ki_real along = is_tiny ? 0 : j->vec->dot(y, diff_y, j->dim);
        (j->assign ? j->vec->less : j->vec->add_less)(diff_y, y, inverse, along, diff_x, j->dim);
    }
}

static void run_backward(const ki_real *y, const ki_real *norm, const ki_real *diff_y, int64_t m, int64_t dim,
                         ki_real scale, bool assign, ki_real *diff_x) {
    ki_real *norms = (ki_real *)(uintptr_t)norm; /* read only */
    job j = {.vec = ki_vec_get(),
             .y = y,
             .diff_y = diff_y,
             .dst = diff_x,
             .norm = norms,
             .dim = dim,
             .scale = scale,
             .assign = assign};
    ki_parallel_for(m, grain_of(dim), backward, &j);
}

void ki_rows_normalize_backward(const ki_real *y, const ki_real *norm, const ki_real *diff_y, int64_t m,
                                int64_t dim, ki_real scale, ki_real *diff_x) {
    run_backward(y, norm, diff_y, m, dim, scale, false, diff_x);
}

void ki_rows_normalize_assign(const ki_real *y, const ki_real *norm, const ki_real *diff_y, int64_t m,
                              int64_t dim, ki_real *diff_x) {
    run_backward(y, norm, diff_y, m, dim, 1, true, diff_x);
}
