/* Signatures: 32 x 32 grey values compared by correlation, with a search for what was cut off.
 *
 * Resizing and saving again change nothing that can be seen from so far. A cut moves everything by up to three of the 32
 * places, which costs much of the correlation; so one picture is looked for inside the other, one axis after the other, until
 * neither gets better. Most pairs are told apart before that, by form, colour and 8 x 8 grey values. */
#include "search/signature.h"

#include <math.h>
#include <string.h>

enum { SIDE = KI_SIGNATURE_SIDE, COARSE = KI_SIGNATURE_COARSE, N = SIDE * SIDE, N_COARSE = COARSE * COARSE };

/* Two pictures that differ more are told apart at once. */
static const double MOST_ASPECT = 1.15; /* ratio of the aspects: a tenth cut off one side, and rounding */
static const double MOST_COLOUR = 12;   /* mean difference of a colour value, in halved levels */
static const double LEAST_COARSE = 0.7; /* correlation of the 8 x 8 values */
static const double FLAT = 2; /* standard deviation in grey levels below which nothing is to be seen */

kith_status ki_signature_make(const ki_image *image, ki_resampler *scratch, ki_image *small,
                              ki_signature *ret, kith_error *err) {
    static const ki_rect fine = {0, 0, SIDE, SIDE}, coarse = {0, 0, COARSE, COARSE};
    const ki_rect whole = {0, 0, image->w, image->h};
    double sum = 0, squares = 0;
    memset(ret, 0, sizeof *ret);
    KI_TRY(ki_resample(scratch, image, whole, SIDE, SIDE, fine, KITH_FILTER_BILINEAR, small, err));
    const int c = small->channels;
    for (int i = 0; i < N; i++) {
        const uint8_t *p = small->data + i * c;
        ret->grey[i] = c == 1 ? p[0] : (uint8_t)((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000);
    }
    KI_TRY(ki_resample(scratch, image, whole, COARSE, COARSE, coarse, KITH_FILTER_BILINEAR, small, err));
    for (int i = 0; i < N_COARSE; i++) {
        const uint8_t *p = small->data + i * c;
        ret->coarse[i] = (float)(c == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]);
        ret->colour[0][i] = (int8_t)(c == 1 ? 0 : (p[0] - p[1]) / 2);
        ret->colour[1][i] = (int8_t)(c == 1 ? 0 : (p[2] - p[1]) / 2);
        sum += (double)ret->coarse[i];
    }
    for (int i = 0; i < N_COARSE; i++) {
        ret->coarse[i] -= (float)(sum / N_COARSE);
        squares += (double)ret->coarse[i] * (double)ret->coarse[i];
    }
    for (int i = 0; i < N_COARSE; i++)
        ret->coarse[i] = squares > 0 ? (float)((double)ret->coarse[i] / sqrt(squares)) : 0;
    ret->aspect = (float)image->w / (float)image->h;
    ret->is_there = true;
    return KITH_OK;
}

/* The mirror image's signature, without the coarse values. */
static void mirror(const ki_signature *src, ki_signature *dst) {
    *dst = *src;
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) dst->grey[y * SIDE + x] = src->grey[y * SIDE + SIDE - 1 - x];
    }
}

void ki_signature_looks(const ki_signature *signature, bool mirrored, float *ret_values) {
    for (int i = 0; i < N_COARSE; i++)
        ret_values[i] = signature->coarse[mirrored ? i + COARSE - 1 - 2 * (i % COARSE) : i];
}

static double coarse_likeness(const ki_signature *a, const ki_signature *b, bool mirrored) {
    double sum = 0;
    for (int y = 0; y < COARSE; y++) {
        for (int x = 0; x < COARSE; x++)
            sum += (double)a->coarse[y * COARSE + x] *
                   (double)b->coarse[y * COARSE + (mirrored ? COARSE - 1 - x : x)];
    }
    return sum;
}

static double colour_difference(const ki_signature *a, const ki_signature *b, bool mirrored) {
    int sum = 0;
    for (int c = 0; c < 2; c++) {
        for (int y = 0; y < COARSE; y++) {
            for (int x = 0; x < COARSE; x++) {
                const int d =
                    a->colour[c][y * COARSE + x] - b->colour[c][y * COARSE + (mirrored ? COARSE - 1 - x : x)];
                sum += d < 0 ? -d : d;
            }
        }
    }
    return (double)sum / (2 * N_COARSE);
}

/* The part of an axis that is left: it begins at `at` and is `length` long, of 0 to 1. */
typedef struct span {
    double at, length;
} span;

/* Where the places of `part` lie between the places of the whole. */
typedef struct axis {
    int first[SIDE];
    float share[SIDE]; /* of the place after the first */
} axis;

static axis place(span part) {
    axis a;
    for (int i = 0; i < SIDE; i++) {
        double x = (part.at + part.length * (i + 0.5) / SIDE) * SIDE - 0.5;
        x = x < 0 ? 0 : x > SIDE - 1 ? SIDE - 1 : x;
        a.first[i] = x >= SIDE - 1 ? SIDE - 2 : (int)x;
        a.share[i] = (float)(x - a.first[i]);
    }
    return a;
}

/* The correlation of `small` with the part of `large`, without `margin` places at each edge. */
static double correlate(const ki_signature *small, const ki_signature *large, span across, span down,
                        int margin) {
    const axis ax = place(across), ay = place(down);
    double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
    const double n = (double)(SIDE - 2 * margin) * (SIDE - 2 * margin);
    for (int y = margin; y < SIDE - margin; y++) {
        const uint8_t *row = large->grey + ay.first[y] * SIDE, *below = row + SIDE;
        const float v = ay.share[y];
        float part_a = 0, part_b = 0, part_aa = 0, part_bb = 0, part_ab = 0;
        for (int x = margin; x < SIDE - margin; x++) {
            const int at = ax.first[x];
            const float u = ax.share[x];
            const float top = (float)row[at] + u * (float)(row[at + 1] - row[at]);
            const float bottom = (float)below[at] + u * (float)(below[at + 1] - below[at]);
            const float b = top + v * (bottom - top), a = (float)small->grey[y * SIDE + x];
            part_a += a, part_b += b, part_aa += a * a, part_bb += b * b, part_ab += a * b;
        }
        sum_a += (double)part_a, sum_b += (double)part_b;
        aa += (double)part_aa, bb += (double)part_bb, ab += (double)part_ab;
    }
    const double var_a = aa / n - sum_a * sum_a / n / n, var_b = bb / n - sum_b * sum_b / n / n;
    const double covariance = ab / n - sum_a * sum_b / n / n;
    const bool flat_a = var_a < FLAT * FLAT, flat_b = var_b < FLAT * FLAT;
    if (flat_a && flat_b) return fabs(sum_a - sum_b) / n < FLAT ? 1 : -1;
    return flat_a || flat_b ? -1 : covariance / sqrt(var_a * var_b);
}

/* The best span of one axis, the other one given. */
static double improve(const ki_signature *small, const ki_signature *large, bool is_across, span *across,
                      span *down, double best) {
    span *axis_span = is_across ? across : down;
    const span before = *axis_span;
    span found = before;
    for (int cut = 0; cut <= 4; cut++) { /* fortieths of the side */
        for (int at = 0; at <= cut; at++) {
            *axis_span = (span){at / 40.0, 1 - cut / 40.0};
            const double likeness = correlate(small, large, *across, *down, 0);
            if (likeness > best) best = likeness, found = *axis_span;
        }
    }
    *axis_span = found;
    return best;
}

/* `small` inside `large`. Photos in the same white frame are alike at their edges and not in the middle, so the middle has a
 * word of its own; it counts half, since it has fewer values. */
static double fit(const ki_signature *small, const ki_signature *large) {
    span across = {0, 1}, down = {0, 1};
    double best = correlate(small, large, across, down, 0);
    for (int turn = 0; turn < 4 && best < 0.999; turn++) {
        const double before = best;
        best = improve(small, large, turn % 2 == 0, &across, &down, best);
        if (turn > 0 && best <= before) break;
    }
    const double centre = correlate(small, large, across, down, SIDE / 4);
    return fmin(best, (1 + centre) / 2);
}

static double fit_either(const ki_signature *a, const ki_signature *b) {
    const double one = fit(a, b);
    return one >= 0.999 ? one : fmax(one, fit(b, a));
}

double ki_signature_likeness(const ki_signature *a, const ki_signature *b, bool *ret_mirrored) {
    double best = -1;
    *ret_mirrored = false;
    if (!a->is_there || !b->is_there) return -1;
    const double ratio = (double)(a->aspect > b->aspect ? a->aspect / b->aspect : b->aspect / a->aspect);
    if (ratio > MOST_ASPECT) return -1;
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        ki_signature turned;
        const double coarse = coarse_likeness(a, b, mirrored);
        const bool are_flat = a->coarse[0] == 0 && b->coarse[0] == 0 && coarse == 0;
        if ((coarse < LEAST_COARSE && !are_flat) || colour_difference(a, b, mirrored) > MOST_COLOUR) continue;
        if (mirrored) mirror(b, &turned);
        const double likeness = fit_either(a, mirrored ? &turned : b);
        if (likeness > best) best = likeness, *ret_mirrored = mirrored;
    }
    return best;
}
