/* From a name to files in the cache. */
#include "hub/pull.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/path.h"
#include "base/plugin.h"
#include "base/text.h"
#include "hub/cache.h"
#include "hub/session.h"
#include "io/file.h"
#include "io/user_folder.h"
#include "kith/eval.h"

typedef struct pull {
    const ki_hub_name *name;
    const kith_pull_options *options;
    ki_hub_session session;
    ki_path cache;
} pull;

static kith_status open_transport(const ki_hub_transport **ret, kith_error *err) {
    static const ki_plugin_ask ask = {.name = "hub",
                                      .what = "kith pull",
                                      .makes = "libcurl is (libcurl4-gnutls-dev)",
                                      .instead = "name a file that you have fetched yourself"};
    const void *record = NULL;
    KI_TRY(ki_plugin_open(&ask, &record, err));
    *ret = record;
    return KITH_OK;
}

/* ---- which file ---- */

/* The repository is there and has no model.safetensors. What has it instead? */
static kith_status fail_missing(pull *p, kith_error *err) {
    const ki_hub_name *n = p->name;
    ki_hub_facts facts;
    bool is_missing = false;
    if (ki_hub_session_head(&p->session, n->repo, n->revision, "model.safetensors.index.json", &facts,
                            &is_missing, NULL) == KITH_OK)
        return ki_fail(err, KITH_EUNSUPPORTED,
                       "the weights of %s are in several files (model.safetensors.index.json), which kith "
                       "does not read; wanted one model.safetensors",
                       n->repo);
    if (ki_hub_session_head(&p->session, n->repo, n->revision, "pytorch_model.bin", &facts, &is_missing,
                            NULL) == KITH_OK) {
        ki_fail(err, KITH_EUNSUPPORTED,
                "%s has no model.safetensors, only pytorch_model.bin, which kith pull does not fetch",
                n->repo);
        return ki_hint(err, KITH_EUNSUPPORTED,
                       "look for a repository with safetensors; kith import reads .pth files");
    }
    return KITH_ENOTFOUND; /* err says it */
}

/* Contents without a name of their own are named by where they come from. */
static void name_blob(const pull *p, const char *file, ki_hub_facts *facts) {
    kith_hash hash = {0};
    char text[KI_HUB_REPO + 200];
    ki_snprintf(text, sizeof text, "%s/%s/%s", p->name->repo, facts->commit, file);
    kith_hash_add(&hash, text, strlen(text));
    kith_hash_finish(&hash, facts->etag);
}

static kith_status check_facts(const pull *p, const char *file, int64_t most, ki_hub_facts *facts,
                               kith_error *err) {
    if (facts->bytes > most)
        return ki_fail(err, KITH_EFORMAT, "%s of %s has %.1f MB; at most %.1f MB are fetched", file,
                       p->name->repo, (double)facts->bytes / 1e6, (double)most / 1e6);
    if (facts->check != KI_HUB_NO_HASH) return KITH_OK;
    if (!p->options->unverified) {
        ki_fail(err, KITH_EFORMAT, "%s states no hash of %s of %s, so it cannot be checked",
                p->session.endpoint.origin, file, p->name->repo);
        return ki_hint(err, KITH_EFORMAT, "kith pull --unverified takes it all the same");
    }
    name_blob(p, file, facts);
    return KITH_OK;
}

/* ---- one file ---- */

static kith_status fetch(pull *p, const char *file, const ki_hub_facts *facts, ki_hub_pulled *to,
                         kith_error *err) {
    ki_hub_blob blob = {0};
    bool is_there = false;
    kith_status status;
    KI_CHECK(ki_hub_blob_open(&blob, p->cache.s, p->name->repo, file, facts, ki_hub_session_beat, &p->session,
                              &is_there, err));
    if (!is_there) {
        const int64_t before = blob.n_bytes;
        if (before > 0)
            ki_log(KITH_LOG_INFO, "%s: going on after %.1f of %.1f MB", file, (double)before / 1e6,
                   (double)facts->bytes / 1e6);
        KI_CHECK(ki_hub_session_get(&p->session, p->name->repo, &blob, err));
        KI_CHECK(ki_hub_blob_finish(&blob, err));
        to->n_fetched += facts->bytes - before;
    } else {
        p->session.n_done += facts->bytes;
    }
    KI_CHECK(ki_hub_blob_link(&blob, err));
done:
    ki_hub_blob_release(&blob);
    return status;
}

/* A file that says how images get in. Many repositories have it, and none must. */
static kith_status fetch_config(pull *p, const char *commit, const char *file, ki_hub_pulled *to,
                                kith_error *err) {
    ki_hub_facts facts;
    bool is_missing = false;
    const kith_status status =
        ki_hub_session_head(&p->session, p->name->repo, commit, file, &facts, &is_missing, err);
    if (is_missing) return KITH_OK;
    KI_TRY(status);
    if (facts.bytes > KI_HUB_MOST_CONFIG) return KITH_OK; /* not one that says how images get in */
    KI_TRY(check_facts(p, file, KI_HUB_MOST_CONFIG, &facts, err));
    if (strcmp(facts.commit, commit) != 0)
        return ki_fail(err, KITH_EFORMAT, "%s answers for commit %.12s, asked for was %.12s",
                       p->session.endpoint.origin, facts.commit, commit);
    p->session.n_all += facts.bytes;
    return fetch(p, file, &facts, to, err);
}

/* transformers says it in a second file; timm does not have it, and is not asked for it. */
static bool is_of_transformers(const pull *p, const char *commit) {
    ki_path folder, path;
    char *text = NULL;
    size_t n = 0;
    if (ki_hub_repo_folder(p->cache.s, p->name->repo, &folder, NULL) != KITH_OK ||
        ki_path_print(&path, NULL, "%s/snapshots/%s/config.json", folder.s, commit) != KITH_OK ||
        !ki_is_file("%s", path.s) || ki_file_read(path.s, KI_HUB_MOST_CONFIG, &text, &n, NULL) != KITH_OK)
        return false;
    const bool is = strstr(text, "\"model_type\"") != NULL;
    ki_free(text);
    return is;
}

static kith_status fetch_configs(pull *p, const char *commit, ki_hub_pulled *to, kith_error *err) {
    KI_TRY(fetch_config(p, commit, "config.json", to, err));
    if (!is_of_transformers(p, commit)) return KITH_OK;
    return fetch_config(p, commit, "preprocessor_config.json", to, err);
}

static kith_status fetch_all(pull *p, ki_hub_pulled *ret, kith_error *err) {
    const ki_hub_name *n = p->name;
    ki_hub_facts facts = {0};
    ki_path folder;
    bool is_missing = false;
    kith_status status =
        ki_hub_session_head(&p->session, n->repo, n->revision, n->file, &facts, &is_missing, err);
    if (is_missing) status = fail_missing(p, err);
    KI_TRY(status);
    KI_TRY(check_facts(p, n->file, p->options->most_bytes, &facts, err));
    folder = p->cache;
    KI_TRY(ki_hub_make_folders(&folder, err));
    ki_cache_tag(p->cache.s);
    p->session.n_all = facts.bytes;
    KI_TRY(fetch_configs(p, facts.commit, ret, err));
    KI_TRY(fetch(p, n->file, &facts, ret, err));
    /* The revision's name comes last: whoever finds it finds everything. */
    KI_TRY(ki_hub_repo_folder(p->cache.s, n->repo, &folder, err));
    KI_TRY(ki_hub_ref_write(folder.s, n->revision, facts.commit, err));
    KI_TRY(ki_path_print(&ret->file, err, "%s/snapshots/%s/%s", folder.s, facts.commit, n->file));
    memcpy(ret->commit, facts.commit, sizeof ret->commit);
    ret->bytes = facts.bytes;
    ret->is_unverified = facts.check == KI_HUB_NO_HASH;
    return KITH_OK;
}

/* ---- all of it ---- */

static kith_status take_offline(const pull *p, ki_hub_pulled *ret, kith_error *err) {
    struct stat info;
    char text[KI_HUB_REPO + KI_HUB_REVISION];
    if (ki_hub_find(p->options->cache, p->name, &ret->file, ret->commit, NULL) == KITH_OK) {
        ret->bytes = stat(ret->file.s, &info) == 0 ? info.st_size : 0;
        return KITH_OK;
    }
    ki_fail(err, KITH_EUNSUPPORTED, "%s is not in the hub's cache, and HF_HUB_OFFLINE forbids to fetch it",
            ki_hub_name_text(p->name, text, sizeof text));
    return ki_hint(err, KITH_EUNSUPPORTED, "unset HF_HUB_OFFLINE, or copy the cache %.120s here", p->cache.s);
}

kith_status ki_hub_pull(const ki_hub_name *name, const kith_pull_options *options, ki_hub_pulled *ret_pulled,
                        kith_error *err) {
    kith_status status;
    pull p = {.name = name, .options = options};
    ki_hub_pulled pulled = {0};
    KI_TRY(ki_hub_cache_folder(options->cache, &p.cache, err));
    if (ki_hub_is_set("HF_HUB_OFFLINE")) {
        KI_CHECK(take_offline(&p, &pulled, err));
    } else {
        p.session.wait_s = options->wait_s;
        p.session.progress = options->progress;
        p.session.user = options->user;
        KI_CHECK(ki_hub_session_open(&p.session, options->endpoint, options->token, err));
        KI_CHECK(open_transport(&p.session.transport, err));
        KI_CHECK(fetch_all(&p, &pulled, err));
    }
    *ret_pulled = pulled;
done:
    ki_hub_session_release(&p.session);
    return status;
}
