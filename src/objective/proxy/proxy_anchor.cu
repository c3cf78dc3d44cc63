/* Proxy-Anchor on the device (proxy_anchor.c has the formulas). */
#include "objective/proxy/proxy_anchor.h"

#include "objective/cuda/loss.cuh"

namespace {

/* Sums along columns: TILE columns at a time, SLICES slices of the rows. */
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
    const double pos = anchor_term(v, down, c, KI_PAIR_POSITIVE, -alpha, delta, &has_pos);
    const double neg = anchor_term(v, down, c, KI_PAIR_NEGATIVE, alpha, -delta, &has_neg);
    for (int i = (int)threadIdx.y; i < v.m && c < v.n; i += SLICES) {
        const int64_t k = (int64_t)i * v.ld + c;
        if (v.pair[k] == KI_PAIR_NONE) v.g[k] = 0;
    }
    if (threadIdx.y == 0 && c < v.n) v.tally[c] = {pos, neg, 0, {has_pos, 0}};
}

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_proxy_anchor_settings *o = static_cast<const ki_proxy_anchor_settings *>(in->settings);
    return KI_LAUNCH(proxy_anchor, (unsigned)((view->n + TILE - 1) / TILE), dim3(TILE, SLICES), 0, stream,
                     *view, (float)o->alpha, (float)o->delta);
}

/* Positives by the proxies that have one, negatives by all proxies. */
void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)settings;
    weight[KI_PAIR_POSITIVE] = {KI_BY_COUNT_0, 1};
    weight[KI_PAIR_NEGATIVE] = {KI_BY_ONE, 1 / (double)view->n};
}

int64_t n_tallies(const void *settings, const ki_cuda_view *view) {
    (void)settings;
    return view->n;
}

} // namespace

const ki_cuda_loss ki_cuda_loss_proxy_anchor = {.rows = rows, .weights = weights, .n_tallies = n_tallies};
