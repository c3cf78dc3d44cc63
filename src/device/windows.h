/* Where the numbers of a Swin's windows come from: the tokens that `windows` and `merge` move, the bias and the mask of
 * `attention`. One source for all backends, on the host and in kernels. */
#ifndef KI_WINDOWS_H
#define KI_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/op.h"

#ifdef __CUDACC__
#define KI_WINDOWS_FUNCTION static __host__ __device__ __forceinline__
#else
#define KI_WINDOWS_FUNCTION static inline
#endif

/* `windows` and `merge` give every place of the result a whole token of the source, or zeros. The side with padding
 * has `n` places for each image, the grid h * w tokens; `side` 0: of a merge. */
typedef struct ki_moves {
    int64_t h, w, side, shift;
    int64_t n;
} ki_moves;

KI_WINDOWS_FUNCTION ki_moves ki_moves_of_windows(const ki_windows_attr *a) {
    const int64_t rows = (a->h + a->side - 1) / a->side, columns = (a->w + a->side - 1) / a->side;
    const ki_moves moves = {a->h, a->w, a->side, a->shift, rows * columns * a->side * a->side};
    return moves;
}

KI_WINDOWS_FUNCTION ki_moves ki_moves_of_merge(const ki_merge_attr *a) {
    const ki_moves moves = {a->h, a->w, 0, 0, (a->h + 1) / 2 * ((a->w + 1) / 2) * 4};
    return moves;
}

/* The token y * w + x of the grid that is at place 0 <= at < n; -1: padding. Every token is at one place. */
KI_WINDOWS_FUNCTION int64_t ki_moves_token(const ki_moves *m, int64_t at) {
    int64_t y, x;
    if (m->side == 0) {
        const int64_t group = at / 4, columns = (m->w + 1) / 2;
        y = group / columns * 2 + at % 2;
        x = group % columns * 2 + at % 4 / 2;
    } else {
        const int64_t area = m->side * m->side, columns = (m->w + m->side - 1) / m->side;
        const int64_t rows = m->n / (area * columns), window = at / area, token = at % area;
        y = (window / columns * m->side + token / m->side + m->shift) % (rows * m->side);
        x = (window % columns * m->side + token % m->side + m->shift) % (columns * m->side);
    }
    return y < m->h && x < m->w ? y * m->w + x : -1;
}

/* The row of the bias table for tokens i and j of a window: a difference of two numbers, one of each token, plus a third. */
KI_WINDOWS_FUNCTION int64_t ki_window_code(int64_t window, int64_t token) {
    return token / window * (2 * window - 1) + token % window;
}
KI_WINDOWS_FUNCTION int64_t ki_window_middle(int64_t window) { return 2 * window * (window - 1); }
KI_WINDOWS_FUNCTION int64_t ki_window_bias(int64_t window, int64_t i, int64_t j) {
    return ki_window_code(window, i) - ki_window_code(window, j) + ki_window_middle(window);
}

/* Which of up to four parts of window `row` a token is in. Tokens of different parts come from opposite sides of
 * the grid, which was rolled, and do not see each other: KI_WINDOW_UNSEEN is added. */
KI_WINDOWS_FUNCTION int ki_window_part(const ki_attention_attr *a, int64_t row, int64_t token) {
    const int64_t window = row % (a->h * a->w), first = a->window - a->shift;
    const bool below = window / a->w == a->h - 1 && token / a->window >= first;
    const bool right = window % a->w == a->w - 1 && token % a->window >= first;
    return 2 * below + right;
}

enum { KI_WINDOW_UNSEEN = -100 };

#endif
