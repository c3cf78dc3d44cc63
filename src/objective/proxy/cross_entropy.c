/* Cross entropy over rows of proxies.
 *
 * A row goes through three parts: its largest cosine, the sum of its exponentials, its gradient. In one process they follow
 * each other row by row. With columns over ranks they are done for all rows at a time, and between them the ranks tell each
 * other what they found. */
#include <string.h>

#include "objective/proxy/proxies.h"

/* Of one row, over all columns. */
typedef struct row_sums {
    ki_real s;      /* the cosine to the own class */
    ki_real most;   /* of the negatives' cosines, then of what is in the denominator */
    ki_real others; /* sum of e^(scale (s - most)) over the negatives */
    ki_real counts; /* 1: the own column is kept */
} row_sums;

typedef struct job {
    const ki_cross_entropy *form;
    row_sums *rows; /* [m]; NULL: each row has its own */
    ki_real *g;     /* [m, ld] */
} job;

/* The column of the row's own class, if it is here and kept; else -1. */
static int64_t own_column(const ki_pairs *pairs, const ki_row *row) {
    const int64_t y = pairs->row_label[row->i];
    return y >= 0 && row->pair[y] == KI_PAIR_POSITIVE ? y : -1;
}

static void find_most(const ki_pairs *pairs, const ki_row *row, row_sums *r) {
    const int64_t y = own_column(pairs, row);
    r->counts = y >= 0;
    r->s = y >= 0 ? row->s[y] : 0;
    r->most = pairs->vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
}

static ki_real own_of(const ki_cross_entropy *form, ki_real s, ki_real *ret_slope) {
    *ret_slope = 1;
    return form->own ? form->own(form->settings, s, ret_slope) : s;
}

static void sum_others(const ki_cross_entropy *form, const ki_pairs *pairs, const ki_row *row, row_sums *r) {
    ki_real slope;
    const ki_real own = own_of(form, r->s, &slope);
    if (form->others_alone && r->most == -KI_REAL_MAX) r->counts = 0;
    if (r->counts == 0) return;
    if (!form->others_alone && own > r->most) r->most = own;
    r->others = pairs->vec->exp(row->s, row->pair, KI_PAIR_NEGATIVE, form->scale, r->most, row->g, row->n);
}

/* The row's value; its exponentials become gradients. */
static double end_row(const ki_cross_entropy *form, const ki_pairs *pairs, const ki_row *row, ki_real *g,
                      const row_sums *r) {
    if (r->counts == 0) return 0;
    ki_real slope;
    const int64_t y = own_column(pairs, row);
    const ki_real own = own_of(form, r->s, &slope), share = 1 / (ki_real)pairs->m * form->scale;
    const ki_real e_own = form->others_alone ? 0 : ki_exp(form->scale * (own - r->most));
    const ki_real factor = share / (e_own + r->others);
    pairs->vec->scale(row->pair, KI_PAIR_NEGATIVE, factor, g, row->n);
    /* e_own - (e_own + others), without the subtraction, so that an item with a small loss keeps its digits. */
    if (y >= 0) g[y] = form->others_alone ? -share : -factor * r->others * slope;
    const double far = (double)(form->scale * (r->most - own));
    return form->others_alone ? far + log((double)r->others)
                              : far + log1p((double)r->others + ((double)e_own - 1));
}

static double whole_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const job *j = context;
    row_sums r = {0};
    find_most(pairs, row, &r);
    sum_others(j->form, pairs, row, &r);
    return end_row(j->form, pairs, row, row->g, &r);
}

/* ---- columns over ranks ---- */

static double most_of_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    find_most(pairs, row, &((const job *)context)->rows[row->i]);
    return 0;
}

static double others_of_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const job *j = context;
    sum_others(j->form, pairs, row, &j->rows[row->i]);
    return 0;
}

static double end_of_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const job *j = context;
    return end_row(j->form, pairs, row, j->g + row->i * pairs->ld, &j->rows[row->i]);
}

/* Every rank's rows: all [size, m]. */
static kith_status gather(const ki_pairs *pairs, const row_sums *own, row_sums *all, kith_error *err) {
    int64_t counts[KI_MOST_RANKS];
    for (int r = 0; r < pairs->comm->size; r++) counts[r] = pairs->m;
    return ki_comm_gather(pairs->comm, own, counts, sizeof *own, all, err);
}

static kith_status join_most(const ki_pairs *pairs, row_sums *rows, row_sums *all, kith_error *err) {
    KI_TRY(gather(pairs, rows, all, err));
    for (int64_t i = 0; i < pairs->m; i++) {
        rows[i] = (row_sums){.most = -KI_REAL_MAX};
        for (int r = 0; r < pairs->comm->size; r++) {
            const row_sums *there = &all[r * pairs->m + i];
            if (there->most > rows[i].most) rows[i].most = there->most;
            if (there->counts == 0) continue;
            rows[i].counts = 1;
            rows[i].s = there->s;
        }
    }
    return KITH_OK;
}

static kith_status join_others(const ki_pairs *pairs, row_sums *rows, row_sums *all, kith_error *err) {
    KI_TRY(gather(pairs, rows, all, err));
    for (int64_t i = 0; i < pairs->m; i++) {
        double sum = 0;
        for (int r = 0; r < pairs->comm->size; r++) sum += (double)all[r * pairs->m + i].others;
        rows[i].others = (ki_real)sum;
    }
    return KITH_OK;
}

static kith_status over_ranks(const ki_pairs *pairs, job *j, double *ret_sum, kith_error *err) {
    row_sums *all = NULL;
    const size_t m = (size_t)pairs->m;
    KI_TRY(ki_work_take(pairs->work, m, sizeof *j->rows, "rows over ranks", &j->rows, err));
    KI_TRY(
        ki_work_take(pairs->work, m * (size_t)pairs->comm->size, sizeof *all, "rows over ranks", &all, err));
    KI_TRY(ki_pairs_rows(pairs, NULL, most_of_row, j, NULL, NULL, err));
    KI_TRY(join_most(pairs, j->rows, all, err));
    KI_TRY(ki_pairs_rows(pairs, j->g, others_of_row, j, NULL, NULL, err));
    KI_TRY(join_others(pairs, j->rows, all, err));
    return ki_pairs_rows(pairs, NULL, end_of_row, j, NULL, ret_sum, err);
}

kith_status ki_cross_entropy_mean(const ki_loss_in *in, ki_loss_out *out, const ki_cross_entropy *form,
                                  kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    job j = {.form = form, .g = out->g};
    if (pairs->comm)
        KI_TRY(over_ranks(pairs, &j, &out->value, err));
    else
        KI_TRY(ki_pairs_rows(pairs, out->g, whole_row, &j, NULL, &out->value, err));
    out->value /= (double)pairs->m;
    return KITH_OK;
}
