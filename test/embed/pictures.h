/* A folder of glyphs, a small model and lists of files, for the tests of embedding on any device. */
#ifndef TEST_EMBED_PICTURES_H
#define TEST_EMBED_PICTURES_H

#include <stdio.h>
#include <string.h>

#include "kith/model.h"
#include "support/testing.h"

enum { N_CLASSES = 4, N_EACH = 5, N_FILES = N_CLASSES * N_EACH, DIM = 6 };

/* FOLDER/glyphs, made once: class folders of PNG files. */
static inline const char *pictures_folder(void) {
    static char folder[1024];
    kith_error err;
    if (folder[0]) return folder;
    KITH_OPTIONS(kith_synth_options, settings);
    settings.n_classes = N_CLASSES;
    settings.n_images = N_EACH;
    settings.side = 24;
    snprintf(folder, sizeof folder, "%s/glyphs", testing_folder());
    assert_ok(kith_synth_write(folder, &settings, NULL, NULL, &err), &err);
    return folder;
}

/* The files of the folder in the order of the data set. */
static inline kith_dataset *pictures_set(void) {
    const char *const folder = pictures_folder();
    kith_dataset *set = NULL;
    kith_error err;
    assert_ok(kith_dataset_open_files(&folder, 1, &set, &err), &err);
    assert_int_equal(kith_dataset_count(set), N_FILES);
    return set;
}

static inline kith_model *pictures_model(const char *device, int64_t batch) {
    kith_model *model = NULL;
    kith_error err;
    const kith_model_options options = {.size = sizeof(kith_model_options),
                                        .backbone = "convnet4",
                                        .settings = "width=8",
                                        .seed = 3,
                                        .channels = 1,
                                        .height = 16,
                                        .width = 16,
                                        .embedding = DIM,
                                        .device = device,
                                        .batch = batch};
    assert_ok(kith_model_open(&options, &model, &err), &err);
    return model;
}

static const kith_embed_options pictures_options = {
    .size = sizeof(kith_embed_options), .resize = "squash20", .n_workers = 2, .most_bad = -1};

#endif
