/* All ops by their number, made from the list in device/op.h. */
#include "nn/op/rules.h"

const ki_op *ki_op_at(ki_op_kind kind) {
    static const ki_op *const ops[] = {
#define KI_OP_ROW(NAME, name) [KI_OP_##NAME] = &ki_op_##name,
        KI_OP_LIST(KI_OP_ROW)
#undef KI_OP_ROW
    };
    return (unsigned)kind < KI_N_OPS ? ops[kind] : NULL;
}
