/* kith embed: runs image files, or a batch of preprocessed images, through a network and writes the values of
 * one tap. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/images.h"
#include "kith/array.h"
#include "kith/model.h"
#include "kith/text.h"

enum { N_PATTERNS = 4 };

typedef struct arguments {
    const char *batch, *tap, *out, *save, *resize;
    const char *named;         /* the model, as it was given; NULL: general */
    const char *const *images; /* files and folders */
    size_t n_images;
    int64_t generate, size;
    int64_t n_features; /* of a row, where the one image is a .npy of features; 0: images */
    kith_model_options model;
} arguments;

/* A deterministic batch to try a network on: gratings of four directions and colours, shifted from
 * image to image. Image i shows pattern i % 4. */
static double pixel(int64_t image, int channel, double x, double y) {
    const double pi = 3.14159265358979323846;
    const int pattern = (int)(image % N_PATTERNS);
    const int64_t turn = image / N_PATTERNS;
    const double angle = pi * pattern / N_PATTERNS, shift = 0.37 * (double)turn;
    const double wave = sin(2 * pi * ((6 + 3 * pattern) * (x * cos(angle) + y * sin(angle)) + shift));
    const double colour = 0.5 + 0.5 * cos(pi * (pattern + 2 * channel) / 3.0);
    return 255 * (0.2 + 0.6 * colour) * (0.5 + 0.5 * wave);
}

static void fill_patterns(const kith_model_info *info, kith_array *array) {
    float *at = array->data;
    const kith_preprocess *p = &info->preprocess;
    for (int64_t i = 0; i < array->dim[0]; i++) {
        for (int c = 0; c < (int)info->channels; c++) {
            const int colour = p->bgr ? (int)info->channels - 1 - c : c;
            for (int64_t y = 0; y < info->height; y++) {
                for (int64_t x = 0; x < info->width; x++) {
                    const double value =
                        pixel(i, colour, (double)x / (double)info->width, (double)y / (double)info->height);
                    *at++ = (float)((value * p->scale - p->mean[c]) / p->std[c]);
                }
            }
        }
    }
}

/* Read BATCH.npy: [n, c, h, w] float32. */
static kith_status read_batch(const char *path, kith_array *ret_array, kith_error *err) {
    kith_array array = {0};
    const kith_status status = kith_npy_read(path, &array, err);
    if (status != KITH_OK) return status;
    if (array.dtype == KITH_F32 && array.n_dims == 4) {
        *ret_array = array;
        return KITH_OK;
    }
    cli_error(err, KITH_ESHAPE, "preprocess the images and save them with numpy.save as float32",
              "%.300s holds %s with %d axes; wanted float32 [n, channels, height, width]", path,
              kith_dtype_name(array.dtype), array.n_dims);
    kith_array_release(&array);
    return KITH_ESHAPE;
}

static double cosine(const float *a, const float *b, int64_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* For a generated batch: does the network see which images show the same pattern? */
static void print_nearest(const kith_array *values) {
    const int64_t n = values->dim[0], width = n > 0 ? kith_array_count(values) / n : 0;
    const float *rows = values->data;
    for (int64_t i = 0; i < n; i++) {
        int64_t best = -1;
        double best_cosine = -2;
        for (int64_t k = 0; k < n; k++) {
            const double c = k == i ? -2 : cosine(rows + i * width, rows + k * width, width);
            if (c > best_cosine) best = k, best_cosine = c;
        }
        if (best >= 0)
            printf("image %lld (pattern %lld): nearest is image %lld (pattern %lld), cosine %.4f\n",
                   (long long)i, (long long)(i % N_PATTERNS), (long long)best, (long long)(best % N_PATTERNS),
                   best_cosine);
    }
}

static void print_shape(const char *what, const kith_array *values) {
    printf("%s: float32 [", what);
    for (int i = 0; i < values->n_dims; i++) printf("%s%lld", i ? ", " : "", (long long)values->dim[i]);
    printf("]\n");
}

/* Room for n images' values of a tap. */
static kith_status make_values(const kith_model *model, const char *tap, int64_t n, kith_array *values,
                               kith_error *err) {
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS + 1] = {n};
    const kith_status status = kith_model_tap_shape(model, tap, &n_dims, dim + 1, err);
    return status == KITH_OK ? kith_array_init(KITH_F32, n_dims + 1, dim, values, err) : status;
}

/* The result; `values` is `own` or belongs to the vectors. */
typedef struct made {
    kith_array own, values;
    kith_dataset *files;
    kith_vectors *vectors;
} made;

static void made_release(made *m) {
    kith_vectors_free(m->vectors);
    kith_dataset_free(m->files);
    kith_array_release(&m->own);
}

/* The images are in `batch`; if there are none, they are made here. */
static kith_status embed(const arguments *a, kith_model *model, kith_array *batch, made *m, kith_error *err) {
    const char *tap =
        kith_model_tap(model, &(kith_embed_options){.size = sizeof(kith_embed_options), .tap = a->tap});
    kith_model_info info;
    kith_model_info_get(model, &info);
    kith_status status;
    if (!a->batch && kith_model_takes_features(model))
        return cli_error(err, KITH_EINVAL, "give it a .npy file of features",
                         "%s takes features of %lld numbers; patterns are images", info.backbone,
                         (long long)info.channels);
    if (!a->batch) {
        const int64_t dim[4] = {a->generate, info.channels, info.height, info.width};
        if ((status = kith_array_init(KITH_F32, 4, dim, batch, err)) != KITH_OK) return status;
        fill_patterns(&info, batch);
    }
    if ((status = make_values(model, tap, batch->dim[0], &m->own, err)) != KITH_OK) return status;
    m->values = m->own;
    return kith_model_embed_floats(model, batch->data, batch->dim[0], tap, m->own.data, err);
}

/* One line of text for every image that was read. */
typedef struct line_list {
    char *text;
    size_t n, capacity;
} line_list;

static kith_status line_list_add(line_list *list, const char *path, kith_error *err) {
    const size_t n = strlen(path);
    if (strchr(path, '\n'))
        return cli_error(err, KITH_EINVAL, "rename it: the lists of paths and labels have one to a line",
                         "the name of %.300s holds a line break", path);
    if (list->n + n + 1 > list->capacity) {
        const size_t capacity = 2 * (list->n + n + 1);
        char *text = realloc(list->text, capacity);
        if (!text)
            return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the lists of paths and labels");
        list->text = text;
        list->capacity = capacity;
    }
    memcpy(list->text + list->n, path, n);
    list->n += n;
    list->text[list->n++] = '\n';
    return KITH_OK;
}

/* What is written beside the values. */
typedef struct beside {
    line_list paths, labels;
    int64_t n_unlabelled;
} beside;

static kith_status beside_add(beside *b, const kith_dataset *set, int64_t i, kith_error *err) {
    const kith_item item = kith_dataset_item(set, i);
    const char *name = kith_dataset_class_name(set, item.label);
    const kith_status status = line_list_add(&b->paths, item.path, err);
    b->n_unlabelled += !name;
    return status == KITH_OK && name ? line_list_add(&b->labels, name, err) : status;
}

static kith_status embed_images(const arguments *a, kith_model *model, made *m, beside *b, kith_error *err) {
    cli_progress progress;
    const kith_embed_options options = {.size = sizeof(kith_embed_options),
                                        .tap = a->tap,
                                        .resize = a->resize,
                                        .most_bad = -1,
                                        .progress = cli_show_progress,
                                        .user = &progress};
    kith_status status = kith_dataset_open_files(a->images, (int64_t)a->n_images, &m->files, err);
    cli_progress_begin(&progress, "embedding", 0);
    if (status == KITH_OK)
        status = kith_model_embed_dataset(model, m->files, KITH_SPLIT_ALL, &options, &m->vectors, err);
    cli_progress_end(&progress);
    if (status != KITH_OK) return status;
    const int64_t *item = kith_vectors_items(m->vectors);
    for (int64_t i = 0; status == KITH_OK && i < kith_vectors_count(m->vectors); i++)
        status = beside_add(b, m->files, item[i], err);
    cli_report_bad(kith_vectors_n_bad(m->vectors), kith_vectors_bad(m->vectors, 0));
    return status == KITH_OK ? kith_vectors_array(m->vectors, &m->values, err) : status;
}

/* birds.npy has its paths in birds.paths.txt. */
static kith_status write_list(const char *out, const char *ending, const line_list *list, const char *what,
                              kith_error *err) {
    char name[4096];
    size_t n = strlen(out);
    if (n > 4 && strcmp(out + n - 4, ".npy") == 0) n -= 4;
    if (n > sizeof name - 20) return cli_error(err, KITH_EINVAL, NULL, "--out is longer than 4,000 bytes");
    memcpy(name, out, n);
    memcpy(name + n, ending, strlen(ending) + 1);
    const kith_status status = kith_text_write(name, list->text, list->n, err);
    if (status == KITH_OK) printf("%s: the images' %s, one to a line\n", name, what);
    return status;
}

/* There is no place for a list beside a pipe or a device. */
static bool is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Labels only when every image has one: the lines of the two lists belong together. */
static kith_status write_beside(const arguments *a, const char *out, const beside *b, kith_error *err) {
    /* Rows of features have no files of their own. */
    const kith_status status =
        a->n_features ? KITH_OK : write_list(out, ".paths.txt", &b->paths, "paths", err);
    if (status != KITH_OK || b->labels.n == 0) return status;
    if (b->n_unlabelled == 0) return write_list(out, ".labels.txt", &b->labels, "classes", err);
    fprintf(stderr, "kith: no list of classes is written: %lld images lie in no class's folder\n",
            (long long)b->n_unlabelled);
    return KITH_OK;
}

static kith_status run(arguments *a, kith_error *err) {
    kith_array batch = {0};
    made m = {0};
    beside b = {0};
    kith_model *model = NULL;
    kith_status status = KITH_OK;
    if (a->batch) {
        status = read_batch(a->batch, &batch, err);
        a->model.channels = batch.dim[1];
        a->model.height = batch.dim[2];
        a->model.width = batch.dim[3];
    } else if (a->n_features > 0) {
        if (!a->model.weights) a->model.channels = a->n_features;
    } else {
        a->model.height = a->model.width = a->size;
    }
    if (status == KITH_OK) status = kith_model_open(&a->model, &model, err);
    if (status == KITH_OK && !a->model.backbone) {
        cli_say_model(a->named, model);
        cli_say_purpose(a->named);
    }
    if (status == KITH_OK)
        status = a->images ? embed_images(a, model, &m, &b, err) : embed(a, model, &batch, &m, err);
    if (status == KITH_OK && a->out) status = kith_npy_write(a->out, &m.values, err);
    if (status == KITH_OK && a->save) status = kith_model_save(model, a->save, err);
    if (status == KITH_OK) {
        print_shape(a->out ? a->out : "values", &m.values);
        if (a->generate) print_nearest(&m.values);
        if (a->images && is_file(a->out)) status = write_beside(a, a->out, &b, err);
    }
    made_release(&m);
    kith_model_free(model);
    kith_array_release(&batch);
    free(b.paths.text);
    free(b.labels.text);
    return status;
}

int cmd_embed(int argc, char **argv) {
    arguments a = {0};
    kith_model_options_init(&a.model, sizeof a.model);
    int64_t seed = 0;
    const cli_option options[] = {
        CLI_TEXT("backbone", "NAME", &a.model.backbone,
                 "the network, where its file and tensors do not say (kith list backbones)"),
        CLI_TEXT("weights", "FILE", &a.model.weights,
                 "safetensors file or run; without, with --backbone: random weights"),
        CLI_TEXT("settings", "K=V,…", &a.model.settings, "the backbone's own options"),
        CLI_TEXT("tap", "NAME", &a.tap, "map, pooled, embedding or logits; default: embedding, else pooled"),
        CLI_TEXT("pool", "HOW", &a.model.pool, "avg, max, both, gem, class, class_avg or attention"),
        CLI_INT("embedding", "N", &a.model.embedding, 0, 65536, "add an embedding layer of this size"),
        CLI_INT("seed", "N", &seed, 0, INT64_MAX, "of random weights"),
        CLI_INT("batch", "N", &a.model.batch, 0, 65536, "images per pass; 0: 32, on a device 128"),
        CLI_TEXT("device", "NAME", &a.model.device, "what it runs on (see kith list devices)"),
        CLI_TEXT("precision", "NAME", &a.model.precision, "float32 or, on cuda, bf16"),
        CLI_FLAG("tf32", &a.model.tf32, "cuda, float32: let products use TF32"),
        CLI_FLAG("deterministic", &a.model.deterministic, "the same bits in every run, also on cuda"),
        CLI_INT("generate", "N", &a.generate, 1, 65536, "embed N generated patterns instead of a file"),
        CLI_TEXT("resize", "HOW", &a.resize, CLI_RESIZE_HELP),
        CLI_INT("crop", "PIXELS", &a.size, 0, 4096, "side of the model's input; 0: the model's"),
        CLI_INT("size", "N", &a.model.side, 0, 4096, CLI_SIZE_HELP),
        CLI_INT("views", "N", &a.model.views, 0, 10, CLI_VIEWS_HELP),
        CLI_OUT("save", "FILE", &a.save, ".safetensors", "also write the model, with what it says of itself"),
        CLI_OUT("out|o", "FILE", &a.out, ".npy", "where the values go (.npy)"),
        CLI_END};
    const cli_usage usage = {
        .operands = "[MODEL.safetensors | RUN] [IMAGE… | FOLDER… | BATCH.npy | FEATURES.npy]",
        .least = 0,
        .most = -1,
        .options = options,
        .details =
            "Without a model, images go through the one that came with kith (general). "
            "Images (JPEG, PNG, WebP, HEIC, AVIF) are resized, cropped and scaled as the model wants; "
            "folders are walked "
            "to\n"
            "the bottom. Files that cannot be read are left out and counted. BATCH.npy is float32 [n, "
            "channels,\n"
            "height, width], already preprocessed; [n, numbers] are features for a model that takes them. "
            "The values of the tap are written as float32 [n, …]; for\n"
            "images, the paths and the classes (the folders' names, or the data set's) go beside them: "
            "OUT.npy has\n"
            "OUT.paths.txt and OUT.labels.txt, which kith map and kith eval read."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    a.named = a.model.weights;
    a.model.seed = (uint64_t)seed;
    int at = 1;
    char path[4096];
    kith_error none; /* a folder without a model is one of images */
    const bool is_found = at < argc && kith_model_find(argv[at], path, sizeof path, &none) == KITH_OK;
    if (at < argc && !is_found && strncmp(argv[at], "hub:", 4) == 0) return cli_fail(&none);
    if (is_found && cli_ends_with(path, ".safetensors")) {
        if (a.model.weights) return cli_misused("embed", "'%.60s' and --weights are both given", argv[at]);
        a.model.weights = argv[at];
        a.named = argv[at];
        at++;
    }
    kith_array shape = {0};
    kith_error err = {0};
    const bool is_npy = argc - at == 1 && cli_ends_with(argv[at], ".npy");
    if (is_npy && kith_npy_shape(argv[at], &shape, &err) == KITH_OK && shape.n_dims == 2)
        a.n_features = shape.dim[1];
    if (is_npy && a.n_features == 0) {
        a.batch = argv[at];
    } else if (at < argc) {
        a.images = (const char *const *)(argv + at);
        a.n_images = (size_t)(argc - at);
    }
    /* Batches are prepared for a certain model. */
    if (!a.model.backbone && !a.model.weights && (!a.images || is_npy))
        return cli_misused("embed", "wants a model: --backbone NAME or a file");
    if (a.model.side && a.size) return cli_misused("embed", "--size and --crop are both given; wanted one");
    if ((a.batch || a.images) == (a.generate > 0))
        return cli_misused("embed", "wants images, a folder, BATCH.npy or --generate N, one of them");
    if (!a.generate && !a.out) return cli_misused("embed", "wants --out FILE for the values");
    return run(&a, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}
