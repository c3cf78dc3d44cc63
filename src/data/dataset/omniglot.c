/* Omniglot: images_background/ALPHABET/characterNN/NNNN_NN.png trains, images_evaluation tests. A class is
 * a character of an alphabet. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/dataset/dataset.h"

typedef struct context {
    kith_dataset *set;
    int32_t label;
    kith_split split;
} context;

static kith_status add_image(void *user, const char *path, kith_error *err) {
    const context *c = user;
    return ki_dataset_add(c->set, NULL, path, strlen(path), c->label, c->split, NULL, err);
}

static kith_status read_alphabet(context *c, const char *part, const char *alphabet, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **names = NULL, key[512];
    ki_path folder, path;
    size_t n = 0;
    KI_CHECK(ki_path_print(&folder, err, "%s/%s", part, alphabet));
    KI_CHECK(ki_list_folders(folder.s, &arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        const int length = ki_snprintf(key, sizeof key, "%.240s/%.240s", alphabet, names[i]);
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder.s, names[i]));
        KI_CHECK(ki_dataset_class(c->set, key, (size_t)length, &c->label, err));
        KI_CHECK(ki_dataset_super_class(c->set, c->label, alphabet, strlen(alphabet), err));
        KI_CHECK(ki_walk_images(path.s, c->set, add_image, c, err));
    }
done:
    ki_free(names);
    ki_arena_release(&arena);
    return status;
}

static kith_status read_part(kith_dataset *set, const char *root, const char *name, kith_split split,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **alphabets = NULL;
    ki_path part;
    size_t n = 0;
    context c = {.set = set, .split = split};
    KI_CHECK(ki_path_print(&part, err, "%s/%s", root, name));
    KI_CHECK(ki_list_folders(part.s, &arena, &alphabets, &n, err));
    for (size_t i = 0; i < n; i++) KI_CHECK(read_alphabet(&c, part.s, alphabets[i], err));
done:
    ki_free(alphabets);
    ki_arena_release(&arena);
    return status;
}

static bool found(const char *root) { return ki_is_folder("%s/images_background", root); }

static kith_status read_omniglot(kith_dataset *set, const char *root, kith_error *err) {
    KI_TRY(read_part(set, root, "images_background", KITH_SPLIT_TRAIN, err));
    if (!ki_is_folder("%s/images_evaluation", root)) return KITH_OK;
    return read_part(set, root, "images_evaluation", KITH_SPLIT_TEST, err);
}

const ki_dataset_kind ki_dataset_omniglot = {
    .name = "omniglot",
    .summary = "Omniglot (images_background/ALPHABET/characterNN trains, images_evaluation tests)",
    .found = found,
    .read = read_omniglot,
};
