/* The file of changes: a mark, two counts, two lists. */
#include "search/files/changes.h"

#include <string.h>

#include "base/alloc.h"

typedef struct header {
    char mark[8];
    int64_t n_removed, n_stamps;
} header;

#define MARK "kithchg"

void ki_changes_release(ki_changes *c) {
    ki_free(c->removed);
    ki_free(c->stamps);
    *c = (ki_changes){0};
}

kith_status ki_changes_write(const ki_changes *c, const char *path, ki_blocks_seal *ret_seal,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_blocks_writer w = {0};
    const header h = {MARK, c->n_removed, c->n_stamps};
    KI_CHECK(ki_blocks_create(&w, path, err));
    KI_CHECK(ki_blocks_write(&w, &h, sizeof h, err));
    KI_CHECK(ki_blocks_write(&w, c->removed, (size_t)c->n_removed * sizeof *c->removed, err));
    KI_CHECK(ki_blocks_write(&w, c->stamps, (size_t)c->n_stamps * sizeof *c->stamps, err));
    KI_CHECK(ki_blocks_finish(&w, ret_seal, err));
done:
    ki_blocks_discard(&w);
    return status;
}

static bool is_sound(const ki_changes *c, int64_t n_rows) {
    int64_t before = -1;
    for (int64_t i = 0; i < c->n_removed; before = c->removed[i++]) {
        if (c->removed[i] <= before || c->removed[i] >= n_rows) return false;
    }
    before = -1;
    for (int64_t i = 0; i < c->n_stamps; before = c->stamps[i++].row) {
        if (c->stamps[i].row <= before || c->stamps[i].row >= n_rows) return false;
    }
    return true;
}

kith_status ki_changes_read(const char *path, ki_blocks_seal seal, int64_t n_rows, ki_changes *ret_changes,
                            kith_error *err) {
    kith_status status = KITH_OK;
    ki_blocks b = {0};
    ki_changes c = {0};
    header h = {0};
    KI_CHECK(ki_blocks_open(&b, path, seal, err));
    KI_CHECK(ki_blocks_read(&b, 0, sizeof h, &h, err));
    const int64_t left = b.bytes - (int64_t)sizeof h;
    const bool fits =
        memcmp(h.mark, MARK, sizeof h.mark) == 0 && h.n_removed >= 0 && h.n_stamps >= 0 &&
        h.n_removed <= n_rows && h.n_stamps <= n_rows &&
        h.n_removed * (int64_t)sizeof *c.removed + h.n_stamps * (int64_t)sizeof *c.stamps == left;
    if (fits) {
        const size_t removed_bytes = (size_t)h.n_removed * sizeof *c.removed;
        KI_CHECK(ki_alloc_or(&c.removed, (size_t)h.n_removed, sizeof *c.removed, "removed rows", err));
        KI_CHECK(ki_alloc_or(&c.stamps, (size_t)h.n_stamps, sizeof *c.stamps, "touched files", err));
        KI_CHECK(ki_blocks_read(&b, sizeof h, removed_bytes, c.removed, err));
        KI_CHECK(ki_blocks_read(&b, (int64_t)(sizeof h + removed_bytes),
                                (size_t)h.n_stamps * sizeof *c.stamps, c.stamps, err));
        c.n_removed = h.n_removed;
        c.n_stamps = h.n_stamps;
    }
    if (!fits || !is_sound(&c, n_rows)) {
        status = ki_fail(err, KITH_EFORMAT, "%s is not a list of changes of this index", path);
        ki_hint(err, status, "copy the index back from a backup, or make it again");
        goto done;
    }
    *ret_changes = c;
    c = (ki_changes){0};
done:
    ki_changes_release(&c);
    ki_blocks_close(&b);
    return status;
}
