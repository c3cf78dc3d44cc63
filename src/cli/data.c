/* kith data: what a data set contains, and whether its files can be read. */
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "cli/data.h"
#include "cli/images.h"
#include "cli/recipes.h"
#include "kith/experimental/json.h"
#include "kith/report.h"

enum { N_FIRST_CLASSES = 10 };

typedef struct request {
    const char *source, *kind, *labels, *out, *split, *views, *html;
    cli_list sets;
    bool check, json, speed, duplicates, doctor, no_vectors, no_shortcut;
    kith_model_options model;
    int64_t n_suspects;
    double validation;
    int64_t folds, fold, seed, train_classes, workers;
} request;

static bool is_recipe(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".yaml") == 0 || strcasecmp(dot, ".yml") == 0);
}

/* Duplicates need no classes: images in one folder will do. */
static kith_status open_root(const request *r, kith_dataset **ret, kith_error *err) {
    kith_error why;
    const kith_status status = kith_dataset_open(r->kind, r->source, ret, err);
    if (status == KITH_OK || r->kind || !(r->duplicates || r->doctor)) return status;
    return kith_dataset_open_files(&r->source, 1, ret, &why) == KITH_OK ? KITH_OK : status;
}

static kith_status open_set(const request *r, kith_dataset **ret, kith_error *err) {
    kith_status status = is_recipe(r->source) ? kith_dataset_open_recipe(r->source, ret, err)
                         : r->labels          ? kith_dataset_open_features(r->source, r->labels, ret, err)
                                              : open_root(r, ret, err);
    if (status != KITH_OK) return status;
    if (r->train_classes > 0) status = kith_dataset_split_first(*ret, (int32_t)r->train_classes, err);
    if (status == KITH_OK && r->split) status = kith_dataset_split_read(*ret, r->split, err);
    if (status == KITH_OK && r->folds > 0)
        status = kith_dataset_hold_out_fold(*ret, (int)r->folds, (int)r->fold, (uint64_t)r->seed, err);
    else if (status == KITH_OK && r->validation > 0)
        status = kith_dataset_hold_out(*ret, r->validation, (uint64_t)r->seed, err);
    if (status == KITH_OK && r->out && !r->doctor) status = kith_dataset_split_write(*ret, r->out, err);
    return status;
}

static int show_progress(void *user, int64_t n_done, int64_t n_all) {
    (void)n_all;
    cli_progress_update(user, n_done, NULL);
    return 0;
}

typedef struct findings {
    kith_split_summary split[KITH_N_SPLITS];
    kith_scan scan;
    kith_data_speed speed;
    int side; /* of the images whose speed it is */
    int64_t n_empty;
} findings;

static kith_status look(const request *r, const kith_dataset *set, findings *f, kith_error *err) {
    kith_status status = KITH_OK;
    for (int s = 0; s < KITH_N_SPLITS && status == KITH_OK; s++)
        status = kith_dataset_summary(set, (kith_split)s, &f->split[s], err);
    if (status != KITH_OK) return status;
    f->n_empty = kith_dataset_n_classes(set);
    const int64_t n = kith_dataset_count(set);
    /* A class may be in two splits (idx files): count each class that has an image in any split once. */
    int64_t n_used = 0;
    for (int64_t label = 0; label < kith_dataset_n_classes(set); label++)
        n_used += kith_dataset_class_count(set, label) > 0;
    f->n_empty -= n_used;
    cli_progress progress;
    cli_progress_begin(&progress, r->check ? "decoding" : "looking", n);
    status = kith_dataset_scan(set, r->check, show_progress, &progress, &f->scan, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && r->speed && kith_dataset_n_features(set) > 0)
        status = cli_error(err, KITH_EINVAL, NULL, "--speed times how images are read; %.300s holds features",
                           r->source);
    if (status != KITH_OK || !r->speed) return status;
    KITH_OPTIONS(kith_transform, transform);
    transform.crop = KITH_CROP_RANDOM;
    transform.mirror = true;
    KITH_OPTIONS(kith_transform, test);
    if (is_recipe(r->source)) {
        status = kith_transform_open_recipe(r->source, &transform, &test, err);
        if (status != KITH_OK) return status;
    }
    f->side = transform.crop_to;
    return kith_data_speed_measure(set,
                                   f->split[KITH_SPLIT_TRAIN].n_images ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST,
                                   &transform, r->workers, 8192, &f->speed, err);
}

static void print_bad(const kith_scan *c) {
    for (int64_t i = 0; i < c->n_named; i++) printf("  %s\n", c->why[i]);
    if (c->n_bad > c->n_named) printf("  … and %jd more\n", (intmax_t)(c->n_bad - c->n_named));
}

static const char *first_class(const kith_dataset *set, int64_t i) {
    return i < N_FIRST_CLASSES ? kith_dataset_class_name(set, i) : NULL;
}

/* So that a glance shows whether the folders meant are the classes. */
static void print_classes(const kith_dataset *set) {
    printf("classes     ");
    for (int64_t i = 0; first_class(set, i); i++) printf("%s%s", i ? ", " : "", first_class(set, i));
    puts(kith_dataset_n_classes(set) > N_FIRST_CLASSES ? " …" : "");
}

static void print_text(const request *r, const kith_dataset *set, const findings *f) {
    const int64_t n_features = kith_dataset_n_features(set);
    const char *items = n_features ? "rows" : "images";
    printf("%s: %s, %jd %s, %jd classes\n\n", kith_dataset_root(set), kith_dataset_kind(set),
           (intmax_t)kith_dataset_count(set), items, (intmax_t)kith_dataset_n_classes(set));
    printf("%-12s %8s %8s   %6s per class: %5s %6s %5s %8s\n", "split", items, "classes", items, "least",
           "median", "most", "single");
    for (int s = 0; s < KITH_N_SPLITS; s++) {
        const kith_split_summary *p = &f->split[s];
        if (p->n_images == 0) continue;
        printf("%-12s %8jd %8jd   %23jd %6jd %5jd %8jd\n", kith_split_name((kith_split)s),
               (intmax_t)p->n_images, (intmax_t)p->n_classes, (intmax_t)p->per_class_min,
               (intmax_t)p->per_class_median, (intmax_t)p->per_class_max, (intmax_t)p->n_single);
        if (p->n_query || p->n_gallery)
            printf("%-12s %8jd query, %jd gallery\n", "", (intmax_t)p->n_query, (intmax_t)p->n_gallery);
    }
    putchar('\n');
    print_classes(set);
    const kith_scan *c = &f->scan;
    if (n_features) {
        printf("numbers     %jd in a row\n", (intmax_t)n_features);
        printf("unreadable  %jd rows%s\n", (intmax_t)c->n_bad, r->check ? "" : " (--check reads them all)");
        print_bad(c);
        if (r->out) printf("written     %s\n", r->out);
        return;
    }
    printf("width       %d … %d … %d pixels (least, median, most)\n", c->width[0], c->width[1], c->width[2]);
    printf("height      %d … %d … %d pixels\n", c->height[0], c->height[1], c->height[2]);
    if (kith_dataset_n_super_classes(set))
        printf("above them  %jd super-class%s\n", (intmax_t)kith_dataset_n_super_classes(set),
               kith_dataset_n_super_classes(set) == 1 ? "" : "es");
    if (kith_dataset_n_groups(set))
        printf("groups      %jd, none in two splits\n", (intmax_t)kith_dataset_n_groups(set));
    if (f->n_empty) printf("empty       %jd classes without an image\n", (intmax_t)f->n_empty);
    printf("missing     %jd files\n", (intmax_t)kith_dataset_n_missing(set));
    for (int64_t i = 0; kith_dataset_missing(set, i); i++) printf("  %s\n", kith_dataset_missing(set, i));
    if (kith_dataset_n_nested(set)) {
        printf(
            "nested      %jd folder%s inside class folders: images there are of the outer folder's class\n",
            (intmax_t)kith_dataset_n_nested(set), kith_dataset_n_nested(set) == 1 ? "" : "s");
        for (int64_t i = 0; kith_dataset_nested(set, i); i++) printf("  %s\n", kith_dataset_nested(set, i));
    }
    if (kith_dataset_n_unread(set)) {
        printf("not read    %s\n", kith_dataset_unread_kinds(set));
        for (int64_t i = 0; kith_dataset_unread(set, i); i++) printf("  %s\n", kith_dataset_unread(set, i));
    }
    printf("unreadable  %jd files%s\n", (intmax_t)c->n_bad,
           r->check ? "" : " (headers only; --check decodes everything)");
    print_bad(c);
    if (r->speed)
        printf(
            "speed       %.0f images/s decoded, %.0f images/s from the cache (%d px, %jd workers, %jd "
            "images)\n",
            f->speed.decoded_per_second, f->speed.cached_per_second, f->side, (intmax_t)f->speed.n_workers,
            (intmax_t)f->speed.n_images);
    if (r->out) printf("written     %s\n", r->out);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_sizes(kith_json *json, const char *key, const int32_t size[3]) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    for (int i = 0; i < 3; i++) kith_json_int(json, size[i]);
    kith_json_array_end(json);
}

typedef const char *text_fn(const kith_dataset *set, int64_t i);

static void put_texts(kith_json *json, const char *key, const kith_dataset *set, text_fn *text) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    for (int64_t i = 0; text(set, i); i++) kith_json_string(json, text(set, i));
    kith_json_array_end(json);
}

static kith_status print_json(const request *r, const kith_dataset *set, const findings *f, kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    kith_json_key(json, "dataset");
    kith_json_string(json, kith_dataset_kind(set));
    kith_json_key(json, "root");
    kith_json_string(json, kith_dataset_root(set));
    put_int(json, "images", kith_dataset_count(set));
    put_int(json, "classes", kith_dataset_n_classes(set));
    put_texts(json, "first_classes", set, first_class);
    put_int(json, "empty_classes", f->n_empty);
    if (kith_dataset_n_features(set) > 0) put_int(json, "numbers", kith_dataset_n_features(set));
    kith_json_key(json, "splits");
    kith_json_object_begin(json);
    for (int s = 0; s < KITH_N_SPLITS; s++) {
        const kith_split_summary *p = &f->split[s];
        if (p->n_images == 0) continue;
        kith_json_key(json, kith_split_name((kith_split)s));
        kith_json_object_begin(json);
        put_int(json, "images", p->n_images);
        put_int(json, "classes", p->n_classes);
        put_int(json, "per_class_min", p->per_class_min);
        put_int(json, "per_class_median", p->per_class_median);
        put_int(json, "per_class_max", p->per_class_max);
        put_int(json, "single", p->n_single);
        put_int(json, "query", p->n_query);
        put_int(json, "gallery", p->n_gallery);
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
    if (kith_dataset_n_super_classes(set)) put_int(json, "super_classes", kith_dataset_n_super_classes(set));
    if (kith_dataset_n_groups(set)) put_int(json, "groups", kith_dataset_n_groups(set));
    put_sizes(json, "width", f->scan.width);
    put_sizes(json, "height", f->scan.height);
    put_int(json, "missing", kith_dataset_n_missing(set));
    put_int(json, "not_read", kith_dataset_n_unread(set));
    put_texts(json, "not_read_files", set, kith_dataset_unread);
    put_texts(json, "nested_folders", set, kith_dataset_nested);
    put_int(json, "unreadable", f->scan.n_bad);
    kith_json_key(json, "unreadable_files");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < f->scan.n_named; i++) kith_json_string(json, f->scan.bad[i]);
    kith_json_array_end(json);
    if (r->speed) {
        kith_json_key(json, "decoded_per_second");
        kith_json_real(json, f->speed.decoded_per_second);
        kith_json_key(json, "cached_per_second");
        kith_json_real(json, f->speed.cached_per_second);
        put_int(json, "workers", f->speed.n_workers);
    }
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static int write_views(const request *r) {
    kith_error err;
    KITH_OPTIONS(kith_views_options, options);
    options.sets = r->sets.item;
    options.n_sets = r->sets.n_items;
    if (!is_recipe(r->source))
        return cli_misused("data", "--views wants a recipe (.yaml): it says what views are");
    if (kith_views_write(r->source, r->views, &options, &err) != KITH_OK) return cli_fail(&err);
    printf("%s: photos as %s shows them to the network\n", r->views, r->source);
    return CLI_OK;
}

/* --duplicates and --doctor, of a set that was opened with this status. */
static int find_faults(const request *r, kith_dataset *set, kith_status status, kith_error *err) {
    bool has_errors = false;
    if (status == KITH_OK && r->duplicates) {
        const data_duplicates_request asked = {r->source, r->json, r->model, r->n_suspects};
        status = data_duplicates(set, &asked, err);
    } else if (status == KITH_OK) {
        const data_doctor_request asked = {r->source, r->out,        &r->model,      r->n_suspects,
                                           r->json,   r->no_vectors, r->no_shortcut, r->html};
        status = data_doctor(set, &asked, &has_errors, err);
    }
    kith_dataset_free(set);
    if (status != KITH_OK) return cli_fail(err);
    return has_errors && !r->out ? CLI_FAILURE : CLI_OK; /* a list without them is what was asked for */
}

int cmd_data(int argc, char **argv) {
    request r = {.n_suspects = 20};
    const char *model = NULL;
    kith_model_options_init(&r.model, sizeof r.model);
    const cli_option options[] = {
        CLI_TEXT("dataset", "NAME", &r.kind, "the layout (see kith list datasets); found out when not given"),
        CLI_TEXT("labels|y", "FILE", &r.labels,
                 "classes of features (.npy): .npy, .txt or .csv; default: NAME.labels.* beside NAME.npy"),
        CLI_FLAG("check", &r.check, "decode every image, not only its header"),
        CLI_FLAG("duplicates", &r.duplicates,
                 "instead, the same picture more than once: in training and test, in several classes"),
        CLI_FLAG("doctor", &r.doctor,
                 "instead, what is wrong, the worst first: unreadable files, the same picture twice, labels "
                 "that look "
                 "wrong, odd ones out, blurred images, surroundings that give classes away; -o writes a list "
                 "without what should be left out, --html a page of pictures"),
        CLI_OUT("html", "FILE", &r.html, ".html",
                "for --doctor: also write the findings with pictures, as one page"),
        CLI_FLAG("no-vectors", &r.no_vectors, "for --doctor: without what needs a model"),
        CLI_FLAG("no-shortcut", &r.no_shortcut,
                 "for --doctor: do not look whether surroundings give classes away, which embeds up to 2,000 "
                 "images "
                 "again"),
        CLI_TEXT("model|m", "RUN|MODEL", &model,
                 "for --duplicates: also find labels that look wrong, by the neighbours in this model's "
                 "embedding; for --doctor: this model instead of general"),
        CLI_INT("suspects", "N", &r.n_suspects, 1, 1000000,
                "how many of these are shown; of --doctor: of each kind of finding"),
        CLI_TEXT("backbone", "NAME", &r.model.backbone, "of --model, where the file does not say"),
        CLI_TEXT("pool", "HOW", &r.model.pool,
                 "its pooling: avg, max, both, gem, class, class_avg or attention"),
        CLI_TEXT("resize", "HOW", &r.model.resize, CLI_RESIZE_HELP),
        CLI_TEXT("device", "NAME", &r.model.device, "what it runs on (see kith list devices)"),
        CLI_FLAG("json", &r.json, "print the result as JSON"),
        CLI_INT("train-classes", "N", &r.train_classes, 0, INT32_MAX,
                "the first N classes train, the others test"),
        CLI_REAL("validation", "X", &r.validation, 0, 0.9, "hold out this part of the training classes"),
        CLI_INT("folds", "K", &r.folds, 0, 1000, "or cut the training classes into K parts"),
        CLI_INT("fold", "I", &r.fold, 0, 999, "and hold out the I-th, from 0"),
        CLI_INT("seed", "N", &r.seed, 0, INT64_MAX, "which classes are held out"),
        CLI_TEXT("split", "FILE", &r.split, "take the held-out classes from a file"),
        CLI_OUT("out|o", "FILE", &r.out, "",
                "write the training and validation classes to a file (class,split); of --doctor: the images "
                "to keep "
                "(path,label,split)"),
        CLI_OUT("views", "FILE", &r.views, ".html or .jpg or .png",
                "instead, write a page or a picture of what the recipe shows the network: photos and their "
                "views"),
        CLI_LIST("set|s", "KEY=VALUE", &r.sets, "override a key of the recipe for --views"),
        CLI_FLAG("speed", &r.speed,
                 "time the loader: views as the recipe's input: says; of a folder squash 256, random crop "
                 "227, mirror"),
        CLI_INT("workers", "N", &r.workers, 0, 256, "threads for --speed; 0: one per core"),
        CLI_END};
    const cli_usage usage = {
        .operands = "RECIPE.yaml|recipe:NAME|ROOT",
        .least = 1,
        .most = 1,
        .options = options,
        .details =
            "Prints classes, images per class, image sizes, missing and unreadable files, and what is not "
            "read "
            "and why. In folders the folder below ROOT names the class, however deep the image lies.\n"
            "The exit status is 1 when no image can be read, when --check finds a file that cannot be read, "
            "or --doctor without -o "
            "finds an "
            "error."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    char file[CLI_RECIPE_BYTES];
    r.source = argv[1];
    const int taken = cli_recipe_take("data", false, r.json, &r.source, file);
    if (taken != CLI_RUN) return taken;
    if (r.folds > 0 && r.validation > 0) return cli_misused("data", "give --validation or --folds, not both");
    if (r.duplicates && r.doctor) return cli_misused("data", "give --duplicates or --doctor, not both");
    if (model && !r.duplicates && !r.doctor)
        return cli_misused("data", "--model is for --duplicates and --doctor");
    if (r.no_vectors && (!r.doctor || model))
        return cli_misused("data", "--no-vectors is for --doctor without --model");
    if ((r.html || r.no_shortcut) && !r.doctor)
        return cli_misused("data", r.html ? "--html is for --doctor" : "--no-shortcut is for --doctor");
    if (r.views) return write_views(&r);
    r.model.weights = model;
    kith_error err;
    kith_dataset *set = NULL;
    findings f = {0};
    kith_status status = open_set(&r, &set, &err);
    if (r.duplicates || r.doctor) return find_faults(&r, set, status, &err);
    if (status == KITH_OK) status = look(&r, set, &f, &err);
    if (status == KITH_OK && r.json) status = print_json(&r, set, &f, &err);
    if (status == KITH_OK && !r.json) print_text(&r, set, &f);
    const bool is_bad = r.check && f.scan.n_bad > 0;
    const int64_t n = status == KITH_OK ? kith_dataset_count(set) : 0;
    if (n > 0 && f.scan.n_read == 0)
        status =
            cli_error(&err, KITH_EFORMAT, NULL, "no image of %jd in %.200s can be read; the first: %.200s",
                      (intmax_t)n, r.source, f.scan.n_named > 0 ? f.scan.bad[0] : "");
    kith_scan_release(&f.scan);
    kith_dataset_free(set);
    if (status != KITH_OK) return cli_fail(&err);
    return is_bad ? CLI_FAILURE : CLI_OK;
}
