/* All ops by their number, made from the rows of device/op.def. */
#include "nn/op/rules.h"

const ki_op *ki_op_at(ki_op_kind kind) {
    static const ki_op *const ops[] = {
        [KI_OP_INPUT] = &ki_op_input,
#define X(NAME, name) [KI_OP_##NAME] = &ki_op_##name,
#include "device/op.def"
#undef X
    };
    return (unsigned)kind < KI_N_OPS ? ops[kind] : NULL;
}
