/* A data set with planted errors, for bench/doctor.sh: what kith data --doctor should find in it is known.
 *
 *     doctor_plant SET OUT SEED MOST_CLASSES ODD…
 *
 * Of the first MOST_CLASSES classes of SET (0: all) every photo is taken, one of five as a test photo, whatever SET says. Then, all
 * drawn by SEED: 5 % get the label of another class; 2 % are replaced by a blurred picture (half of them out of focus, by a Gaussian
 * of 1.2 to 3 % of the shorter side, half of them moved, by 5 to 10 % of it); 3 % are added once more, 40 to 90 % as large, saved
 * again at a quality of 50 to 90, a third of them mirrored, one of five in another class, one of five on the other side of the
 * test; and 2 % are added from the data sets ODD, one after the other in turns, with a label at random. No photo gets two of these.
 * OUT/set.csv is the data set, OUT/planted.csv has a line for each planted error: its path, what it is, the photo it was
 * made of. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "data/dataset/dataset.h"
#include "data/transform/resample.h"

enum { MOST_ODD = 8, MOST_TAPS = 512 };

typedef enum fate { PLAIN, WRONG, BLURRED, COPIED } fate;

typedef struct planting {
    kith_dataset *set, *odd[MOST_ODD];
    const char *out;
    int64_t n, n_classes, n_odd, n_made;
    int64_t *item; /* [n] of the set */
    ki_rng rng;
    FILE *list, *planted;
    ki_bytes file;
    ki_image image, small;
    ki_resampler resampler;
} planting;

static void stop(const char *what) {
    fprintf(stderr, "doctor_plant: %s\n", what);
    exit(1);
}

static void need(kith_status status, const kith_error *err) {
    if (status != KITH_OK) stop(err->message);
}

static double between(planting *p, double from, double to) {
    return from + (to - from) * ki_rng_double(&p->rng);
}

static kith_dataset *open_set(const char *path) {
    kith_error err = {0};
    kith_dataset *set = NULL;
    need(kith_dataset_open(NULL, path, &set, &err), &err);
    return set;
}

static void read_item(planting *p, const kith_dataset *set, int64_t item) {
    kith_error err = {0};
    const ki_decode how = {.background = {255, 255, 255}};
    need(ki_dataset_pixels(set, item, &how, &p->file, &p->image, &err), &err);
}

/* ---- blur: two passes of one row of weights, borders repeated ---- */

static void filter(const ki_image *src, const double *weight, int radius, bool down, ki_image *dst) {
    kith_error err = {0};
    need(ki_image_shape(dst, src->w, src->h, src->channels, &err), &err);
    const int n = down ? src->h : src->w, c = src->channels;
    for (int y = 0; y < src->h; y++) {
        for (int x = 0; x < src->w; x++) {
            for (int k = 0; k < c; k++) {
                double sum = 0;
                for (int t = -radius; t <= radius; t++) {
                    int at = (down ? y : x) + t;
                    at = at < 0 ? 0 : at >= n ? n - 1 : at;
                    sum +=
                        weight[t + radius] * src->data[((down ? at : y) * src->w + (down ? x : at)) * c + k];
                }
                dst->data[(y * src->w + x) * c + k] = (uint8_t)lrint(sum);
            }
        }
    }
}

static int normalise(double *weight, int radius) {
    double sum = 0;
    for (int t = 0; t <= 2 * radius; t++) sum += weight[t];
    for (int t = 0; t <= 2 * radius; t++) weight[t] /= sum;
    return radius;
}

static void blur(planting *p) {
    double weight[2 * MOST_TAPS + 1];
    const int side = p->image.w < p->image.h ? p->image.w : p->image.h;
    const bool is_moved = ki_rng_below(&p->rng, 2) == 0, down = ki_rng_below(&p->rng, 2) == 0;
    ki_image middle = {0};
    int radius = 0;
    if (is_moved) {
        radius = (int)(side * between(p, 0.025, 0.05));
        radius = radius < 1 ? 1 : radius > MOST_TAPS ? MOST_TAPS : radius;
        for (int t = 0; t <= 2 * radius; t++) weight[t] = 1;
        filter(&p->image, weight, normalise(weight, radius), down, &p->small);
        return;
    }
    const double sigma = side * between(p, 0.012, 0.03);
    radius = (int)(3 * sigma) + 1;
    radius = radius > MOST_TAPS ? MOST_TAPS : radius;
    for (int t = -radius; t <= radius; t++) weight[t + radius] = exp(-0.5 * (t / sigma) * (t / sigma));
    normalise(weight, radius);
    filter(&p->image, weight, radius, false, &middle);
    filter(&middle, weight, radius, true, &p->small);
    ki_image_release(&middle);
}

/* ---- what is written ---- */

/* p->small, as a new file; its name into `name`. */
static void write_picture(planting *p, int quality, char name[64]) {
    char path[4096];
    kith_error err = {0};
    snprintf(name, 64, "pictures/%05d.jpg", (int)p->n_made++);
    snprintf(path, sizeof path, "%s/%s", p->out, name);
    need(ki_jpeg_encode(&p->small, quality, &p->file, &err), &err);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(p->file.data, 1, p->file.n, file) != p->file.n || fclose(file) != 0)
        stop("a picture could not be written");
}

static void put_item(planting *p, const char *path, int64_t label, kith_split split) {
    fprintf(p->list, "\"%s\",\"%s\",%s\n", path, kith_dataset_class_name(p->set, label),
            kith_split_name(split));
}

static void put_planted(planting *p, const char *path, const char *what, const char *of) {
    fprintf(p->planted, "\"%s\",%s,\"%s\"\n", path, what, of);
}

static int64_t other_class(planting *p, int64_t label) {
    const int64_t other = ki_rng_below(&p->rng, (uint32_t)(p->n_classes - 1));
    return other + (other >= label);
}

static void put_copy(planting *p, int64_t item, const char *path, kith_split split) {
    char name[64];
    kith_error err = {0};
    const int64_t label = kith_dataset_item(p->set, item).label;
    read_item(p, p->set, item);
    const int longer = p->image.w > p->image.h ? p->image.w : p->image.h;
    need(ki_resample_fit(&p->resampler, &p->image, (int)(longer * between(p, 0.4, 0.9)), &p->small, &err),
         &err);
    if (ki_rng_below(&p->rng, 3) == 0) ki_image_swap_sides(&p->small);
    const uint32_t where = ki_rng_below(&p->rng, 5);
    write_picture(p, (int)between(p, 50, 90), name);
    put_item(p, name, where == 0 ? other_class(p, label) : label,
             where != 1                 ? split
             : split == KITH_SPLIT_TEST ? KITH_SPLIT_TRAIN
                                        : KITH_SPLIT_TEST);
    put_planted(p, name, where == 0 ? "conflict" : where == 1 ? "leak" : "duplicate", path);
}

static void put_one(planting *p, int64_t item, fate what) {
    char name[64], path[4096];
    const kith_item from = kith_dataset_item(p->set, item);
    const kith_split split = ki_rng_below(&p->rng, 5) == 0 ? KITH_SPLIT_TEST : KITH_SPLIT_TRAIN;
    if (!realpath(from.path, path)) stop(from.path);
    if (what == BLURRED) {
        read_item(p, p->set, item);
        blur(p);
        write_picture(p, 90, name);
        put_item(p, name, from.label, split);
        put_planted(p, name, "blurred", path);
        return;
    }
    const int64_t label = what == WRONG ? other_class(p, from.label) : from.label;
    put_item(p, path, label, split);
    if (what == WRONG) put_planted(p, path, "mislabelled", kith_dataset_class_name(p->set, from.label));
    if (what == COPIED) put_copy(p, item, path, split);
}

static void put_odd(planting *p, int64_t i) {
    char name[64];
    const kith_dataset *set = p->odd[i % p->n_odd];
    const int64_t item = ki_rng_below(&p->rng, (uint32_t)kith_dataset_count(set));
    kith_error err = {0};
    read_item(p, set, item);
    need(ki_resample_fit(&p->resampler, &p->image, 500, &p->small, &err), &err);
    write_picture(p, 90, name);
    put_item(p, name, ki_rng_below(&p->rng, (uint32_t)p->n_classes),
             ki_rng_below(&p->rng, 5) == 0 ? KITH_SPLIT_TEST : KITH_SPLIT_TRAIN);
    put_planted(p, name, "odd", kith_dataset_item(set, item).path);
}

static FILE *create(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) stop(path);
    return file;
}

static void list_items(planting *p, int64_t most_classes) {
    const int64_t n = kith_dataset_count(p->set);
    p->n_classes = kith_dataset_n_classes(p->set);
    if (most_classes > 0 && most_classes < p->n_classes) p->n_classes = most_classes;
    p->item = malloc((size_t)n * sizeof *p->item);
    if (!p->item || p->n_classes < 2) stop("two classes are wanted");
    for (int64_t i = 0; i < n; i++) {
        if (kith_dataset_item(p->set, i).label < p->n_classes) p->item[p->n++] = i;
    }
}

int main(int argc, char **argv) {
    planting p = {0};
    char folder[4096];
    if (argc < 6 || argc > 5 + MOST_ODD) stop("usage: doctor_plant SET OUT SEED MOST_CLASSES ODD…");
    p.set = open_set(argv[1]);
    p.out = argv[2];
    p.rng = ki_rng_at(strtoull(argv[3], NULL, 10), KI_RNG_TEST, 0, 0);
    for (int i = 5; i < argc; i++) p.odd[p.n_odd++] = open_set(argv[i]);
    list_items(&p, atoll(argv[4]));
    snprintf(folder, sizeof folder, "%s/pictures", p.out);
    mkdir(p.out, 0777);
    mkdir(folder, 0777);
    p.list = create(p.out, "set.csv");
    p.planted = create(p.out, "planted.csv");
    fputs("path,label,split\n", p.list);
    fputs("path,what,of\n", p.planted);
    ki_rng_shuffle(&p.rng, p.item, p.n);
    const int64_t n_wrong = p.n / 20, n_blurred = p.n / 50, n_copied = 3 * p.n / 100, n_odd = p.n / 50;
    for (int64_t i = 0; i < p.n; i++)
        put_one(&p, p.item[i],
                i < n_wrong                          ? WRONG
                : i < n_wrong + n_blurred            ? BLURRED
                : i < n_wrong + n_blurred + n_copied ? COPIED
                                                     : PLAIN);
    for (int64_t i = 0; i < n_odd; i++) put_odd(&p, i);
    if (fclose(p.list) != 0 || fclose(p.planted) != 0) stop("a list could not be written");
    printf(
        "%lld photos of %lld classes; %lld labels changed, %lld blurred, %lld copied, %lld odd ones added\n",
        (long long)p.n, (long long)p.n_classes, (long long)n_wrong, (long long)n_blurred, (long long)n_copied,
        (long long)n_odd);
    for (int64_t i = 0; i < p.n_odd; i++) kith_dataset_free(p.odd[i]);
    kith_dataset_free(p.set);
    ki_bytes_release(&p.file);
    ki_image_release(&p.image);
    ki_image_release(&p.small);
    ki_resampler_release(&p.resampler);
    free(p.item);
    return 0;
}
