/* What is pending becomes the next commit.
 *
 * The rows that were added are a segment of their own. If the segments before it are not larger, they are merged with it, so that
 * their sizes fall from one to the next: n rows are in about log2(n / SMALL) segments, and a row is copied as often. Large
 * segments stay as they are, so that no commit copies more than a bounded number of rows. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "search/files/sweep.h"
#include "search/files/writer.h"

enum { SMALL = 1024 }; /* rows: segments below are always merged */

typedef struct commit {
    ki_writer *writer;
    const ki_writer_hook *hook;
    int64_t n_kept;     /* segments of `now` that stay */
    int64_t kept_rows;  /* the rows in them */
    ki_segment pending; /* the rows that were added, opened; n is 0 when there are none */
    ki_stamp *stamps;   /* those of `now` and the pending ones, by row, one for each row */
    int64_t n_stamps;
    ki_records moves;   /* the same of paths and labels; later those of rows that stay in their segments */
    ki_updates updates; /* the same of values */
    ki_changes changes; /* to be */
    ki_manifest_segment *segments; /* to be */
    int64_t n_segments;
} commit;

/* ---- stamps ---- */

typedef struct ordered {
    ki_stamp stamp;
    int64_t order;
} ordered;

static int compare_ordered(const void *a, const void *b) {
    const ordered *x = a, *y = b;
    if (x->stamp.row != y->stamp.row) return x->stamp.row < y->stamp.row ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The last one of a row counts. */
static kith_status join_stamps(commit *c, kith_error *err) {
    const ki_writer *s = c->writer;
    const int64_t n_old = s->now->changes.n_stamps, n = n_old + (int64_t)s->n_stamps;
    ordered *all = NULL;
    KI_TRY(ki_alloc_or(&c->stamps, (size_t)n, sizeof *c->stamps, "touched files", err));
    KI_TRY(ki_alloc_or(&all, (size_t)n, sizeof *all, "touched files", err));
    for (int64_t i = 0; i < n; i++)
        all[i] = (ordered){i < n_old ? s->now->changes.stamps[i] : s->stamps[i - n_old], i};
    if (n > 0) qsort(all, (size_t)n, sizeof *all, compare_ordered);
    for (int64_t i = 0; i < n; i++) {
        const bool is_last = i + 1 == n || all[i + 1].stamp.row != all[i].stamp.row;
        if (is_last && ki_bit(s->alive, all[i].stamp.row)) c->stamps[c->n_stamps++] = all[i].stamp;
    }
    ki_free(all);
    return KITH_OK;
}

/* ---- moves and new values ---- */

static kith_status join_moves(commit *c, kith_error *err) {
    const ki_writer *s = c->writer;
    const ki_records *from[] = {&s->now->moves, &s->moved};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < from[k]->n; i++) {
            const ki_file_record *move = &from[k]->record[i];
            if (ki_writer_row(s, move->id) >= 0) KI_TRY(ki_records_add(&c->moves, move, true, err));
        }
    }
    return ki_records_order(&c->moves, err);
}

static kith_status join_updates(commit *c, kith_error *err) {
    const ki_writer *s = c->writer;
    const ki_updates *from[] = {&s->now->updates, &s->updated};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < from[k]->n; i++) {
            const ki_update *update = &from[k]->update[i];
            if (ki_writer_row(s, update->id) >= 0) KI_TRY(ki_updates_add(&c->updates, update, true, err));
        }
    }
    return ki_updates_order(&c->updates, err);
}

/* Those of merged rows are in their segment by now. */
static kith_status write_moves(commit *c, kith_error *err) {
    ki_writer *s = c->writer;
    const bool is_merged = c->n_kept < s->now->manifest.n_segments;
    while (is_merged && c->moves.n > 0 && c->moves.record[c->moves.n - 1].id >= s->now->ids[c->kept_rows])
        c->moves.n--;
    /* As they are in the file already. */
    if (s->moved.n == 0 && c->moves.n == s->now->moves.n) return KITH_OK;
    s->next.moves = (ki_manifest_file){0};
    if (c->moves.n == 0) return KITH_OK;
    ki_path path;
    const int64_t number = s->next.next_file++;
    KI_TRY(ki_files_path(s->now->folder, number, KI_KIND_MOVES, &path, err));
    KI_TRY(ki_records_write(&c->moves, path.s, &s->next.moves.seal, err));
    s->next.moves.number = number;
    return KITH_OK;
}

static kith_status write_updates(commit *c, kith_error *err) {
    ki_writer *s = c->writer;
    if (c->n_kept < s->now->manifest.n_segments) ki_updates_cut(&c->updates, s->now->ids[c->kept_rows]);
    if (s->updated.n == 0 && c->updates.n == s->now->updates.n) return KITH_OK;
    s->next.updates = (ki_manifest_file){0};
    if (c->updates.n == 0) return KITH_OK;
    ki_path path;
    const int64_t number = s->next.next_file++;
    KI_TRY(ki_files_path(s->now->folder, number, KI_KIND_UPDATES, &path, err));
    KI_TRY(ki_updates_write(&c->updates, path.s, &s->next.updates.seal, err));
    s->next.updates.number = number;
    return KITH_OK;
}

/* ---- segments ---- */

/* How many segments stay as they are. */
static void choose(commit *c, bool compact) {
    const ki_snapshot *now = c->writer->now;
    const int64_t n = now->manifest.n_segments;
    int64_t rows = c->pending.n, kept = n;
    if (compact) {
        const bool is_compact = n <= 1 && rows == 0 && c->writer->n_removed == 0 &&
                                now->n_live == now->n_rows && c->moves.n == 0 && c->updates.n == 0;
        kept = is_compact ? n : 0;
    } else if (rows > 0) {
        while (kept > 0 && now->segments[kept - 1].n <= (rows > SMALL ? rows : SMALL) &&
               now->segments[kept - 1].n < c->writer->large_rows)
            rows += now->segments[--kept].n;
    }
    c->n_kept = kept;
    c->kept_rows = now->first[kept];
}

/* What it will take, in rows. */
static void expect(const commit *c, bool compact) {
    const ki_writer *s = c->writer;
    const ki_writer_hook *hook = c->hook;
    const bool is_merged = c->n_kept < s->now->manifest.n_segments;
    const int64_t n_all = s->now->n_rows + c->pending.n;
    int64_t n_kept_live = 0, n_rest_live = 0;
    if (!hook->tally) return;
    for (int64_t i = 0; i < n_all; i++)
        *(i < c->kept_rows ? &n_kept_live : &n_rest_live) += ki_bit(s->alive, i);
    const int64_t n_new = is_merged ? n_rest_live : c->pending.n;
    hook->tally->n_done = 0;
    hook->tally->n_all = is_merged ? n_rest_live : 0;
    if (hook->encode)
        hook->tally->n_all +=
            hook->rows(&s->next, c->kept_rows + n_new, n_kept_live + n_rest_live, n_new, compact);
}

static kith_status finish_pending(commit *c, kith_error *err) {
    ki_writer *s = c->writer;
    if (!s->is_writing) return KITH_OK;
    ki_path path;
    KI_TRY(ki_segment_finish(&s->writer, &s->pending.seal, err));
    KI_TRY(ki_files_path(s->now->folder, s->pending.number, KI_KIND_SEGMENT, &path, err));
    return ki_segment_open(&c->pending, path.s, s->pending.seal, s->next.dim, s->next.types,
                           s->next.n_columns, err);
}

static kith_status merge_rest(commit *c, ki_manifest_segment *ret_merged, kith_error *err) {
    kith_status status = KITH_OK;
    ki_writer *s = c->writer;
    const int64_t n_old = s->now->manifest.n_segments - c->n_kept;
    const ki_segment **from = NULL;
    ki_stamp *stamps = NULL;
    int64_t n_from = 0, n_stamps = 0;
    ki_path path;
    KI_CHECK(ki_alloc_or(&from, (size_t)n_old + 1, sizeof *from, "segments", err));
    KI_CHECK(ki_alloc_or(&stamps, (size_t)c->n_stamps, sizeof *stamps, "touched files", err));
    for (int64_t i = 0; i < n_old; i++) from[n_from++] = &s->now->segments[c->n_kept + i];
    if (c->pending.n > 0) from[n_from++] = &c->pending;
    for (int64_t i = 0; i < c->n_stamps; i++) {
        if (c->stamps[i].row < c->kept_rows) continue;
        stamps[n_stamps] = c->stamps[i];
        stamps[n_stamps++].row -= c->kept_rows;
    }
    *ret_merged = (ki_manifest_segment){.rows = {.number = s->next.next_file++}};
    KI_CHECK(ki_files_path(s->now->folder, ret_merged->rows.number, KI_KIND_SEGMENT, &path, err));
    KI_CHECK(ki_segments_merge(from, n_from, s->alive, c->kept_rows, stamps, n_stamps, &c->moves, &c->updates,
                               path.s, &s->next, c->hook->tally, ret_merged, err));
done:
    ki_free(stamps);
    ki_free(from);
    return status;
}

static kith_status list_segments(commit *c, kith_error *err) {
    ki_writer *s = c->writer;
    KI_TRY(ki_alloc_or(&c->segments, (size_t)c->n_kept + 1, sizeof *c->segments, "segments", err));
    if (c->n_kept > 0)
        memcpy(c->segments, s->now->manifest.segments, (size_t)c->n_kept * sizeof *c->segments);
    c->n_segments = c->n_kept;
    ki_manifest_segment last = {.rows = s->pending, .n = c->pending.n};
    if (c->n_kept < s->now->manifest.n_segments) KI_TRY(merge_rest(c, &last, err));
    if (last.n > 0) c->segments[c->n_segments++] = last;
    return KITH_OK;
}

/* Rows before the merged ones keep their numbers; in a merged segment nothing has changed. */
static kith_status list_changes(commit *c, kith_error *err) {
    const ki_writer *s = c->writer;
    const bool is_merged = c->n_kept < s->now->manifest.n_segments;
    const int64_t n_rows = is_merged ? c->kept_rows : s->now->n_rows + c->pending.n;
    int64_t n_removed = 0;
    for (int64_t i = 0; i < n_rows; i++) n_removed += !ki_bit(s->alive, i);
    KI_TRY(
        ki_alloc_or(&c->changes.removed, (size_t)n_removed, sizeof *c->changes.removed, "removed rows", err));
    KI_TRY(ki_alloc_or(&c->changes.stamps, (size_t)c->n_stamps, sizeof *c->changes.stamps, "touched files",
                       err));
    for (int64_t i = 0; i < n_rows; i++) {
        if (!ki_bit(s->alive, i)) c->changes.removed[c->changes.n_removed++] = i;
    }
    for (int64_t i = 0; i < c->n_stamps && c->stamps[i].row < n_rows; i++)
        c->changes.stamps[c->changes.n_stamps++] = c->stamps[i];
    return KITH_OK;
}

static kith_status write_changes(commit *c, kith_error *err) {
    ki_writer *s = c->writer;
    s->next.changes = (ki_manifest_file){0};
    if (c->changes.n_removed == 0 && c->changes.n_stamps == 0) return KITH_OK;
    ki_path path;
    const int64_t number = s->next.next_file++;
    KI_TRY(ki_files_path(s->now->folder, number, KI_KIND_CHANGES, &path, err));
    KI_TRY(ki_changes_write(&c->changes, path.s, &s->next.changes.seal, err));
    s->next.changes.number = number;
    return KITH_OK;
}

/* ---- the manifest ---- */

static kith_status write_manifest(ki_writer *s, kith_error *err) {
    ki_path path;
    char *text = NULL;
    size_t n = 0;
    s->next.generation = s->now->manifest.generation + 1;
    KI_TRY(ki_path_print(&path, err, "%s/" KI_MANIFEST_NAME, s->now->folder));
    KI_TRY(ki_manifest_print(&s->next, &text, &n, err));
    const kith_status status = ki_file_write(path.s, text, n, err);
    ki_free(text);
    return status;
}

static kith_status encode(commit *c, bool anew, kith_error *err) {
    if (!c->hook->encode) return KITH_OK;
    ki_snapshot *to_be = NULL;
    KI_TRY(ki_snapshot_preview(c->writer->now->folder, &c->writer->next, &to_be, err));
    const kith_status status = c->hook->encode(c->hook->tally, to_be, &c->writer->next, anew, err);
    ki_snapshot_free(to_be);
    return status;
}

static kith_status write_all(commit *c, bool compact, kith_error *err) {
    ki_writer *s = c->writer;
    KI_TRY(finish_pending(c, err));
    KI_TRY(join_stamps(c, err));
    KI_TRY(join_moves(c, err));
    KI_TRY(join_updates(c, err));
    choose(c, compact);
    expect(c, compact);
    KI_TRY(list_segments(c, err));
    KI_TRY(list_changes(c, err));
    KI_TRY(write_changes(c, err));
    KI_TRY(write_moves(c, err));
    KI_TRY(write_updates(c, err));
    KI_TRY(ki_writer_write_excluded(s, err));
    s->next.segments = c->segments;
    s->next.n_segments = c->n_segments;
    KI_TRY(encode(c, compact, err));
    return write_manifest(s, err);
}

kith_status ki_writer_commit(ki_writer *s, bool compact, const ki_writer_hook *hook, ki_snapshot **ret_before,
                             kith_error *err) {
    static const ki_writer_hook nothing;
    kith_status status = KITH_OK;
    ki_snapshot *now = NULL;
    commit c = {.writer = s, .hook = hook ? hook : &nothing};
    if (s->is_broken) {
        ki_fail(err, KITH_EINVAL, "an earlier change of %s failed", s->now->folder);
        return ki_hint(err, KITH_EINVAL,
                       "close the index and open it again: it is as it was at the last commit");
    }
    *ret_before = NULL;
    if (!s->is_changed && !compact) return KITH_OK;
    s->is_broken = true; /* until all of it has been done */
    KI_CHECK(write_all(&c, compact, err));
    KI_CHECK(ki_snapshot_open(s->now->folder, &now, err));
    *ret_before = s->now;
    s->now = now;
    ki_segment_discard(&s->writer);
    s->is_writing = false;
    KI_CHECK(ki_writer_begin(s, err));
    s->is_broken = false;
    ki_sweep(s->now->folder);
done:
    s->next.segments = NULL; /* they are freed here */
    s->next.n_segments = 0;
    ki_segment_close(&c.pending);
    ki_changes_release(&c.changes);
    ki_records_release(&c.moves);
    ki_updates_release(&c.updates);
    ki_free(c.stamps);
    ki_free(c.segments);
    return status;
}
