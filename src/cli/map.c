/* kith map: a picture of embeddings in the plane. */
#include "kith/map.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/lines.h"
#include "kith/data.h"
#include "kith/labels.h"

static int show_progress(void *user, int64_t done, int64_t all) {
    cli_progress *progress = user;
    progress->total = all;
    cli_progress_update(progress, done, NULL);
    return 0;
}

static kith_status fail(kith_error *err, kith_status status, const char *fmt, const char *path,
                        long long found, long long wanted) {
    *err = (kith_error){.status = status};
    snprintf(err->message, sizeof err->message, fmt, path, found, wanted);
    return status;
}

static kith_status read_labels(const char *path, int64_t n, kith_array *ret_labels, kith_error *err) {
    const kith_status status = kith_labels_read(NULL, path, ret_labels, err);
    if (status != KITH_OK || ret_labels->dim[0] == n) return status;
    return fail(err, KITH_ESHAPE, "%s holds %lld labels for %lld rows", path, (long long)ret_labels->dim[0],
                (long long)n);
}

/* The name of every row's class: line k of the file is label k, from 0. */
static kith_status name_rows(const char *path, const kith_array *labels, char **ret_text,
                             const char ***ret_names, kith_error *err) {
    const char **names = NULL;
    int64_t n = 0;
    kith_status status = cli_read_lines(path, ret_text, &names, &n, err);
    if (status != KITH_OK) return status;
    *ret_names = calloc((size_t)labels->dim[0] + 1, sizeof **ret_names);
    if (!*ret_names)
        status = cli_error(err, KITH_ENOMEM, NULL, "no memory for %lld names", (long long)labels->dim[0]);
    for (int64_t i = 0; status == KITH_OK && i < labels->dim[0]; i++) {
        const int64_t label = ((const int64_t *)labels->data)[i];
        if (label < 0 || label >= n)
            status = cli_error(err, KITH_EINVAL, "one name a line, for the labels 0, 1, …",
                               "%s has %lld names; wanted one for label %lld", path, (long long)n,
                               (long long)label);
        else
            (*ret_names)[i] = names[label];
    }
    free(names);
    return status;
}

/* A kith_thumbnail_fn on the data layer's reader: fitted into the square, on white. */
static kith_status thumbnail(void *user, const char *path, int size, uint8_t *rgb, kith_error *err) {
    (void)user;
    KITH_OPTIONS(kith_transform, t);
    t.resize = KITH_RESIZE_SQUASH;
    t.resize_to = t.crop_to = size;
    t.pixel_scale = 1;
    memset(t.background, 255, sizeof t.background);
    const kith_image_reader_options settings = {
        .size = sizeof(kith_image_reader_options), .batch = 1, .n_workers = 1};
    kith_image_reader *reader = NULL;
    kith_image_batch batch = {0};
    kith_status status = kith_image_reader_new(&path, 1, &t, &settings, &reader, err);
    if (status == KITH_OK) status = kith_image_reader_next(reader, &batch, err);
    if (status == KITH_OK && batch.n != 1) status = KITH_EIO;
    for (int i = 0; status == KITH_OK && i < size * size; i++) {
        for (int c = 0; c < 3; c++) {
            const float v = batch.data[c * size * size + i];
            rgb[3 * i + c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5F);
        }
    }
    kith_image_reader_free(reader);
    return status;
}

typedef struct arguments {
    const char *embedding, *labels, *names, *images, *out, *save, *title;
    int64_t size, thumbnail;
    kith_tsne_options tsne;
} arguments;

static kith_status run(arguments *a, kith_error *err) {
    kith_array rows = {0}, labels = {0}, map = {0};
    char *text = NULL, *name_text = NULL;
    const char **paths = NULL, **names = NULL;
    double divergence = 0;
    kith_status status = kith_npy_read(a->embedding, &rows, err);
    if (status == KITH_OK && a->labels) status = read_labels(a->labels, rows.dim[0], &labels, err);
    if (status == KITH_OK && a->names) status = name_rows(a->names, &labels, &name_text, &names, err);
    if (status == KITH_OK && a->images) status = cli_read_paths(a->images, rows.dim[0], &text, &paths, err);
    if (status == KITH_OK) {
        cli_progress progress;
        cli_progress_begin(&progress, "t-SNE", a->tsne.n_iterations);
        a->tsne.progress = show_progress;
        a->tsne.user = &progress;
        status = kith_tsne(&rows, &a->tsne, &map, &divergence, err);
        cli_progress_end(&progress);
    }
    kith_map_report report = {0};
    if (status == KITH_OK) {
        const kith_map_drawing drawing = {.size = sizeof(kith_map_drawing),
                                          .map = &map,
                                          .labels = labels.data,
                                          .title = a->title,
                                          .names = names,
                                          .side = (int)a->size,
                                          .paths = paths,
                                          .thumbnail = thumbnail,
                                          .thumbnail_size = (int)a->thumbnail};
        status = kith_map_draw(&drawing, a->out, &report, err);
    }
    if (status == KITH_OK && a->save) status = kith_npy_write(a->save, &map, err);
    if (status == KITH_OK) {
        printf("%s: %lld points, perplexity %g, divergence %.4f\n", a->out, (long long)map.dim[0],
               a->tsne.perplexity > 0 ? a->tsne.perplexity : kith_tsne_perplexity(map.dim[0]), divergence);
        if (paths)
            printf("%lld thumbnails drawn, %lld could not be read\n", (long long)report.n_drawn,
                   (long long)report.n_failed);
    }
    kith_array_release(&rows);
    kith_array_release(&labels);
    kith_array_release(&map);
    free(text);
    free(paths);
    free(name_text);
    free(names);
    return status;
}

int cmd_map(int argc, char **argv) {
    static const char *const metrics[] = {"cosine", "sqeuclidean", NULL};
    arguments a = {.size = 1600, .thumbnail = 32};
    kith_tsne_options_init(&a.tsne, sizeof a.tsne);
    int metric = 0;
    int64_t seed = 0;
    const cli_option options[] = {
        CLI_TEXT("labels|y", "FILE", &a.labels, "classes, which give the colours: .npy, .txt or .csv"),
        CLI_TEXT("names", "FILE", &a.names,
                 "names of the labels 0, 1, …, one a line, under the pointer (SVG); "
                 "a run has them in test/classes.txt"),
        CLI_TEXT("images", "PATHS", &a.images, "a text file with one image path per row, for thumbnails"),
        CLI_OUT("out|o", "FILE", &a.out, ".svg or .png", "the picture: .svg or .png"),
        CLI_OUT("save", "MAP.npy", &a.save, ".npy", "also write the positions, float64 [n, 2]"),
        CLI_TEXT("title", "TEXT", &a.title, "above the picture (SVG)"),
        CLI_REAL("perplexity", "N", &a.tsne.perplexity, 0, 10000,
                 "neighbours each point attends to; 0: 30, less for few points"),
        CLI_INT("iterations", "N", &a.tsne.n_iterations, 1, 1000000, "steps of the gradient descent"),
        CLI_REAL("theta", "T", &a.tsne.theta, 0, 1,
                 "how coarsely far points are grouped; 0: every pair is computed"),
        CLI_REAL("exaggeration", "X", &a.tsne.exaggeration, 1, 100,
                 "factor of the attraction in the first quarter of the iterations"),
        CLI_INT("components", "N", &a.tsne.n_components, 0, 65536,
                "principal components to start from; 0: all values"),
        CLI_CHOICE("metric", "NAME", &metric, metrics, "how similar two embeddings are"),
        CLI_INT("seed", "N", &seed, 0, INT64_MAX, "the same seed gives the same map"),
        CLI_INT("size", "PIXELS", &a.size, 64, 20000, "side of the picture"),
        CLI_INT("thumbnail", "PIXELS", &a.thumbnail, 4, 1000, "side of a thumbnail"),
        CLI_END};
    const cli_usage usage = {.operands = "E.npy", .least = 1, .most = 1, .options = options};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (!a.out) return cli_misused("map", "wants --out FILE, ending in .svg or .png");
    if (a.names && !a.labels) return cli_misused("map", "--names wants --labels too");
    a.embedding = argv[1];
    a.tsne.metric = metric ? KITH_SQEUCLIDEAN : KITH_COSINE;
    a.tsne.seed = (uint64_t)seed;
    kith_error err = {0};
    return run(&a, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}
