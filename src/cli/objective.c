/* kith objective: a recipe's objective on given arrays. */
#include "kith/objective.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/recipes.h"
#include "kith/experimental/json.h"
#include "kith/knn.h"
#include "kith/labels.h"

typedef struct request {
    const char *recipe, *labels, *embedding, *pooled, *map, *state, *out, *plot, *descriptor, *device;
    int64_t step, seed, pca, heads;
    cli_list teachers;
    bool json;
} request;

/* The arrays of one run, as the library takes them. */
typedef struct inputs {
    kith_array labels, tap[KITH_N_TAPS];
    kith_batch batch;
    kith_objective_sizes sizes;
} inputs;

static void inputs_release(inputs *in) {
    kith_array_release(&in->labels);
    for (int t = 0; t < KITH_N_TAPS; t++) kith_array_release(&in->tap[t]);
}

static kith_status fail(kith_error *err, kith_status status, const char *fmt, ...) KITH_PRINTF(3, 4);
static kith_status fail(kith_error *err, kith_status status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    err->hint[0] = '\0';
    return err->status = status;
}

static kith_status read_floats(const char *path, int n_dims, kith_array *ret, kith_error *err) {
    kith_array raw;
    kith_status status = kith_npy_read(path, &raw, err);
    if (status != KITH_OK) return status;
    if (raw.n_dims != n_dims) {
        status = fail(err, KITH_ESHAPE, "%s has %d dimensions; wanted %d", path, raw.n_dims, n_dims);
    } else {
        status = kith_array_convert(&raw, KITH_F32, ret, err);
    }
    kith_array_release(&raw);
    return status;
}

static kith_status read_tap(const char *path, kith_tap tap, inputs *in, kith_error *err) {
    if (!path) return KITH_OK;
    kith_array *a = &in->tap[tap];
    const kith_status status = read_floats(path, tap == KITH_TAP_MAP ? 4 : 2, a, err);
    if (status != KITH_OK) return status;
    kith_batch_tap *to = &in->batch.tap[tap];
    *to = (kith_batch_tap){.data = a->data, .rows = a->dim[0], .cols = a->dim[1]};
    if (tap == KITH_TAP_MAP) to->height = a->dim[2], to->width = a->dim[3];
    if (to->rows == in->batch.n) return KITH_OK;
    return fail(err, KITH_ESHAPE, "%s has %jd rows, but there are %jd labels", path, (intmax_t)to->rows,
                (intmax_t)in->batch.n);
}

/* As many classes as the labels have. If a saved state has another number, that one counts
 * (kith_objective_restore). */
static void count_classes(inputs *in) {
    const int64_t *labels = in->labels.data;
    for (int64_t i = 0; i < in->batch.n; i++) {
        if (labels[i] >= in->sizes.n_classes && labels[i] < INT32_MAX) in->sizes.n_classes = labels[i] + 1;
    }
}

/* The embedding layer's weights, when the state has them. */
static kith_status read_weight(const request *r, inputs *in, kith_error *err) {
    if (!r->state) return KITH_OK;
    kith_tensors *state = NULL;
    kith_array view;
    kith_status status = kith_tensors_open(r->state, &state, err);
    if (status != KITH_OK) return status;
    if (kith_tensors_get(state, "embedding.weight", &view, NULL) == KITH_OK && view.n_dims == 2) {
        status = kith_array_convert(&view, KITH_F32, &in->tap[KITH_TAP_WEIGHT], err);
        if (status == KITH_OK)
            in->batch.tap[KITH_TAP_WEIGHT] = (kith_batch_tap){
                .data = in->tap[KITH_TAP_WEIGHT].data, .rows = view.dim[0], .cols = view.dim[1]};
    }
    kith_tensors_free(state);
    return status;
}

static kith_status check_teachers(const request *r, kith_error *err) {
    if (r->teachers.n_items <= KITH_MOST_TEACHERS) return KITH_OK;
    return fail(err, KITH_EINVAL, "--teacher is given %d times; at most %d are possible", r->teachers.n_items,
                KITH_MOST_TEACHERS);
}

static kith_status read_inputs(const request *r, inputs *in, kith_error *err) {
    kith_status status = kith_labels_read(NULL, r->labels, &in->labels, err);
    if (status != KITH_OK) return status;
    in->batch.n = in->labels.dim[0];
    in->batch.labels = in->labels.data;
    in->batch.step = (uint64_t)r->step;
    if ((status = read_tap(r->embedding, KITH_TAP_EMBEDDING, in, err)) != KITH_OK) return status;
    if ((status = read_tap(r->pooled, KITH_TAP_POOLED, in, err)) != KITH_OK) return status;
    if ((status = read_tap(r->map, KITH_TAP_MAP, in, err)) != KITH_OK) return status;
    if ((status = check_teachers(r, err)) != KITH_OK) return status;
    for (int t = 0; t < r->teachers.n_items; t++) {
        const kith_tap tap = (kith_tap)((int)KITH_TAP_TEACHER + t);
        if ((status = read_tap(r->teachers.item[t], tap, in, err)) != KITH_OK) return status;
        in->sizes.teacher[t] = in->batch.tap[tap].cols;
    }
    in->sizes.embedding = in->batch.tap[KITH_TAP_EMBEDDING].cols;
    in->sizes.pooled = in->batch.tap[KITH_TAP_POOLED].cols;
    in->sizes.map = in->batch.tap[KITH_TAP_MAP].cols;
    in->sizes.heads = r->heads;
    count_classes(in);
    return read_weight(r, in, err);
}

/* For --plot alone: sixteen classes of eight, from tight to scattered, so that similarities of all sizes
 * occur. */
static kith_status make_inputs(inputs *in, kith_error *err) {
    enum { CLASSES = 16, IMAGES = 8, DIM = 16 };
    const int64_t n = CLASSES * IMAGES, shape[] = {n, DIM};
    kith_status status = kith_array_init(KITH_I64, 1, shape, &in->labels, err);
    if (status == KITH_OK) status = kith_array_init(KITH_F32, 2, shape, &in->tap[KITH_TAP_EMBEDDING], err);
    if (status != KITH_OK) return status;
    int64_t *labels = in->labels.data;
    float *x = in->tap[KITH_TAP_EMBEDDING].data;
    uint32_t word = 12345;
    for (int64_t i = 0; i < n; i++) {
        labels[i] = i / IMAGES;
        const float spread = 0.15f + 0.12f * (float)labels[i];
        for (int k = 0; k < DIM; k++) {
            float noise = 0;
            for (int d = 0; d < 4; d++) {
                word = word * 1664525u + 1013904223u;
                noise += (float)(word >> 8) / 16777216.0f - 0.5f;
            }
            x[i * DIM + k] = (k == i / IMAGES ? 1.0f : 0.0f) + (k == 0 ? 0.4f : 0.0f) + spread * noise;
        }
    }
    in->batch.n = n;
    in->batch.labels = labels;
    in->batch.tap[KITH_TAP_EMBEDDING] = (kith_batch_tap){.data = x, .rows = n, .cols = DIM};
    in->sizes = (kith_objective_sizes){.n_classes = CLASSES, .embedding = DIM};
    return KITH_OK;
}

/* The arrays that the terms read must have been given. This is checked with an objective of made-up sizes, because the
 * real one cannot be made without the arrays. Other mistakes in a recipe are reported when the real one is made. */
static kith_status check_taps(const request *r, const inputs *in, kith_error *err) {
    static const char *const wanted[KITH_N_TAPS] = {
        [KITH_TAP_MAP] = "give feature maps [m, c, h, w] with --map M.npy",
        [KITH_TAP_POOLED] = "give pooled features [m, c] with --pooled P.npy",
        [KITH_TAP_EMBEDDING] = "give embeddings [m, d] with --embedding X.npy",
        [KITH_TAP_WEIGHT] = "give a file that has embedding.weight with --state FILE.safetensors"};
    static const kith_objective_sizes some = {
        .n_classes = 4, .embedding = 16, .pooled = 16, .map = 16, .teacher = {16, 16, 16, 16}};
    kith_objective *probe = NULL;
    kith_status status = KITH_OK;
    if (kith_objective_open(r->recipe, &some, 0, &probe, err) != KITH_OK) return KITH_OK;
    for (int t = 0; t < KITH_N_TAPS && status == KITH_OK; t++) {
        if (kith_objective_reads(probe, (kith_tap)t) && !in->batch.tap[t].data)
            status = cli_error(
                err, KITH_EINVAL,
                wanted[t] ? wanted[t] : "give what each teacher says [m, w] with --teacher T.npy, in order",
                "%s: the objective reads %s, which is not given", r->recipe, kith_tap_name((kith_tap)t));
    }
    kith_objective_free(probe);
    return status;
}

static kith_status open_objective(const request *r, const inputs *in, kith_objective **ret, kith_error *err) {
    if (r->state) return kith_objective_restore(r->recipe, r->state, &in->sizes, (uint64_t)r->seed, ret, err);
    return kith_objective_open(r->recipe, &in->sizes, (uint64_t)r->seed, ret, err);
}

static kith_status write_gradient(const char *folder, kith_tap tap, const kith_array *like,
                                  const float *gradient, kith_error *err) {
    static const char *const names[KITH_N_TAPS] = {"grad_map.npy", "grad_pooled.npy", "grad_embedding.npy",
                                                   NULL};
    char path[4096];
    if (!gradient || !names[tap]) return KITH_OK;
    snprintf(path, sizeof path, "%s/%s", folder, names[tap]);
    kith_array array = *like;
    array.data = (void *)(uintptr_t)gradient; /* the array is only read */
    return kith_npy_write(path, &array, err);
}

static kith_status write_state(const char *folder, kith_objective *objective, const inputs *in,
                               const kith_objective_result *result, kith_error *err) {
    char path[4096];
    kith_tensors_writer *writer = NULL;
    kith_objective_param param;
    int n = 0;
    kith_status status = kith_tensors_writer_new(&writer, err);
    for (int i = 0; status == KITH_OK && kith_objective_param_at(objective, i, &param); i++) {
        if (!param.gradient) continue;
        kith_array array = {.dtype = KITH_F32, .n_dims = param.n_dims, .data = param.gradient};
        memcpy(array.dim, param.dim, sizeof array.dim);
        status = kith_tensors_writer_add(writer, param.name, &array, err);
        n++;
    }
    kith_array weight = in->tap[KITH_TAP_WEIGHT];
    if (status == KITH_OK && result->gradient[KITH_TAP_WEIGHT]) {
        weight.data = (void *)(uintptr_t)result->gradient[KITH_TAP_WEIGHT];
        status = kith_tensors_writer_add(writer, "embedding.weight", &weight, err);
        n++;
    }
    snprintf(path, sizeof path, "%s/grad_state.safetensors", folder);
    if (status == KITH_OK && n > 0) status = kith_tensors_writer_save(writer, path, err);
    kith_tensors_writer_free(writer);
    return status;
}

static kith_status write_weights(const char *folder, kith_objective *objective, const inputs *in,
                                 kith_error *err) {
    char path[4096];
    kith_array weight = {0};
    kith_status status = kith_objective_weights(objective, &in->batch, &weight, NULL, err);
    if (status != KITH_OK) return status;
    snprintf(path, sizeof path, "%s/weights.npy", folder);
    status = kith_npy_write(path, &weight, err);
    kith_array_release(&weight);
    return status;
}

/* The test-time descriptor, reduced to r->pca components if asked for. */
static kith_status write_descriptor(const request *r, kith_objective *objective, const inputs *in,
                                    kith_error *err) {
    kith_array whole = {0}, projected = {0};
    kith_pca pca = {0};
    const kith_pca_options options = {.size = sizeof(kith_pca_options), .n_components = r->pca};
    kith_status status = kith_objective_describe(objective, &in->batch, &whole, err);
    if (status == KITH_OK && r->pca) {
        status = kith_pca_fit(&whole, &options, &pca, err);
        if (status == KITH_OK) status = kith_pca_apply(&pca, &whole, &projected, err);
    }
    if (status == KITH_OK) status = kith_npy_write(r->descriptor, r->pca ? &projected : &whole, err);
    kith_pca_release(&pca);
    kith_array_release(&projected);
    kith_array_release(&whole);
    return status;
}

static kith_status write_all(const request *r, kith_objective *objective, const inputs *in,
                             const kith_objective_result *result, bool has_loss, kith_error *err) {
    if (mkdir(r->out, 0777) != 0 && errno != EEXIST)
        return fail(err, KITH_EIO, "cannot make the folder %s: %s", r->out, strerror(errno));
    kith_status status = KITH_OK;
    for (int t = 0; t < KITH_N_TAPS && status == KITH_OK; t++)
        status = write_gradient(r->out, (kith_tap)t, &in->tap[t], result->gradient[t], err);
    if (status == KITH_OK) status = write_state(r->out, objective, in, result, err);
    /* Last, because it evaluates again, which reuses the memory of the gradients. */
    if (status == KITH_OK && has_loss) status = write_weights(r->out, objective, in, err);
    return status;
}

static kith_status print_json(const kith_objective_result *result, kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    kith_json_key(json, "total");
    kith_json_real(json, result->total);
    kith_json_key(json, "terms");
    kith_json_object_begin(json);
    for (int i = 0; i < result->n_terms; i++) {
        kith_json_key(json, result->terms[i].name);
        kith_json_real(json, result->terms[i].value);
    }
    kith_json_object_end(json);
    kith_json_key(json, "weights");
    kith_json_object_begin(json);
    for (int i = 0; i < result->n_terms; i++) {
        kith_json_key(json, result->terms[i].name);
        kith_json_real(json, result->terms[i].weight);
    }
    kith_json_object_end(json);
    kith_json_key(json, "positive_pairs");
    kith_json_int(json, result->n_positive);
    kith_json_key(json, "negative_pairs");
    kith_json_int(json, result->n_negative);
    kith_json_key(json, "warnings");
    kith_json_int(json, result->n_empty);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static void print_text(const kith_objective_result *result, bool has_loss) {
    printf("%-20s %14s %10s %14s\n", "term", "value", "weight", "in total");
    for (int i = 0; i < result->n_terms; i++) {
        const kith_term *t = &result->terms[i];
        printf("%-20s %14.8g %10.4g %14.8g\n", t->name, t->value, t->weight, t->value * t->weight);
    }
    printf("%-20s %14s %10s %14.8g\n", "total", "", "", result->total);
    if (has_loss)
        printf("pairs that count: %jd positive, %jd negative\n", (intmax_t)result->n_positive,
               (intmax_t)result->n_negative);
    if (result->n_empty) printf("warning: no pair counts; the loss is 0\n");
}

static kith_status run(const request *r, inputs *in, kith_objective **objective, kith_error *err) {
    kith_status status = r->labels ? read_inputs(r, in, err) : make_inputs(in, err);
    if (status == KITH_OK) status = check_taps(r, in, err);
    if (status == KITH_OK) status = open_objective(r, in, objective, err);
    if (status == KITH_OK && r->device) status = kith_objective_place(*objective, r->device, err);
    if (status == KITH_OK && r->plot) status = kith_objective_plot(*objective, &in->batch, r->plot, err);
    if (status != KITH_OK || !r->labels) return status;
    kith_objective_result result;
    status = kith_objective_evaluate(*objective, &in->batch, &result, err);
    if (status != KITH_OK) return status;
    const bool has_loss = kith_objective_has_loss(*objective);
    if (r->json)
        status = print_json(&result, err);
    else
        print_text(&result, has_loss);
    if (status == KITH_OK && r->out) status = write_all(r, *objective, in, &result, has_loss, err);
    if (status == KITH_OK && r->descriptor) status = write_descriptor(r, *objective, in, err);
    return status;
}

int cmd_objective(int argc, char **argv) {
    request r = {0};
    const cli_option options[] = {
        CLI_TEXT("labels", "FILE", &r.labels, "the classes [m]: .npy, .txt or .csv"),
        CLI_TEXT("embedding", "X.npy", &r.embedding, "un-normalised embeddings, float [m, d]"),
        CLI_TEXT("pooled", "P.npy", &r.pooled, "pooled features [m, c], for terms that read them"),
        CLI_TEXT("map", "M.npy", &r.map, "feature maps [m, c, h, w], for terms that read them"),
        CLI_LIST("teacher", "T.npy", &r.teachers,
                 "what a teacher says of the items, float [m, w]; the second for teacher 1"),
        CLI_TEXT("state", "FILE.safetensors", &r.state, "what the terms have learned, by name"),
        CLI_OUT_FOLDER("out|o", "DIR", &r.out, "write gradients and pair weights there"),
        CLI_OUT("descriptor", "D.npy", &r.descriptor, ".npy",
                "write the descriptors for test time: the embedding and all of HORDE's orders"),
        CLI_INT("pca", "N", &r.pca, 0, 65536, "reduce the descriptors to N components by PCA; 0: do not"),
        CLI_OUT("plot", "FILE.svg", &r.plot, ".svg",
                "draw pair weight against similarity; made-up data without --labels"),
        CLI_INT("heads", "N", &r.heads, 0, 1024,
                "the embedding is N vectors side by side, the heads of an ensemble; 0: it is one"),
        CLI_INT("step", "N", &r.step, 0, INT64_MAX, "training step, for warm-ups and random choices"),
        CLI_INT("seed", "N", &r.seed, 0, INT64_MAX, "for parameters that --state does not give"),
        CLI_TEXT("device", "NAME", &r.device, "where it is evaluated: cpu, or cuda"),
        CLI_FLAG("json", &r.json, "print the result as JSON"),
        CLI_END};
    const cli_usage usage = {
        .operands = "RECIPE.yaml|recipe:NAME",
        .least = 1,
        .most = 1,
        .options = options,
        .details =
            "Evaluates the recipe's objective section on arrays and prints every term, unweighted,\n"
            "and their weighted total. --out receives grad_embedding.npy, grad_pooled.npy,\n"
            "grad_map.npy, grad_state.safetensors and weights.npy, those that the objective has."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    char file[CLI_RECIPE_BYTES];
    r.recipe = argv[1];
    const int taken = cli_recipe_take("objective", false, r.json, &r.recipe, file);
    if (taken != CLI_RUN) return taken;
    if (!r.labels && (!r.plot || r.embedding || r.pooled || r.map || r.state || r.out))
        return cli_misused("objective", "--labels is missing (only --plot can do without arrays)");
    kith_error err = {0};
    inputs in = {0};
    kith_objective *objective = NULL;
    const kith_status status = run(&r, &in, &objective, &err);
    kith_objective_free(objective);
    inputs_release(&in);
    return status == KITH_OK ? CLI_OK : cli_fail(&err);
}
