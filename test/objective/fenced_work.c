/* Working memory between fences, for the tests that objective/fenced.cmake names: the linker puts these functions before
 * those of objective/work.c. Every piece is NaN when it is taken, as are the 64 bytes before and behind it, which are looked
 * at when the piece is given back. So a test sees what reads memory that nobody wrote, or writes one number too many,
 * where the stack itself has room for it. */
#include <string.h>

#include "objective/work.h"
#include "support/testing.h"

enum { FENCE = 64, MOST_PIECES = 4096 };

/* A signalling NaN: a sum that is written back is a quiet one. */
static const uint32_t post = 0x7fa07fa0;

static void build_fence(unsigned char *at) {
    for (size_t i = 0; i < FENCE; i += sizeof post) memcpy(at + i, &post, sizeof post);
}

static bool is_whole(const unsigned char *at) {
    unsigned char wanted[FENCE];
    build_fence(wanted);
    return memcmp(at, wanted, FENCE) == 0;
}

typedef struct piece {
    const ki_work *work;
    ki_work_mark end; /* the stack's, when it was taken */
    const unsigned char *data;
    size_t bytes;
    const char *what;
} piece;

static piece pieces[MOST_PIECES];
static int n_pieces;

kith_status __real_ki_work_take(ki_work *work, size_t n, size_t size, const char *what, void *ret_ptr,
                                kith_error *err);
void __real_ki_work_rewind(ki_work *work, ki_work_mark mark);
void __real_ki_work_reset(ki_work *work);
void __real_ki_work_release(ki_work *work);

kith_status __wrap_ki_work_take(ki_work *work, size_t n, size_t size, const char *what, void *ret_ptr,
                                kith_error *err);
void __wrap_ki_work_rewind(ki_work *work, ki_work_mark mark);
void __wrap_ki_work_reset(ki_work *work);
void __wrap_ki_work_release(ki_work *work);

kith_status __wrap_ki_work_take(ki_work *work, size_t n, size_t size, const char *what, void *ret_ptr,
                                kith_error *err) {
    unsigned char *all = NULL, *data = NULL;
    KI_TRY(__real_ki_work_take(work, n * size + 2 * (size_t)FENCE, 1, what, &all, err));
    data = all + FENCE;
    memset(data, 0xff, n * size);
    build_fence(all);
    build_fence(data + n * size);
    assert_true(n_pieces < MOST_PIECES);
    pieces[n_pieces++] = (piece){work, ki_work_here(work), data, n * size, what};
    memcpy(ret_ptr, &data, sizeof data);
    return KITH_OK;
}

static void check(const piece *p) {
    if (!is_whole(p->data - FENCE)) fail_msg("written before the beginning of '%s'", p->what);
    if (!is_whole(p->data + p->bytes))
        fail_msg("written behind the end of '%s' of %zu bytes", p->what, p->bytes);
}

/* Look at the fences of all pieces of `work`, and forget those that were taken after the mark. */
static void give_back(const ki_work *work, ki_work_mark mark) {
    int n_before = 0, n_kept = 0; /* pieces up to the mark */
    for (int i = 0; i < n_pieces; i++) {
        if (pieces[i].work != work) continue;
        check(&pieces[i]);
        if (mark.block && pieces[i].end.block == mark.block && pieces[i].end.used <= mark.used)
            n_before = i + 1;
    }
    for (int i = 0; i < n_pieces; i++) {
        if (pieces[i].work != work || i < n_before) pieces[n_kept++] = pieces[i];
    }
    n_pieces = n_kept;
}

void __wrap_ki_work_rewind(ki_work *work, ki_work_mark mark) {
    give_back(work, mark);
    __real_ki_work_rewind(work, mark);
}

void __wrap_ki_work_reset(ki_work *work) {
    give_back(work, (ki_work_mark){0});
    __real_ki_work_reset(work);
}

void __wrap_ki_work_release(ki_work *work) {
    give_back(work, (ki_work_mark){0});
    __real_ki_work_release(work);
}
