/* Files whose contents decide: only touched, moved, moved after they were removed by hand. */
#include <string.h>

#include "base/parallel.h"
#include "collection/sync_parts.h"
#include "data/dataset/dataset.h"
#include "data/image/image.h"

/* ---- by contents ---- */

/* Some of `todo`. */
typedef struct hashing {
    ki_sync *sync;
    const int64_t *part;
} hashing;

static void hash_some(void *context, int64_t begin, int64_t end) {
    const hashing *h = context;
    for (int64_t k = begin; k < end; k++) {
        ki_sync_file *f = &h->sync->file[h->part[k]];
        const kith_file_stamp *stamp = &h->sync->stamp[h->part[k]];
        if (f->is_hashed) continue;
        f->is_hashed = true;
        /* One that no image is as large as will not be read: a sparse file of a terabyte has no bytes on disk. */
        const bool is_file = stamp->bytes >= 0 && stamp->bytes <= KI_IMAGE_MOST_FILE_BYTES;
        if (!is_file || kith_file_hash(stamp->path, f->hash, NULL) != KITH_OK) f->hash[0] = '\0';
    }
}

void ki_sync_hash(ki_sync *s, const int64_t *part, int64_t n) {
    hashing h = {s, part};
    ki_parallel_for(n, 1, hash_some, &h);
}

/* A file that is not as it was: the same contents, or others, and then its item is lost unless they are found elsewhere. */
static kith_status look_at_changed(ki_sync *s, int64_t i, kith_error *err) {
    ki_sync_file *f = &s->file[i];
    kith_index_item item;
    kith_status status = kith_index_item_get(s->index, f->old, &item, err);
    if (status != KITH_OK) return status;
    f->is_touched = f->hash[0] && item.hash && strcmp(item.hash, f->hash) == 0;
    if (!f->is_touched) status = ki_sync_lost_add(&s->lost, f->old, item.hash, i, err);
    kith_index_item_release(&item);
    return status;
}

static kith_status list_gone(ki_sync *s, kith_error *err) {
    for (int64_t i = 0; i < s->n_gone; i++) {
        kith_index_item item;
        KI_TRY(kith_index_item_get(s->index, s->gone[i], &item, err));
        const kith_status status = ki_sync_lost_add(&s->lost, s->gone[i], item.hash, -1, err);
        kith_index_item_release(&item);
        KI_TRY(status);
    }
    return KITH_OK;
}

/* ---- removed by hand ---- */

kith_status ki_sync_leave_out(ki_sync *s, kith_error *err) {
    if (s->task->options->with_excluded) return KITH_OK;
    KI_TRY(ki_sync_out_init(&s->out, s->index, err));
    for (int64_t i = 0; i < s->n; i++) {
        if (s->file[i].state != KITH_FILE_NEW || !ki_sync_out_meets(&s->out, s->stamp[i].path, i)) continue;
        s->file[i].is_out = true;
        s->report->n_excluded++;
    }
    return KITH_OK;
}

/* An item is not out because its file now has the name of one that was removed by hand. */
static bool take_name(ki_sync *s, int64_t i) {
    ki_sync_file *f = &s->file[i];
    if (!ki_sync_out_gives_way(&s->out, s->stamp[i].path, f->hash)) return false;
    f->is_out = false;
    s->report->n_excluded--;
    return true;
}

/* Is number k of those removed by hand not where it was: gone, or another file has its name? That file is read to know. */
static bool has_left(ki_sync *s, int64_t k) {
    const int64_t i = s->out.by_contents[k], at = s->out.file[i];
    if (s->out.is_followed[i]) return false;
    if (at < 0) return true;
    ki_sync_hash(s, &at, 1);
    const char *found = s->file[at].hash;
    return *found && strcmp(found, s->out.files.record[i].hash) != 0;
}

/* A file with the contents of one that was removed by hand and is not where it was is that one. Whoever took its name may be another
 * removed one, and so on; a file that is none of them is let in. */
static kith_status leave_out_moved_one(ki_sync *s, int64_t i, kith_error *err) {
    while (i >= 0) {
        ki_sync_file *f = &s->file[i];
        int64_t k = ki_sync_out_first(&s->out, f->hash), heir = -1;
        while (ki_sync_out_has(&s->out, k, f->hash) && !has_left(s, k)) k++;
        const bool is_one = ki_sync_out_has(&s->out, k, f->hash);
        s->report->n_excluded += is_one - f->is_out;
        f->is_out = is_one;
        if (is_one) {
            heir = s->out.file[s->out.by_contents[k]];
            KI_TRY(ki_sync_out_follow(&s->out, k, s->index, s->stamp[i].path, err));
        }
        i = heir;
    }
    return KITH_OK;
}

static kith_status leave_out_moved(ki_sync *s, kith_error *err) {
    for (int64_t k = 0; k < s->n_todo && s->out.n_contents > 0; k++) {
        const ki_sync_file *f = &s->file[s->todo[k]];
        if (f->is_touched || f->from >= 0 || f->is_out) continue;
        KI_TRY(leave_out_moved_one(s, s->todo[k], err));
    }
    return KITH_OK;
}

/* Without lost items, and files that were removed by hand, the contents of new
 * files can wait until they are embedded. */
kith_status ki_sync_look_inside(ki_sync *s, kith_error *err) {
    s->n_todo = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->file[i].state == KITH_FILE_CHANGED) s->todo[s->n_todo++] = i;
    }
    const int64_t n_changed = s->n_todo;
    ki_sync_hash(s, s->todo, n_changed);
    for (int64_t k = 0; k < n_changed; k++) KI_TRY(look_at_changed(s, s->todo[k], err));
    KI_TRY(list_gone(s, err));
    ki_sync_lost_order(&s->lost);
    const bool may_move = s->lost.n > 0 || s->out.n_contents > 0;
    for (int64_t i = 0; may_move && i < s->n; i++) {
        if (s->file[i].state == KITH_FILE_NEW && (!s->file[i].is_out || s->lost.n > 0))
            s->todo[s->n_todo++] = i;
    }
    ki_sync_hash(s, s->todo + n_changed, s->n_todo - n_changed);
    for (int64_t k = 0; k < s->n_todo; k++) {
        ki_sync_file *f = &s->file[s->todo[k]];
        ki_lost *found = f->is_touched ? NULL : ki_sync_lost_find(&s->lost, f->hash);
        if (!found || (f->is_out && !take_name(s, s->todo[k]))) continue;
        f->from = found->id;
        found->is_found = true;
        if (found->file >= 0) s->file[found->file].old = -1; /* its item has gone elsewhere */
    }
    return leave_out_moved(s, err);
}
