/* A run folder made up for tests of the report: everything training leaves behind, with curves and
 * embeddings drawn from formulas. `kith synth` images in folder IMAGES/CLASS/, or none. */
#ifndef MADE_RUN_H
#define MADE_RUN_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "kith/array.h"
#include "kith/data.h"

typedef struct made_run {
    const char *folder;
    const char *images; /* a data set of folders, or NULL */
    int64_t n_test;     /* at most what the images have */
    int64_t n_classes;  /* without images */
    int64_t dim;
    int n_steps;
    int n_logged; /* step lines */
    uint64_t seed;
} made_run;

static inline FILE *made_open(const made_run *run, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) perror(path), abort();
    return file;
}

static inline void made_text(const made_run *run, const char *name, const char *text) {
    FILE *file = made_open(run, name);
    fputs(text, file);
    fclose(file);
}

static inline void made_log(const made_run *run) {
    FILE *f = made_open(run, "log.jsonl");
    ki_rng rng = ki_rng_at(run->seed, KI_RNG_TEST, 1, 0);
    const int every = run->n_steps / run->n_logged > 0 ? run->n_steps / run->n_logged : 1;
    for (int step = 0; step <= run->n_steps; step += every) {
        const double t = (double)step / run->n_steps, noise = ki_rng_normal(&rng);
        const double binomial = 0.9 * exp(-4 * t) + 0.12 + 0.03 * noise * (1 - 0.6 * t);
        const double horde = 6 * exp(-6 * t) + 0.02 * exp(0.3 * ki_rng_normal(&rng));
        const double lr = 1e-4 * fmin(1, (step + 1) / 200.0) * 0.5 * (1 + cos(3.14159265 * t)) + 1e-7;
        if (step > 0)
            fprintf(
                f,
                "{\"kind\":\"step\",\"step\":%d,\"epoch\":%d,\"total\":%.6f,\"terms\":{\"binomial\":%.6f,"
                "\"horde\":%.6f},\"weights\":{\"horde\":0.5},\"lr\":%.8g,\"grad_norm\":{\"backbone\":%.6f,"
                "\"embedding\":%.6f,\"objective\":%.6f},\"n_pos\":%d,\"n_neg\":%d,\"img_per_s\":%.2f,"
                "\"seconds\":%.2f}\n",
                step, step / 300, binomial + 0.5 * horde, binomial, horde, lr, 3 * exp(-2 * t) + 0.3,
                1.4 * exp(-3 * t) + 0.1, 0.2 + 0.02 * noise, 128 - (int)(40 * t), 8000 - (int)(6500 * t),
                412 + 9 * noise, step * 0.31);
        if (step % (run->n_steps / 10) < every) {
            const double seen = 0.35 + 0.6 * (1 - exp(-5 * t)),
                         unseen = 0.34 + 0.32 * (1 - exp(-7 * t)) - 0.05 * t * t;
            fprintf(
                f,
                "{\"kind\":\"eval\",\"step\":%d,\"split\":\"validation\",\"recall\":{\"1\":%.5f,\"2\":%.5f},"
                "\"map_at_r\":%.5f,\"r_precision\":%.5f,\"order_recall_at_1\":{\"1\":%.5f,\"2\":%.5f},"
                "\"seconds\":1.2}\n"
                "{\"kind\":\"eval\",\"step\":%d,\"split\":\"seen\",\"recall\":{\"1\":%.5f,\"2\":%.5f},"
                "\"map_at_r\":%.5f,\"r_precision\":%.5f,\"seconds\":1.9}\n",
                step, unseen, unseen + 0.1, 0.5 * unseen, 0.6 * unseen, unseen, unseen - 0.02, step, seen,
                seen + 0.03, 0.7 * seen, 0.8 * seen);
        }
    }
    fputs("{\"kind\":\"warning\",\"step\":40,\"text\":\"3 images could not be read & were replaced\"}\n", f);
    fclose(f);
}

static inline void made_result(const made_run *run, double shift) {
    char text[4096];
    snprintf(
        text, sizeof text,
        "{\"step\":%d,\"selection\":\"validation\",\"selection_metric\":\"map_at_r\","
        "\"test\":{\"recall\":{\"1\":%.5f,\"2\":%.5f,\"4\":%.5f,\"8\":%.5f},\"map_at_r\":%.5f,"
        "\"r_precision\":%.5f,\"nmi\":%.5f,"
        "\"intervals\":{\"level\":0.95,\"recall\":{\"1\":[%.5f,%.5f],\"2\":[0.70,0.73],\"4\":[0.80,0.82],"
        "\"8\":[0.87,0.89]},\"map_at_r\":[0.24,0.26]}},"
        "\"untrained\":{\"recall\":{\"1\":0.341,\"2\":0.442,\"4\":0.551,\"8\":0.66},\"map_at_r\":0.101,"
        "\"r_precision\":0.17,\"nmi\":0.41},"
        "\"seen\":{\"recall\":{\"1\":0.93,\"2\":0.95,\"4\":0.97,\"8\":0.99},\"map_at_r\":0.66,"
        "\"r_precision\":0.7,\"n_images\":5864,\"n_classes\":100},"
        "\"n_classes\":100,\"n_images\":5924,\"steps\":%d,\"seconds\":1550.2,\"img_per_s\":412.3}\n",
        run->n_steps * 6 / 10, 0.615 + shift, 0.718 + shift, 0.81 + shift, 0.88 + shift, 0.25 + shift,
        0.35 + shift, 0.63 + shift, 0.603 + shift, 0.628 + shift, run->n_steps);
    made_text(run, "result.json", text);
}

static inline void made_rest(const made_run *run) {
    made_text(run, "run.json",
              "{\"kith\":\"0.1.0\",\"commit\":\"0123456789abcdef0123456789abcdef01234567\","
              "\"command\":\"kith train recipe.yaml --out run\","
              "\"data_sha256\":\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\","
              "\"weights_sha256\":\"60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752\","
              "\"seed\":17,\"device\":\"cpu\",\"n_steps\":5000,\"threads\":2}\n");
    made_text(run, "recipe.yaml",
              "data:\n  dataset: folder\n  root: images\nmodel:\n  backbone: convnet4\n  embedding: 64\n"
              "objective:\n  loss: {name: binomial, alpha: 2, beta: 50}\n  regularizers:\n"
              "    - {name: horde, weight: 0.5}\noptim:\n  name: adam\n  lr: 1e-4\n  steps: 5000\n");
    FILE *f = made_open(run, "pairs.json");
    for (int part = 0; part < 2; part++) {
        fprintf(f, "%s\"%s\":{", part ? "," : "{", part ? "weight" : "distance");
        for (int kind = 0; kind < 3; kind++) {
            fprintf(f, "%s\"%s\":[", kind ? "," : "",
                    kind == 0   ? "positive"
                    : kind == 1 ? "negative"
                                : "edges");
            for (int i = 0; i < 50 + (kind == 2); i++) {
                const double x = (i + 0.5) / 50,
                             middle = part   ? 0.1
                                      : kind ? 0.55
                                             : 0.25,
                             width = part ? 0.15 : 0.13;
                if (kind == 2)
                    fprintf(f, "%s%.4f", i ? "," : "", part ? i / 50.0 : i / 25.0);
                else
                    fprintf(f, "%s%d", i ? "," : "",
                            (int)((kind ? 90000 : 3000) * exp(-pow((x - middle) / width, 2) / 2)));
            }
            fputs("]", f);
        }
        fputs("}", f);
    }
    fputs("}\n", f);
    fclose(f);
}

/* Classes as clouds of different tightness, so that there are right and wrong neighbours. */
static inline void made_test(const made_run *run) {
    char path[4096];
    kith_error err;
    kith_dataset *set = NULL;
    int64_t n = run->n_test, n_classes = run->n_classes;
    if (run->images) {
        if (kith_dataset_open("folder", run->images, &set, &err) != KITH_OK)
            fputs(err.message, stderr), abort();
        if (kith_dataset_count(set) < n) n = kith_dataset_count(set);
        n_classes = kith_dataset_n_classes(set);
    }
    snprintf(path, sizeof path, "%s/test", run->folder);
    mkdir(path, 0777);
    kith_array x, y;
    if (kith_array_init(KITH_F32, 2, (int64_t[]){n, run->dim}, &x, &err) != KITH_OK) abort();
    if (kith_array_init(KITH_I64, 1, (int64_t[]){n}, &y, &err) != KITH_OK) abort();
    FILE *paths = made_open(run, "test/paths.txt");
    for (int64_t i = 0; i < n; i++) {
        const int64_t item = set ? i * kith_dataset_count(set) / n : i;
        const int64_t label = set ? kith_dataset_item(set, item).label : i * n_classes / n;
        ki_rng centre = ki_rng_at(run->seed, KI_RNG_TEST, 2, (uint32_t)label);
        ki_rng own = ki_rng_at(run->seed, KI_RNG_TEST, 3, (uint32_t)i);
        const double spread = 3.4 + 2.2 * ki_rng_double(&centre);
        ((int64_t *)y.data)[i] = label;
        for (int64_t d = 0; d < run->dim; d++)
            ((float *)x.data)[i * run->dim + d] =
                (float)(ki_rng_normal(&centre) + spread * ki_rng_normal(&own));
        if (set)
            fprintf(paths, "%s\n", kith_dataset_item(set, item).path);
        else
            fprintf(paths, "nowhere/class_%03d/image_%05d.jpg\n", (int)label, (int)i);
    }
    fclose(paths);
    snprintf(path, sizeof path, "%s/test/embedding.npy", run->folder);
    if (kith_npy_write(path, &x, &err) != KITH_OK) abort();
    snprintf(path, sizeof path, "%s/test/labels.npy", run->folder);
    if (kith_npy_write(path, &y, &err) != KITH_OK) abort();
    kith_array_release(&x);
    kith_array_release(&y);
    kith_dataset_free(set);
}

static inline void made_whole(const made_run *run) {
    mkdir(run->folder, 0777);
    made_log(run);
    made_result(run, 0);
    made_rest(run);
    made_test(run);
}

#endif
