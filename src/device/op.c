/* Names of ops. */
#include "device/op.h"

const char *ki_op_name(ki_op_kind kind) {
    static const char *const names[] = {
#define KI_OP_NAME(NAME, name) #name,
        KI_OP_LIST(KI_OP_NAME)
#undef KI_OP_NAME
    };
    return (unsigned)kind < KI_N_OPS ? names[kind] : "?";
}
