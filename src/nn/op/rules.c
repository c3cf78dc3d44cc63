/* Checks of shapes that the ops share, and declaring parameters. */
#include "nn/op/rules.h"

#include <inttypes.h>

kith_status ki_op_wants_map(const ki_shape *src, kith_error *err) {
    char text[96];
    if (src->n_dims == 4) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE, "the source is %s, wanted a map [mb, c, h, w]",
                   ki_shape_text(src, text, sizeof text));
}

kith_status ki_op_wants_vector(const ki_shape *src, kith_error *err) {
    char text[96];
    if (src->n_dims == 2) return KITH_OK;
    ki_fail(err, KITH_ESHAPE, "the source is %s, wanted vectors [mb, c]",
            ki_shape_text(src, text, sizeof text));
    return ki_hint(err, KITH_ESHAPE, "put a global pooling before it");
}

kith_status ki_op_wants_tokens(const ki_shape *src, kith_error *err) {
    char text[96];
    if (src->n_dims == 3) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE, "the source is %s, wanted tokens [mb, t, c]",
                   ki_shape_text(src, text, sizeof text));
}

kith_status ki_op_wants_rows(const ki_shape *src, kith_error *err) {
    char text[96];
    if (src->n_dims == 2 || src->n_dims == 3) return KITH_OK;
    ki_fail(err, KITH_ESHAPE, "the source is %s, wanted vectors [mb, c] or tokens [mb, t, c]",
            ki_shape_text(src, text, sizeof text));
    return ki_hint(err, KITH_ESHAPE, "put a global pooling before it");
}

kith_status ki_op_wants_size(const char *what, int64_t value, int64_t least, kith_error *err) {
    const int64_t most = 1 << 20;
    if (value >= least && value <= most) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%s is %" PRId64 ", wanted %" PRId64 " to %" PRId64, what, value, least,
                   most);
}

kith_status ki_op_wants_countable(const char *what, const ki_shape *shape, kith_error *err) {
    char text[96];
    const int64_t n = ki_shape_count(shape), most = INT64_C(1) << 40;
    if (n >= 0 && n <= most) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE, "%s of %s has too many elements, at most 2^40 can be planned", what,
                   ki_shape_text(shape, text, sizeof text));
}

kith_status ki_op_declare(ki_arena *arena, ki_node *node, const char *suffix, ki_param_decl decl,
                          kith_error *err) {
    if (node->n_params == KI_N_ROLES)
        return ki_fail(err, KITH_EINTERNAL, "an op declares more than %d parameters", (int)KI_N_ROLES);
    KI_TRY(ki_op_wants_countable(suffix, &decl.shape, err));
    decl.name = ki_arena_printf(arena, "%s.%s", node->name, suffix);
    if (!decl.name) return ki_fail_memory(err, 0, "a parameter's name");
    node->param[node->n_params++] = decl;
    return KITH_OK;
}
