/* The terms of resampled positions, and summing them up. */
#include "device/positions.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Keys' kernel of convolution ("Cubic convolution interpolation for digital image processing", 1981). */
static double cubic(double x, double a) {
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

typedef struct axis {
    int64_t n_in, n_out;
    double scale; /* of the stored grid's cells to one of the new grid's */
} axis;

static axis axis_of(int64_t n_in, int64_t n_out, double offset) {
    return (axis){n_in, n_out, (double)n_in / ((double)n_out + offset)};
}

/* How far the antialiasing filter reaches to either side. */
static double reach_of(const axis *a) { return a->scale > 1 ? 2 * a->scale : 2; }

static int64_t most_terms(const axis *a, ki_positions_filter how) {
    const int64_t most = how == KI_POSITIONS_BICUBIC_ANTIALIAS ? 2 * (int64_t)ceil(reach_of(a)) + 1 : 4;
    return how == KI_POSITIONS_BICUBIC_ANTIALIAS && most > a->n_in ? a->n_in : most;
}

static kith_status terms_alloc(ki_position_terms *t, int64_t n, int64_t n_terms, kith_error *err) {
    t->n = n;
    KI_TRY(ki_zalloc_or(&t->first, (size_t)n + 1, sizeof *t->first, "the terms of positions", err));
    KI_TRY(ki_alloc_or(&t->at, (size_t)n_terms + 1, sizeof *t->at, "the terms of positions", err));
    return ki_alloc_or(&t->weight, (size_t)n_terms + 1, sizeof *t->weight, "the terms of positions", err);
}

static void add_term(ki_position_terms *t, int64_t row, int64_t at, double weight) {
    const int32_t k = t->first[row + 1]++;
    t->at[k] = (int32_t)at;
    t->weight[k] = (ki_real)weight;
}

/* Cells beyond the border are those at the border. */
static int64_t clamp(int64_t at, int64_t n) { return at < 0 ? 0 : at < n ? at : n - 1; }

static void bicubic(const axis *a, ki_position_terms *t, int64_t row) {
    const double at = a->scale * ((double)row + 0.5) - 0.5, floored = floor(at);
    for (int k = -1; k <= 2; k++)
        add_term(t, row, clamp((int64_t)floored + k, a->n_in), cubic(at - floored - k, -0.75));
}

static void bilinear(const axis *a, ki_position_terms *t, int64_t row) {
    const double at = fmax(a->scale * ((double)row + 0.5) - 0.5, 0);
    const int64_t low = clamp((int64_t)at, a->n_in);
    const double part = fmin(at - (double)low, 1);
    add_term(t, row, low, 1 - part);
    add_term(t, row, clamp(low + 1, a->n_in), part);
}

/* Where the new grid is coarser the filter is as much wider, so that every stored position counts. */
static void antialiased(const axis *a, ki_position_terms *t, int64_t row) {
    const double centre = a->scale * ((double)row + 0.5), reach = reach_of(a), wide = fmax(a->scale, 1);
    const int64_t low = (int64_t)fmax(trunc(centre - reach + 0.5), 0),
                  past = (int64_t)fmin(trunc(centre + reach + 0.5), (double)a->n_in);
    const int32_t first = t->first[row];
    double sum = 0;
    for (int64_t at = low; at < past; at++) sum += cubic(((double)at - centre + 0.5) / wide, -0.5);
    for (int64_t at = low; at < past; at++)
        add_term(t, row, at, cubic(((double)at - centre + 0.5) / wide, -0.5) / sum);
    /* With an offset the last cells may be centred beyond the border. */
    if (t->first[row + 1] == first) add_term(t, row, clamp((int64_t)centre, a->n_in), 1);
}

static kith_status make_terms(const axis *a, ki_positions_filter how, ki_position_terms *t, kith_error *err) {
    KI_TRY(terms_alloc(t, a->n_out, a->n_out * most_terms(a, how), err));
    for (int64_t row = 0; row < a->n_out; row++) {
        t->first[row + 1] = t->first[row];
        switch (how) {
        case KI_POSITIONS_BICUBIC: bicubic(a, t, row); break;
        case KI_POSITIONS_BICUBIC_ANTIALIAS: antialiased(a, t, row); break;
        case KI_POSITIONS_BILINEAR: bilinear(a, t, row); break;
        }
    }
    return KITH_OK;
}

/* The same terms by the n stored positions that they read. */
static kith_status turn(const ki_position_terms *t, int64_t n, ki_position_terms *ret, kith_error *err) {
    const int32_t n_terms = t->first[t->n];
    KI_TRY(terms_alloc(ret, n, n_terms, err));
    for (int32_t k = 0; k < n_terms; k++) ret->first[t->at[k] + 1]++;
    for (int64_t i = 0; i < n; i++) ret->first[i + 1] += ret->first[i];
    for (int64_t row = 0; row < t->n; row++) {
        for (int32_t k = t->first[row]; k < t->first[row + 1]; k++) {
            const int32_t to = ret->first[t->at[k]]++; /* now the end of that row … */
            ret->at[to] = (int32_t)row;
            ret->weight[to] = t->weight[k];
        }
    }
    for (int64_t i = n; i > 0; i--) ret->first[i] = ret->first[i - 1]; /* … which is the next one's begin */
    ret->first[0] = 0;
    return KITH_OK;
}

kith_status ki_positions_init(const ki_tokens_attr *attr, int64_t h, int64_t w, ki_positions *ret_positions,
                              kith_error *err) {
    ki_positions p = {.h = h, .w = w, .grid_h = attr->grid_h, .grid_w = attr->grid_w};
    p.is_same = attr->grid_h == 0 || (attr->grid_h == h && attr->grid_w == w);
    const axis y = axis_of(p.grid_h, h, attr->offset), x = axis_of(p.grid_w, w, attr->offset);
    kith_status status = KITH_OK;
    if (!p.is_same) {
        status = make_terms(&y, attr->how, &p.y, err);
        if (status == KITH_OK) status = make_terms(&x, attr->how, &p.x, err);
        if (status == KITH_OK) status = turn(&p.y, p.grid_h, &p.y_back, err);
        if (status == KITH_OK) status = turn(&p.x, p.grid_w, &p.x_back, err);
    }
    if (status == KITH_OK)
        *ret_positions = p;
    else
        ki_positions_release(&p);
    return status;
}

void ki_positions_release(ki_positions *p) {
    ki_position_terms *const all[] = {&p->y, &p->x, &p->y_back, &p->x_back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ki_free(all[i]->first);
        ki_free(all[i]->at);
        ki_free(all[i]->weight);
    }
    *p = (ki_positions){0};
}

/* Row y of a grid, dst [x->n, c] += from src [.., width, c]. */
static void add_row(const ki_position_terms *ys, const ki_position_terms *xs, int64_t y, int64_t width,
                    int64_t c, const ki_real *src, ki_real *dst) {
    for (int64_t x = 0; x < xs->n; x++, dst += c) {
        for (int32_t j = ys->first[y]; j < ys->first[y + 1]; j++) {
            for (int32_t i = xs->first[x]; i < xs->first[x + 1]; i++) {
                const ki_real weight = ys->weight[j] * xs->weight[i];
                const ki_real *from = src + (ys->at[j] * width + xs->at[i]) * c;
                for (int64_t k = 0; k < c; k++) dst[k] += weight * from[k];
            }
        }
    }
}

void ki_positions_row(const ki_positions *p, int64_t y, int64_t c, const ki_real *stored, ki_real *dst) {
    memset(dst, 0, (size_t)(p->w * c) * sizeof *dst);
    add_row(&p->y, &p->x, y, p->grid_w, c, stored, dst);
}

void ki_positions_back_row(const ki_positions *p, int64_t y, int64_t c, const ki_real *diff,
                           ki_real *diff_stored) {
    add_row(&p->y_back, &p->x_back, y, p->w, c, diff, diff_stored);
}
