/* Query = gallery: the blocks play a round-robin tournament (circle method). With m players there are
 * m - 1 rounds of m / 2 games, everybody meets everybody once and nobody plays twice in a round. So
 * games of one round can run at the same time, in any order, without locks.
 *
 * Query != gallery: a worker takes a block of queries through a run of the gallery's blocks; lists of
 * different queries have nothing to do with each other. */
#include "knn/tiles.h"

#include <stdatomic.h>

#include "core/alloc.h"
#include "core/parallel.h"

/* Gallery blocks between two reports of progress. */
enum { RUN_BLOCKS = 32 };

typedef struct job {
    const ki_tiles *tiles;
    float *stripes;                        /* [slots, KI_STRIPE, KI_BLOCK] */
    int64_t round, n_players;              /* tournament; round < 0 is the diagonal */
    int64_t col_begin, col_end, row_block; /* queries apart: blocks of the gallery, rows per query block */
    int64_t n_items;
    atomic_int_least64_t next;
} job;

int ki_tiles_slots(void) { return ki_threads(); }

static void subtract_halves(const ki_tiles *t, float *s, int64_t row, int n_rows, int64_t col) {
    const float *col_half = t->cols->half + col;
    for (int r = 0; r < n_rows; r++) {
        const float row_half = t->rows->half[row + r];
        float *v = s + r * KI_BLOCK;
        for (int c = 0; c < KI_BLOCK; c++) v[c] = (v[c] - col_half[c]) - row_half;
    }
}

static void tile(const job *j, int slot, int64_t row_begin, int64_t row_end, int64_t col_block, bool both) {
    const ki_tiles *t = j->tiles;
    const int64_t dim = t->rows->rows.dim, col = col_block * KI_BLOCK;
    const int n_cols = (int)ki_panels_block_rows(t->cols, col_block);
    float *s = j->stripes + (size_t)slot * KI_STRIPE * KI_BLOCK;
    for (int64_t row = row_begin; row < row_end; row += KI_STRIPE) {
        const int n_rows = (int)(row_end - row < KI_STRIPE ? row_end - row : KI_STRIPE);
        const float *left = t->rows->data + row / KI_PANEL * dim * KI_PANEL + row % KI_PANEL;
        t->kernel->product(left, t->cols->data + col * dim, dim, (n_cols + KI_GROUP - 1) / KI_GROUP, s);
        if (t->rows->half) subtract_halves(t, s, row, n_rows, col);
        const ki_stripe stripe = {s, row, col, n_rows, n_cols, both, slot};
        t->consume(t->context, &stripe);
    }
}

static void game(const job *j, int slot, int64_t i) {
    const int64_t n_blocks = j->tiles->rows->n_blocks, m = j->n_players - 1;
    int64_t a = i, b = i;
    if (j->round >= 0) {
        a = i == 0 ? m : (j->round + i) % m;
        b = i == 0 ? j->round : (j->round - i + m) % m;
        if (a >= n_blocks || b >= n_blocks) return; /* an odd number: one block rests */
    }
    const int64_t begin = a * KI_BLOCK;
    tile(j, slot, begin, begin + ki_panels_block_rows(j->tiles->rows, a), b, a != b);
}

static void query_block(const job *j, int slot, int64_t i) {
    const int64_t begin = i * j->row_block, n = j->tiles->rows->rows.n;
    const int64_t end = begin + j->row_block < n ? begin + j->row_block : n;
    for (int64_t b = j->col_begin; b < j->col_end; b++) tile(j, slot, begin, end, b, false);
}

/* Slots, not ranges: each worker takes the next item when it is done with one. */
static void work(void *context, int64_t begin, int64_t end) {
    (void)end;
    job *j = context;
    const bool is_self = j->tiles->rows == j->tiles->cols;
    for (;;) {
        const int64_t i = atomic_fetch_add(&j->next, 1);
        if (i >= j->n_items) return;
        if (is_self)
            game(j, (int)begin, i);
        else
            query_block(j, (int)begin, i);
    }
}

static void run_items(job *j, int64_t n_items) {
    j->n_items = n_items;
    atomic_store(&j->next, 0);
    ki_parallel_for(n_items < ki_tiles_slots() ? n_items : ki_tiles_slots(), 1, work, j);
}

static kith_status report(const ki_tiles *t, int64_t done, int64_t all, kith_error *err) {
    if (t->progress && t->progress(t->user, done, all) != 0)
        return ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld rounds", (long long)done,
                       (long long)all);
    return KITH_OK;
}

static kith_status tournament(job *j, kith_error *err) {
    const int64_t n = j->tiles->rows->n_blocks;
    j->n_players = n + n % 2;
    const int64_t n_rounds = n > 1 ? j->n_players - 1 : 0;
    for (j->round = -1; j->round < n_rounds; j->round++) {
        run_items(j, j->round < 0 ? n : j->n_players / 2);
        KI_TRY(report(j->tiles, j->round + 2, n_rounds + 1, err));
    }
    return KITH_OK;
}

static kith_status apart(job *j, kith_error *err) {
    const ki_tiles *t = j->tiles;
    const int64_t share = (t->rows->rows.n + ki_tiles_slots() - 1) / ki_tiles_slots();
    j->row_block = (share + KI_STRIPE - 1) / KI_STRIPE * KI_STRIPE;
    if (j->row_block > KI_BLOCK) j->row_block = KI_BLOCK;
    const int64_t n_items = (t->rows->rows.n + j->row_block - 1) / j->row_block;
    for (j->col_begin = 0; j->col_begin < t->cols->n_blocks; j->col_begin = j->col_end) {
        j->col_end = j->col_begin + RUN_BLOCKS;
        if (j->col_end > t->cols->n_blocks) j->col_end = t->cols->n_blocks;
        run_items(j, n_items);
        KI_TRY(report(t, j->col_end, t->cols->n_blocks, err));
    }
    return KITH_OK;
}

kith_status ki_tiles_run(const ki_tiles *tiles, kith_error *err) {
    if (tiles->rows->rows.n == 0 || tiles->cols->rows.n == 0) return KITH_OK;
    job j = {.tiles = tiles};
    KI_TRY(ki_zalloc_or(&j.stripes, (size_t)ki_tiles_slots() * KI_STRIPE * KI_BLOCK, sizeof(float),
                        "score stripes", err));
    const kith_status status = tiles->rows == tiles->cols ? tournament(&j, err) : apart(&j, err);
    ki_free(j.stripes);
    return status;
}
