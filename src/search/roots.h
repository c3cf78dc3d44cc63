/* Paths of items as people see them: relative to the folders that the index was made from.
 *
 * What is shown is always the end of the path, so that showing it takes no memory:
 *
 *   one source                   what follows it: photos/oak/1.jpg of the source photos is oak/1.jpg
 *   several                      the same, behind the source's own name: photos/oak/1.jpg
 *   an absolute path elsewhere   its last two names: a recipe's data, or items that a program added
 *   any other relative path      as it is
 */
#ifndef KI_SEARCH_ROOTS_H
#define KI_SEARCH_ROOTS_H

#include "base/arena.h"
#include "base/error.h"

typedef struct ki_root {
    const char *path;
    size_t n_path;
    size_t n_hidden; /* bytes before what is shown of a path below it */
} ki_root;

/* The longest first: of a folder and one inside it the inner one counts. */
typedef struct ki_roots {
    ki_root *root;
    int64_t n;
} ki_roots;

/* `sources`: absolute paths, one a line, or NULL. */
kith_status ki_roots_init(ki_roots *ret_roots, const char *sources, ki_arena *arena, kith_error *err);

/* A pointer into the path. */
const char *ki_roots_shown(const ki_roots *roots, const char *path);

#endif
