/* kith export: a model as a file of other programs. */
#include <string.h>

#include "cli/cli.h"
#include "cli/images.h"
#include "kith/export.h"

typedef struct arguments {
    const char *out;
    bool torch, half;
    kith_model_options model;
    kith_export_options onnx;
} arguments;

static void print_onnx(const arguments *a, const kith_model *model) {
    kith_model_info info;
    KITH_OPTIONS(kith_embed_options, embed);
    kith_model_info_get(model, &info);
    embed.tap = a->onnx.tap;
    const char *tap = kith_model_tap(model, &embed);
    if (kith_model_takes_features(model))
        printf("%s: %s from features, float [batch, %lld], to %s%s\n", a->out, info.backbone,
               (long long)info.channels, tap, a->onnx.normalize ? ", of length 1" : "");
    else
        printf("%s: %s from pixels, float [batch, %lld, %lld, %lld], %s 0 to 255, to %s%s\n", a->out,
               info.backbone, (long long)info.channels, (long long)info.height, (long long)info.width,
               info.channels == 3 ? "RGB" : "grey", tap, a->onnx.normalize ? ", of length 1" : "");
}

/* What is written there would replace the only float32 weights. */
static bool is_source(const arguments *a) {
    char file[4096];
    return kith_model_find(a->model.weights, file, sizeof file, NULL) == KITH_OK &&
           cli_is_same_file(file, a->out);
}

static kith_status run(const arguments *a, kith_error *err) {
    kith_model *model = NULL;
    kith_status status = kith_model_open(&a->model, &model, err);
    if (status == KITH_OK)
        status = a->torch  ? kith_model_export_torch(model, a->out, err)
                 : a->half ? kith_model_export_half(model, a->out, err)
                           : kith_model_export_onnx(model, a->out, &a->onnx, err);
    if (status == KITH_OK && a->torch) printf("%s: a state dict for load_state_dict\n", a->out);
    if (status == KITH_OK && a->half) printf("%s: the model, its weights in float16\n", a->out);
    if (status == KITH_OK && !a->torch && !a->half) print_onnx(a, model);
    kith_model_free(model);
    return status;
}

int cmd_export(int argc, char **argv) {
    arguments a = {0};
    int64_t side = 0;
    kith_model_options_init(&a.model, sizeof a.model);
    kith_export_options_init(&a.onnx, sizeof a.onnx);
    const cli_option options[] = {
        CLI_OUT("out|o", "FILE", &a.out, ".onnx or .safetensors", "where it goes"),
        CLI_FLAG("torch", &a.torch,
                 "write a state dict with the names of PyTorch's own models (.safetensors) instead of ONNX"),
        CLI_FLAG("half", &a.half,
                 "write kith's own file with float16 weights (.safetensors), half as large, instead of ONNX"),
        CLI_TEXT("tap", "NAME", &a.onnx.tap,
                 "what comes out: map, pooled, embedding or logits; default: embedding, else pooled"),
        CLI_FLAG("normalize", &a.onnx.normalize, "divide vectors by their length at the end"),
        CLI_TEXT("backbone", "NAME", &a.model.backbone, "the network, where its file and tensors do not say"),
        CLI_TEXT("settings", "K=V,…", &a.model.settings, "the backbone's own options"),
        CLI_TEXT("pool", "HOW", &a.model.pool, "avg, max, both, gem, class, class_avg or attention"),
        CLI_INT("crop", "PIXELS", &side, 0, 4096, "side of the model's input; 0: the model's"),
        CLI_END};
    const cli_usage usage = {.operands = "MODEL.safetensors | RUN",
                             .least = 1,
                             .most = 1,
                             .options = options,
                             .details =
                                 "Writes the model as ONNX (opset 17). It takes pixels, RGB from 0 to 255, "
                                 "already resized and cropped as\n"
                                 "the file's metadata says (kith.resize); channel order, mean and std are a "
                                 "part of the graph. What comes\n"
                                 "out is what kith embed writes."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (!a.out) return cli_misused("export", "wants --out FILE");
    if (a.torch && a.half) return cli_misused("export", "wants --torch or --half, not both");
    if (a.half && !cli_ends_with(a.out, ".safetensors"))
        return cli_misused("export",
                           "--half writes kith's own file; wanted a name that ends in .safetensors");
    if ((a.torch || a.half) && (a.onnx.tap || a.onnx.normalize))
        return cli_misused("export", "--tap and --normalize are for ONNX; a file of weights has no graph");
    a.model.weights = argv[1];
    a.model.height = a.model.width = side;
    kith_error err = {0};
    if (is_source(&a))
        return cli_misused("export", "--out %.200s is the model itself; wanted another file", a.out);
    return run(&a, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}
