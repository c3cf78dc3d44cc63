/* Losses that compare exponentials of a whole row: raw, lifted, npair, ntxent, supcon, circle. */
#include "objective/cuda/loss.cuh"

namespace {

struct raw {
    float alpha, beta, gamma;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v;
        /* Shift by the largest exponent, the 1's own 0 among them. */
        float hard_pos = 0, hard_neg = 0;
        row.hardest(&hard_pos, &hard_neg);
        const float z_pos = row.n_pos ? -alpha * (hard_pos - gamma) : 0;
        const float z_neg = row.n_neg ? beta * (hard_neg - gamma) : 0;
        const float from_pos = z_pos > 0 ? hard_pos : gamma, from_neg = z_neg > 0 ? hard_neg : gamma;
        const float shift_pos = z_pos > 0 ? z_pos : 0, shift_neg = z_neg > 0 ? z_neg : 0;
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (ki_is_pos(row.pair[j])) pos += (double)(e = expf(-alpha * (row.s[j] - from_pos)));
            if (ki_is_neg(row.pair[j])) neg += (double)(e = expf(beta * (row.s[j] - from_neg)));
            row.g[j] = e;
        }
        row.sums(pos, neg);
        const float sum_pos = expf(-shift_pos) + (float)pos, sum_neg = expf(-shift_neg) + (float)neg;
        KI_COLUMNS(j, row.n) row.g[j] *= ki_is_pos(row.pair[j]) ? -1 / sum_pos : 1 / sum_neg;
        if (row.n_pos) t->pos = ((double)shift_pos + log((double)sum_pos)) / (double)alpha;
        if (row.n_neg) t->neg = ((double)shift_neg + log((double)sum_neg)) / (double)beta;
    }
};

struct lifted {
    double margin;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v;
        if (row.n_pos == 0 || row.n_neg == 0) return row.clear();
        float least = 0, most = 0;
        row.hardest(&least, &most);
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (ki_is_pos(row.pair[j])) pos += (double)(e = expf(least - row.s[j]));
            if (ki_is_neg(row.pair[j])) neg += (double)(e = expf(row.s[j] - most));
            row.g[j] = e;
        }
        row.sums(pos, neg);
        const double z = (double)(most - least) + margin + log(pos) + log(neg);
        const float by_pos = z > 0 ? (float)(-1 / pos) : 0, by_neg = z > 0 ? (float)(1 / neg) : 0;
        KI_COLUMNS(j, row.n) row.g[j] *= ki_is_pos(row.pair[j]) ? by_pos : by_neg;
        t->pos = z > 0 ? z : 0;
    }
};

/* Each positive against all negatives, which enter through A = ln sum_j e^(scale s_j) alone; norm_weight
 * stands on the diagonal. */
struct one_against_all {
    float scale, norm_weight;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        const bool is_empty = row.n_pos == 0 || row.n_neg == 0;
        const float most = row.most(KI_VIEW_NEGATIVE);
        double sum = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (!is_empty && ki_is_neg(row.pair[j])) sum += (double)(e = expf(scale * (row.s[j] - most)));
            row.g[j] = e;
        }
        sum = row.sum(sum);
        const float ln_sum = is_empty ? 0 : (float)log(sum);
        double value = 0, pull = 0;
        KI_COLUMNS(j, row.n) {
            if (is_empty || !ki_is_pos(row.pair[j])) continue;
            const float z = scale * (most - row.s[j]) + ln_sum; /* A - scale s_p */
            const float e = expf(z < 0 ? z : -z), sigmoid = (z < 0 ? e : 1) / (1 + e);
            value += (double)((z > 0 ? z : 0) + log1pf(e));
            row.g[j] = -scale * sigmoid;
            pull += (double)sigmoid;
        }
        row.sums(value, pull);
        t->pos = value;
        const float push = is_empty ? 0 : (float)((double)scale * pull / sum);
        KI_COLUMNS(j, row.n) {
            if (ki_is_neg(row.pair[j])) row.g[j] *= push;
            if (j == row.i && !v.n_centers) row.g[j] = norm_weight;
        }
        if (norm_weight != 0) t->plain = (double)norm_weight * (double)v.x_sq[row.i];
    }
};

struct supcon {
    float scale;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v;
        if (row.n_pos == 0) return row.clear();
        float most = -FLT_MAX;
        KI_COLUMNS(j, row.n) if (row.pair[j] != KI_VIEW_NONE && row.s[j] > most) most = row.s[j];
        most = row.max(most);
        double sum = 0, positives = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (row.pair[j] != KI_VIEW_NONE) sum += (double)(e = expf(scale * (row.s[j] - most)));
            if (ki_is_pos(row.pair[j])) positives += (double)(scale * (row.s[j] - most));
            row.g[j] = e;
        }
        row.sums(sum, positives);
        const float factor = (float)((double)scale / sum), share = scale / (float)row.n_pos;
        KI_COLUMNS(j, row.n) row.g[j] = row.g[j] * factor - (ki_is_pos(row.pair[j]) ? share : 0);
        t->pos = log(sum) - positives / (double)row.n_pos;
    }
};

struct circle {
    float margin, gamma;
    bool detach;

    /* The exponent of an entry and its slope by s. */
    __device__ float exponent(float s, int kind, float *slope) const {
        const bool is_pos = ki_is_pos(kind);
        const float sign = is_pos ? -1 : 1;
        const float optimum = is_pos ? 1 + margin : -margin, turn = is_pos ? 1 - margin : margin;
        const float distance = sign * (s - optimum), pace = distance > 0 ? distance : 0;
        *slope = sign * gamma * pace + (!detach && pace > 0 ? gamma * (s - turn) : 0);
        return sign * gamma * pace * (s - turn);
    }
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v;
        if (row.n_pos == 0 || row.n_neg == 0) return row.clear();
        float most_pos = -FLT_MAX, most_neg = -FLT_MAX, slope = 0;
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_VIEW_NONE) continue;
            const float z = exponent(row.s[j], row.pair[j], &slope);
            if (ki_is_pos(row.pair[j]))
                most_pos = z > most_pos ? z : most_pos;
            else
                most_neg = z > most_neg ? z : most_neg;
        }
        row.maxima(most_pos, most_neg);
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            float g = 0;
            if (row.pair[j] != KI_VIEW_NONE) {
                const bool is_pos = ki_is_pos(row.pair[j]);
                const float z = exponent(row.s[j], row.pair[j], &slope);
                const float e = expf(z - (is_pos ? most_pos : most_neg));
                (is_pos ? pos : neg) += (double)e;
                g = e * slope;
            }
            row.g[j] = g;
        }
        row.sums(pos, neg);
        const double total = (double)most_pos + (double)most_neg + log(pos) + log(neg);
        const double e = exp(total < 0 ? total : -total), sigmoid = (total < 0 ? e : 1) / (1 + e);
        const float by_pos = (float)(sigmoid / pos), by_neg = (float)(sigmoid / neg);
        KI_COLUMNS(j, row.n) row.g[j] *= ki_is_pos(row.pair[j]) ? by_pos : by_neg;
        t->pos = (total > 0 ? total : 0) + log1p(e);
    }
};

} // namespace

/* alpha, beta, gamma */
KI_CUDA_LOSS(raw) {
    const double *o = args->option;
    const raw loss = {(float)o[0], (float)o[1], (float)o[2]};
    return ki_loss_launch(view, loss, stream);
}

/* margin */
KI_CUDA_LOSS(lifted) {
    const lifted loss = {args->option[0]};
    return ki_loss_launch(view, loss, stream);
}

/* scale, l2 */
KI_CUDA_LOSS(npair) {
    const double *o = args->option;
    const one_against_all loss = {(float)o[0], (float)(o[1] / (double)view->m)};
    return ki_loss_launch(view, loss, stream);
}

/* temperature */
KI_CUDA_LOSS(ntxent) {
    const one_against_all loss = {(float)(1 / args->option[0]), 0};
    return ki_loss_launch(view, loss, stream);
}

/* temperature */
KI_CUDA_LOSS(supcon) {
    const supcon loss = {(float)(1 / args->option[0])};
    return ki_loss_launch(view, loss, stream);
}

/* margin, gamma, detach */
KI_CUDA_LOSS(circle) {
    const double *o = args->option;
    const circle loss = {(float)o[0], (float)o[1], o[2] != 0};
    return ki_loss_launch(view, loss, stream);
}
