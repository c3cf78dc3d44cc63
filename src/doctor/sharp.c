/* How sharp a picture is.
 *
 * A photo has details of all sizes: made half as large, its second derivative varies about as much as before. A blurred one has lost the
 * small ones: at 128 pixels it varies far less than at 64. The ratio of the two does not depend on contrast or on how much of the
 * picture is plain, as the variance of the Laplacian does. A picture that was moved is blurred in one direction, so rows and columns are
 * judged by themselves. */
#include <math.h>

#include "doctor/doctor.h"

enum { FINE = 128, COARSE = 64 };
#define LEAST_VARIANCE \
    2 /* in grey levels squared, of the coarse picture: plain pictures are neither sharp nor blurred */

static int grey_at(const ki_image *image, int64_t at) {
    const uint8_t *p = image->data + at * image->channels;
    return image->channels == 1 ? 1000 * p[0] : 299 * p[0] + 587 * p[1] + 114 * p[2];
}

/* The variance of the second derivative along rows (step 1) or columns (step w), in grey levels squared. */
static double variance(const ki_image *image, int64_t step) {
    const int64_t w = image->w, h = image->h;
    int64_t n = 0;
    double sum = 0, squares = 0;
    for (int64_t y = 1; y < h - 1; y++) {
        for (int64_t x = 1; x < w - 1; x++) {
            const int64_t at = y * w + x;
            const double v =
                (2 * grey_at(image, at) - grey_at(image, at - step) - grey_at(image, at + step)) / 1000.0;
            sum += v;
            squares += v * v;
            n++;
        }
    }
    return n > 0 ? squares / (double)n - sum / (double)n * (sum / (double)n) : 0;
}

kith_status ki_doctor_sharpness(const ki_image *image, ki_resampler *scratch, ki_image small[2], double *ret,
                                kith_error *err) {
    const int32_t side = image->w > image->h ? image->w : image->h;
    double least = NAN;
    *ret = NAN;
    if (side < COARSE) return KITH_OK;
    KI_TRY(ki_resample_fit(scratch, image, FINE, &small[0], err));
    KI_TRY(ki_resample_fit(scratch, &small[0], side < FINE ? side / 2 : COARSE, &small[1], err));
    for (int d = 0; d < 2; d++) {
        const double coarse = variance(&small[1], d ? small[1].w : 1);
        const double ratio = variance(&small[0], d ? small[0].w : 1) / (coarse + 1);
        if (coarse >= LEAST_VARIANCE && !(ratio >= least)) least = ratio;
    }
    *ret = least;
    return KITH_OK;
}
