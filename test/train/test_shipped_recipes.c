/* Every recipe in recipes/ is one that `kith train` would take: all keys known, all values in range; and the
 * list of them is what lies there. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/experimental/list.h"
#include "support/testing.h"
#include "train/recipe.h"

static int n_found;

static void check_recipe(const char *path, const char *name) {
    kith_error err = {0};
    ki_recipe *recipe = NULL, *again = NULL;
    kith_list_entry entry;
    bool is_listed = false;
    if (ki_recipe_read(&(ki_recipe_source){.path = path}, &recipe, &err) != KITH_OK)
        fail_msg("%s: %s (%s)", path, err.message, err.hint);
    /* What it comes to, with every default, is a recipe too, and the same one. */
    if (ki_recipe_read(&(ki_recipe_source){.text = recipe->text}, &again, &err) != KITH_OK)
        fail_msg("%s, filled in: %s (%s)", path, err.message, err.hint);
    assert_string_equal(recipe->text, again->text);
    for (int i = 0; kith_list_entry_at("recipes", i, &entry) && !is_listed; i++)
        is_listed = strcmp(entry.name, name) == 0;
    if (!is_listed) fail_msg("%s is not in `kith list recipes`", name);
    ki_recipe_free(recipe);
    ki_recipe_free(again);
    n_found++;
}

static void walk(const char *folder, const char *prefix) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char path[1024], name[512];
        struct stat info;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(name, sizeof name, "%s%s", prefix, e->d_name);
        assert_int_equal(stat(path, &info), 0);
        char *dot = strstr(name, ".yaml");
        if (S_ISDIR(info.st_mode)) {
            strcat(name, "/");
            walk(path, name);
        } else if (dot && strcmp(e->d_name, "tables.yaml") != 0) { /* a list of them */
            *dot = '\0';
            check_recipe(path, name);
        }
    }
    closedir(dir);
}

static void test_every_recipe_is_taken(void **state) {
    (void)state;
    kith_list_entry entry;
    int n_listed = 0;
    walk(KITH_SOURCE_DIR "/recipes", "");
    while (kith_list_entry_at("recipes", n_listed, &entry)) n_listed++;
    print_message("%d recipes\n", n_found);
    assert_int_equal(n_found, n_listed);
}

/* Each paper on the data sets it has. */
static void test_every_paper_is_there(void **state) {
    (void)state;
    static const char *const names[] = {
        "horde/cub-",   "horde/cars-", "horde/sop-",   "horde/inshop-", "jrd/cub",      "jrd/cars",
        "jrd/sop",      "ecaml/cub-",  "ecaml/cars-",  "ecaml/sop-",    "ecaml/inshop", "dml-da/cub-",
        "dml-da/cars-", "dml-da/sop-", "raw-vthm/cub", "raw-vthm/cars", "raw-vthm/sop", "raw-vthm/inshop",
        "omniglot/",    "photos",      "quickstart",   "demo"};
    for (size_t k = 0; k < N_ROWS(names); k++) {
        kith_list_entry entry;
        bool is_there = false;
        for (int i = 0; kith_list_entry_at("recipes", i, &entry) && !is_there; i++)
            is_there = strncmp(entry.name, names[k], strlen(names[k])) == 0;
        if (!is_there) fail_msg("no recipe is called %s…", names[k]);
    }
}

/* The rows of the papers' tables on CUB: each says its own backbone, batch, device and precision, trains on all classes,
 * and can be judged on held-out ones without another file. */
static void test_every_row_of_cub_is_there(void **state) {
    (void)state;
    static const char *const names[] = {"triplet",
                                        "npair",
                                        "contrastive",
                                        "binomial",
                                        "raw-vthm",
                                        "amsoftmax",
                                        "triplet-confusion",
                                        "npair-confusion",
                                        "contrastive-confusion",
                                        "binomial-confusion",
                                        "triplet-density",
                                        "npair-density",
                                        "contrastive-density",
                                        "binomial-density",
                                        "triplet-density-nocorr",
                                        "npair-density-nocorr",
                                        "contrastive-density-nocorr",
                                        "binomial-density-nocorr",
                                        "triplet-horde",
                                        "npair-horde",
                                        "contrastive-horde",
                                        "binomial-horde",
                                        "amsoftmax-jrd",
                                        "amsoftmax-mrd",
                                        "amsoftmax-jrd-pooling",
                                        "amsoftmax-jrd-c",
                                        "amsoftmax-jrd-laplace",
                                        "amsoftmax-jrd-poly",
                                        "amsoftmax-jrd-exp",
                                        "amsoftmax-intra",
                                        "amsoftmax-jmmd",
                                        "binomial-vthm",
                                        "raw",
                                        "raw-dw",
                                        "raw-semihard",
                                        "contrastive-orthogonal",
                                        "triplet-orthogonal",
                                        "npair-orthogonal",
                                        "contrastive-entropy",
                                        "triplet-entropy",
                                        "npair-entropy"};
    static const char *const search[] = {"data.validation=0.5", "eval.select=validation"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        char path[1024];
        kith_error err = {0};
        ki_recipe *r = NULL, *held_out = NULL;
        snprintf(path, sizeof path, KITH_SOURCE_DIR "/recipes/cub/%s.yaml", names[i]);
        if (ki_recipe_read(&(ki_recipe_source){.path = path}, &r, &err) != KITH_OK)
            fail_msg("%s: %s (%s)", path, err.message, err.hint);
        assert_string_equal(r->model.backbone, "googlenet");
        assert_string_equal(r->device, "cuda");
        assert_int_equal(r->precision, KI_BF16);
        assert_int_equal(r->train.crop_to, 227);
        assert_int_equal(r->model.embedding, 512);
        assert_int_equal(r->eval.select, KI_SELECT_LAST);
        assert_true(r->eval.watch_test);
        assert_string_equal(ki_value_get(r->data, "validation")->text, "0");
        if (ki_recipe_read(&(ki_recipe_source){.path = path, .sets = search, .n_sets = 2}, &held_out, &err) !=
            KITH_OK)
            fail_msg("%s: %s (%s)", path, err.message, err.hint);
        assert_string_equal(ki_value_get(held_out->data, "validation")->text, "0.5");
        ki_recipe_free(r);
        ki_recipe_free(held_out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_recipe_is_taken),
        cmocka_unit_test(test_every_paper_is_there),
        cmocka_unit_test(test_every_row_of_cub_is_there),
    };
    return cmocka_run_group_tests_name("train/shipped recipes", tests, NULL, NULL);
}
