/* Kept features: where the files lie, what decides them, parts of a file and the whole. */
#include "embed/kept.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"
#include "data/loader/loader.h"
#include "embed/forward.h"
#include "io/file.h"
#include "io/lock.h"
#include "io/npy.h"
#include "io/tar_file.h"
#include "io/user_folder.h"
#include "kith/eval.h"

enum { PART = 1024 }; /* images of a part */

typedef struct list {
    int64_t *item, n;
} list;

struct ki_kept {
    ki_kept_settings settings;
    ki_path folder;
    list learn, lone;
    int64_t dim;
    int lock;
    int64_t n_bad;
};

/* ---- what decides the files ---- */

static void add_text(kith_hash *hash, const char *fmt, ...) KITH_PRINTF(2, 3);
static void add_text(kith_hash *hash, const char *fmt, ...) {
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    const int n = ki_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t bytes = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    kith_hash_add(hash, text, bytes + 1);
}

/* A photo that was changed has another size or date; pixels that lie in memory are of files that the list names. */
static void add_items(const kith_dataset *set, kith_hash *hash) {
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        int64_t bytes = 0, mtime_ns = 0;
        if (item->pixels < 0 && !ki_member_look(item->path, &bytes, &mtime_ns)) bytes = -1;
        add_text(hash, "%s %d %lld %lld.%09lld", ki_dataset_item_name(set, i), item->split == KITH_SPLIT_TEST,
                 (long long)bytes, (long long)(mtime_ns / 1000000000), (long long)(mtime_ns % 1000000000));
        if (item->has_box)
            add_text(hash, "%a %a %a %a", (double)item->box[0], (double)item->box[1], (double)item->box[2],
                     (double)item->box[3]);
    }
}

static void hash_all(const ki_kept_settings *s, char ret[65]) {
    kith_hash hash = {0};
    char settings[1024];
    add_text(&hash, "features 1 %s %lld %d", s->identity, (long long)s->seed, PART);
    add_text(&hash, "%s %s %d %lld %lld", s->net->backbone->name,
             ki_net_settings_text(s->net, settings, sizeof settings), (int)s->net->pool, (long long)s->net->h,
             (long long)s->test_net->h);
    if (s->set->pixels) kith_hash_add(&hash, s->set->pixels, s->set->pixel_bytes);
    add_items(s->set, &hash);
    kith_hash_finish(&hash, ret);
}

/* ---- opening ---- */

static kith_status split_items(ki_kept *keep, kith_error *err) {
    const kith_dataset *set = keep->settings.set;
    KI_TRY(ki_alloc_or(&keep->learn.item, set->n_items, sizeof *keep->learn.item, "items", err));
    KI_TRY(ki_alloc_or(&keep->lone.item, set->n_items, sizeof *keep->lone.item, "items", err));
    for (size_t i = 0; i < set->n_items; i++) {
        list *to = set->item[i].split == KITH_SPLIT_TEST ? &keep->lone : &keep->learn;
        to->item[to->n++] = (int64_t)i;
    }
    return KITH_OK;
}

static kith_status take_lock(ki_kept *keep, kith_error *err) {
    ki_path path;
    bool is_mine = false;
    KI_TRY(ki_path_print(&path, err, "%s/lock", keep->folder.s));
    KI_TRY(ki_lock_try(path.s, &keep->lock, &is_mine, err));
    if (is_mine) return KITH_OK;
    ki_fail(err, KITH_EIO, "another process makes the features in %s", keep->folder.s);
    return ki_hint(err, KITH_EIO, "wait for it: what it has made is used again");
}

static kith_status find_dim(ki_kept *keep, kith_error *err) {
    int node = 0;
    KI_TRY(ki_graph_find_tap(keep->settings.net->graph, "pooled", &node, err));
    keep->dim = ki_shape_count(&ki_graph_node(keep->settings.net->graph, node)->shape);
    return KITH_OK;
}

kith_status ki_kept_open(const ki_kept_settings *settings, ki_kept **ret, kith_error *err) {
    kith_status status;
    char hash[65];
    ki_kept *keep = NULL;
    KI_TRY(ki_zalloc_or(&keep, 1, sizeof *keep, "kept features", err));
    keep->settings = *settings;
    keep->lock = -1;
    hash_all(settings, hash);
    KI_CHECK(ki_path_print(&keep->folder, err, "%s/%.24s", settings->folder, hash));
    KI_CHECK(split_items(keep, err));
    KI_CHECK(find_dim(keep, err));
    KI_CHECK(ki_folders_make(&keep->folder, 0777, err));
    KI_CHECK(take_lock(keep, err));
    ki_atomic_clear(keep->folder.s, "", 0);
    *ret = keep;
    keep = NULL;
done:
    ki_kept_free(keep);
    return status;
}

void ki_kept_free(ki_kept *keep) {
    if (!keep) return;
    if (keep->lock >= 0) close(keep->lock);
    ki_free(keep->learn.item);
    ki_free(keep->lone.item);
    ki_free(keep);
}

const char *ki_kept_folder(const ki_kept *keep) { return keep->folder.s; }

/* ---- a part ---- */

/* A file of features: one view of one of the lists. */
typedef struct wanted {
    const list *items;
    int64_t view;
    char name[24]; /* "view-3", "test" */
} wanted;

static wanted view_file(const ki_kept *keep, int64_t view) {
    wanted w = {.items = &keep->learn, .view = view};
    ki_snprintf(w.name, sizeof w.name, "view-%lld", (long long)view);
    return w;
}

static wanted lone_file(const ki_kept *keep) { return (wanted){.items = &keep->lone, .name = "test"}; }

static kith_status path_of(const ki_kept *keep, const wanted *w, int64_t part, ki_path *ret,
                           kith_error *err) {
    if (part < 0) return ki_path_print(ret, err, "%s/%s.npy", keep->folder.s, w->name);
    return ki_path_print(ret, err, "%s/%s.part-%05lld.npy", keep->folder.s, w->name, (long long)part);
}

/* Views of all parts differ, and so do those of places in a part. */
static uint64_t seed_of(const ki_kept *keep, int64_t view, int64_t part) {
    return keep->settings.seed + 0x9E3779B97F4A7C15u * (((uint64_t)view << 32) + (uint64_t)part + 1);
}

typedef struct making {
    ki_forward *forward;
    ki_loader *loader;
    ki_vectors rows;
} making;

static kith_status start(ki_kept *keep, const wanted *w, int64_t part, making *m, kith_error *err) {
    const ki_kept_settings *s = &keep->settings;
    const kith_transform *t = w->view ? &s->train : &s->test;
    const ki_net *net = w->view ? s->net : s->test_net;
    const int64_t first = part * PART, left = w->items->n - first, n = left < PART ? left : PART;
    const ki_batch_format format = ki_feed_format(s->backend, net, t);
    const ki_loader_settings loading = {.transform = *t,
                                        .format = format,
                                        .memory = ki_feed_memory(s->backend),
                                        .seed = seed_of(keep, w->view, part),
                                        .n_workers = s->n_workers,
                                        .most_bad = s->most_bad};
    const ki_forward_settings forward = {.backend = s->backend,
                                         .net = net,
                                         .params = s->params,
                                         .tap = "pooled",
                                         .batch = s->batch,
                                         .format = format,
                                         .transform = t};
    if (!m->forward) KI_TRY(ki_forward_new(&forward, &m->forward, err));
    KI_TRY(ki_vectors_init(s->backend, false, n, keep->dim, &m->rows, err));
    return ki_loader_new_once(s->set, w->items->item + first, n, s->batch, &loading, &m->loader, err);
}

static kith_status tell(const ki_kept *keep, const wanted *w, int64_t n_done, kith_error *err) {
    const ki_kept_settings *s = &keep->settings;
    if (!s->progress || s->progress(s->user, n_done, w->items->n) == 0) return KITH_OK;
    return ki_fail(err, KITH_ECANCELED, "stopped on request");
}

/* All rows that can be had, one after the other. */
static kith_status add_all(const ki_kept *keep, const wanted *w, int64_t part, making *m, kith_error *err) {
    for (int64_t n_tried = 0;;) {
        ki_loader_batch batch;
        KI_TRY(tell(keep, w, part * PART + n_tried, err));
        KI_TRY(ki_loader_next(m->loader, &batch, err));
        if (batch.n == 0) break;
        const int64_t first = m->rows.n;
        const ki_forward_batch input = {.n = batch.n, .data = batch.data, .window = batch.window};
        KI_TRY(ki_forward_add(m->forward, &input, &m->rows, err));
        for (int64_t i = 0; i < batch.n; i++) m->rows.item[first + i] = batch.item[i];
        n_tried = batch.n_tried;
    }
    return ki_forward_finish(m->forward, err);
}

/* Rows move to the places of their items, from the last on; what has none is NaN. */
static void spread(const ki_kept *keep, const wanted *w, int64_t part, ki_vectors *rows) {
    const int64_t *item = w->items->item + part * PART, dim = keep->dim;
    int64_t from = rows->n - 1;
    for (int64_t to = rows->n_room - 1; to >= 0; to--) {
        float *row = rows->host + to * dim;
        if (from >= 0 && rows->item[from] == item[to]) {
            if (from != to) memmove(row, rows->host + from * dim, (size_t)dim * sizeof *row);
            from--;
            continue;
        }
        for (int64_t i = 0; i < dim; i++) row[i] = NAN;
    }
}

static kith_status check_bad(ki_kept *keep, const ki_vectors *rows, kith_error *err) {
    const int64_t most = keep->settings.most_bad;
    keep->n_bad += rows->n_room - rows->n;
    if (most < 0 || keep->n_bad <= most) return KITH_OK;
    ki_fail(err, KITH_EFORMAT, "images that cannot be read: %lld, more than the %lld allowed",
            (long long)keep->n_bad, (long long)most);
    return ki_hint(err, KITH_EFORMAT, "look at the files with `kith data ROOT --check`");
}

/* ---- has a file changed? ---- */

enum { SUM = 16 }; /* hexadecimal digits */

static kith_status sum_of(const char *path, char ret[SUM + 2], kith_error *err) {
    enum { PIECE = 1 << 20 }; /* the sum is of pieces of this size, one after the other */
    kith_status status;
    int fd = -1;
    long long bytes = 0;
    char *piece = NULL;
    uint64_t sum = 0;
    KI_CHECK(ki_file_open(path, KI_FILE_ONLY, &fd, &bytes, err));
    KI_CHECK(ki_alloc_or(&piece, PIECE, 1, "a piece of a file", err));
    for (long long at = 0; at < bytes; at += PIECE) {
        const size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        KI_CHECK(ki_file_read_at(fd, path, piece, n, at, err));
        sum = ki_checksum(piece, n, sum);
    }
    ki_snprintf(ret, SUM + 2, "%016llx\n", (unsigned long long)sum);
done:
    if (fd >= 0) close(fd);
    ki_free(piece);
    return status;
}

static kith_status write_sum(const char *path, kith_error *err) {
    char sum[SUM + 2];
    ki_path file;
    KI_TRY(ki_path_print(&file, err, "%s.sum", path));
    KI_TRY(sum_of(path, sum, err));
    return ki_file_write(file.s, sum, strlen(sum), err);
}

/* A process that was killed behind the file has left it without a sum: it gets one. */
static bool has_its_sum(const char *path) {
    ki_path file;
    char sum[SUM + 2], *kept = NULL;
    size_t n = 0;
    kith_error ignored;
    if (ki_path_print(&file, NULL, "%s.sum", path) != KITH_OK) return false;
    if (!ki_is_file("%s", file.s)) return write_sum(path, &ignored) == KITH_OK;
    if (sum_of(path, sum, &ignored) != KITH_OK ||
        ki_file_read(file.s, sizeof sum, &kept, &n, &ignored) != KITH_OK)
        return false;
    const bool is_same = strcmp(kept, sum) == 0;
    ki_free(kept);
    return is_same;
}

static bool has_shape(const char *path, int64_t n, int64_t dim) {
    ki_npy_rows *rows = NULL;
    kith_error ignored;
    if (ki_npy_rows_open(path, &rows, &ignored) != KITH_OK) return false;
    const bool fits = ki_npy_rows_count(rows) == n && ki_npy_rows_dim(rows) == dim;
    ki_npy_rows_free(rows);
    return fits;
}

static void drop_file(const char *path) {
    ki_path sum;
    (void)unlink(path);
    if (ki_path_print(&sum, NULL, "%s.sum", path) == KITH_OK) (void)unlink(sum.s);
}

/* Is the file of n rows there, as it was written? A damaged one is set aside. */
static kith_status find_made(const ki_kept *keep, const char *path, int64_t n, bool *ret, kith_error *err) {
    ki_path aside;
    *ret = false;
    if (!ki_is_file("%s", path)) return KITH_OK;
    *ret = has_shape(path, n, keep->dim) && has_its_sum(path);
    if (*ret) return KITH_OK;
    KI_TRY(ki_path_print(&aside, err, "%s.damaged", path));
    if (rename(path, aside.s) != 0)
        return ki_fail(err, KITH_EIO, "%s is damaged and cannot be set aside: %s", path, strerror(errno));
    drop_file(path);
    ki_log(KITH_LOG_WARNING, "%s is damaged: it is %s now, and its features are made again", path, aside.s);
    return KITH_OK;
}

/* ---- making a part ---- */

static kith_status make_part(ki_kept *keep, const wanted *w, int64_t part, making *m, const char *path,
                             kith_error *err) {
    kith_status status;
    KI_CHECK(start(keep, w, part, m, err));
    KI_CHECK(add_all(keep, w, part, m, err));
    KI_CHECK(check_bad(keep, &m->rows, err));
    spread(keep, w, part, &m->rows);
    const kith_array array = {KITH_F32, 2, {m->rows.n_room, keep->dim}, m->rows.host};
    KI_CHECK(kith_npy_write(path, &array, err));
    KI_CHECK(write_sum(path, err));
done:
    if (status != KITH_OK && m->forward) ki_forward_abandon(m->forward);
    ki_loader_free(m->loader);
    m->loader = NULL;
    ki_vectors_release(&m->rows);
    return status;
}

/* ---- a file ---- */

static int64_t n_parts_of(const wanted *w) { return (w->items->n + PART - 1) / PART; }

static kith_status append(const char *path, ki_atomic_file *to, int64_t dim, kith_error *err) {
    kith_status status;
    float *row = NULL;
    ki_npy_rows *rows = NULL;
    KI_CHECK(ki_npy_rows_open(path, &rows, err));
    KI_CHECK(ki_alloc_or(&row, (size_t)dim, sizeof *row, "a row", err));
    for (int64_t i = 0; i < ki_npy_rows_count(rows); i++) {
        KI_CHECK(ki_npy_rows_read(rows, i, row, err));
        KI_CHECK(ki_atomic_write(to, row, (size_t)dim * sizeof *row, err));
    }
done:
    ki_free(row);
    ki_npy_rows_free(rows);
    return status;
}

/* The parts, one behind the other, as one file; then they go. */
static kith_status join(const ki_kept *keep, const wanted *w, const char *path, kith_error *err) {
    kith_status status;
    ki_atomic_file to = {0};
    ki_path part;
    const kith_array shape = {KITH_F32, 2, {w->items->n, keep->dim}, NULL};
    KI_CHECK(ki_atomic_open(&to, path, err));
    KI_CHECK(ki_npy_begin(&to, &shape, err));
    for (int64_t p = 0; p < n_parts_of(w); p++) {
        KI_CHECK(path_of(keep, w, p, &part, err));
        KI_CHECK(append(part.s, &to, keep->dim, err));
    }
    KI_CHECK(ki_atomic_commit(&to, err));
    KI_CHECK(write_sum(path, err));
    for (int64_t p = 0; p < n_parts_of(w); p++) {
        KI_CHECK(path_of(keep, w, p, &part, err));
        drop_file(part.s);
    }
done:
    ki_atomic_discard(&to);
    return status;
}

static kith_status make(ki_kept *keep, const wanted *w, kith_error *err) {
    kith_status status = KITH_OK;
    making m = {0};
    ki_path whole, part;
    const int64_t n = w->items->n, n_parts = n_parts_of(w);
    bool is_made = false;
    keep->n_bad = 0;
    if (w->items->n == 0) return KITH_OK;
    KI_CHECK(path_of(keep, w, -1, &whole, err));
    KI_CHECK(find_made(keep, whole.s, n, &is_made, err));
    if (is_made) return KITH_OK;
    if (n_parts == 1) {
        KI_CHECK(make_part(keep, w, 0, &m, whole.s, err));
        goto done;
    }
    for (int64_t p = 0; p < n_parts; p++) {
        KI_CHECK(path_of(keep, w, p, &part, err));
        KI_CHECK(find_made(keep, part.s, n - p * PART < PART ? n - p * PART : PART, &is_made, err));
        if (!is_made) KI_CHECK(make_part(keep, w, p, &m, part.s, err));
    }
    KI_CHECK(join(keep, w, whole.s, err));
done:
    ki_forward_free(m.forward);
    return status;
}

bool ki_kept_has(const ki_kept *keep, int64_t view) {
    const wanted w = view_file(keep, view);
    return ki_is_file("%s/%s.npy", keep->folder.s, w.name);
}

kith_status ki_kept_view(ki_kept *keep, int64_t view, kith_error *err) {
    const wanted w = view_file(keep, view);
    return make(keep, &w, err);
}

kith_status ki_kept_lone(ki_kept *keep, kith_error *err) {
    const wanted w = lone_file(keep);
    return make(keep, &w, err);
}

/* ---- from another keep ---- */

/* The rows of some items of a file, as a file. */
static kith_status take(const ki_kept *keep, const wanted *w, const ki_kept *from, const wanted *whole,
                        const int64_t *from_item, kith_error *err) {
    kith_status status;
    ki_npy_rows *rows = NULL;
    ki_atomic_file to = {0};
    ki_path path, source;
    float *row = NULL;
    int64_t at = 0;
    bool is_made = false;
    const kith_array shape = {KITH_F32, 2, {w->items->n, keep->dim}, NULL};
    KI_CHECK(path_of(keep, w, -1, &path, err));
    KI_CHECK(path_of(from, whole, -1, &source, err));
    KI_CHECK(find_made(from, source.s, whole->items->n, &is_made, err));
    if (!is_made || w->items->n == 0) goto done;
    KI_CHECK(ki_alloc_or(&row, (size_t)keep->dim, sizeof *row, "a row", err));
    KI_CHECK(ki_npy_rows_open(source.s, &rows, err));
    KI_CHECK(ki_atomic_open(&to, path.s, err));
    KI_CHECK(ki_npy_begin(&to, &shape, err));
    for (int64_t i = 0; i < w->items->n; i++) {
        while (at < whole->items->n && whole->items->item[at] != from_item[w->items->item[i]]) at++;
        KI_CHECK(ki_npy_rows_read(rows, at, row, err));
        KI_CHECK(ki_atomic_write(&to, row, (size_t)keep->dim * sizeof *row, err));
    }
    KI_CHECK(ki_atomic_commit(&to, err));
    KI_CHECK(write_sum(path.s, err));
done:
    ki_atomic_discard(&to);
    ki_npy_rows_free(rows);
    ki_free(row);
    return status;
}

kith_status ki_kept_take(ki_kept *keep, const ki_kept *from, const int64_t *from_item, kith_error *err) {
    const wanted view = view_file(keep, 0), whole = view_file(from, 0);
    const wanted lone = lone_file(keep), all = lone_file(from);
    KI_TRY(take(keep, &view, from, &whole, from_item, err));
    return take(keep, &lone, from, &all, from_item, err);
}

/* ---- as the items of a set ---- */

kith_status ki_kept_give(const ki_kept *keep, int64_t n_views, bool with_lone, kith_dataset *set,
                         kith_error *err) {
    kith_status status;
    ki_path *path = NULL;
    const char **name = NULL;
    const wanted lone = lone_file(keep);
    KI_CHECK(ki_alloc_or(&path, (size_t)n_views + 1, sizeof *path, "paths", err));
    KI_CHECK(ki_alloc_or(&name, (size_t)n_views, sizeof *name, "paths", err));
    for (int64_t k = 0; k < n_views; k++) {
        const wanted w = view_file(keep, k);
        KI_CHECK(path_of(keep, &w, -1, &path[k], err));
        name[k] = path[k].s;
    }
    KI_CHECK(path_of(keep, &lone, -1, &path[n_views], err));
    const ki_view_files files = {.view = name,
                                 .n_views = n_views,
                                 .items = keep->learn.item,
                                 .n = keep->learn.n,
                                 .lone = with_lone && keep->lone.n > 0 ? path[n_views].s : NULL,
                                 .lone_items = keep->lone.item,
                                 .n_lone = keep->lone.n};
    KI_CHECK(ki_dataset_take_views(set, &files, err));
done:
    ki_free(path);
    ki_free(name);
    return status;
}
