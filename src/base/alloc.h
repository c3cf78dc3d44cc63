/* Heap memory: counted, overflow-checked, 64-byte aligned, and able to fail on demand.
 *
 * All memory of the library comes from here, so that a test can count what a training step takes
 * (nothing) and make the n-th call fail. Sizes are always a count times a size: the product is
 * checked. Memory from ki_alloc is not cleared; ki_zalloc clears. ki_free(NULL) is fine. */
#ifndef KI_ALLOC_H
#define KI_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KI_ALIGN 64

#ifdef __cplusplus
extern "C" {
#endif

/* NULL on overflow, when the system has no memory, or when a test asked for a failure. n * size == 0 gives a
 * valid pointer that may be freed. */
void *ki_alloc(size_t n, size_t size);
void *ki_zalloc(size_t n, size_t size);
/* Keeps the contents up to the smaller size; on NULL the old block is still valid. */
void *ki_realloc(void *ptr, size_t n, size_t size);
void ki_free(void *ptr);
char *ki_strdup(const char *s);
char *ki_strndup(const char *s, size_t n);

/* As ki_alloc / ki_zalloc, but fills in an error on failure: `what` names what the memory is for. */
kith_status ki_alloc_or(void *ret_ptr, size_t n, size_t size, const char *what, kith_error *err);
kith_status ki_zalloc_or(void *ret_ptr, size_t n, size_t size, const char *what, kith_error *err);

/* Would the system give `bytes` more now? This is for libraries that crash or hang when they get no memory:
 * ask just before calling them, for more than they will need. The call itself keeps no memory. */
kith_status ki_room_or(size_t bytes, const char *what, kith_error *err);

/* Make room for one more element in a growing array: doubles *ptr (elements of `size` bytes). */
kith_status ki_grow(void *ptr_to_array, size_t *capacity, size_t needed, size_t size, const char *what,
                    kith_error *err);

/* Tests only: let `n` more allocations succeed, then fail every one; negative = never fail. */
void ki_alloc_fail_after(int64_t n);
/* Has a forced failure happened since ki_alloc_fail_after? */
bool ki_alloc_failed(void);

#ifdef __cplusplus
}
#endif

/* *ret = a * b or a + b; false when it does not fit. */
static inline bool ki_mul_size(size_t a, size_t b, size_t *ret) { return !__builtin_mul_overflow(a, b, ret); }
static inline bool ki_add_size(size_t a, size_t b, size_t *ret) { return !__builtin_add_overflow(a, b, ret); }
static inline size_t ki_round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

#endif
