/* Weights by name (kith/pull.h): the hub's cache, and what network a file is of. */
#include "kith/pull.h"

#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "hub/cache.h"
#include "hub/pull.h"
#include "kith/array.h"
#include "net/recognise.h"

/* Files beyond this are not those of a network that kith has; they are not read to find that out. */
enum { MOST_READ = 1 << 30 };

struct kith_pulled {
    ki_arena arena;
    kith_pulled_entry *entries;
    int64_t n;
};

KI_OPTIONS_INIT(kith_pull_options, .most_bytes = (int64_t)16 << 30, .wait_s = 1)

static kith_status check(const kith_pull_options *o, kith_error *err) {
    if (o->most_bytes < 0)
        return ki_fail(err, KITH_EINVAL, "most_bytes is %lld; wanted at least 0", (long long)o->most_bytes);
    if (!(o->wait_s >= 0 && o->wait_s <= 3600))
        return ki_fail(err, KITH_EINVAL, "wait_s is %g; wanted 0 to 3600", o->wait_s);
    return KITH_OK;
}

void kith_pulled_free(kith_pulled *pulled) {
    if (!pulled) return;
    ki_arena_release(&pulled->arena);
    ki_free(pulled->entries);
    ki_free(pulled);
}

int64_t kith_pulled_count(const kith_pulled *pulled) { return pulled ? pulled->n : 0; }

bool kith_pulled_at(const kith_pulled *pulled, int64_t i, kith_pulled_entry *ret_entry) {
    if (!pulled || !ret_entry || i < 0 || i >= pulled->n) return false;
    *ret_entry = pulled->entries[i];
    return true;
}

static kith_status make(int64_t n, kith_pulled **ret, kith_error *err) {
    kith_pulled *p = NULL;
    KI_TRY(ki_zalloc_or(&p, 1, sizeof *p, "a list", err));
    p->n = n;
    const kith_status status = ki_zalloc_or(&p->entries, (size_t)n, sizeof *p->entries, "a list", err);
    if (status != KITH_OK)
        ki_free(p);
    else
        *ret = p;
    return status;
}

static kith_status keep(kith_pulled *p, const char *text, const char **ret, kith_error *err) {
    *ret = ki_arena_strdup(&p->arena, text);
    return *ret ? KITH_OK : ki_fail_memory(err, strlen(text), "a name");
}

/* The network of a file, where nothing but its tensors says it. NULL is an answer. */
static const char *recognise(const char *file, int64_t bytes) {
    kith_tensors *tensors = NULL;
    const ki_backbone *backbone = NULL;
    const char *name = NULL;
    if (bytes > MOST_READ || kith_tensors_open(file, &tensors, NULL) != KITH_OK) return NULL;
    const char *told = kith_tensors_metadata(tensors, "kith.backbone");
    if (told && ki_backbone_find(told, &backbone, NULL) == KITH_OK) name = backbone->name;
    ki_named *named = NULL;
    ki_recognised recognised;
    if (!told && ki_named_new(tensors, "", &named, NULL) == KITH_OK &&
        ki_backbone_recognise(named, NULL, &backbone, &recognised, NULL) == KITH_OK)
        name = backbone->name;
    ki_named_free(named);
    kith_tensors_free(tensors);
    return name;
}

kith_status kith_pull_run(const char *name, const kith_pull_options *options, kith_pulled **ret_pulled,
                          kith_error *err) {
    KI_NEED(err, name, ret_pulled);
    KI_OPTIONS_TAKE(kith_pull_options, o, options, err);
    kith_status status;
    kith_pulled *p = NULL;
    ki_hub_name parsed;
    ki_hub_pulled got = {0};
    KI_TRY(check(&o, err));
    KI_TRY(ki_hub_name_parse(name, &parsed, err));
    KI_TRY(make(1, &p, err));
    kith_pulled_entry *e = &p->entries[0];
    KI_CHECK(ki_hub_pull(&parsed, &o, &got, err));
    KI_CHECK(keep(p, parsed.row ? parsed.row->name : parsed.repo, &e->name, err));
    KI_CHECK(keep(p, parsed.repo, &e->repo, err));
    KI_CHECK(keep(p, parsed.revision, &e->revision, err));
    KI_CHECK(keep(p, got.commit, &e->commit, err));
    KI_CHECK(keep(p, got.file.s, &e->file, err));
    e->bytes = got.bytes;
    e->n_fetched = got.n_fetched;
    e->is_unverified = got.is_unverified;
    e->licence = parsed.row ? parsed.row->licence : NULL;
    e->backbone = recognise(e->file, got.bytes);
    *ret_pulled = p;
    p = NULL;
done:
    kith_pulled_free(p);
    return status;
}

kith_status kith_pull_list(const kith_pull_options *options, kith_pulled **ret_pulled, kith_error *err) {
    KI_NEED(err, ret_pulled);
    KI_OPTIONS_TAKE(kith_pull_options, o, options, err);
    kith_status status;
    ki_arena arena = {0};
    ki_hub_entry *found = NULL;
    kith_pulled *p = NULL;
    int64_t n = 0;
    KI_CHECK(ki_hub_entries(o.cache, &arena, &found, &n, err));
    KI_CHECK(make(n, &p, err));
    p->arena = arena;
    arena = (ki_arena){0};
    for (int64_t i = 0; i < n; i++) {
        const ki_hub_row *row = ki_hub_row_of_repo(found[i].repo);
        p->entries[i] = (kith_pulled_entry){.name = row ? row->name : found[i].repo,
                                            .repo = found[i].repo,
                                            .revision = found[i].refs,
                                            .commit = found[i].commit,
                                            .file = found[i].file,
                                            .backbone = row ? row->backbone : NULL,
                                            .licence = row ? row->licence : NULL,
                                            .bytes = found[i].bytes};
    }
    *ret_pulled = p;
done:
    ki_free(found);
    ki_arena_release(&arena);
    return status;
}

kith_status kith_pull_remove(const char *name, const kith_pull_options *options, int64_t *ret_bytes,
                             kith_error *err) {
    KI_NEED(err, name, ret_bytes);
    KI_OPTIONS_TAKE(kith_pull_options, o, options, err);
    ki_hub_name parsed;
    KI_TRY(ki_hub_name_parse(name, &parsed, err));
    return ki_hub_remove(o.cache, &parsed, strchr(name, '@') != NULL, ret_bytes, err);
}

kith_status kith_pull_find(const char *name, const kith_pull_options *options, char *ret_file, size_t bytes,
                           kith_error *err) {
    KI_NEED(err, name, ret_file);
    KI_OPTIONS_TAKE(kith_pull_options, o, options, err);
    ki_hub_name parsed;
    ki_path file;
    char commit[KI_HUB_COMMIT];
    KI_TRY(ki_hub_name_parse(name, &parsed, err));
    KI_TRY(ki_hub_find(o.cache, &parsed, &file, commit, err));
    const size_t n = strlen(file.s);
    if (n >= bytes)
        return ki_fail(err, KITH_EINVAL, "the path of %.60s has %zu bytes; wanted room for them", name, n);
    memcpy(ret_file, file.s, n + 1);
    return KITH_OK;
}
