/* Finding the files of an index that was moved. */
#include "search/place.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "io/run_paths.h"
#include "io/tar_file.h"
#include "search/index_handle.h"
#include "search/notes.h"
#include "search/roots.h"

/* Items that are looked for, to know whether the files of another place are those of the index. */
enum { N_SAMPLES = 16 };

/* A source, or the folder that relative paths begin in. */
typedef struct moved {
    const char *was, *now;
    bool is_folder; /* of relative paths */
    int n_here, n_there, n_samples;
} moved;

struct ki_index_place {
    ki_arena arena;
    moved *moved; /* those that lie in the new place */
    int64_t n;
    const char *note[KI_N_NOTES]; /* those that follow, as they are now */
};

static const char *note_of(const ki_manifest *m, ki_note note) {
    for (int64_t i = 0; i < m->n_notes; i++) {
        if (strcmp(m->notes[i].name, ki_note_types[note].name) == 0) return m->notes[i].text;
    }
    return NULL;
}

/* ---- paths ---- */

static const char *exchange(const char *path, const char *from, const char *to, ki_path *buf) {
    if (ki_path_print(buf, NULL, "%s%s", to, path + strlen(from)) != KITH_OK) return path;
    return buf->s;
}

const char *ki_index_place_now(const ki_index_place *p, const char *path, ki_path *buf) {
    const moved *found = NULL;
    for (int64_t i = 0; p && i < p->n; i++) {
        if (ki_path_is_below(path, p->moved[i].was) &&
            (!found || strlen(p->moved[i].was) > strlen(found->was)))
            found = &p->moved[i];
    }
    return found ? exchange(path, found->was, found->now, buf) : path;
}

const char *ki_index_place_was(const ki_index_place *p, const char *path, ki_path *buf) {
    const moved *found = NULL;
    for (int64_t i = 0; p && i < p->n; i++) {
        if (ki_path_is_below(path, p->moved[i].now) &&
            (!found || strlen(p->moved[i].now) > strlen(found->now)))
            found = &p->moved[i];
    }
    return found ? exchange(path, found->now, found->was, buf) : path;
}

/* ---- notes ---- */

/* Every line as `change` gives it. */
static char *change_lines(const ki_index_place *p, const char *text,
                          const char *(*change)(const ki_index_place *, const char *, ki_path *)) {
    ki_buffer out = {0};
    ki_path line, buf;
    for (const char *at = text;;) {
        const size_t n = strcspn(at, "\n");
        const bool is_short = ki_path_print(&line, NULL, "%.*s", (int)n, at) == KITH_OK;
        const char *put = is_short ? change(p, line.s, &buf) : NULL;
        ki_buffer_add(&out, put ? put : at, put ? strlen(put) : n);
        at += n;
        if (!*at) break;
        ki_buffer_add(&out, "\n", 1);
        at++;
    }
    ki_buffer_add(&out, "", 1);
    if (out.status == KITH_OK) return out.data;
    ki_buffer_release(&out);
    return NULL;
}

const char *ki_index_place_note(const ki_index_place *p, const char *name) {
    const ki_note note = p ? ki_note_named(name) : KI_N_NOTES;
    return note < KI_N_NOTES ? p->note[note] : NULL;
}

kith_status ki_index_place_note_take(ki_index_place *p, const char *name, const char *text, char **ret_was,
                                     kith_error *err) {
    const ki_note note = p ? ki_note_named(name) : KI_N_NOTES;
    *ret_was = NULL;
    if (note == KI_N_NOTES || !ki_note_types[note].follows) return KITH_OK;
    const char *copy = ki_arena_strdup(&p->arena, text);
    *ret_was = copy ? change_lines(p, text, ki_index_place_was) : NULL;
    if (!*ret_was) return ki_fail_memory(err, strlen(text), "a note");
    p->note[note] = copy;
    return KITH_OK;
}

/* ---- looking ---- */

static bool is_file_of(const char *path, int64_t bytes) {
    int64_t n = 0;
    return ki_member_look(path, &n, NULL) && (bytes < 0 || n == bytes);
}

/* Is the file of an item here, in the old place, or there, in the new one? */
static void look_for_file(const char *path, int64_t bytes, moved *list, int64_t n) {
    ki_path here, there;
    for (int64_t i = 0; i < n; i++) {
        moved *m = &list[i];
        if (m->is_folder ? path[0] == '/' : !ki_path_is_below(path, m->was)) continue;
        const char *rest = m->is_folder ? path : path + strlen(m->was);
        const char *slash = m->is_folder ? "/" : "";
        if (ki_path_print(&here, NULL, "%s%s%s", m->was, slash, rest) != KITH_OK ||
            ki_path_print(&there, NULL, "%s%s%s", m->now, slash, rest) != KITH_OK)
            continue;
        m->n_samples++;
        m->n_here += is_file_of(here.s, bytes);
        m->n_there += is_file_of(there.s, bytes);
    }
}

static kith_status look_for_samples(const kith_index *index, ki_index_place *p, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *ids = NULL, n = 0;
    KI_TRY(kith_index_ids(index, NULL, &ids, &n, err));
    for (int64_t i = 0; i < N_SAMPLES && n > 0; i++) {
        kith_index_item item;
        KI_CHECK(kith_index_item_get(index, ids[i * n / N_SAMPLES], &item, err));
        if (item.path) look_for_file(item.path, item.bytes, p->moved, p->n);
        kith_index_item_release(&item);
    }
done:
    kith_ids_free(ids);
    return status;
}

static bool is_there(const moved *m) {
    struct stat info;
    /* A copy beside the original is on its own from then on: some of its files may have changed or gone. */
    if (m->n_samples > 0)
        return m->n_there > 0 && (2 * m->n_there >= m->n_samples || m->n_there >= m->n_here);
    return stat(m->now, &info) == 0;
}

static kith_status add(ki_index_place *p, const char *was, const char *now, const char *path, bool is_folder,
                       kith_error *err) {
    ki_path to;
    if (path[0] != '/') return KITH_OK;
    KI_TRY(ki_path_moved(was, now, path, &to, err));
    moved *m = &p->moved[p->n];
    *m = (moved){.was = ki_arena_strdup(&p->arena, path),
                 .now = ki_arena_strdup(&p->arena, to.s),
                 .is_folder = is_folder};
    if (!m->was || !m->now) return ki_fail_memory(err, strlen(path), "a folder");
    p->n += strcmp(path, to.s) != 0;
    return KITH_OK;
}

static kith_status look(const kith_index *index, ki_index_place *p, const char *was, const char *now,
                        kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    const char *folder = note_of(m, KI_NOTE_FOLDER), *model = note_of(m, KI_NOTE_MODEL);
    ki_roots roots;
    KI_TRY(ki_roots_init(&roots, note_of(m, KI_NOTE_SOURCES), &p->arena, err));
    p->moved = ki_arena_alloc(&p->arena, (size_t)roots.n + 2, sizeof *p->moved);
    if (!p->moved) return ki_fail_memory(err, (size_t)roots.n * sizeof *p->moved, "folders");
    for (int64_t i = 0; i < roots.n; i++) KI_TRY(add(p, was, now, roots.root[i].path, false, err));
    if (folder) KI_TRY(add(p, was, now, folder, true, err));
    KI_TRY(look_for_samples(index, p, err));
    if (model) KI_TRY(add(p, was, now, model, false, err)); /* its contents are compared when it is opened */
    int64_t n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        if (is_there(&p->moved[i])) p->moved[n++] = p->moved[i];
    }
    p->n = n;
    for (int i = 0; i < KI_N_NOTES; i++) {
        const char *text = ki_note_types[i].follows ? note_of(m, (ki_note)i) : NULL;
        char *changed = text ? change_lines(p, text, ki_index_place_now) : NULL;
        p->note[i] = changed ? ki_arena_strdup(&p->arena, changed) : NULL;
        ki_free(changed);
        if (text && !p->note[i]) return ki_fail_memory(err, strlen(text), "a note");
    }
    return KITH_OK;
}

/* The folder of the index, as an absolute path. */
static bool lies_in(const kith_index *index, char folder[PATH_MAX]) {
    const ki_store_type *type = index->store->type;
    return type->folder && realpath(type->folder(index->store), folder);
}

kith_status ki_index_place_find(const kith_index *index, ki_index_place **ret, kith_error *err) {
    const char *was = note_of(ki_index_committed(index), KI_NOTE_PLACE);
    char now[PATH_MAX];
    ki_index_place *p = NULL;
    *ret = NULL;
    if (!was || was[0] != '/' || !lies_in(index, now) || strcmp(was, now) == 0) return KITH_OK;
    KI_TRY(ki_zalloc_or(&p, 1, sizeof *p, "an index", err));
    const kith_status status = look(index, p, was, now, err);
    if (status == KITH_OK && p->n > 0)
        *ret = p;
    else
        ki_index_place_free(p);
    return status;
}

void ki_index_place_free(ki_index_place *p) {
    if (!p) return;
    ki_arena_release(&p->arena);
    ki_free(p);
}

kith_status ki_index_place_remember(kith_index *index, kith_error *err) {
    char now[PATH_MAX];
    if (note_of(ki_index_manifest(index), KI_NOTE_PLACE) || !lies_in(index, now)) return KITH_OK;
    /* A name that is not UTF-8 cannot be noted: such an index is found where it is, and only there. */
    const kith_status status =
        ki_manifest_note_set(ki_index_pending(index), ki_note_types[KI_NOTE_PLACE].name, now, err);
    return status == KITH_EINVAL ? KITH_OK : status;
}
