/* What the op files share: the records they define and the checks they have in common. */
#ifndef KI_OP_RULES_H
#define KI_OP_RULES_H

#include "nn/graph.h"

/* One record per op, each in its own NAME.c. */
extern const ki_op ki_op_input;
#define X(NAME, name) extern const ki_op ki_op_##name;
#include "device/op.def"
#undef X

/* KITH_ESHAPE unless src is [mb, c, h, w], [mb, c], [mb, t, c], or one of the last two. */
kith_status ki_op_wants_map(const ki_shape *src, kith_error *err);
kith_status ki_op_wants_vector(const ki_shape *src, kith_error *err);
kith_status ki_op_wants_tokens(const ki_shape *src, kith_error *err);
kith_status ki_op_wants_rows(const ki_shape *src, kith_error *err);

/* The channels of a map, or the numbers of a token or a vector. */
static inline int64_t ki_op_channels(const ki_shape *src) {
    return src->n_dims == 4 ? src->dim[1] : ki_shape_width(src);
}

/* KITH_EINVAL unless least <= value <= 2^20, far above any network and far below overflow. */
kith_status ki_op_wants_size(const char *what, int64_t value, int64_t least, kith_error *err);

/* KITH_ESHAPE if the shape has more than 2^40 elements; this leaves room for a batch. */
kith_status ki_op_wants_countable(const char *what, const ki_shape *shape, kith_error *err);

/* Declare NODE.suffix; the name is made in the arena. Declare slots in their order. */
kith_status ki_op_declare(ki_arena *arena, ki_node *node, const char *suffix, ki_param_decl decl,
                          kith_error *err);

#endif
