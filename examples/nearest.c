/* Which images of a folder are most like one image? nearest MODEL.safetensors FOLDER IMAGE */
#include <kith/kith.h>
#include <stdio.h>
int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: nearest MODEL.safetensors FOLDER IMAGE\n"), 2;
    const char *folder = argv[2], *image = argv[3];
    kith_model *model = NULL;
    kith_dataset *files = NULL;
    kith_vectors *vectors = NULL;
    kith_gallery *gallery = NULL;
    kith_array all = {0}, one = {0};
    kith_neighbor found[3];
    kith_error err;
    KITH_OPTIONS(kith_model_options, options);
    options.weights = argv[1];
    int failed = kith_model_open(&options, &model, &err) ||
                 kith_dataset_open_files(&folder, 1, &files, &err) ||
                 kith_model_embed_dataset(model, files, KITH_SPLIT_TEST, NULL, &vectors, &err) ||
                 kith_vectors_array(vectors, &all, &err) || kith_gallery_new(&all, NULL, &gallery, &err) ||
                 kith_array_init(KITH_F32, 2, (int64_t[]){1, all.dim[1]}, &one, &err) ||
                 kith_model_embed_files(model, &image, 1, NULL, one.data, NULL, &err) ||
                 kith_gallery_search(gallery, &one, NULL, 3, found, &err);
    if (failed) fprintf(stderr, "%s %s\n", err.message, err.hint);
    for (int i = 0; !failed && i < 3; i++)
        printf("%.4f %s\n", found[i].score,
               kith_dataset_item(files, kith_vectors_items(vectors)[found[i].index]).path);
    kith_array_release(&one), kith_gallery_free(gallery), kith_vectors_free(vectors);
    kith_dataset_free(files), kith_model_free(model);
    return failed;
}
