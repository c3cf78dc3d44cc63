/* A product of vectors as a sum over the positions of a map.
 *
 *     vector = W sum_p u_p + b,   u_p = the part of position p in the pooled map
 *     <vector, g> = sum_p <u_p, W' g> + <b, g>
 *
 * With a layer norm behind the pool, W (gamma (pooled - mean) / sd + beta) + b, the factors of the channels are f = gamma W' g / sd less
 * their mean, because the norm takes the mean of the pooled channels away; beta joins the bias.
 *
 * W' g is made once, so that the work is that of one linear layer and one pass over the map. */
#include "model/shares.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Of one channel: add factor times the part of each position in the pooled value, and return the pooled value. The generalised
 * mean is shared out as the powers that it is the mean of. */
static double pool_powers(const ki_shares *s, const float *x, double factor, double *to) {
    double most = 0, sum = 0;
    for (int64_t p = 0; p < s->positions; p++) most = fmax(most, fmax((double)x[p], KI_GEM_LEAST));
    for (int64_t p = 0; p < s->positions; p++) sum += pow(fmax((double)x[p], KI_GEM_LEAST) / most, s->power);
    const double value = most * pow(sum / (double)s->positions, 1 / s->power);
    for (int64_t p = 0; to && p < s->positions; p++)
        to[p] += factor * value * pow(fmax((double)x[p], KI_GEM_LEAST) / most, s->power) / sum;
    return value;
}

/* The same for the other ways. */
static double pool(const ki_shares *s, const float *x, double factor, double *to) {
    if (s->pool == KI_GLOBAL_GEM) return pool_powers(s, x, factor, to);
    const int64_t n = s->positions;
    const double even = s->pool == KI_GLOBAL_MAX ? 0 : 1 / (double)n;
    double sum = 0;
    int64_t largest = 0;
    for (int64_t p = 0; p < n; p++) {
        sum += even * (double)x[p];
        if (x[p] > x[largest]) largest = p;
    }
    if (s->pool != KI_GLOBAL_AVG) sum += (double)x[largest];
    if (!to) return sum;
    for (int64_t p = 0; p < n; p++) to[p] += factor * even * (double)x[p];
    if (s->pool != KI_GLOBAL_AVG) to[largest] += factor * (double)x[largest];
    return sum;
}

/* What a layer norm divides by, and the mean that it takes away. */
static double spread(const ki_shares *s, const double *pooled, double *ret_mean) {
    const double n = (double)s->channels;
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < s->channels; c++) sum += pooled[c];
    for (int64_t c = 0; c < s->channels; c++) squares += pow(pooled[c] - sum / n, 2);
    *ret_mean = sum / n;
    return sqrt(squares / n + s->eps);
}

static void norm_layer(const ki_shares *s, double *pooled) {
    double mean = 0;
    const double sd = s->gamma ? spread(s, pooled, &mean) : 1;
    for (int64_t c = 0; s->gamma && c < s->channels; c++)
        pooled[c] = (double)s->gamma[c] * (pooled[c] - mean) / sd + (double)s->beta[c];
}

/* The factors of the channels before the norm, from those behind it; returns what beta adds. */
static double norm_back(const ki_shares *s, const float *map, double *factor, double *pooled) {
    double mean = 0, rest = 0, sum = 0;
    if (!s->gamma) return 0;
    for (int64_t c = 0; c < s->channels; c++) pooled[c] = pool(s, map + c * s->positions, 0, NULL);
    const double sd = spread(s, pooled, &mean);
    for (int64_t c = 0; c < s->channels; c++) {
        rest += factor[c] * (double)s->beta[c];
        factor[c] *= (double)s->gamma[c] / sd;
        sum += factor[c];
    }
    for (int64_t c = 0; c < s->channels; c++) factor[c] -= sum / (double)s->channels;
    return rest;
}

static void map_linearly(const ki_shares *s, const double *pooled, double *ret) {
    for (int64_t i = 0; i < s->dim; i++) {
        const float *row = s->weights + i * s->channels;
        double sum = s->bias ? (double)s->bias[i] : 0;
        for (int64_t c = 0; c < s->channels; c++) sum += (double)row[c] * pooled[c];
        ret[i] = sum;
    }
}

/* What the vector of one head was divided by; 1 for one of zeros. */
static double normalise(double *vector, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += vector[i] * vector[i];
    const double norm = squares > 0 ? sqrt(squares) : 1;
    for (int64_t i = 0; i < n; i++) vector[i] /= norm;
    return norm;
}

kith_status ki_shares_vector(const ki_shares *s, const float *map, double *ret_vector, double *ret_norm,
                             kith_error *err) {
    double *pooled = NULL;
    KI_TRY(ki_alloc_or(&pooled, (size_t)s->channels, sizeof *pooled, "a pooled map", err));
    for (int64_t head = 0; head < s->heads; head++) {
        const float *of = map + head * s->channels * s->positions;
        double *vector = ret_vector + head * s->dim;
        for (int64_t c = 0; c < s->channels; c++) pooled[c] = pool(s, of + c * s->positions, 0, NULL);
        norm_layer(s, pooled);
        if (s->weights)
            map_linearly(s, pooled, vector);
        else
            memcpy(vector, pooled, (size_t)s->channels * sizeof *vector);
        ret_norm[head] = s->unit_heads ? normalise(vector, s->dim) : 1;
    }
    ki_free(pooled);
    return KITH_OK;
}

/* W' g, for the pooled map's channels. */
static void map_back(const ki_shares *s, const double *g, double *ret) {
    if (!s->weights) {
        memcpy(ret, g, (size_t)s->channels * sizeof *ret);
        return;
    }
    memset(ret, 0, (size_t)s->channels * sizeof *ret);
    for (int64_t i = 0; i < s->dim; i++) {
        const float *row = s->weights + i * s->channels;
        for (int64_t c = 0; c < s->channels; c++) ret[c] += (double)row[c] * g[i];
    }
}

kith_status ki_shares_product(const ki_shares *s, const float *map, const double *norm, const double *other,
                              double *ret_share, double *ret_rest, kith_error *err) {
    double *factor = NULL, rest = 0;
    KI_TRY(ki_alloc_or(&factor, 2 * (size_t)s->channels, sizeof *factor, "a pooled map", err));
    memset(ret_share, 0, (size_t)s->positions * sizeof *ret_share);
    for (int64_t head = 0; head < s->heads; head++) {
        const float *of = map + head * s->channels * s->positions;
        const double *g = other + head * s->dim;
        map_back(s, g, factor);
        rest += norm_back(s, of, factor, factor + s->channels) / norm[head];
        for (int64_t c = 0; c < s->channels; c++)
            pool(s, of + c * s->positions, factor[c] / norm[head], ret_share);
        for (int64_t i = 0; s->bias && i < s->dim; i++) rest += (double)s->bias[i] * g[i] / norm[head];
    }
    *ret_rest = rest;
    ki_free(factor);
    return KITH_OK;
}
