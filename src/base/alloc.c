/* Each block carries a 64-byte header with its size, so that live bytes can be counted without
 * asking the system allocator and alignment holds for AVX-512 loads. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/process.h"
#include "kith/log.h"

typedef struct header {
    size_t bytes;
} header;

static header *header_of(void *ptr) { return (header *)(void *)((char *)ptr - KI_ALIGN); }

static bool must_fail(void) {
    ki_process *process = ki_process_now();
    int_least64_t left = atomic_load(&process->fail_after);
    while (left >= 0) {
        if (left == 0) {
            atomic_store(&process->has_failed, true);
            return true;
        }
        if (atomic_compare_exchange_weak(&process->fail_after, &left, left - 1)) return false;
    }
    return false;
}

void ki_alloc_fail_after(int64_t n) {
    atomic_store(&ki_process_now()->has_failed, false);
    atomic_store(&ki_process_now()->fail_after, n);
}

bool ki_alloc_failed(void) { return atomic_load(&ki_process_now()->has_failed); }

static void count_add(size_t bytes) {
    ki_process *process = ki_process_now();
    atomic_fetch_add(&process->n_allocations, 1);
    uint_least64_t live = atomic_fetch_add(&process->live_bytes, bytes) + bytes;
    uint_least64_t peak = atomic_load(&process->peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&process->peak_bytes, &peak, live)) {
    }
}

void *ki_alloc(size_t n, size_t size) {
    size_t bytes = 0, total = 0;
    if (!ki_mul_size(n, size, &bytes) || !ki_add_size(bytes, 2 * (size_t)KI_ALIGN, &total)) return NULL;
    if (must_fail()) return NULL;
    char *block = aligned_alloc(KI_ALIGN, total / KI_ALIGN * KI_ALIGN);
    if (!block) return NULL;
    void *ptr = block + KI_ALIGN;
    header_of(ptr)->bytes = bytes;
    count_add(bytes);
    return ptr;
}

void *ki_zalloc(size_t n, size_t size) {
    void *ptr = ki_alloc(n, size);
    if (ptr) memset(ptr, 0, header_of(ptr)->bytes);
    return ptr;
}

void *ki_realloc(void *ptr, size_t n, size_t size) {
    void *bigger = ki_alloc(n, size);
    if (!bigger || !ptr) return bigger;
    size_t old_bytes = header_of(ptr)->bytes, new_bytes = header_of(bigger)->bytes;
    memcpy(bigger, ptr, old_bytes < new_bytes ? old_bytes : new_bytes);
    ki_free(ptr);
    return bigger;
}

void ki_free(void *ptr) {
    if (!ptr) return;
    atomic_fetch_sub(&ki_process_now()->live_bytes, header_of(ptr)->bytes);
    free((char *)ptr - KI_ALIGN);
}

char *ki_strndup(const char *s, size_t n) {
    size_t bytes = 0;
    char *copy = ki_add_size(n, 1, &bytes) ? ki_alloc(bytes, 1) : NULL;
    if (!copy) return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *ki_strdup(const char *s) { return ki_strndup(s, strlen(s)); }

static kith_status hand_over(void *ptr, void *ret_ptr, size_t n, size_t size, const char *what,
                             kith_error *err) {
    size_t bytes = 0;
    if (!ptr) return ki_fail_memory(err, ki_mul_size(n, size, &bytes) ? bytes : SIZE_MAX, what);
    memcpy(ret_ptr, &ptr, sizeof ptr);
    return KITH_OK;
}

kith_status ki_alloc_or(void *ret_ptr, size_t n, size_t size, const char *what, kith_error *err) {
    return hand_over(ki_alloc(n, size), ret_ptr, n, size, what, err);
}

kith_status ki_zalloc_or(void *ret_ptr, size_t n, size_t size, const char *what, kith_error *err) {
    return hand_over(ki_zalloc(n, size), ret_ptr, n, size, what, err);
}

kith_status ki_room_or(size_t bytes, const char *what, kith_error *err) {
    if (must_fail()) return ki_fail_memory(err, bytes, what);
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return ki_fail_memory(err, bytes, what);
    munmap(room, bytes);
    return KITH_OK;
}

kith_status ki_grow(void *ptr_to_array, size_t *capacity, size_t needed, size_t size, const char *what,
                    kith_error *err) {
    if (needed <= *capacity) return KITH_OK;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed) {
        if (!ki_mul_size(wanted, 2, &wanted)) return ki_fail_memory(err, SIZE_MAX, what);
    }
    void *old = NULL;
    memcpy(&old, ptr_to_array, sizeof old);
    void *bigger = ki_realloc(old, wanted, size);
    if (!bigger) return ki_fail_memory(err, wanted * size, what);
    memcpy(ptr_to_array, &bigger, sizeof bigger);
    *capacity = wanted;
    return KITH_OK;
}

void kith_memory_stats_get(kith_memory_stats *ret_stats) {
    if (!ret_stats) return;
    ki_process *process = ki_process_now();
    ret_stats->n_allocations = atomic_load(&process->n_allocations);
    ret_stats->live_bytes = atomic_load(&process->live_bytes);
    ret_stats->peak_bytes = atomic_load(&process->peak_bytes);
}
