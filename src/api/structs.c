/* How many bytes the public structs have, for bindings of other languages. The list is made from the headers
 * (scripts/list-structs.sh). */
#include <string.h>

#include "kith/kith.h"

static const struct {
    const char *name;
    size_t bytes;
} structs[] = {
#define X(name) {#name, sizeof(name)},
#include "kith_structs.def"
#undef X
};

size_t kith_struct_bytes(const char *name) {
    for (size_t i = 0; name && i < sizeof structs / sizeof structs[0]; i++) {
        if (strcmp(structs[i].name, name) == 0) return structs[i].bytes;
    }
    return 0;
}
