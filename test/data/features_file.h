/* Small files of features, and labels for them: even columns tell the classes apart, odd ones are noise that a head can
 * learn to leave out. */
#ifndef TEST_DATA_FEATURES_FILE_H
#define TEST_DATA_FEATURES_FILE_H

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "kith/array.h"
#include "support/testing.h"

static inline const char *features_path(const char *name) {
    static char path[8][512];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", testing_folder(), name);
    return path[turn];
}

/* n_classes classes of n_each rows one after the other, `dim` numbers each, as float32 or float16. */
static inline void features_write(const char *name, kith_dtype dtype, int64_t n_classes, int64_t n_each,
                                  int64_t dim) {
    kith_error err;
    kith_array wide, array;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n_classes * n_each, dim}, &wide, &err), &err);
    for (int64_t c = 0; c < n_classes; c++) {
        for (int64_t i = 0; i < n_each * dim; i++) {
            ki_rng corner = ki_rng_at(3, KI_RNG_TEST, (uint32_t)(c * dim + i % dim), 0);
            ki_rng noise = ki_rng_at(4, KI_RNG_TEST, (uint32_t)(c * n_each * dim + i), 0);
            ((float *)wide.data)[c * n_each * dim + i] =
                (float)(i % dim % 2 == 0 ? (ki_rng_double(&corner) < 0.5 ? -1 : 1) + ki_rng_normal(&noise)
                                         : 4 * ki_rng_normal(&noise));
        }
    }
    assert_ok(kith_array_convert(&wide, dtype, &array, &err), &err);
    assert_ok(kith_npy_write(features_path(name), &array, &err), &err);
    kith_array_release(&wide);
    kith_array_release(&array);
}

/* The label of row i is first + i / n_each, as int64. */
static inline void features_write_labels(const char *name, int64_t n_classes, int64_t n_each, int64_t first) {
    kith_error err;
    kith_array array;
    assert_ok(kith_array_init(KITH_I64, 1, (int64_t[]){n_classes * n_each}, &array, &err), &err);
    for (int64_t i = 0; i < n_classes * n_each; i++) ((int64_t *)array.data)[i] = first + i / n_each;
    assert_ok(kith_npy_write(features_path(name), &array, &err), &err);
    kith_array_release(&array);
}

#endif
