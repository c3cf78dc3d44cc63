/* The loops of vec.h, included by vec.c once for each instruction set with KI_VEC(name) giving each
 * copy its own names. Selections are written as `keep ? x : y` of values already computed, which is
 * the form compilers turn into masked vector code. */

#ifdef KITH_REAL_IS_FLOAT
KI_VEC_INLINE float KI_VEC(fast_exp)(float x) { return ki_fast_exp(x); }
/* ln(1 + t) for 0 <= t <= 1, about 2 ulp: the series of 2 atanh(t / (2 + t)), |z| <= 1/3. */
KI_VEC_INLINE float KI_VEC(fast_log1p)(float t) {
    /* Squares of tiny z would be subnormal, which costs a hundred cycles and changes nothing. */
    const float z = t / (2.0f + t), z_2 = z > 1e-9f ? z : 1e-9f, w = z_2 * z_2;
    float p = 1.0f / 15;
    p = p * w + 1.0f / 13;
    p = p * w + 1.0f / 11;
    p = p * w + 1.0f / 9;
    p = p * w + 1.0f / 7;
    p = p * w + 1.0f / 5;
    p = p * w + 1.0f / 3;
    return 2 * z * (1 + w * p);
}
#else
KI_VEC_INLINE double KI_VEC(fast_exp)(double x) { return exp(x); }
KI_VEC_INLINE double KI_VEC(fast_log1p)(double t) { return log1p(t); }
#endif

static void KI_VEC(compare)(const int32_t *label, int32_t mine, uint8_t *pair, int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) pair[j] = label[j] == mine ? KI_PAIR_POSITIVE : KI_PAIR_NEGATIVE;
}

static int64_t KI_VEC(count)(const uint8_t *pair, int kind, int64_t n) {
    int64_t total = 0;
    const uint8_t wanted = (uint8_t)kind;
    for (int64_t begin = 0; begin < n; begin += 4096) {
        const int64_t end = begin + 4096 < n ? begin + 4096 : n;
        uint32_t some = 0;
#pragma omp simd reduction(+ : some)
        for (int64_t j = begin; j < end; j++) some += pair[j] == wanted;
        total += some;
    }
    return total;
}

/* Positives are few and often adjacent: stretches without an entry of the kind are skipped. */
KI_VEC_INLINE int KI_VEC(has)(const uint8_t *pair, int kind, int64_t n) {
    int found = 0;
    const uint8_t wanted = (uint8_t)kind;
#pragma omp simd reduction(| : found)
    for (int64_t j = 0; j < n; j++) found |= pair[j] == wanted;
    return found;
}

static ki_real KI_VEC(max)(const ki_real *s, const uint8_t *pair, int kind, int64_t n) {
    ki_real most = -KI_REAL_MAX;
    for (int64_t begin = 0; begin < n; begin += KI_VEC_STRETCH) {
        const int64_t end = begin + KI_VEC_STRETCH < n ? begin + KI_VEC_STRETCH : n;
        if (!KI_VEC(has)(pair + begin, kind, end - begin)) continue;
#pragma omp simd reduction(max : most)
        for (int64_t j = begin; j < end; j++) {
            const ki_real v = pair[j] == kind ? s[j] : -KI_REAL_MAX;
            most = v > most ? v : most;
        }
    }
    return most;
}

static ki_real KI_VEC(min)(const ki_real *s, const uint8_t *pair, int kind, int64_t n) {
    ki_real least = KI_REAL_MAX;
    for (int64_t begin = 0; begin < n; begin += KI_VEC_STRETCH) {
        const int64_t end = begin + KI_VEC_STRETCH < n ? begin + KI_VEC_STRETCH : n;
        if (!KI_VEC(has)(pair + begin, kind, end - begin)) continue;
#pragma omp simd reduction(min : least)
        for (int64_t j = begin; j < end; j++) {
            const ki_real v = pair[j] == kind ? s[j] : KI_REAL_MAX;
            least = v < least ? v : least;
        }
    }
    return least;
}

static ki_real KI_VEC(exp_where)(const ki_real *s, const uint8_t *pair, int kind, ki_real a, ki_real c,
                                 ki_real *dst, int64_t n) {
    ki_real sum = 0;
    for (int64_t begin = 0; begin < n; begin += KI_VEC_STRETCH) {
        const int64_t end = begin + KI_VEC_STRETCH < n ? begin + KI_VEC_STRETCH : n;
        if (!KI_VEC(has)(pair + begin, kind, end - begin)) continue;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = begin; j < end; j++) {
            const ki_real e = KI_VEC(fast_exp)(a * (s[j] - c)), old = dst[j];
            const int on = pair[j] == kind;
            dst[j] = on ? e : old;
            sum += on ? e : 0;
        }
    }
    return sum;
}

static ki_real KI_VEC(softplus)(const ki_real *s, const uint8_t *pair, int kind, ki_real a, ki_real c,
                                ki_real weight, ki_real *dst, int64_t n) {
    ki_real sum = 0;
    const ki_real slope = weight * a;
    for (int64_t begin = 0; begin < n; begin += KI_VEC_STRETCH) {
        const int64_t end = begin + KI_VEC_STRETCH < n ? begin + KI_VEC_STRETCH : n;
        if (!KI_VEC(has)(pair + begin, kind, end - begin)) continue;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = begin; j < end; j++) {
            const ki_real z = a * (s[j] - c), old = dst[j];
            const ki_real t = KI_VEC(fast_exp)(z < 0 ? z : -z); /* e^-|z| */
            const ki_real value = (z > 0 ? z : 0) + KI_VEC(fast_log1p)(t);
            const ki_real sigmoid = (z < 0 ? t : 1) / (1 + t);
            const int on = pair[j] == kind;
            dst[j] = on ? slope * sigmoid : old;
            sum += on ? value : 0;
        }
    }
    return sum;
}

static ki_real KI_VEC(hinge)(const ki_real *s, const uint8_t *pair, int kind, ki_real a, ki_real c,
                             ki_real weight, ki_real *dst, int64_t *ret_active, int64_t n) {
    ki_real sum = 0;
    const ki_real slope = weight * a;
    int64_t total = 0;
    for (int64_t begin = 0; begin < n; begin += KI_VEC_STRETCH) {
        const int64_t end = begin + KI_VEC_STRETCH < n ? begin + KI_VEC_STRETCH : n;
        if (!KI_VEC(has)(pair + begin, kind, end - begin)) continue;
        int32_t active = 0;
#pragma omp simd reduction(+ : sum, active)
        for (int64_t j = begin; j < end; j++) {
            const ki_real t = a * (s[j] - c), old = dst[j];
            const int mine = pair[j] == kind, on = mine & (t > 0);
            dst[j] = on ? slope : mine ? 0 : old;
            sum += on ? t : 0;
            active += on;
        }
        total += active;
    }
    *ret_active = total;
    return sum;
}

static void KI_VEC(scale)(const uint8_t *pair, int kind, ki_real factor, ki_real *dst, int64_t n) {
    for (int64_t begin = 0; begin < n; begin += KI_VEC_STRETCH) {
        const int64_t end = begin + KI_VEC_STRETCH < n ? begin + KI_VEC_STRETCH : n;
        if (!KI_VEC(has)(pair + begin, kind, end - begin)) continue;
#pragma omp simd
        for (int64_t j = begin; j < end; j++) {
            const ki_real old = dst[j], scaled = old * factor;
            dst[j] = pair[j] == kind ? scaled : old;
        }
    }
}

static int64_t KI_VEC(prune)(const ki_real *s, int kind, ki_real low, ki_real high, uint8_t *pair,
                             int64_t n) {
    int64_t total = 0;
    for (int64_t begin = 0; begin < n; begin += 4096) {
        const int64_t end = begin + 4096 < n ? begin + 4096 : n;
        int32_t some = 0;
#pragma omp simd reduction(+ : some)
        for (int64_t j = begin; j < end; j++) {
            const uint8_t old = pair[j];
            const int mine = old == kind, inside = (s[j] > low) & (s[j] < high);
            pair[j] = (mine & !inside) ? KI_PAIR_NONE : old;
            some += mine & inside;
        }
        total += some;
    }
    return total;
}

static ki_real KI_VEC(distance)(ki_real *s, ki_real mine, const ki_real *sq, int64_t n) {
    ki_real least = 1;
#pragma omp simd reduction(min : least)
    for (int64_t j = 0; j < n; j++) {
        const ki_real size = mine + sq[j], raw = size - 2 * s[j];
        const ki_real d = raw > 0 ? raw : 0;
        const ki_real relative = size > 0 ? d / size : 0;
        s[j] = d;
        least = relative < least ? relative : least;
    }
    return least;
}

static ki_real KI_VEC(triplet)(const ki_real *v, const ki_real *key, ki_real low, ki_real high, ki_real c,
                               ki_real *add, int64_t *ret_active, int64_t n) {
    ki_real sum = 0;
    int64_t total = 0;
    for (int64_t begin = 0; begin < n; begin += 4096) {
        const int64_t end = begin + 4096 < n ? begin + 4096 : n;
        int32_t active = 0;
#pragma omp simd reduction(+ : sum, active)
        for (int64_t j = begin; j < end; j++) {
            const ki_real t = c - v[j];
            const int on = (key[j] > low) & (key[j] < high) & (t > 0);
            add[j] += on ? 1 : 0;
            sum += on ? t : 0;
            active += on;
        }
        total += active;
    }
    *ret_active = total;
    return sum;
}

static ki_real KI_VEC(exp_all)(const ki_real *s, ki_real a, ki_real c, ki_real *dst, int64_t n) {
    ki_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) {
        const ki_real e = KI_VEC(fast_exp)(a * (s[j] - c));
        dst[j] = e;
        sum += e;
    }
    return sum;
}

static ki_real KI_VEC(dot)(const ki_real *a, const ki_real *b, int64_t n) {
    ki_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) sum += a[j] * b[j];
    return sum;
}

static void KI_VEC(add)(const ki_real *src, ki_real a, ki_real *dst, int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) dst[j] += a * src[j];
}

static void KI_VEC(copy)(const ki_real *src, ki_real a, ki_real *dst, int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) dst[j] = a * src[j];
}

static void KI_VEC(less)(const ki_real *src, const ki_real *other, ki_real a, ki_real b, ki_real *dst,
                         int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) dst[j] = a * (src[j] - b * other[j]);
}

static void KI_VEC(add_less)(const ki_real *src, const ki_real *other, ki_real a, ki_real b, ki_real *dst,
                             int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) dst[j] += a * (src[j] - b * other[j]);
}

/* x * 0 is 0 for every finite x and NaN otherwise. */
static int KI_VEC(finite)(const ki_real *src, int64_t n) {
    ki_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) sum += src[j] * 0;
    return sum == 0;
}

static ki_real KI_VEC(l1)(const ki_real *a, const ki_real *b, int64_t n) {
    ki_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) {
        const ki_real d = a[j] - b[j];
        sum += d < 0 ? -d : d;
    }
    return sum;
}

static void KI_VEC(l1_backward)(const ki_real *a, const ki_real *b, ki_real weight, ki_real *dst, int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const ki_real up = a[j] > b[j] ? weight : 0, down = a[j] < b[j] ? weight : 0;
        dst[j] += up - down;
    }
}

static ki_real KI_VEC(max_size)(const ki_real *src, int64_t n) {
    ki_real most = 0;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < n; j++) {
        const ki_real size = src[j] < 0 ? -src[j] : src[j];
        most = size > most ? size : most;
    }
    return most;
}

static int64_t KI_VEC(count_above)(const ki_real *src, ki_real limit, int64_t n) {
    int64_t total = 0;
    for (int64_t begin = 0; begin < n; begin += 4096) {
        const int64_t end = begin + 4096 < n ? begin + 4096 : n;
        int32_t some = 0;
#pragma omp simd reduction(+ : some)
        for (int64_t j = begin; j < end; j++) some += (src[j] > limit) | (-src[j] > limit);
        total += some;
    }
    return total;
}

static void KI_VEC(sums_below)(const ki_real *src, const ki_real limit[3], ki_real ret_sum[3], int64_t n) {
    ki_real sum_0 = 0, sum_1 = 0, sum_2 = 0;
    const ki_real limit_0 = limit[0], limit_1 = limit[1], limit_2 = limit[2];
#pragma omp simd reduction(+ : sum_0, sum_1, sum_2)
    for (int64_t j = 0; j < n; j++) {
        const ki_real size = src[j] < 0 ? -src[j] : src[j];
        sum_0 += size > limit_0 ? 0 : size;
        sum_1 += size > limit_1 ? 0 : size;
        sum_2 += size > limit_2 ? 0 : size;
    }
    ret_sum[0] = sum_0, ret_sum[1] = sum_1, ret_sum[2] = sum_2;
}

static ki_real KI_VEC(sum)(const ki_real *src, int64_t n) {
    ki_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) sum += src[j];
    return sum;
}

static const ki_vec KI_VEC(table) = {
    .compare = KI_VEC(compare),
    .count = KI_VEC(count),
    .max = KI_VEC(max),
    .min = KI_VEC(min),
    .exp = KI_VEC(exp_where),
    .softplus = KI_VEC(softplus),
    .hinge = KI_VEC(hinge),
    .scale = KI_VEC(scale),
    .prune = KI_VEC(prune),
    .distance = KI_VEC(distance),
    .triplet = KI_VEC(triplet),
    .exp_all = KI_VEC(exp_all),
    .dot = KI_VEC(dot),
    .add = KI_VEC(add),
    .copy = KI_VEC(copy),
    .less = KI_VEC(less),
    .add_less = KI_VEC(add_less),
    .finite = KI_VEC(finite),
    .l1 = KI_VEC(l1),
    .l1_backward = KI_VEC(l1_backward),
    .max_size = KI_VEC(max_size),
    .count_above = KI_VEC(count_above),
    .sums_below = KI_VEC(sums_below),
    .sum = KI_VEC(sum),
};

#undef KI_VEC
