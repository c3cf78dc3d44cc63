/* SoftTriple on the device (softtriple.c has the formulas). */
#include "objective/proxy/softtriple.h"

#include "objective/cuda/loss.cuh"

namespace {

struct softtriple {
    float la, gamma, margin;

    /* The centers of class c: softmax's sum above their largest (-FLT_MAX: none kept), and S_c. */
    struct soft {
        float high, sum, mean;
    };
    __device__ soft of_class(const ki_cuda_row &row, int c, int n_centers) const {
        soft own = {-FLT_MAX, 0, 0};
        for (int k = c * n_centers; k < (c + 1) * n_centers; k++) {
            if (row.pair[k] != KI_PAIR_NONE && row.s[k] > own.high) own.high = row.s[k];
        }
        if (own.high == -FLT_MAX) return own;
        float along = 0;
        for (int k = c * n_centers; k < (c + 1) * n_centers; k++) {
            if (row.pair[k] == KI_PAIR_NONE) continue;
            const float t = row.s[k] - own.high, q = expf(t / gamma);
            own.sum += q;
            along += q * t;
        }
        own.mean = own.high + along / own.sum;
        return own;
    }
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
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
                row.g[k] = row.pair[k] == KI_PAIR_NONE ? 0 : by_soft * q * (1 + (s - mine.mean) / gamma);
            }
        }
        t->pos = (double)(la * (most - target)) + log1p(others + ((double)e_own - 1));
    }
};

/* Pairs of centers of a class, one warp each: [k, l], k < l, is the gradient factor of the distance between
 * them, [l, k] its weighted length. */
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
        const double square = 2 - 2 * (double)(float)dot,
                     length = sqrt((square > 0 ? square : 0) + KI_SOFTTRIPLE_EPS);
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

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_softtriple_settings *o = static_cast<const ki_softtriple_settings *>(in->settings);
    const softtriple loss = {(float)o->la, (float)o->gamma, (float)o->margin};
    if (in->diff_proxies) {
        const int64_t n_centers = view->n_centers, n_classes = view->n / n_centers;
        const double weight = o->tau / ((double)n_classes * (double)n_centers * (double)(n_centers - 1));
        KI_LAUNCH_TRY(centers_between, (unsigned)n_classes, 128, 0, stream, in->proxies, (int)n_centers,
                      view->dim, weight, (float *)in->scratch);
        KI_LAUNCH_TRY(centers_together, (unsigned)view->n, 128, 0, stream, *view, in->proxies,
                      (const float *)in->scratch, in->weight, in->diff_proxies);
    }
    return ki_loss_launch(view, loss, stream);
}

/* Whether centers are pulled together. */
bool has_straight(const void *settings) {
    const ki_softtriple_settings *o = static_cast<const ki_softtriple_settings *>(settings);
    return o->tau != 0 && o->centers >= 2;
}

int64_t n_tallies(const void *settings, const ki_cuda_view *view) {
    return has_straight(settings) ? view->m + view->n / view->n_centers : view->m;
}

size_t scratch_bytes(const void *settings, const ki_cuda_view *view) {
    return has_straight(settings) ? (size_t)view->n * (size_t)view->n_centers * sizeof(float) : 0;
}

} // namespace

const ki_cuda_loss ki_cuda_loss_softtriple = {.rows = rows,
                                              .by = KI_BY_ROWS,
                                              .n_tallies = n_tallies,
                                              .scratch_bytes = scratch_bytes,
                                              .has_straight = has_straight};
