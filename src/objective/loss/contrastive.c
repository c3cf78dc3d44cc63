/* Contrastive loss.
 *
 *   squared or plain distance d:  [d - pos_margin]_+ for positives,  [neg_margin - d]_+ for negatives
 *   cosine s:                     [pos_margin - s]_+ (plain -s when pos_margin is 0),  [s - neg_margin]_+
 *
 * reduction over ordered pairs: `mean` of the positives + mean of the negatives, `nonzero` the same
 * over terms above 0, `sum` of each unordered pair once.
 * form horde: mean over positives of (s - 1)^2 / 2 + sum over negatives of [s - 1/2]_+ / (2 active).
 *
 * Sources: Hadsell et al., CVPR 2006; DML-DA Eq. 2 (sqeuclidean, 0, 1); unified view Eq. 5 (cosine). */
#include "objective/loss/contrastive.h"

#include "objective/loss/loss.h"

static const char *const forms[] = {"margin", "horde", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(ki_contrastive_settings, pos_margin, 0, -4, 1e6,
                   "positives nearer (more similar) than this are left alone", "DML-DA Eq. 2"),
    KI_OPTION_REAL(ki_contrastive_settings, neg_margin, 1, -4, 1e6,
                   "negatives farther (less similar) than this are left alone", "DML-DA Eq. 2"),
    KI_OPTION_CHOICE(ki_contrastive_settings, distance, KI_DISTANCE_SQEUCLIDEAN, ki_distance_names,
                     "what is compared", "DML-DA Eq. 2; unified view Eq. 5"),
    KI_OPTION_CHOICE(ki_contrastive_settings, reduction, KI_REDUCE_MEAN, ki_reduction_names,
                     "how terms become one number", "DML-DA leaves it open"),
    KI_OPTION_CHOICE(ki_contrastive_settings, form, KI_CONTRASTIVE_MARGIN, forms,
                     "horde: the form of the HORDE authors' code (on cosine)", "HORDE code"),
    KI_OPTION_END};

static ki_measure measure(const void *settings) {
    const ki_contrastive_settings *o = settings;
    return o->form == KI_CONTRASTIVE_HORDE ? KI_INNER : ki_distance_measure(o->distance);
}

/* Sums and counts of one row, kept apart because the counts of the whole batch scale the terms. */
typedef struct tally {
    double pos, neg;
    int64_t n_pos, n_neg; /* terms above 0 */
} tally;

typedef struct pass {
    const ki_contrastive_settings *o;
    ki_real pos_weight, neg_weight;
    tally *rows;
} pass;

/* t = -s for positives, without a floor. */
static double plain_positives(const ki_row *row, ki_real weight, int64_t *ret_active) {
    double sum = 0;
    int64_t active = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_POSITIVE) continue;
        sum -= (double)row->s[j];
        active += row->s[j] < 0;
        row->g[j] = -weight;
    }
    *ret_active = active;
    return sum;
}

static double half_square_positives(const ki_row *row, ki_real weight) {
    double sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_POSITIVE) continue;
        const ki_real t = row->s[j] - 1;
        sum += 0.5 * (double)t * (double)t;
        row->g[j] = weight * t;
    }
    return sum;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_contrastive_settings *o = p->o;
    const ki_vec *vec = pairs->vec;
    tally *t = &p->rows[row->i];
    const bool is_cosine = measure(o) == KI_INNER;
    const ki_real sign = is_cosine ? -1 : 1, pos_margin = (ki_real)o->pos_margin;
    const ki_real neg_margin = o->form == KI_CONTRASTIVE_HORDE ? (ki_real)0.5 : (ki_real)o->neg_margin;
    *t = (tally){0};
    if (o->form == KI_CONTRASTIVE_HORDE)
        t->pos = half_square_positives(row, p->pos_weight);
    else if (is_cosine && o->pos_margin == 0)
        t->pos = plain_positives(row, p->pos_weight, &t->n_pos);
    else
        t->pos = (double)vec->hinge(row->s, row->pair, KI_PAIR_POSITIVE, sign, pos_margin, p->pos_weight,
                                    row->g, &t->n_pos, row->n);
    t->neg = (double)vec->hinge(row->s, row->pair, KI_PAIR_NEGATIVE, -sign, neg_margin, p->neg_weight, row->g,
                                &t->n_neg, row->n);
    return 0;
}

static double share(int64_t n, double factor) { return n > 0 ? factor / (double)n : 0; }

static tally add_up(const tally *rows, int64_t m) {
    tally all = {0};
    for (int64_t i = 0; i < m; i++) {
        all.pos += rows[i].pos, all.n_pos += rows[i].n_pos;
        all.neg += rows[i].neg, all.n_neg += rows[i].n_neg;
    }
    return all;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const ki_contrastive_settings *o = in->settings;
    pass p = {.o = o, .pos_weight = 1, .neg_weight = 1};
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->m, sizeof(tally), "row sums", &p.rows, err));
    double pos_weight = 0.5, neg_weight = 0.5; /* SUM: every unordered pair once */
    if (o->form == KI_CONTRASTIVE_HORDE || o->reduction == KI_REDUCE_NONZERO) {
        /* The number of active terms scales them all: count first. */
        KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, NULL, err));
        const tally all = add_up(p.rows, pairs->m);
        pos_weight = o->form == KI_CONTRASTIVE_HORDE ? share(pairs->total_pos, 1) : share(all.n_pos, 1);
        neg_weight = share(all.n_neg, o->form == KI_CONTRASTIVE_HORDE ? 0.5 : 1);
    } else if (o->reduction == KI_REDUCE_MEAN) {
        pos_weight = share(pairs->total_pos, 1);
        neg_weight = share(pairs->total_neg, 1);
    }
    p.pos_weight = (ki_real)pos_weight, p.neg_weight = (ki_real)neg_weight;
    KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, NULL, err));
    const tally all = add_up(p.rows, pairs->m);
    out->value = pos_weight * all.pos + neg_weight * all.neg;
    return KITH_OK;
}

const ki_loss ki_loss_contrastive = {
    .method = {.name = "contrastive",
               .summary = "pull positives within a margin, push negatives beyond one",
               .source = "Hadsell et al., CVPR 2006; DML-DA Eq. 2; unified view Eq. 5",
               .options = options,
               .settings_bytes = sizeof(ki_contrastive_settings)},
    .measure = measure,
    .eval = eval,
};
