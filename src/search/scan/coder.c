/* What a coder does with rows: turn them, and rank the lists. */
#include "search/scan/coder.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "knn/panels.h"
#include "search/scan/coder_parts.h"

kith_status ki_coder_init(ki_coder *c, bool has_axes, kith_error *err) {
    c->padded = (int64_t)ki_round_up((size_t)c->dim, 16);
    c->n_panels = (c->n_lists + KI_LIST_PANEL - 1) / KI_LIST_PANEL;
    const size_t padded = (size_t)c->padded, lists = (size_t)(c->n_panels * KI_LIST_PANEL);
    const size_t n_centroids = (size_t)c->n_lists * padded;
    const size_t n_axes = (size_t)(ki_coder_axis_panels(c) * c->dim) * KI_AXIS_PANEL;
    c->n_numbers = n_centroids + (has_axes ? n_axes + padded : 0);
    KI_TRY(ki_zalloc_or(&c->centroid, c->n_numbers, sizeof(float), "centroids", err));
    c->axes = has_axes ? c->centroid + n_centroids : NULL;
    c->variance = has_axes ? c->axes + n_axes : NULL;
    KI_TRY(ki_zalloc_or(&c->half, lists, sizeof(float), "centroids", err));
    KI_TRY(ki_zalloc_or(&c->scale, lists, sizeof(float), "centroids", err));
    return ki_zalloc_or(&c->panels, lists, padded, "centroids", err);
}

void ki_coder_drop_axes(ki_coder *c) {
    c->axes = c->variance = NULL;
    c->n_numbers = (size_t)(c->n_lists * c->padded);
    float *less = ki_realloc(c->centroid, c->n_numbers, sizeof *less);
    if (less) c->centroid = less; /* else it stays larger than it need be */
}

void ki_coder_free(ki_coder *c) {
    if (!c) return;
    ki_rotation_release(&c->rotation);
    ki_free(c->centroid);
    ki_free(c->half);
    ki_free(c->scale);
    ki_free(c->panels);
    ki_free(c);
}

/* With v_k the variances, a code of b bits for each of the first m values errs by about noise_b (v_1 + … + v_m)^2 / m. What values
 * without a code would add to a score is not noise: a row and a query that are near each other have nearly the same
 * values, and lose the sum of their products. So few are left out, those that hardly vary. */
void ki_coder_share_bits(ki_coder *c, int bits) {
    /* Of values from a bell curve in 2^b equal steps (Max 1960), over what is left of their variance. */
    static const double NOISE[KI_CODER_MOST_BITS + 1] = {1,       0.571,   0.135,    0.0389,   0.01167,
                                                         0.00350, 0.00104, 0.000304, 0.0000875};
    const double NEAR =
        0.5; /* of a row and a neighbour, the square of the cosine around the centroid, about */
    c->coded = c->padded;
    c->bits = bits;
    if (!c->axes) return;
    double least = INFINITY, sum = 0, all = 0;
    for (int64_t k = 0; k < c->padded; k++) all += (double)c->variance[k];
    for (int64_t m = 0; m < c->padded; m++) {
        sum += (double)c->variance[m];
        if ((m + 1) % 16) continue;
        const int64_t most = bits * c->padded / (m + 1);
        const int each = most < KI_CODER_MOST_BITS ? (int)most : KI_CODER_MOST_BITS;
        const double error = NOISE[each] * sum * sum / (double)(m + 1) + NEAR * (all - sum) * (all - sum);
        if (error >= least) continue;
        least = error;
        c->coded = m + 1;
        c->bits = each;
    }
}

kith_status ki_coder_rotate(ki_coder *c, kith_error *err) {
    double all = 0, left = 0;
    for (int64_t k = 0; c->axes && k < c->padded; k++) {
        all += (double)c->variance[k];
        left += k >= c->coded ? (double)c->variance[k] : 0;
    }
    c->dropped = all > 0 ? (float)(left / all) : 0;
    return ki_rotation_init(&c->rotation, c->coded, c->seed, err);
}

static float largest(const float *x, int64_t n) {
    float most = 0;
    for (int64_t k = 0; k < n; k++) most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
    return most;
}

static inline int nearest_int(float x) { return (int)(x + (x < 0 ? -0.5F : 0.5F)); }

void ki_coder_finish(ki_coder *c) {
    for (int64_t l = 0; l < c->n_lists; l++) {
        const float *x = c->centroid + l * c->padded;
        const float most = largest(x, c->padded), inverse = most > KI_CODER_LEAST ? 127 / most : 0;
        double sum = 0;
        uint8_t *to = c->panels + l / 16 * c->padded * 16 + l % 16 * 4;
        for (int64_t k = 0; k < c->padded; k++) {
            to[k / 4 * 64 + k % 4] = (uint8_t)(nearest_int(x[k] * inverse) + 128);
            sum += (double)x[k] * (double)x[k];
        }
        c->scale[l] = most / 127;
        c->half[l] = (float)(sum / 2);
    }
}

void ki_coder_align(const ki_coder *c, const float *x, float *ret) {
    if (c->axes) {
        float along[KI_CODER_MOST_AXES];
        ki_scan_kernel_best()->project(c->axes, x, c->dim, ki_coder_axis_panels(c), along);
        memcpy(ret, along, (size_t)c->padded * sizeof *ret);
    } else {
        memcpy(ret, x, (size_t)c->dim * sizeof *ret);
        memset(ret + c->dim, 0, (size_t)(c->padded - c->dim) * sizeof *ret);
    }
}

void ki_coder_turn(const ki_coder *c, const float *x, float *ret) {
    ki_coder_align(c, x, ret);
    if (c->metric == KITH_COSINE) {
        double xx, unused;
        ki_scan_kernel_best()->dots(x, x, c->dim, &xx, &unused);
        const double norm = fmax(sqrt(xx), KI_LEAST_NORM);
        for (int64_t k = 0; k < c->padded; k++) ret[k] = (float)((double)ret[k] / norm);
    }
    ki_rotation_apply(&c->rotation, ret);
}

kith_status ki_coder_ranker_init(ki_coder_ranker *r, const ki_coder *coder, int64_t n_together,
                                 kith_error *err) {
    *r = (ki_coder_ranker){.coder = coder, .kernel = ki_scan_kernel_best()};
    KI_TRY(ki_alloc_or(&r->bytes, (size_t)n_together, (size_t)coder->padded, "scratch", err));
    const size_t lists = (size_t)(coder->n_panels * KI_LIST_PANEL);
    return ki_alloc_or(&r->dots, (size_t)n_together * lists, sizeof *r->dots, "scratch", err);
}

void ki_coder_ranker_release(ki_coder_ranker *r) {
    ki_free(r->bytes);
    ki_free(r->dots);
    *r = (ki_coder_ranker){0};
}

void ki_coder_rank(ki_coder_ranker *r, const float *turned, int64_t n, bool is_query, float *ret_scores) {
    const ki_coder *c = r->coder;
    const int64_t padded = c->padded, lists = c->n_panels * KI_LIST_PANEL;
    float scale[4];
    int32_t offset[4];
    for (int64_t q = 0; q < n; q++) {
        const float *x = turned + q * padded;
        int8_t *bytes = r->bytes + q * padded;
        const float most = largest(x, padded), inverse = most > KI_CODER_LEAST ? 127 / most : 0;
        int32_t sum = 0;
        for (int64_t k = 0; k < padded; k++) {
            const int value = nearest_int(x[k] * inverse);
            bytes[k] = (int8_t)value;
            sum += value;
        }
        scale[q] = most / 127;
        offset[q] = 128 * sum; /* what the lists' bytes have too much */
    }
    r->kernel->lists(r->bytes, n, c->panels, c->n_panels, padded, r->dots);
    const float with_half = is_query && c->metric == KITH_INNER ? 0 : 1;
    for (int64_t q = 0; q < n; q++) {
        const int32_t *dot = r->dots + q * lists;
        float *score = ret_scores + q * lists;
        const int32_t less = offset[q];
        const float by = scale[q];
        for (int64_t l = 0; l < lists; l++)
            score[l] = (float)(dot[l] - less) * c->scale[l] * by - with_half * c->half[l];
    }
}

kith_status ki_coder_with_bits(const ki_coder *coder, int bits, ki_coder **ret_coder, kith_error *err) {
    kith_status status = KITH_OK;
    ki_coder *c = NULL;
    if (bits < 1 || bits > KI_CODER_MOST_BITS)
        return ki_fail(err, KITH_EINVAL, "codes of %d bits; wanted 1 to %d", bits, KI_CODER_MOST_BITS);
    KI_CHECK(ki_zalloc_or(&c, 1, sizeof *c, "coder", err));
    c->metric = coder->metric;
    c->dim = coder->dim;
    c->n_lists = coder->n_lists;
    c->seed = coder->seed;
    KI_CHECK(ki_coder_init(c, coder->axes != NULL, err));
    memcpy(c->centroid, coder->centroid, c->n_numbers * sizeof(float));
    ki_coder_share_bits(c, bits);
    KI_CHECK(ki_coder_rotate(c, err));
    for (int64_t l = 0; l < c->n_lists; l++) {
        ki_rotation_undo(&coder->rotation, c->centroid + l * c->padded);
        ki_rotation_apply(&c->rotation, c->centroid + l * c->padded);
    }
    ki_coder_finish(c);
    ki_coder_seal(c);
    *ret_coder = c;
    c = NULL;
done:
    ki_coder_free(c);
    return status;
}

kith_metric ki_coder_metric(const ki_coder *coder) { return coder->metric; }
int64_t ki_coder_dim(const ki_coder *coder) { return coder->dim; }
int ki_coder_bits(const ki_coder *c) { return (int)((c->coded * c->bits + c->padded - 1) / c->padded); }
int64_t ki_coder_lists(const ki_coder *coder) { return coder->n_lists; }
uint64_t ki_coder_mark(const ki_coder *coder) { return coder->mark; }
size_t ki_coder_memory(const ki_coder *c) {
    const size_t padded = (size_t)c->padded, lists = (size_t)(c->n_panels * KI_LIST_PANEL);
    return sizeof *c + (ki_rotation_numbers(&c->rotation) + c->n_numbers) * sizeof(float) +
           lists * (padded + 2 * sizeof(float));
}
