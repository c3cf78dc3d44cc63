/* A data set and a recipe small enough to train in a moment, in the test's own folder. */
#ifndef TEST_TRAIN_TINY_H
#define TEST_TRAIN_TINY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/status.h"
#include "support/testing.h"

enum { TINY_OUTPUT = 1 << 16 };

/* 18 glyph classes of 8 images in FOLDER/tiny (9 train, 2 of them validation), and FOLDER/tiny.yaml. */
static inline const char *tiny_make(void) {
    static char recipe[4096];
    static bool is_made;
    char output[1024], text[2048];
    const char *folder = testing_folder();
    snprintf(recipe, sizeof recipe, "%s/tiny.yaml", folder);
    if (is_made) return recipe;
    assert_int_equal(0,
                     testing_run(output, sizeof output, "%s synth %s/tiny --classes 18 --images 8 --size 24",
                                 testing_program(), folder));
    snprintf(text, sizeof text,
             "data: {root: %s/tiny}\n"
             "input: {resize: squash20, crop: 16, channels: 1}\n"
             "model: {backbone: convnet4, embedding: 8, settings: {width: 16}}\n"
             "batch: {classes: 3, images: 2}\n"
             "objective: {loss: binomial}\n"
             "optim: {lr: 3e-3, steps: 30}\n"
             "eval: {every: 10}\n"
             "checkpoint: {every: 4}\n"
             "loader: {workers: 1}\n"
             "threads: 1\n"
             "log_every: 5\n",
             folder);
    testing_write(recipe, text);
    is_made = true;
    return recipe;
}

/* `kith train TINY.yaml --out FOLDER/OUT ARGUMENTS`: exit status, and what it printed. */
static inline int tiny_train(char *output, const char *out, const char *arguments) {
    return testing_run(output, TINY_OUTPUT, "%s train %s --out %s/%s --no-report %s", testing_program(),
                       tiny_make(), testing_folder(), out, arguments);
}

/* Lines of text, each with a newline; the last may lack it. */
static inline int tiny_count_lines(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* A file of a run as one string, to be freed. */
static inline char *tiny_read(const char *out, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", testing_folder(), out, name);
    return testing_read(path);
}

static inline bool tiny_exists(const char *out, const char *name) {
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s/%s", testing_folder(), out, name);
    return stat(path, &info) == 0;
}

/* Same bytes? Prints which file when not. */
static inline void tiny_assert_same(const char *a, const char *b, const char *name) {
    char output[1024];
    const int status = testing_run(output, sizeof output, "cmp %s/%s/%s %s/%s/%s", testing_folder(), a, name,
                                   testing_folder(), b, name);
    if (status != 0) fail_msg("%s of %s and %s: %s", name, a, b, output);
}

#endif
