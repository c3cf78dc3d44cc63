/* Weights by name, from the Hugging Face hub.
 *
 *     kith_pulled *pulled = NULL;
 *     if (kith_pull_run("timm/resnet50.a1_in1k", NULL, &pulled, &err) != KITH_OK) …
 *     kith_pulled_free(pulled);
 *     options.weights = "hub:timm/resnet50.a1_in1k"; // of kith_model_options
 *
 * A name is ORG/NAME, or a short name of kith's own table (resnet50), and may end with @REVISION: a branch, a tag or a commit,
 * otherwise main. Files lie in the hub's own cache, where huggingface_hub of Python finds them and the other way round:
 * $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub. Everything that takes weights takes "hub:NAME" once it is
 * there.
 *
 * kith_pull_run is the only function of the library that opens a connection, and does it by a plugin: libkith itself links no
 * library of the network. */
#ifndef KITH_PULL_H
#define KITH_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are borrowed for the call. */
typedef struct kith_pull_options {
    size_t size;          /* of the struct: set by kith_pull_options_init */
    const char *cache;    /* a folder; NULL: as the environment says */
    const char *endpoint; /* the hub's address; NULL: $HF_ENDPOINT, else https://huggingface.co */
    /* For repositories that want one; NULL: $HF_TOKEN, else what `hf auth login` has saved. It is sent to the endpoint alone and
     * never shown. */
    const char *token;
    bool unverified;           /* also take a file whose hash the hub does not state */
    int64_t most_bytes;        /* a larger file is refused */
    double wait_s;             /* before a failed request is repeated; doubled each time */
    kith_progress_fn progress; /* bytes done, and of all; non-zero stops with KITH_ECANCELED. May be NULL */
    void *user;
} kith_pull_options;

/* most_bytes 16 GiB, wait_s 1, the rest 0 and NULL. */
KITH_API void kith_pull_options_init(kith_pull_options *options, size_t size);

/* What was fetched, or is in the cache. */
typedef struct kith_pulled kith_pulled;

/* Strings are valid as long as the kith_pulled. */
typedef struct kith_pulled_entry {
    const char *
        name; /* the short one, where there is one, else the repository's; after "hub:" it means these weights */
    const char *repo; /* "timm/resnet50.a1_in1k" */
    const char
        *revision; /* the names by which it was fetched, with blanks between them: "main"; may be empty */
    const char *commit;   /* 40 hexadecimal digits; empty: only a part has arrived */
    const char *file;     /* the weights, absolute; empty: only a part has arrived */
    const char *backbone; /* the network of kith that they are of; NULL: unknown */
    const char *licence;  /* NULL: see the repository's page */
    int64_t bytes;        /* of its files; of the weights alone after kith_pull_run */
    int64_t n_fetched;    /* bytes that came over the network; 0: all was there */
    bool is_unverified;   /* there was no hash to check */
} kith_pulled_entry;

/* Fetch weights (model.safetensors) and the config.json beside them, unless they are there. Sizes and hashes are what the hub
 * states before it redirects; a file that differs is not kept. If it is interrupted, the next call resumes. Two at once are
 * safe, whatever the process. With $HF_HUB_OFFLINE nothing is fetched. *ret_pulled has one entry; free it.
 * KITH_ENOTFOUND: no such name, repository, revision or file. KITH_EUNSUPPORTED: the plugin is missing, weights in several files
 * or not in safetensors, or offline. */
KITH_API kith_status kith_pull_run(const char *name, const kith_pull_options *options,
                                   kith_pulled **ret_pulled, kith_error *err);

/* The weights in the cache that kith may be able to read, by name. */
KITH_API kith_status kith_pull_list(const kith_pull_options *options, kith_pulled **ret_pulled,
                                    kith_error *err);

/* Remove a repository from the cache; NAME@REVISION: that snapshot, and the contents that no other has. *ret_bytes receives what
 * was freed. KITH_ENOTFOUND: it is not there. */
KITH_API kith_status kith_pull_remove(const char *name, const kith_pull_options *options, int64_t *ret_bytes,
                                      kith_error *err);

/* The file of a name in the cache, with or without "hub:" before it, into ret_file [bytes]. KITH_ENOTFOUND: it is not there. */
KITH_API kith_status kith_pull_find(const char *name, const kith_pull_options *options, char *ret_file,
                                    size_t bytes, kith_error *err);

KITH_API void kith_pulled_free(kith_pulled *pulled); /* NULL is fine */
KITH_API int64_t kith_pulled_count(const kith_pulled *pulled);
/* false: there is no entry i. */
KITH_API bool kith_pulled_at(const kith_pulled *pulled, int64_t i, kith_pulled_entry *ret_entry);

#ifdef __cplusplus
}
#endif
#endif
