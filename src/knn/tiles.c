/* Query = gallery: the blocks play a round-robin tournament (circle method). With m players there are m - 1
 * rounds of m / 2 games, everybody meets everybody once and nobody plays twice in a round. Workers take games
 * in this order, so the blocks of neighbouring games differ. Rounds overlap: if a block is still in a game of
 * the previous round, a worker waits for that block, not for the round.
 *
 * Query != gallery: a worker compares a block of queries with a run of the gallery's blocks. The lists of
 * different queries are independent. If there are few queries, a worker compares all of them with a block of
 * the gallery, and each worker has lists of its own. */
#include "knn/tiles.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/parallel.h"

/* Gallery blocks between two reports of progress. */
enum { RUN_BLOCKS = 32 };

typedef struct job {
    const ki_tiles *tiles;
    float *stripes;                        /* [slots, KI_STRIPE, KI_BLOCK] */
    atomic_bool *at_play;                  /* tournament: [n_blocks] */
    int64_t n_players;                     /* tournament: blocks, made even */
    int64_t col_begin, col_end, row_block; /* queries apart: blocks of the gallery, rows per query block */
    int64_t n_items;
    atomic_int_least64_t next;
    atomic_bool is_stopped;
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

static void take(atomic_bool *block) {
    while (atomic_exchange_explicit(block, true, memory_order_acquire)) sched_yield();
}
static void leave(atomic_bool *block) { atomic_store_explicit(block, false, memory_order_release); }

/* Games 0 … n - 1 are each block with itself, then come the rounds. */
static void game(const job *j, int slot, int64_t i) {
    const int64_t n = j->tiles->rows->n_blocks, m = j->n_players - 1;
    int64_t a = i, b = i;
    if (i >= n) {
        const int64_t round = (i - n) / (j->n_players / 2), place = (i - n) % (j->n_players / 2);
        a = place == 0 ? m : (round + place) % m;
        b = place == 0 ? round : (round - place + m) % m;
        if (a >= n || b >= n) return; /* an odd number: one block rests */
    }
    const int64_t low = a < b ? a : b, high = a < b ? b : a;
    take(j->at_play + low); /* always the lower first, so that no two workers wait for each other */
    if (high != low) take(j->at_play + high);
    const int64_t begin = a * KI_BLOCK;
    tile(j, slot, begin, begin + ki_panels_block_rows(j->tiles->rows, a), b, a != b);
    leave(j->at_play + low);
    if (high != low) leave(j->at_play + high);
}

static void gallery_block(const job *j, int slot, int64_t i) {
    tile(j, slot, 0, j->tiles->rows->rows.n, j->col_begin + i, false);
}

static void query_block(const job *j, int slot, int64_t i) {
    const int64_t begin = i * j->row_block, n = j->tiles->rows->rows.n;
    const int64_t end = begin + j->row_block < n ? begin + j->row_block : n;
    for (int64_t b = j->col_begin; b < j->col_end; b++) tile(j, slot, begin, end, b, false);
}

/* Slots, not ranges: each worker takes the next item when it is done with one. The first slot is the
 * calling thread, which reports the tournament's progress. */
static void work(void *context, int64_t begin, int64_t end) {
    (void)end;
    job *j = context;
    const ki_tiles *t = j->tiles;
    while (!atomic_load(&j->is_stopped)) {
        const int64_t i = atomic_fetch_add(&j->next, 1);
        if (i >= j->n_items) return;
        if (t->rows != t->cols) {
            (t->by_cols ? gallery_block : query_block)(j, (int)begin, i);
            continue;
        }
        game(j, (int)begin, i);
        if (begin == 0 && i + 1 < j->n_items && t->progress && t->progress(t->user, i + 1, j->n_items) != 0)
            atomic_store(&j->is_stopped, true);
    }
}

static void run_items(job *j, int64_t n_items) {
    j->n_items = n_items;
    atomic_store(&j->next, 0);
    ki_parallel_for(n_items < ki_tiles_slots() ? n_items : ki_tiles_slots(), 1, work, j);
}

static kith_status stopped(int64_t done, int64_t all, kith_error *err) {
    return ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld tiles",
                   (long long)(done < all ? done : all), (long long)all);
}

static kith_status tournament(job *j, kith_error *err) {
    const int64_t n = j->tiles->rows->n_blocks;
    KI_TRY(ki_zalloc_or(&j->at_play, (size_t)n, sizeof *j->at_play, "block marks", err));
    j->n_players = n + n % 2;
    const int64_t n_rounds = n > 1 ? j->n_players - 1 : 0;
    run_items(j, n + n_rounds * (j->n_players / 2));
    ki_free(j->at_play);
    /* The calling thread may have had no game at all, so the end is always reported here. */
    const ki_tiles *t = j->tiles;
    if (!j->is_stopped && t->progress && t->progress(t->user, j->n_items, j->n_items) != 0)
        j->is_stopped = true;
    return j->is_stopped ? stopped(j->next, j->n_items, err) : KITH_OK;
}

static kith_status apart(job *j, kith_error *err) {
    const ki_tiles *t = j->tiles;
    const int64_t share = (t->rows->rows.n + ki_tiles_slots() - 1) / ki_tiles_slots();
    j->row_block = (share + KI_STRIPE - 1) / KI_STRIPE * KI_STRIPE;
    if (j->row_block > KI_BLOCK) j->row_block = KI_BLOCK;
    const int64_t n_items = (t->rows->rows.n + j->row_block - 1) / j->row_block;
    for (j->col_begin = 0; j->col_begin < t->cols->n_blocks; j->col_begin = j->col_end) {
        j->col_end = j->col_begin + (t->by_cols ? RUN_BLOCKS * ki_tiles_slots() : RUN_BLOCKS);
        if (j->col_end > t->cols->n_blocks) j->col_end = t->cols->n_blocks;
        run_items(j, t->by_cols ? j->col_end - j->col_begin : n_items);
        if (t->progress && t->progress(t->user, j->col_end, t->cols->n_blocks) != 0)
            return stopped(j->col_end, t->cols->n_blocks, err);
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
