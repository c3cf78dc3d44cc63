/* Which blocks of rows are compared when. Stripes of scores go to a consumer as soon as they are computed. */
#ifndef KI_TILES_H
#define KI_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include "knn/panels.h"

/* Scores of rows row … row + n_rows - 1 (at most KI_STRIPE) with columns col … col + n_cols - 1 (at most
 * KI_BLOCK), s[r * KI_BLOCK + c]; values beyond n_cols are undefined but readable. */
typedef struct ki_stripe {
    const float *s;
    int64_t row, col;
    int n_rows, n_cols;
    bool both; /* this pair of blocks comes only once: use the stripe for its columns, too */
    int slot;  /* which of ki_tiles_slots() workers this is */
} ki_stripe;

typedef void (*ki_stripe_fn)(void *context, const ki_stripe *stripe);

typedef struct ki_tiles {
    const ki_panels *rows,
        *cols; /* the same pointer: each pair of blocks once, with `both` set off the diagonal */
    const ki_knn_kernel *kernel;
    /* Never at the same time for two stripes with a block in common; with by_cols, for two of one slot. */
    ki_stripe_fn consume;
    void *context;
    kith_progress_fn progress;
    void *user;
    /* Queries apart from the gallery only: workers share the columns, not the rows, which pays when there are few rows. */
    bool by_cols;
} ki_tiles;

int ki_tiles_slots(void);

kith_status ki_tiles_run(const ki_tiles *tiles, kith_error *err);

#endif
