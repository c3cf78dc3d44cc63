/* The rules the other way: what another library calls our tensors, for files that it reads. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "net/names/match.h"
#include "net/names/names.h"

/* As many axes as theirs has: of 1, before ours or behind. */
static void set_axes(const ki_names_rule *rule, kith_array *shape) {
    for (int i = 0; i < rule->before && shape->n_dims < KITH_MAX_DIMS; i++, shape->n_dims++) {
        memmove(shape->dim + 1, shape->dim, (size_t)shape->n_dims * sizeof shape->dim[0]);
        shape->dim[0] = 1;
    }
    if (rule->axes == 0) return;
    while (shape->n_dims > rule->axes && shape->dim[shape->n_dims - 1] == 1) shape->n_dims--;
    while (shape->n_dims < rule->axes && shape->n_dims < KITH_MAX_DIMS) shape->dim[shape->n_dims++] = 1;
}

static const ki_names_rule *find_rule(const ki_naming *table, const char *ours, ki_names_match *ret_match) {
    for (const ki_names_rule *rule = table->rules; rule->theirs; rule++) {
        if (rule->ours && !rule->is_read_only && rule->change == KI_NAMES_SAME &&
            ki_names_matches(rule->ours, ours, ret_match))
            return rule;
    }
    return NULL;
}

kith_status ki_names_write(const ki_naming *table, const char *ours, char ret_theirs[KI_NAMES_LONGEST],
                           kith_array *shape, kith_error *err) {
    ki_names_match match = {0};
    const ki_names_rule *rule = find_rule(table, ours, &match);
    const bool fits = rule ? ki_names_fill(rule->theirs, &match, ret_theirs, KI_NAMES_LONGEST)
                           : ki_snprintf(ret_theirs, KI_NAMES_LONGEST, "%s", ours) < KI_NAMES_LONGEST;
    if (!fits)
        return ki_fail(err, KITH_EFORMAT, "the name that %s has for tensor '%.60s…' is longer than %d bytes",
                       table->library, ours, KI_NAMES_LONGEST - 1);
    if (rule) set_axes(rule, shape);
    return KITH_OK;
}
