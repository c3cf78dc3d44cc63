/* A model file of random weights, for benchmarks that need a file: random_model BACKBONE FILE.safetensors [SETTINGS]. */
#include <stdio.h>

#include <kith/kith.h>

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: random_model BACKBONE FILE.safetensors [SETTINGS]\n");
        return 2;
    }
    KITH_OPTIONS(kith_model_options, options);
    options.backbone = argv[1];
    options.settings = argc > 3 ? argv[3] : NULL;
    options.embedding = KITH_NONE;
    kith_model *model = NULL;
    kith_error err;
    kith_status status = kith_model_open(&options, &model, &err);
    if (status == KITH_OK) status = kith_model_save(model, argv[2], &err);
    if (status != KITH_OK) fprintf(stderr, "%s (%s)\n", err.message, err.hint);
    kith_model_free(model);
    return status != KITH_OK;
}
