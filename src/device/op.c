/* Names of ops. */
#include "device/op.h"

const char *ki_op_name(ki_op_kind kind) {
    static const char *const names[] = {
        "input",
#define X(NAME, name) #name,
#include "device/op.def"
#undef X
    };
    return (unsigned)kind < KI_N_OPS ? names[kind] : "?";
}
