/* What the cache holds. */
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "hub/cache.h"
#include "hub/walk.h"

enum { MOST_DEPTH = 4 }; /* of a revision's name: refs/pr/1 */

typedef struct listing {
    ki_arena *arena;
    ki_hub_entry *entries;
    size_t n, capacity;
    /* of the repository that is being read */
    const char *folder, *repo, *weights;
    int64_t bytes; /* of the snapshot, or of the parts */
    bool has_weights;
} listing;

static kith_status keep(listing *l, const char *text, const char **ret, kith_error *err) {
    *ret = ki_arena_strdup(l->arena, text);
    return *ret ? KITH_OK : ki_fail_memory(err, strlen(text), "a name");
}

static kith_status add(listing *l, const ki_hub_entry *entry, kith_error *err) {
    KI_TRY(ki_grow(&l->entries, &l->capacity, l->n + 1, sizeof *l->entries, "the cache's entries", err));
    l->entries[l->n++] = *entry;
    return KITH_OK;
}

/* ---- revisions of a commit ---- */

typedef struct refs {
    const char *commit;
    char prefix[KI_HUB_REVISION];
    int depth;
    ki_buffer names;
} refs;

static kith_status visit_ref(void *user, const char *path, const char *name, const struct stat *info,
                             kith_error *err) {
    refs *r = user;
    char before[KI_HUB_REVISION], full[KI_HUB_REVISION], commit[KI_HUB_COMMIT] = "";
    const int n = ki_snprintf(full, sizeof full, "%s%s%s", r->prefix, *r->prefix ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof full) return KITH_OK;
    if (S_ISDIR(info->st_mode) && r->depth < MOST_DEPTH) {
        memcpy(before, r->prefix, sizeof before);
        memcpy(r->prefix, full, sizeof full);
        r->depth++;
        const kith_status status = ki_hub_walk(path, false, visit_ref, r, err);
        r->depth--;
        memcpy(r->prefix, before, sizeof before);
        return status;
    }
    /* path is FOLDER/refs/FULL */
    ki_path folder;
    KI_TRY(ki_path_print(&folder, err, "%.*s", (int)(strlen(path) - (size_t)n - strlen("/refs/")), path));
    if (S_ISREG(info->st_mode) && ki_hub_ref_read(folder.s, full, commit) && strcmp(commit, r->commit) == 0)
        ki_buffer_put(&r->names, "%s%s", r->names.n ? " " : "", full);
    return r->names.status;
}

static kith_status find_refs(listing *l, const char *commit, const char **ret, kith_error *err) {
    refs r = {.commit = commit, .names = {.err = err}};
    ki_path folder;
    kith_status status;
    KI_CHECK(ki_path_print(&folder, err, "%s/refs", l->folder));
    KI_CHECK(ki_hub_walk(folder.s, false, visit_ref, &r, err));
    ki_buffer_add(&r.names, "", 1); /* ends the string */
    KI_CHECK(r.names.status);
    KI_CHECK(keep(l, r.names.data, ret, err));
done:
    ki_buffer_release(&r.names);
    return status;
}

/* ---- snapshots ---- */

static kith_status visit_file(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    listing *l = user;
    (void)path, (void)err;
    if (!S_ISREG(info->st_mode)) return KITH_OK;
    l->bytes += info->st_size;
    l->has_weights |= strcmp(name, l->weights) == 0;
    return KITH_OK;
}

static kith_status visit_snapshot(void *user, const char *path, const char *name, const struct stat *info,
                                  kith_error *err) {
    listing *l = user;
    ki_path file;
    if (!S_ISDIR(info->st_mode) || !ki_hub_is_hex(name, KI_HUB_COMMIT - 1)) return KITH_OK;
    l->bytes = 0;
    l->has_weights = false;
    KI_TRY(ki_hub_walk(path, true, visit_file, l, err));
    if (!l->has_weights) return KITH_OK;
    ki_hub_entry entry = {.repo = l->repo, .bytes = l->bytes};
    KI_TRY(ki_path_print(&file, err, "%s/%s", path, l->weights));
    KI_TRY(keep(l, name, &entry.commit, err));
    KI_TRY(keep(l, file.s, &entry.file, err));
    KI_TRY(find_refs(l, name, &entry.refs, err));
    return add(l, &entry, err);
}

static kith_status visit_part(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    listing *l = user;
    const char *ending = strrchr(name, '.');
    (void)path, (void)err;
    if (S_ISREG(info->st_mode) && ending && strcmp(ending, ".incomplete") == 0) l->bytes += info->st_size;
    return KITH_OK;
}

/* ---- repositories ---- */

static kith_status visit_repo(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    listing *l = user;
    ki_path inside;
    char repo[KI_HUB_REPO];
    /* The name is read as a part of a path: the same rules hold. */
    KI_TRY(ki_path_print(&inside, err, "%s/snapshots/x/x", path));
    if (!S_ISDIR(info->st_mode) || strncmp(name, "models--", 8) != 0 || !ki_hub_repo_of_path(inside.s, repo))
        return KITH_OK;
    const ki_hub_row *row = ki_hub_row_of_repo(repo);
    KI_TRY(keep(l, path, &l->folder, err));
    KI_TRY(keep(l, repo, &l->repo, err));
    l->weights = row ? row->file : "model.safetensors";
    KI_TRY(ki_path_print(&inside, err, "%s/snapshots", path));
    KI_TRY(ki_hub_walk(inside.s, false, visit_snapshot, l, err));
    l->bytes = 0;
    KI_TRY(ki_path_print(&inside, err, "%s/blobs", path));
    KI_TRY(ki_hub_walk(inside.s, false, visit_part, l, err));
    const ki_hub_entry part = {.repo = l->repo, .commit = "", .refs = "", .file = "", .bytes = l->bytes};
    return l->bytes > 0 ? add(l, &part, err) : KITH_OK;
}

kith_status ki_hub_entries(const char *given, ki_arena *arena, ki_hub_entry **ret_entries, int64_t *ret_n,
                           kith_error *err) {
    listing l = {.arena = arena};
    ki_path cache;
    KI_TRY(ki_hub_cache_folder(given, &cache, err));
    const kith_status status = ki_hub_walk(cache.s, true, visit_repo, &l, err);
    if (status != KITH_OK) {
        ki_free(l.entries);
        return status;
    }
    *ret_entries = l.entries;
    *ret_n = (int64_t)l.n;
    return KITH_OK;
}
