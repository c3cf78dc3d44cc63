/* Opening a model file: its metadata, options that override it, the net with its weights. */
#include "net/model_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "hub/cache.h"
#include "net/calibration.h"
#include "net/contract.h"
#include "net/general.h"
#include "net/numbers.h"
#include "net/recognise.h"
#include "net/weights.h"

/* Bytes of the words in kith_preprocess. */
enum { PREPROCESS_WORD = sizeof(((kith_preprocess *)NULL)->resize) };

/* The format version, written to files; a file with a higher number is refused. */
static const char format_key[] = "kith.format", format_version[] = "1";
static const char heads_key[] = "kith.heads", nested_key[] = "kith.nested";

static bool is_general(const char *name) { return strcmp(name, KI_GENERAL) == 0 && access(name, F_OK) != 0; }

bool ki_model_file_is_name(const char *name) { return ki_hub_is_name(name) || is_general(name); }

kith_status ki_model_file_find(const char *name, char *ret_file, size_t bytes, kith_error *err) {
    static const char *const files[] = {"model.safetensors", "best.safetensors"};
    if (ki_hub_is_name(name)) return ki_hub_resolve(name, ret_file, bytes, err);
    if (is_general(name)) return ki_general_find(ret_file, bytes, err);
    const bool is_folder = ki_is_folder("%s", name);
    const char *file = NULL;
    for (size_t i = 0; is_folder && !file && i < sizeof files / sizeof files[0]; i++) {
        if (ki_is_file("%s/%s", name, files[i])) file = files[i];
    }
    if (is_folder && !file) {
        ki_fail(err, KITH_EIO, "%s has neither a model.safetensors nor a best.safetensors", name);
        return ki_hint(err, KITH_EIO, "name a safetensors file, or the folder of a training run");
    }
    const int n =
        file ? ki_snprintf(ret_file, bytes, "%s/%s", name, file) : ki_snprintf(ret_file, bytes, "%s", name);
    if (n >= 0 && (size_t)n < bytes) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "the model's path is longer than %zu bytes: %.60s…", bytes - 1, name);
}

/* A file that says what a model is. */
typedef struct source {
    const kith_tensors *tensors;
    const ki_named *named;       /* its tensors under our names */
    const ki_contract *contract; /* what lies beside the file; may be NULL */
} source;

/* The tensor, when there is one. */
static bool find(const source *from, const char *name, kith_array *ret_view) {
    return ki_named_get(from->named, name, ret_view);
}

/* A file that says how many heads its network has is of that network. One that does not may start any. */
static kith_status read_ensemble(const source *from, const kith_model_options *given, ki_net_options *options,
                                 kith_error *err) {
    const char *text = kith_tensors_metadata(from->tensors, heads_key);
    kith_array view;
    int64_t heads = 0;
    if (text && !(ki_parse_int64(text, &heads) && heads >= 1))
        return ki_fail(err, KITH_EFORMAT, "metadata %s is '%.20s'; wanted a number of heads", heads_key,
                       text);
    if (heads > 0 && given->heads > 0 && given->heads != heads)
        return ki_fail(err, KITH_EINVAL, "the file holds an ensemble of %lld heads, asked for was %lld",
                       (long long)heads, (long long)given->heads);
    if (heads > 0) options->heads = heads;
    if (given->map_channels == 0 && find(from, "map.weight", &view) && view.n_dims >= 4)
        options->map_channels = view.dim[view.n_dims - 4];
    return KITH_OK;
}

static kith_status read_heads(const source *from, const kith_model_options *given, ki_net_options *options,
                              kith_error *err) {
    const ki_backbone *backbone = NULL;
    KI_TRY(ki_backbone_find(options->backbone, &backbone, err));
    char name[80];
    kith_array view;
    KI_TRY(read_ensemble(from, given, options, err));
    if (given->embedding == 0 && find(from, "embedding.weight", &view) && view.n_dims >= 2)
        options->embedding = view.dim[view.n_dims - 2] * (options->heads ? options->heads : 1);
    if (options->embedding > 0 && find(from, "embedding.weight", &view))
        options->no_embedding_bias = !find(from, "embedding.bias", &view);
    ki_snprintf(name, sizeof name, "%s.weight", backbone->classifier);
    if (given->classes == 0 && options->heads <= 1 && find(from, name, &view) && view.n_dims >= 2)
        options->classes = view.dim[view.n_dims - 2];
    return KITH_OK;
}

static kith_status read_input(const kith_tensors *tensors, ki_net_options *options, kith_error *err) {
    const char *text = kith_tensors_metadata(tensors, "kith.input");
    if (!text) return KITH_OK;
    double chw[3];
    KI_TRY(ki_numbers_parse(text, 3, chw, "metadata kith.input", err));
    for (int i = 0; i < 3; i++) {
        if (!(chw[i] >= 1 && chw[i] <= 1 << 20))
            return ki_fail(err, KITH_EFORMAT, "metadata kith.input is '%.60s'; wanted channels,height,width",
                           text);
    }
    if (!options->c) options->c = (int64_t)chw[0];
    if (!options->h) options->h = (int64_t)chw[1];
    if (!options->w) options->w = (int64_t)chw[2];
    return KITH_OK;
}

static kith_status read_format(const kith_tensors *tensors, kith_error *err) {
    const char *format = kith_tensors_metadata(tensors, format_key);
    if (format && strcmp(format, format_version) != 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "model file format is '%.20s'; this kith reads %s", format,
                format_version);
        return ki_hint(err, KITH_EUNSUPPORTED, "use the kith that wrote it, or a newer one");
    }
    return KITH_OK;
}

/* A config.json of another network would have the same tensors compute something else. */
static kith_status check_fault(const ki_recognised *recognised, kith_error *err) {
    if (!*recognised->fault) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s", recognised->fault);
    return ki_hint(err, KITH_EINVAL,
                   "is it another network's? mend or remove it; --settings can say the same");
}

/* Weights of others say nothing but their names. A network that is named takes the settings that they say, and no more. */
static kith_status recognise(const source *from, const kith_model_options *given, ki_net_options *options,
                             ki_recognised *ret, kith_error *err) {
    const ki_backbone *found = NULL, *named = NULL;
    if (options->backbone) {
        KI_TRY(ki_backbone_find(options->backbone, &named, err));
        if (!named->recognise) return KITH_OK;
        /* what is missing is said when the weights are read */
        if (ki_backbone_recognise(from->named, from->contract, &found, ret, NULL) != KITH_OK) return KITH_OK;
        if (found == named) return check_fault(ret, err);
        ki_fail(err, KITH_EINVAL, "these are the tensors of %s, asked for was %s", found->name, named->name);
        return ki_hint(err, KITH_EINVAL, "name that network, or none");
    }
    KI_TRY(ki_backbone_recognise(from->named, from->contract, &found, ret, err));
    KI_TRY(check_fault(ret, err));
    options->backbone = found->name;
    if (!given->pool) options->pool = ret->pool;
    const ki_naming *table = ki_named_table(from->named);
    const ki_contract *c = from->contract;
    const char *resize = c && !given->resize ? c->resize : "";
    ki_log(KITH_LOG_INFO, "%s: these are the tensors of %s%s%s%s%s%s%s%s%s",
           given->weights ? given->weights : "weights", found->name, table ? " under the names of " : "",
           table ? table->library : "", given->pool ? "" : ", pooled by ",
           given->pool ? "" : ki_pooling_names[ret->pool], *resize ? ", images prepared by " : "", resize,
           *resize ? " as in " : "", *resize ? c->source : "");
    return KITH_OK;
}

/* Where neither the file nor the options say what size its images have. */
static void take_size(const source *from, const ki_recognised *recognised, ki_net_options *options) {
    if (options->h || options->w) return;
    const bool is_told = from->contract && from->contract->is_there;
    options->h = options->w = is_told ? from->contract->side : recognised->side;
}

/* A network whose settings are given is prepared as the settings say. */
static void take_pixels(const source *from, const kith_model_options *given, ki_net *net) {
    const ki_contract *c = from->contract;
    kith_preprocess *p = &net->preprocess;
    if (!c || !c->is_there || ki_net_takes_vectors(net)) return;
    memcpy(p->resize, c->resize, sizeof p->resize);
    if (strcmp(c->filter, "bilinear") != 0) memcpy(p->filter, c->filter, sizeof p->filter);
    if (!c->has_pixels || given->settings || net->c != 3) return;
    p->bgr = false;
    p->scale = 1.0 / 255;
    memcpy(p->mean, c->mean, sizeof c->mean);
    memcpy(p->std, c->std, sizeof c->std);
}

/* The file fills in what the options leave open. If both name a backbone, they must agree. */
static kith_status merge_options(const source *from, const kith_model_options *given, ki_arena *arena,
                                 ki_net_options *options, kith_error *err) {
    const kith_tensors *tensors = from->tensors;
    KI_TRY(read_format(tensors, err));
    const char *backbone = kith_tensors_metadata(tensors, "kith.backbone");
    ki_recognised recognised = {.settings = ""};
    if (!options->backbone) options->backbone = backbone;
    if (!backbone) KI_TRY(recognise(from, given, options, &recognised, err));
    if (backbone && strcmp(backbone, options->backbone) != 0)
        return ki_fail(err, KITH_EINVAL, "the file holds %.40s, asked for was %.40s", backbone,
                       options->backbone);
    const ki_value *base = NULL;
    const char *settings = kith_tensors_metadata(tensors, "kith.settings");
    KI_TRY(ki_settings_parse(arena, settings ? settings : recognised.settings, NULL, &base, err));
    KI_TRY(ki_settings_parse(arena, given->settings, base, &options->settings, err));
    const char *pool = kith_tensors_metadata(tensors, "kith.pool");
    if (pool && !given->pool) KI_TRY(ki_pooling_parse(pool, &options->pool, err));
    KI_TRY(read_input(tensors, options, err));
    take_size(from, &recognised, options);
    return read_heads(from, given, options, err);
}

/* A short word; absent: ret stays as it is. */
static kith_status read_word(const kith_tensors *tensors, const char *key, const char *example,
                             char ret[PREPROCESS_WORD], kith_error *err) {
    const char *text = kith_tensors_metadata(tensors, key);
    if (!text) return KITH_OK;
    if (strlen(text) >= PREPROCESS_WORD)
        return ki_fail(err, KITH_EFORMAT, "metadata %s is '%.60s'; wanted %s or the like", key, text,
                       example);
    memcpy(ret, text, strlen(text) + 1);
    return KITH_OK;
}

static kith_status read_background(const kith_tensors *tensors, uint8_t ret[3], kith_error *err) {
    const char *text = kith_tensors_metadata(tensors, "kith.preprocess.background");
    double ground[3];
    if (!text) return KITH_OK;
    KI_TRY(ki_numbers_parse(text, 3, ground, "metadata kith.preprocess.background", err));
    for (int c = 0; c < 3; c++) {
        if (!(ground[c] >= 0 && ground[c] <= 255))
            return ki_fail(
                err, KITH_EFORMAT,
                "metadata kith.preprocess.background is '%.60s'; wanted three numbers from 0 to 255", text);
        ret[c] = (uint8_t)(ground[c] + 0.5);
    }
    return KITH_OK;
}

/* The widths are a note for people: they decide nothing that is computed. */
static kith_status read_nested(const kith_tensors *tensors, ki_net *net, kith_error *err) {
    const char *text = kith_tensors_metadata(tensors, nested_key);
    *net->nested = 0;
    if (!text) return KITH_OK;
    if (strlen(text) >= sizeof net->nested || strspn(text, "0123456789,") != strlen(text))
        return ki_fail(err, KITH_EFORMAT, "metadata %s is '%.40s'; wanted widths as 32,64,512", nested_key,
                       text);
    memcpy(net->nested, text, strlen(text) + 1);
    return KITH_OK;
}

static kith_status read_preprocess(const kith_tensors *tensors, ki_net *net, kith_error *err) {
    if (ki_net_takes_vectors(net)) return KITH_OK;
    const int c = (int)net->c;
    const char *order = kith_tensors_metadata(tensors, "kith.preprocess.order");
    const char *scale = kith_tensors_metadata(tensors, "kith.preprocess.scale");
    const char *mean = kith_tensors_metadata(tensors, "kith.preprocess.mean");
    const char *std = kith_tensors_metadata(tensors, "kith.preprocess.std");
    if (order) {
        net->preprocess.bgr = strcmp(order, "BGR") == 0;
        if (!net->preprocess.bgr && strcmp(order, "RGB") != 0 && strcmp(order, "grey") != 0)
            return ki_fail(err, KITH_EFORMAT,
                           "metadata kith.preprocess.order is '%.20s'; wanted RGB, BGR or grey", order);
    }
    if (scale)
        KI_TRY(ki_numbers_parse(scale, 1, &net->preprocess.scale, "metadata kith.preprocess.scale", err));
    if (mean) KI_TRY(ki_numbers_parse(mean, c, net->preprocess.mean, "metadata kith.preprocess.mean", err));
    if (std) KI_TRY(ki_numbers_parse(std, c, net->preprocess.std, "metadata kith.preprocess.std", err));
    KI_TRY(read_word(tensors, "kith.preprocess.resize", "squash256", net->preprocess.resize, err));
    KI_TRY(read_word(tensors, "kith.preprocess.filter", "bicubic", net->preprocess.filter, err));
    KI_TRY(read_background(tensors, net->preprocess.background, err));
    for (int i = 0; i < c; i++) {
        if (!(net->preprocess.std[i] > 0))
            return ki_fail(err, KITH_EFORMAT,
                           "metadata kith.preprocess.std is '%.60s'; wanted positive numbers", std);
    }
    return KITH_OK;
}

/* The net, with parameters at their first values. `from` may be NULL. */
static kith_status build(const kith_model_options *given, const source *from, bool reads, ki_arena *arena,
                         ki_backend *backend, ki_net *net, ki_params **ret_params, kith_error *err) {
    ki_net_options options = {.backbone = given->backbone,
                              .c = given->channels,
                              .h = given->height,
                              .w = given->width,
                              .embedding = given->embedding == KITH_NONE ? 0 : given->embedding,
                              .no_embedding_bias = given->no_embedding_bias,
                              .classes = given->classes == KITH_NONE ? 0 : given->classes,
                              .heads = given->heads,
                              .mask_gain = given->mask_gain,
                              .mask_bias = given->mask_bias,
                              .map_channels = given->map_channels == KITH_NONE ? 0 : given->map_channels};
    if (given->embedding_init) KI_TRY(ki_start_parse(given->embedding_init, &options.embedding_start, err));
    if (given->pool) KI_TRY(ki_pooling_parse(given->pool, &options.pool, err));
    if (from)
        KI_TRY(merge_options(from, given, arena, &options, err));
    else
        KI_TRY(ki_settings_parse(arena, given->settings, NULL, &options.settings, err));
    if (!options.backbone) return ki_fail(err, KITH_EINVAL, "neither a backbone nor a weights file is named");
    KI_TRY(ki_net_init(&options, net, err));
    net->new_embedding = given->embedding_init != NULL;
    if (from) take_pixels(from, given, net);
    if (from) KI_TRY(read_nested(from->tensors, net, err));
    if (from) KI_TRY(read_preprocess(from->tensors, net, err));
    if (reads) KI_TRY(ki_weights_check(from->named, net, err));
    KI_TRY(ki_params_new(net->graph, backend, ret_params, err));
    return ki_params_init(*ret_params, given->seed, err);
}

/* `from` may be NULL; its tensors become the parameters' values when `reads`. */
static kith_status open_from(const kith_model_options *options, const source *from, bool reads,
                             ki_backend *backend, ki_net *ret_net, ki_params **ret_params, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_net net = {0};
    ki_params *params = NULL;
    KI_CHECK(build(options, from, reads, &arena, backend, &net, &params, err));
    if (reads) KI_CHECK(ki_weights_import_named(from->named, &net, params, err));
    *ret_net = net;
    *ret_params = params;
    net.graph = NULL;
    params = NULL;
done:
    ki_params_free(params);
    ki_graph_free(net.graph);
    ki_arena_release(&arena);
    return status;
}

/* The side of the file's images where the net's are squares of another; otherwise 0. */
static int64_t other_side(const ki_net *net, const kith_tensors *tensors) {
    ki_net_options written = {0};
    if (ki_net_takes_vectors(net) || read_input(tensors, &written, NULL) != KITH_OK) return 0;
    const bool are_squares = written.h == written.w && net->h == net->w;
    return are_squares && written.c == net->c && written.h != net->h ? written.h : 0;
}

static const char *input_text(const ki_net *net, int64_t h, int64_t w, char *buf, size_t bytes) {
    ki_snprintf(buf, bytes, "%lld,%lld,%lld", (long long)net->c, (long long)h, (long long)w);
    return buf;
}

/* Does the file say the same of what decides an embedding, but for the side of the images (0: that, too)? */
static bool is_as_written(const ki_net *net, int64_t side, const kith_tensors *tensors) {
    const int64_t h = side ? side : net->h, w = side ? side : net->w;
    char settings[KI_SETTINGS_TEXT], input[64];
    const struct {
        const char *key, *value;
    } rows[] = {{"kith.settings", ki_net_settings_text(net, settings, sizeof settings)},
                {"kith.input", input_text(net, h, w, input, sizeof input)},
                {"kith.pool", ki_net_takes_vectors(net) ? NULL : ki_pooling_names[net->pool]}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *written = kith_tensors_metadata(tensors, rows[i].key);
        if (rows[i].value && (!written || strcmp(written, rows[i].value) != 0)) return false;
    }
    /* A plain network's file may have started an ensemble. */
    const bool has_heads = kith_tensors_metadata(tensors, heads_key) != NULL;
    return net->embedding > 0 && has_heads == (net->heads > 1);
}

kith_status ki_model_file_open(const kith_model_options *options, ki_backend *backend, ki_net *ret_net,
                               ki_params **ret_params, ki_file_curve *ret_curve, kith_error *err) {
    kith_calibration calibration = {0};
    if (ret_curve) *ret_curve = (ki_file_curve){0};
    if (!options->weights) return open_from(options, NULL, false, backend, ret_net, ret_params, err);
    kith_tensors *tensors = NULL;
    KI_TRY(kith_tensors_open(options->weights, &tensors, err));
    kith_status status = ret_curve ? ki_calibration_read(tensors, &calibration, err) : KITH_OK;
    if (status == KITH_OK)
        status = ki_model_file_of_tensors(options, tensors, backend, ret_net, ret_params, err);
    if (status == KITH_OK && ret_curve) {
        const int64_t side = other_side(ret_net, tensors);
        if (is_as_written(ret_net, side, tensors)) *ret_curve = (ki_file_curve){calibration, side};
    }
    if (status != KITH_OK) ki_prefix(err, status, "%s", options->weights);
    kith_tensors_free(tensors);
    return status;
}

kith_status ki_model_file_of_tensors(const kith_model_options *options, const kith_tensors *tensors,
                                     ki_backend *backend, ki_net *ret_net, ki_params **ret_params,
                                     kith_error *err) {
    kith_status status;
    ki_contract contract = {0};
    ki_named *named = NULL;
    KI_CHECK(ki_named_new(tensors, "", &named, err));
    if (options->weights && !kith_tensors_metadata(tensors, "kith.backbone"))
        KI_CHECK(ki_contract_find(options->weights, &contract, err));
    if (*contract.note)
        ki_log(KITH_LOG_WARNING, "%s: %s, which kith cannot follow; it uses the network's own",
               options->weights, contract.note);
    const source from = {.tensors = tensors, .named = named, .contract = &contract};
    KI_CHECK(open_from(options, &from, true, backend, ret_net, ret_params, err));
done:
    ki_contract_release(&contract);
    ki_named_free(named);
    return status;
}

kith_status ki_model_file_describe(const kith_model_options *options, const kith_tensors *tensors,
                                   const char *prefix, ki_backend *backend, ki_net *ret_net,
                                   ki_params **ret_params, kith_error *err) {
    ki_named *named = NULL;
    KI_TRY(ki_named_new(tensors, prefix, &named, err));
    const source from = {.tensors = tensors, .named = named};
    const kith_status status = open_from(options, &from, false, backend, ret_net, ret_params, err);
    ki_named_free(named);
    return status;
}

typedef struct metadata {
    const char *key, *value;
} metadata;

static kith_status write_rows(const metadata *rows, size_t n, kith_tensors_writer *writer, kith_error *err) {
    for (size_t i = 0; i < n; i++)
        KI_TRY(kith_tensors_writer_metadata(writer, rows[i].key, rows[i].value, err));
    return KITH_OK;
}

/* What becomes of images. */
static kith_status write_images(const ki_net *net, kith_tensors_writer *writer, kith_error *err) {
    char scale[64], mean[256], std[256];
    const kith_preprocess *p = &net->preprocess;
    const metadata rows[] = {
        {"kith.pool", ki_pooling_names[net->pool]},
        {"kith.preprocess.order", net->c < 3 ? "grey"
                                  : p->bgr   ? "BGR"
                                             : "RGB"},
        {"kith.preprocess.scale", ki_numbers_text(&p->scale, 1, scale, sizeof scale)},
        {"kith.preprocess.mean", ki_numbers_text(p->mean, (int)net->c, mean, sizeof mean)},
        {"kith.preprocess.std", ki_numbers_text(p->std, (int)net->c, std, sizeof std)},
    };
    return write_rows(rows, sizeof rows / sizeof rows[0], writer, err);
}

/* Keys that are written only if the network was told otherwise, so that files without such a setting are the same as
 * before the key existed. */
static kith_status write_told(const ki_net *net, kith_tensors_writer *writer, kith_error *err) {
    char text[64];
    const kith_preprocess *p = &net->preprocess;
    const double ground[3] = {p->background[0], p->background[1], p->background[2]};
    if (net->heads > 1) {
        ki_snprintf(text, sizeof text, "%lld", (long long)net->heads);
        KI_TRY(kith_tensors_writer_metadata(writer, heads_key, text, err));
    }
    if (*net->nested) KI_TRY(kith_tensors_writer_metadata(writer, nested_key, net->nested, err));
    if (*p->resize) KI_TRY(kith_tensors_writer_metadata(writer, "kith.preprocess.resize", p->resize, err));
    if (*p->filter) KI_TRY(kith_tensors_writer_metadata(writer, "kith.preprocess.filter", p->filter, err));
    if (!p->background[0] && !p->background[1] && !p->background[2]) return KITH_OK;
    return kith_tensors_writer_metadata(writer, "kith.preprocess.background",
                                        ki_numbers_text(ground, 3, text, sizeof text), err);
}

kith_status ki_model_metadata_write_settings(const ki_net *net, kith_tensors_writer *writer,
                                             kith_error *err) {
    char settings[KI_SETTINGS_TEXT], input[64];
    const metadata rows[] = {{"kith.settings", ki_net_settings_text(net, settings, sizeof settings)},
                             {"kith.input", input_text(net, net->h, net->w, input, sizeof input)}};
    KI_TRY(write_rows(rows, sizeof rows / sizeof rows[0], writer, err));
    if (!ki_net_takes_vectors(net)) KI_TRY(write_images(net, writer, err));
    return write_told(net, writer, err);
}

kith_status ki_model_metadata_write(const ki_net *net, kith_tensors_writer *writer, kith_error *err) {
    const metadata rows[] = {{format_key, format_version}, {"kith.backbone", net->backbone->name}};
    KI_TRY(write_rows(rows, sizeof rows / sizeof rows[0], writer, err));
    return ki_model_metadata_write_settings(net, writer, err);
}
