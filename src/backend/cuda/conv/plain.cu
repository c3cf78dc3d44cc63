/* Convolutions by plain loops: a thread per output, which loops over its window alone. Only for sizes and
 * strides that no library supports; bench/cuda_conv.c also checks the others against it. */
#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/number.cuh"

enum { THREADS = 256, MOST_BLOCKS = 65535 };

struct plain_args {
    ki_conv_problem p;
    ki_conv_io io;
};

template <typename T>
static __global__ void forward_kernel(plain_args a) {
    const ki_conv_problem &p = a.p;
    const T *src = (const T *)a.io.src, *weights = (const T *)a.io.weights;
    const int64_t group_ic = ki_conv_group_ic(&p), group_oc = p.oc / (p.ic / group_ic);
    const int64_t n = p.mb * p.oh * p.ow * p.oc, stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t o = i % p.oc, x = i / p.oc % p.ow, y = i / p.oc / p.ow % p.oh,
                      image = i / p.oc / p.ow / p.oh;
        const int64_t c0 = o / group_oc * group_ic;
        float sum = p.has_bias ? a.io.bias[o] : 0;
        for (int64_t ky = 0; ky < p.kh; ky++) {
            const int64_t sy = y * p.sh - p.ph + ky;
            if (sy < 0 || sy >= p.ih) continue;
            for (int64_t kx = 0; kx < p.kw; kx++) {
                const int64_t sx = x * p.sw - p.pw + kx;
                if (sx < 0 || sx >= p.iw) continue;
                const T *pixel = src + image * p.src.image + sy * p.src.row + sx * p.src.pixel + c0;
                const T *w = weights + ((o * p.kh + ky) * p.kw + kx) * group_ic;
                for (int64_t c = 0; c < group_ic; c++) sum += to_float(pixel[c]) * to_float(w[c]);
            }
        }
        if (p.has_relu) sum = fmaxf(sum, 0.0f);
        ((T *)a.io.dst)[image * p.dst.image + y * p.dst.row + x * p.dst.pixel + o] = from_float<T>(sum);
    }
}

template <typename T>
static __global__ void diff_src_kernel(plain_args a) {
    const ki_conv_problem &p = a.p;
    const T *diff_dst = (const T *)a.io.diff_dst, *weights = (const T *)a.io.weights;
    const int64_t group_ic = ki_conv_group_ic(&p), group_oc = p.oc / (p.ic / group_ic);
    const int64_t n = p.mb * p.ih * p.iw * p.ic, stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t c = i % p.ic, x = i / p.ic % p.iw, y = i / p.ic / p.iw % p.ih,
                      image = i / p.ic / p.iw / p.ih;
        const int64_t at = image * p.src.image + y * p.src.row + x * p.src.pixel + c;
        const int64_t o0 = c / group_ic * group_oc;
        float sum = 0;
        for (int64_t ky = 0; ky < p.kh; ky++) {
            const int64_t dy = y + p.ph - ky;
            if (dy < 0 || dy % p.sh != 0 || dy / p.sh >= p.oh) continue;
            for (int64_t kx = 0; kx < p.kw; kx++) {
                const int64_t dx = x + p.pw - kx;
                if (dx < 0 || dx % p.sw != 0 || dx / p.sw >= p.ow) continue;
                const T *pixel =
                    diff_dst + image * p.dst.image + dy / p.sh * p.dst.row + dx / p.sw * p.dst.pixel;
                const T *w = weights + (ky * p.kw + kx) * group_ic + c % group_ic;
                for (int64_t o = o0; o < o0 + group_oc; o++)
                    sum += to_float(pixel[o]) * to_float(w[o * p.kh * p.kw * group_ic]);
            }
        }
        T *to = (T *)a.io.diff_src + at;
        *to = from_float<T>(p.adds ? to_float(*to) + sum : sum);
    }
}

/* A block per weight. */
template <typename T>
static __global__ void diff_weights_kernel(plain_args a) {
    KI_SHARED_ARRAY(float, room, 33);
    const ki_conv_problem &p = a.p;
    const T *src = (const T *)a.io.src, *diff_dst = (const T *)a.io.diff_dst;
    const int64_t group_ic = ki_conv_group_ic(&p), group_oc = p.oc / (p.ic / group_ic);
    const int64_t n = p.oc * p.kh * p.kw * group_ic, n_pixels = p.mb * p.oh * p.ow;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const int64_t kx = i / group_ic % p.kw, ky = i / group_ic / p.kw % p.kh,
                      o = i / group_ic / p.kw / p.kh, c = o / group_oc * group_ic + i % group_ic;
        float sum = 0;
        for (int64_t j = threadIdx.x; j < n_pixels; j += THREADS) {
            const int64_t x = j % p.ow, y = j / p.ow % p.oh, image = j / p.ow / p.oh;
            const int64_t sx = x * p.sw - p.pw + kx, sy = y * p.sh - p.ph + ky;
            if (sx < 0 || sx >= p.iw || sy < 0 || sy >= p.ih) continue;
            sum += to_float(src[image * p.src.image + sy * p.src.row + sx * p.src.pixel + c]) *
                   to_float(diff_dst[image * p.dst.image + y * p.dst.row + x * p.dst.pixel + o]);
        }
        sum = ki_block_sum(sum, room);
        if (threadIdx.x == 0) ((float *)a.io.diff_weights)[i] = sum;
    }
}

template <typename T>
static cudaError_t conv_plain(const plain_args &a, cudaStream_t stream) {
    const ki_conv_problem *p = &a.p;
    if (p->pass == KI_CONV_DIFF_WEIGHTS) {
        const int64_t n = p->oc * p->kh * p->kw * ki_conv_group_ic(p);
        return KI_LAUNCH(diff_weights_kernel<T>, ki_blocks(n, 1, MOST_BLOCKS), THREADS, 0, stream, a);
    }
    const bool is_forward = p->pass == KI_CONV_FORWARD;
    const int64_t n = is_forward ? p->mb * p->oh * p->ow * p->oc : p->mb * p->ih * p->iw * p->ic;
    const unsigned grid = ki_blocks(n, THREADS, MOST_BLOCKS);
    if (is_forward) return KI_LAUNCH(forward_kernel<T>, grid, THREADS, 0, stream, a);
    return KI_LAUNCH(diff_src_kernel<T>, grid, THREADS, 0, stream, a);
}

extern "C" cudaError_t ki_cuda_conv_plain(const ki_conv_problem *problem, const ki_conv_io *io,
                                          cudaStream_t stream) {
    plain_args args;
    args.p = *problem;
    args.io = *io;
    return problem->type == KI_NUMBER_BF16 ? conv_plain<ki_bf16>(args, stream)
                                           : conv_plain<float>(args, stream);
}
