/* Arenas: blocks that are filled from the front and freed together. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct ki_arena_block {
    ki_arena_block *before;
    size_t used, bytes;
};

enum { BLOCK_BYTES = 16384 };

void *ki_arena_alloc(ki_arena *arena, size_t n, size_t size) {
    size_t bytes = 0;
    if (!ki_mul_size(n, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = ki_round_up(bytes ? bytes : 1, KI_ALIGN);
    ki_arena_block *block = arena->last;
    if (!block || block->bytes - block->used < bytes) {
        size_t block_bytes = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = ki_alloc(1, KI_ALIGN + block_bytes);
        if (!block) return NULL;
        *block = (ki_arena_block){.before = arena->last, .bytes = block_bytes};
        arena->last = block;
    }
    char *ptr = (char *)block + KI_ALIGN + block->used;
    block->used += bytes;
    memset(ptr, 0, bytes);
    return ptr;
}

char *ki_arena_strndup(ki_arena *arena, const char *s, size_t n) {
    char *copy = ki_arena_alloc(arena, n + 1, 1);
    if (copy) memcpy(copy, s, n);
    return copy;
}

char *ki_arena_strdup(ki_arena *arena, const char *s) { return ki_arena_strndup(arena, s, strlen(s)); }

char *ki_arena_printf(ki_arena *arena, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = ki_vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : ki_arena_alloc(arena, (size_t)n + 1, 1);
    if (text) ki_vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

void ki_arena_release(ki_arena *arena) {
    while (arena->last) {
        ki_arena_block *before = arena->last->before;
        ki_free(arena->last);
        arena->last = before;
    }
}
