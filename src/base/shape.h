/* Shapes. A ki_shape says nothing about memory: that belongs to a backend, which also chooses the layout
 * (device/backend.h). Its fields correspond to DLPack's. */
#ifndef KI_SHAPE_H
#define KI_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"

#define KI_MAX_DIMS KITH_MAX_DIMS

typedef struct ki_shape {
    int n_dims;
    int64_t
        dim[KI_MAX_DIMS]; /* activations: mb, c, h, w, or mb, t, c, or mb, c; parameters: oc, ic, kh, kw … */
} ki_shape;

#define KI_SHAPE1(a) ((ki_shape){1, {(a)}})
#define KI_SHAPE2(a, b) ((ki_shape){2, {(a), (b)}})
#define KI_SHAPE3(a, b, c) ((ki_shape){3, {(a), (b), (c)}})
#define KI_SHAPE4(a, b, c, d) ((ki_shape){4, {(a), (b), (c), (d)}})

/* Product of the extents; -1 when one is negative or the product does not fit in int64. */
int64_t ki_shape_count(const ki_shape *shape);
/* Of vectors [mb, c] and tokens [mb, t, c]: how many rows there are in memory, and the numbers of one. */
int64_t ki_shape_rows(const ki_shape *shape);
int64_t ki_shape_width(const ki_shape *shape);
bool ki_shape_equal(const ki_shape *a, const ki_shape *b);
/* "[32, 3, 227, 227]" into buf, which is returned. */
const char *ki_shape_text(const ki_shape *shape, char *buf, size_t buf_bytes);

/* Half-width conversions, round to nearest even. */
float ki_f16_to_float(uint16_t half);
float ki_bf16_to_float(uint16_t half);
uint16_t ki_float_to_bf16(float value);
uint16_t ki_float_to_f16(float value); /* from 65520 on: infinite */

#endif
