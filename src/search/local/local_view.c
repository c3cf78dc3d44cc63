/* Views: what a commit needs to be asked, made when it is first needed. */
#include "search/local/local_view.h"

#include <string.h>

#include "base/alloc.h"
#include "search/local/filter_rows.h"

kith_status ki_view_new(const ki_snapshot *snapshot, ki_view **ret_view, kith_error *err) {
    kith_status status = KITH_OK;
    ki_view *view = NULL;
    KI_CHECK(ki_zalloc_or(&view, 1, sizeof *view, "an index", err));
    view->snapshot = snapshot;
    KI_CHECK(ki_zalloc_or(&view->alive, (size_t)ki_exact_words(snapshot), sizeof *view->alive, "rows", err));
    memcpy(view->alive, snapshot->alive, (size_t)ki_bit_words(snapshot->n_rows) * sizeof *view->alive);
    KI_CHECK(ki_columns_init(&view->columns, snapshot, err));
    KI_CHECK(ki_exact_init(&view->exact, snapshot, err));
    KI_CHECK(ki_coded_init(&view->coded, snapshot, err));
    *ret_view = view;
    view = NULL;
done:
    ki_view_free(view);
    return status;
}

void ki_view_free(ki_view *view) {
    if (!view) return;
    ki_columns_release(&view->columns);
    ki_exact_release(&view->exact);
    ki_coded_release(&view->coded);
    ki_free(view->alive);
    ki_free(view);
}

kith_status ki_view_allowed(ki_view *view, const ki_where *where, ki_allowed *ret_allowed, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_snapshot *s = view->snapshot;
    uint64_t *bits = NULL;
    if (!where) {
        *ret_allowed = (ki_allowed){.bits = view->alive, .n = s->n_live};
        return KITH_OK;
    }
    KI_CHECK(ki_zalloc_or(&bits, (size_t)ki_exact_words(s), sizeof *bits, "rows", err));
    KI_CHECK(ki_where_run(where, &view->columns, bits, err));
    int64_t n = 0;
    for (int64_t i = 0; i < ki_bit_words(s->n_rows); i++) {
        bits[i] &= s->alive[i];
        n += __builtin_popcountll(bits[i]);
    }
    *ret_allowed = (ki_allowed){.bits = bits, .own = bits, .n = n};
    bits = NULL;
done:
    ki_free(bits);
    return status;
}
