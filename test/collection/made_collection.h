/* Photos, models and collections for the tests of collections, in the test's own folder. */
#ifndef KITH_TEST_MADE_COLLECTION_H
#define KITH_TEST_MADE_COLLECTION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/kith.h"
#include "support/testing.h"

enum { MADE_DIM = 16 };

/* A path below the test's folder; lives until the ninth call from here. */
static inline const char *made_path(const char *name) {
    static char path[8][1024];
    static int at;
    at = (at + 1) % 8;
    snprintf(path[at], sizeof path[at], "%s/%s", testing_folder(), name);
    return path[at];
}

static inline void made_shell(const char *command) {
    char output[4096];
    const int status = testing_run(output, sizeof output, "cd %s && %s", testing_folder(), command);
    if (status != 0) fail_msg("%s: exit status %d: %s", command, status, output);
}

/* n_classes folders of n_images photos. */
static inline void made_photos(const char *name, int64_t n_classes, int64_t n_images) {
    kith_error err;
    KITH_OPTIONS(kith_synth_options, options);
    options.n_classes = n_classes;
    options.n_images = n_images;
    options.side = 32;
    assert_ok(kith_synth_write(made_path(name), &options, NULL, NULL, &err), &err);
}

/* A small network with random weights, as a file. */
static inline void made_model(const char *name, uint64_t seed) {
    kith_error err;
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, how);
    how.backbone = "convnet4";
    how.embedding = MADE_DIM;
    how.seed = seed;
    assert_ok(kith_model_open(&how, &model, &err), &err);
    assert_ok(kith_model_save(model, made_path(name), &err), &err);
    kith_model_free(model);
}

static inline kith_collection *made_collection(const char *name, const char *model) {
    kith_error err;
    kith_collection *collection = NULL;
    KITH_OPTIONS(kith_model_options, how);
    KITH_OPTIONS(kith_collection_options, options);
    how.weights = made_path(model);
    options.model = &how;
    assert_ok(kith_collection_create(made_path(name), &options, &collection, &err), &err);
    return collection;
}

static inline kith_collection *made_open(const char *name, kith_index_mode mode) {
    kith_error err;
    kith_collection *collection = NULL;
    KITH_OPTIONS(kith_collection_open_options, options);
    options.mode = mode;
    assert_ok(kith_collection_open(made_path(name), &options, &collection, &err), &err);
    return collection;
}

/* Sync with one folder (NULL: what is remembered). */
static inline kith_status made_try_sync(kith_collection *collection, const char *name,
                                        const kith_sync_options *options, kith_sync_report *ret_report,
                                        kith_error *err) {
    const char *path = name ? made_path(name) : NULL;
    const kith_sources sources = {.paths = &path, .n = 1, .split = KITH_SPLIT_ALL};
    return kith_collection_sync(collection, name ? &sources : NULL, options, ret_report, err);
}

static inline kith_sync_report made_sync(kith_collection *collection, const char *name) {
    kith_error err;
    kith_sync_report report;
    assert_ok(made_try_sync(collection, name, NULL, &report, &err), &err);
    return report;
}

static inline kith_collection_info made_info(kith_collection *collection) {
    kith_error err;
    kith_collection_info info;
    assert_ok(kith_collection_info_get(collection, &info, &err), &err);
    return info;
}

static inline bool made_is_there(const char *name) {
    struct stat info;
    return stat(made_path(name), &info) == 0;
}

#endif
