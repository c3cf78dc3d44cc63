/* The two products of a pair loss: S = X X^T, and H X with a symmetric H that is often nearly empty.
 *
 * Work is divided into strips of rows whose size depends on the shape alone, one BLAS call each: results are
 * the same for any number of threads. */
#ifndef KI_OBJECTIVE_PRODUCT_H
#define KI_OBJECTIVE_PRODUCT_H

#include <stdbool.h>

#include "objective/vec.h"

/* s [m, ld] = x x^T, x [m, dim]: only the upper half is computed, the lower is copied. */
void ki_gram(const ki_real *x, int64_t m, int64_t dim, ki_real *s, int64_t ld);

/* dst [m, dim] (=, or += when add) scale * h [m, ld] x, x [n, dim]. Rows of h with few entries that matter
 * are visited entry by entry; the others are multiplied. Entries do not matter if all of them together are
 * less than four units in the last place of the row's largest, which is below the rounding error of a
 * product. */
void ki_weighted_rows(const ki_vec *vec, const ki_real *h, int64_t ld, int64_t m, int64_t n, const ki_real *x,
                      int64_t dim, ki_real scale, bool add, ki_real *dst);

#endif
