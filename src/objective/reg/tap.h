/* Places of a network that terms read, for the host and for kernels. */
#ifndef KI_OBJECTIVE_TAP_H
#define KI_OBJECTIVE_TAP_H

typedef enum ki_tap {
    KI_TAP_MAP,       /* the last feature map [m, c, h, w] */
    KI_TAP_POOLED,    /* pooled features [m, c] */
    KI_TAP_EMBEDDING, /* the embedding [m, dim]; L2-normalised when the term says so (in->normalized) */
    KI_TAP_LOGITS,    /* cosine of embedding and proxies [m, n], without scale and margin */
    KI_TAP_WEIGHT,    /* the embedding layer's weight matrix [embedding, pooled]: no row per item */
    KI_N_TAPS,
} ki_tap;

#define KI_TAP_BIT(tap) (1u << (tap))

#endif
