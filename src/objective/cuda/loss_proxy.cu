/* Losses over learned columns: amsoftmax, arcface, normsoftmax, proxy_nca, proxy_anchor, softtriple. */
#include "objective/cuda/loss.cuh"

namespace {

/* -ln( e^(scale own) / (e^(scale own) + sum_j e^(scale s_j)) ) over the kept negatives j, where `own` stands
 * in for the cosine of the own column and `slope` is its derivative by it. */
__device__ void cross_entropy(const ki_cuda_view &v, const ki_row &row, float own, float slope, float scale,
                              ki_cuda_tally *t) {
    const int y = v.label[row.i];
    if (!ki_is_pos(row.pair[y])) return row.clear();
    const float other = row.most(KI_VIEW_NEGATIVE), most = own > other ? own : other;
    const float e_own = expf(scale * (own - most));
    double others = 0;
    KI_COLUMNS(j, row.n) {
        float e = 0;
        if (ki_is_neg(row.pair[j])) others += (double)(e = expf(scale * (row.s[j] - most)));
        row.g[j] = e;
    }
    others = row.sum(others);
    const double factor = (double)scale / ((double)e_own + others);
    /* e_own - (e_own + others), without the subtraction: a well-placed item keeps its digits. */
    KI_COLUMNS(j, row.n) row.g[j] = j == y ? (float)(-factor * others) * slope : row.g[j] * (float)factor;
    t->pos = (double)(scale * (most - own)) + log1p(others + ((double)e_own - 1));
}

struct amsoftmax {
    float scale, margin;
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        cross_entropy(v, row, row.s[v.label[row.i]] - margin, 1, scale, t);
    }
};

struct arcface {
    float scale, margin, cos_m, sin_m;
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        const float s = row.s[v.label[row.i]], square = (1 - s) * (1 + s), least = 1e-6f;
        const float sine = sqrtf(square > least ? square : least);
        float own = s - margin * sin_m, slope = 1;
        if (s > -cos_m) { /* theta < pi - margin */
            own = s * cos_m - sine * sin_m;
            slope = cos_m + (square > least ? s * sin_m / sine : 0);
        }
        cross_entropy(v, row, own, slope, scale, t);
    }
};

struct proxy_nca {
    float b; /* 2 scale^2 */
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        const int y = v.label[row.i];
        if (row.n_neg == 0 || !ki_is_pos(row.pair[y])) return row.clear();
        const float most = row.most(KI_VIEW_NEGATIVE);
        double sum = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (ki_is_neg(row.pair[j])) sum += (double)(e = expf(b * (row.s[j] - most)));
            row.g[j] = e;
        }
        sum = row.sum(sum);
        const float share = (float)((double)b / sum);
        KI_COLUMNS(j, row.n) row.g[j] = j == y ? -b : row.g[j] * share;
        t->pos = (double)(b * (most - row.s[y])) + log(sum);
    }
};

/* Sums down columns: TILE columns at a time, SLICES slices of the rows. */
enum { TILE = 32, SLICES = 8 };

struct column_sum {
    double *room; /* shared memory of TILE * SLICES */
    __device__ double sum(double x) const {
        const int c = (int)threadIdx.x;
        room[(int)threadIdx.y * TILE + c] = x;
        __syncthreads();
        double total = 0;
        for (int y = 0; y < SLICES; y++) total += room[y * TILE + c];
        __syncthreads();
        return total;
    }
    __device__ float max(float x) const {
        const int c = (int)threadIdx.x;
        room[(int)threadIdx.y * TILE + c] = (double)x;
        __syncthreads();
        double most = room[c];
        for (int y = 1; y < SLICES; y++) most = room[y * TILE + c] > most ? room[y * TILE + c] : most;
        __syncthreads();
        return (float)most;
    }
};

/* ln(1 + sum over the kind of e^(a (s - at))) of column c; g receives its derivative. */
__device__ double anchor_term(const ki_cuda_view &v, const column_sum &down, int c, int kind, float a,
                              float at, bool *ret_has) {
    float high = -FLT_MAX; /* of the exponents' sign times s */
    const float sign = a > 0 ? 1 : -1;
    for (int i = (int)threadIdx.y; i < v.m && c < v.n; i += SLICES) {
        const int64_t k = (int64_t)i * v.ld + c;
        if (v.pair[k] == kind && sign * v.s[k] > high) high = sign * v.s[k];
    }
    high = down.max(high);
    *ret_has = high != -FLT_MAX;
    const float z = *ret_has ? a * (sign * high - at) : 0, most = z > 0 ? z : 0, from = at + most / a;
    double sum = 0;
    for (int i = (int)threadIdx.y; i < v.m && c < v.n; i += SLICES) {
        const int64_t k = (int64_t)i * v.ld + c;
        if (v.pair[k] == kind) sum += (double)(v.g[k] = expf(a * (v.s[k] - from)));
    }
    sum = down.sum(sum);
    const double rest = (double)expf(-most);
    const float factor = (float)((double)a / (rest + sum));
    for (int i = (int)threadIdx.y; i < v.m && c < v.n; i += SLICES) {
        const int64_t k = (int64_t)i * v.ld + c;
        if (v.pair[k] == kind) v.g[k] *= factor;
    }
    return *ret_has ? (double)most + log1p(sum + (rest - 1)) : 0;
}

__global__ void proxy_anchor(ki_cuda_view v, float alpha, float delta) {
    KI_SHARED_ARRAY(double, room, TILE *SLICES);
    const column_sum down = {room};
    const int c = (int)(blockIdx.x * TILE + threadIdx.x);
    bool has_pos = false, has_neg = false;
    const double pos = anchor_term(v, down, c, KI_VIEW_POSITIVE, -alpha, delta, &has_pos);
    const double neg = anchor_term(v, down, c, KI_VIEW_NEGATIVE, alpha, -delta, &has_neg);
    for (int i = (int)threadIdx.y; i < v.m && c < v.n; i += SLICES) {
        const int64_t k = (int64_t)i * v.ld + c;
        if (v.pair[k] == KI_VIEW_NONE) v.g[k] = 0;
    }
    if (threadIdx.y == 0 && c < v.n) v.tally[c] = {pos, neg, 0, {has_pos, 0}};
}

struct softtriple {
    float la, gamma, margin;

    /* The centers of class c: softmax's sum above their largest (-FLT_MAX: none kept), and S_c. */
    struct soft {
        float high, sum, mean;
    };
    __device__ soft of_class(const ki_row &row, int c, int n_centers) const {
        soft own = {-FLT_MAX, 0, 0};
        for (int k = c * n_centers; k < (c + 1) * n_centers; k++) {
            if (row.pair[k] != KI_VIEW_NONE && row.s[k] > own.high) own.high = row.s[k];
        }
        if (own.high == -FLT_MAX) return own;
        float along = 0;
        for (int k = c * n_centers; k < (c + 1) * n_centers; k++) {
            if (row.pair[k] == KI_VIEW_NONE) continue;
            const float t = row.s[k] - own.high, q = expf(t / gamma);
            own.sum += q;
            along += q * t;
        }
        own.mean = own.high + along / own.sum;
        return own;
    }
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        const int n_centers = v.n_centers, n_classes = row.n / n_centers, y = v.label[row.i];
        const soft own = of_class(row, y, n_centers);
        if (own.high == -FLT_MAX) return row.clear();
        const float target = own.mean - margin;
        float most = target;
        KI_COLUMNS(c, n_classes) {
            const soft other = of_class(row, c, n_centers);
            if (c != y && other.high != -FLT_MAX && other.mean > most) most = other.mean;
        }
        most = row.max(most);
        const float e_own = expf(la * (target - most));
        double others = 0;
        KI_COLUMNS(c, n_classes) {
            const soft other = of_class(row, c, n_centers);
            if (c != y && other.high != -FLT_MAX) others += (double)expf(la * (other.mean - most));
        }
        others = row.sum(others);
        const double factor = (double)la / ((double)e_own + others);
        KI_COLUMNS(c, n_classes) {
            const soft mine = of_class(row, c, n_centers);
            const float by_soft =
                c == y ? (float)(-factor * others)
                       : (float)factor * (mine.high == -FLT_MAX ? 0 : expf(la * (mine.mean - most)));
            for (int k = c * n_centers; k < (c + 1) * n_centers; k++) {
                const float s = row.s[k], q = expf((s - mine.high) / gamma) / mine.sum;
                row.g[k] = row.pair[k] == KI_VIEW_NONE ? 0 : by_soft * q * (1 + (s - mine.mean) / gamma);
            }
        }
        t->pos = (double)(la * (most - target)) + log1p(others + ((double)e_own - 1));
    }
};

/* Centers of a class, two and two, one warp each: [k, l], k < l, is the pull of the distance between them,
 * [l, k] its weighted length. */
__global__ void centers_between(const float *w, int n_centers, int dim, double weight, float *between) {
    const int warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31, n_warps = (int)blockDim.x >> 5;
    const int64_t first = (int64_t)blockIdx.x * n_centers;
    float *to = between + first * n_centers;
    for (int at = warp; at < n_centers * n_centers; at += n_warps) {
        const int k = at / n_centers, l = at % n_centers;
        if (k >= l) continue; /* the same for the whole warp */
        const float *a = w + (first + k) * dim, *b = w + (first + l) * dim;
        double dot = 0;
        for (int d = lane; d < dim; d += 32) dot += (double)a[d] * (double)b[d];
        dot = ki_warp_sum(dot);
        const double square = 2 - 2 * (double)(float)dot, length = sqrt((square > 0 ? square : 0) + 1e-5);
        if (lane != 0) continue;
        to[k * n_centers + l] = (float)(square > 0 ? -weight / length : 0);
        to[l * n_centers + k] = (float)(weight * length);
    }
}

/* diff of one center; the class's first block adds up the lengths, too. */
__global__ void centers_together(ki_cuda_view v, const float *w, const float *between, const float *outer,
                                 float *diff) {
    KI_SHARED_ARRAY(double, room, 33);
    const int n_centers = v.n_centers, c = (int)blockIdx.x / n_centers, k = (int)blockIdx.x % n_centers;
    const int64_t first = (int64_t)c * n_centers;
    const float *mine = between + first * n_centers;
    const float weight = outer ? *outer : 1;
    KI_COLUMNS(d, v.dim) {
        float sum = 0;
        for (int l = 0; l < n_centers; l++) {
            if (l != k)
                sum += mine[k < l ? k * n_centers + l : l * n_centers + k] * w[(first + l) * v.dim + d];
        }
        diff[(first + k) * v.dim + d] = weight * sum;
    }
    if (k != 0) return;
    double length = 0;
    KI_COLUMNS(at, n_centers * n_centers) {
        if (at / n_centers > at % n_centers) length += (double)mine[at];
    }
    length = ki_block_sum(length, room);
    if (ki_is_first()) v.tally[v.m + c] = {0, 0, length, {0, 0}};
}

} // namespace

/* scale, margin */
KI_CUDA_LOSS(amsoftmax) {
    const double *o = args->option;
    const amsoftmax loss = {(float)o[0], (float)o[1]};
    return ki_loss_launch(view, loss, stream);
}

/* scale, margin */
KI_CUDA_LOSS(arcface) {
    const double *o = args->option;
    const arcface loss = {(float)o[0], (float)o[1], (float)cos(o[1]), (float)sin(o[1])};
    return ki_loss_launch(view, loss, stream);
}

/* temperature */
KI_CUDA_LOSS(normsoftmax) {
    const amsoftmax loss = {(float)(1 / args->option[0]), 0};
    return ki_loss_launch(view, loss, stream);
}

/* scale */
KI_CUDA_LOSS(proxy_nca) {
    const proxy_nca loss = {(float)(2 * args->option[0] * args->option[0])};
    return ki_loss_launch(view, loss, stream);
}

/* alpha, delta */
KI_CUDA_LOSS(proxy_anchor) {
    return KI_LAUNCH(proxy_anchor, (unsigned)((view->n + TILE - 1) / TILE), dim3(TILE, SLICES), 0, stream,
                     *view, (float)args->option[0], (float)args->option[1]);
}

/* la, gamma, margin, tau, centers */
KI_CUDA_LOSS(softtriple) {
    const double *o = args->option;
    const softtriple loss = {(float)o[0], (float)o[1], (float)o[2]};
    if (args->diff_proxies) {
        const int64_t n_centers = view->n_centers, n_classes = view->n / n_centers;
        const double weight = o[3] / ((double)n_classes * (double)n_centers * (double)(n_centers - 1));
        KI_LAUNCH_TRY(centers_between, (unsigned)n_classes, 128, 0, stream, args->proxies, (int)n_centers,
                      view->dim, weight, (float *)args->scratch);
        KI_LAUNCH_TRY(centers_together, (unsigned)view->n, 128, 0, stream, *view, args->proxies,
                      (const float *)args->scratch, args->weight, args->diff_proxies);
    }
    return ki_loss_launch(view, loss, stream);
}
