/* Arena: many small objects that are freed together. Zero-initialise it, take memory with ki_arena_alloc, free all of
 * it with ki_arena_release. The arena can then be used again. */
#ifndef KI_ARENA_H
#define KI_ARENA_H

#include <stddef.h>

#include "base/error.h"

typedef struct ki_arena_block ki_arena_block;

typedef struct ki_arena {
    ki_arena_block *last;
} ki_arena;

/* Cleared memory, 64-byte aligned; NULL when none is left. */
void *ki_arena_alloc(ki_arena *arena, size_t n, size_t size);
/* A copy of the string, or of its first n bytes; NULL when no memory is left. */
char *ki_arena_strdup(ki_arena *arena, const char *s);
char *ki_arena_strndup(ki_arena *arena, const char *s, size_t n);
char *ki_arena_printf(ki_arena *arena, const char *fmt, ...) KITH_PRINTF(2, 3);
void ki_arena_release(ki_arena *arena);

#endif
