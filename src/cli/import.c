/* kith import: weights of torchvision, timm and Cadene's models as a model file. */
#include "cli/cli.h"
#include "kith/export.h"

int cmd_import(int argc, char **argv) {
    const char *out = NULL;
    KITH_OPTIONS(kith_model_options, model);
    const cli_option options[] = {
        CLI_TEXT("backbone", "NAME", &model.backbone, "the network of the weights (see kith list backbones)"),
        CLI_TEXT("settings", "K=V,…", &model.settings,
                 "the backbone's own options: resnet50 of Caffe or Keras has stride=1x1,preprocess=caffe"),
        CLI_INT("channels", "N", &model.channels, 0, 4, "of the images, where the backbone takes any; 0: 3"),
        CLI_OUT("out|o", "FILE", &out, ".safetensors", "where the model goes"), CLI_END};
    const cli_usage usage = {
        .operands = "WEIGHTS.safetensors | WEIGHTS.pth",
        .least = 1,
        .most = 1,
        .options = options,
        .details =
            "Reads a state dict of PyTorch and writes it as a model file that says what it is. Names of\n"
            "torchvision, timm and Cadene's models are known, also behind module., model. or backbone.\n"
            "A .pth file is one that torch.save wrote since PyTorch 1.6. Nothing in it is executed: it is "
            "read as\n"
            "tensors, and anything else in it is refused."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (!model.backbone)
        return cli_misused("import", "wants --backbone NAME: a state dict does not say what it is");
    if (!out) return cli_misused("import", "wants --out FILE");
    kith_error err = {0};
    if (cli_is_same_file(argv[1], out))
        return cli_misused("import", "--out %.200s is the file that is read; wanted another one", out);
    if (kith_model_import(argv[1], &model, out, &err) != KITH_OK) return cli_fail(&err);
    printf("%s: the weights of %s, for %s\n", out, argv[1], model.backbone);
    return CLI_OK;
}
