/* Losses whose pairs stand alone: contrastive, binomial, margin. */
#include "objective/cuda/loss.cuh"

namespace {

struct contrastive {
    float pos_margin, neg_margin;
    bool is_cosine, is_horde;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v;
        const float sign = is_cosine ? -1 : 1;
        double pos = 0, neg = 0, n_pos = 0, n_neg = 0;
        KI_COLUMNS(j, row.n) {
            const float s = row.s[j];
            float g = 0;
            if (ki_is_pos(row.pair[j])) {
                if (is_horde) {
                    const float d = s - 1;
                    pos += 0.5 * (double)d * (double)d;
                    g = d;
                } else if (is_cosine && pos_margin == 0) {
                    pos -= (double)s;
                    n_pos += s < 0;
                    g = -1;
                } else {
                    const float term = sign * (s - pos_margin);
                    if (term > 0) pos += (double)term, n_pos += 1, g = sign;
                }
            } else if (ki_is_neg(row.pair[j])) {
                const float term = -sign * (s - neg_margin);
                if (term > 0) neg += (double)term, n_neg += 1, g = -sign;
            }
            row.g[j] = g;
        }
        row.sums(pos, neg, n_pos, n_neg);
        t->pos = pos;
        t->neg = neg;
        t->count[0] = (int64_t)n_pos;
        t->count[1] = (int64_t)n_neg;
    }
};

struct binomial {
    float alpha, beta, gamma;
    bool by_anchor, by_all;

    /* Pairs of the row that a miner chose from. */
    static __device__ void count_all(const ki_cuda_view &v, const ki_row &row, double *n_pos, double *n_neg) {
        const int live = ki_view_columns(v), mine = v.label[row.i];
        *n_pos = *n_neg = 0;
        KI_COLUMNS(j, live) {
            if (j != row.i) (ki_view_label(v, j) == mine ? *n_pos : *n_neg) += 1;
        }
        row.sums(*n_pos, *n_neg);
    }
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        double n_pos = row.n_pos, n_neg = row.n_neg;
        if (by_all) count_all(v, row, &n_pos, &n_neg);
        const float pos_weight = by_anchor && n_pos > 0 ? 1 / (float)n_pos : 1;
        const float neg_weight = by_anchor && n_neg > 0 ? 1 / (float)n_neg : 1;
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            const bool is_pos = ki_is_pos(row.pair[j]);
            float g = 0;
            if (row.pair[j] != KI_VIEW_NONE) {
                const float a = is_pos ? -alpha : beta, z = a * (row.s[j] - gamma);
                const float e = expf(z < 0 ? z : -z), value = (z > 0 ? z : 0) + log1pf(e);
                g = (is_pos ? pos_weight : neg_weight) * a * (z < 0 ? e : 1) / (1 + e);
                (is_pos ? pos : neg) += (double)value;
            }
            row.g[j] = g;
        }
        row.sums(pos, neg);
        t->pos = (double)pos_weight * pos;
        t->neg = (double)neg_weight * neg;
    }
};

struct margin {
    float alpha;
    double nu;
    bool per_class;
    const float *beta;

    __device__ float boundary(const ki_cuda_view &v, int i) const { return beta[per_class ? v.label[i] : 0]; }
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        const float mine = boundary(v, row.i), inner = mine - alpha, outer = mine + alpha;
        double pos = 0, neg = 0, n_pos = 0, n_neg = 0;
        KI_COLUMNS(j, row.n) {
            const float s = row.s[j];
            float g = 0;
            if (ki_is_pos(row.pair[j]) && s - inner > 0) pos += (double)(s - inner), n_pos += 1, g = 1;
            if (ki_is_neg(row.pair[j]) && outer - s > 0) neg += (double)(outer - s), n_neg += 1, g = -1;
            row.g[j] = g;
        }
        row.sums(pos, neg, n_pos, n_neg);
        t->pos = pos;
        t->neg = neg;
        t->plain = nu * (double)mine / (double)v.m;
        t->count[0] = (int64_t)n_pos;
        t->count[1] = (int64_t)n_neg;
    }
};

/* dL/dbeta, rows in order: one block for each boundary. */
__global__ void margin_boundaries(ki_cuda_view v, bool per_class, double nu, const float *scale,
                                  const float *weight, float *diff) {
    KI_SHARED_ARRAY(double, room, 33);
    const double outer = weight ? (double)*weight : 1;
    double sum = 0;
    for (int i = (int)threadIdx.x; i < v.m; i += (int)blockDim.x) {
        if (per_class && v.label[i] != (int)blockIdx.x) continue;
        const ki_cuda_tally t = v.tally[i];
        sum += (double)scale[KI_VIEW_POSITIVE] * (double)(t.count[1] - t.count[0]) + outer * nu / (double)v.m;
    }
    sum = ki_block_sum(sum, room);
    if (ki_is_first()) diff[blockIdx.x] += (float)sum;
}

} // namespace

/* pos_margin, neg_margin, distance (2: cosine), form (1: horde) */
KI_CUDA_LOSS(contrastive) {
    const double *o = args->option;
    const bool is_horde = o[3] == 1;
    const contrastive loss = {(float)o[0], is_horde ? 0.5f : (float)o[1], is_horde || o[2] == 2, is_horde};
    return ki_loss_launch(view, loss, stream);
}

/* alpha, beta, gamma, reduction (0: anchor, 3: anchor_all) */
KI_CUDA_LOSS(binomial) {
    const double *o = args->option;
    const binomial loss = {(float)o[0], (float)o[1], (float)o[2], o[3] == 0 || o[3] == 3, o[3] == 3};
    return ki_loss_launch(view, loss, stream);
}

/* alpha, nu, per_class */
KI_CUDA_LOSS(margin) {
    const double *o = args->option;
    const margin loss = {(float)o[0], o[1], o[2] != 0, args->param};
    return ki_loss_launch(view, loss, stream);
}

KI_CUDA_LOSS(margin_after) {
    const double *o = args->option;
    if (!args->diff_param) return cudaSuccess;
    return KI_LAUNCH(margin_boundaries, (unsigned)args->n_param, view->m <= 64 ? 32 : 128, 0, stream, *view,
                     o[2] != 0, o[1], args->scale, args->weight, args->diff_param);
}
