/* Every recipe in recipes/ and research/recipes/ is one that `kith train` would take: all keys known, all values in range;
 * and the list of the recipes that ship is what lies in recipes/. */
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/experimental/list.h"
#include "support/testing.h"
#include "train/recipe.h"

static int n_found;

static bool is_listed(const char *name) {
    kith_list_entry entry;
    for (int i = 0; kith_list_entry_at("recipes", i, &entry); i++) {
        if (strcmp(entry.name, name) == 0) return true;
    }
    return false;
}

/* The model that comes with kith, or weights that `kith pull` has a short name for; otherwise the recipe runs for nobody as it is. */
static void check_weights(const char *path, const char *weights) {
    kith_list_entry entry;
    if (strncmp(weights, "hub:", 4) != 0) {
        if (*weights && strcmp(weights, "general") != 0) fail_msg("%s: nobody has %s", path, weights);
        return;
    }
    for (int i = 0; kith_list_entry_at("weights", i, &entry); i++) {
        if (strcmp(entry.name, weights + 4) == 0) return;
    }
    fail_msg("%s: kith list weights has no %s", path, weights);
}

/* Every "weights: …" of a recipe with all its defaults. */
static void check_all_weights(const char *path, const ki_recipe *r) {
    static const char key[] = "weights: ";
    for (const char *at = strstr(r->text, key); at; at = strstr(at, key)) {
        char found[256];
        at += strlen(key);
        const size_t quote = *at == '"';
        const size_t n = strcspn(at + quote, quote ? "\"" : ",}\n ");
        snprintf(found, sizeof found, "%.*s", (int)n, at + quote);
        check_weights(path, strcmp(found, "null") == 0 ? "" : found);
    }
}

static void check_recipe(const char *path, const char *name, bool ships) {
    kith_error err = {0};
    ki_recipe *recipe = NULL, *again = NULL;
    if (ki_recipe_read(&(ki_recipe_source){.path = path}, &recipe, &err) != KITH_OK)
        fail_msg("%s: %s (%s)", path, err.message, err.hint);
    /* What it comes to, with every default, is a recipe too, and the same one. */
    if (ki_recipe_read(&(ki_recipe_source){.text = recipe->text}, &again, &err) != KITH_OK)
        fail_msg("%s, filled in: %s (%s)", path, err.message, err.hint);
    assert_string_equal(recipe->text, again->text);
    if (ships) check_all_weights(path, recipe);
    if (is_listed(name) != ships)
        fail_msg("%s: %s `kith list recipes`", path, ships ? "is not in" : "does not ship, but is in");
    ki_recipe_free(recipe);
    ki_recipe_free(again);
    n_found++;
}

static void walk(const char *folder, const char *prefix, bool ships) {
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
            walk(path, name, ships);
        } else if (dot && strcmp(e->d_name, "tables.yaml") != 0) { /* a list of them */
            *dot = '\0';
            check_recipe(path, name, ships);
        }
    }
    closedir(dir);
}

static void test_every_recipe_is_taken(void **state) {
    (void)state;
    kith_list_entry entry;
    int n_listed = 0;
    n_found = 0;
    walk(KITH_SOURCE_DIR "/recipes", "", true);
    while (kith_list_entry_at("recipes", n_listed, &entry)) n_listed++;
    print_message("%d recipes\n", n_found);
    assert_int_equal(n_found, n_listed);
}

#define MOST_METHODS 128

/* The names in the list's kinds of methods; returns how many. */
static int list_methods(const char *names[MOST_METHODS]) {
    static const char *const kinds[] = {"losses", "miners", "regularizers"};
    int n = 0;
    for (size_t k = 0; k < N_ROWS(kinds); k++) {
        kith_list_entry entry;
        for (int i = 0; kith_list_entry_at(kinds[k], i, &entry); i++) {
            assert_in_range(n, 0, MOST_METHODS - 1);
            names[n++] = entry.name;
        }
    }
    return n;
}

static bool uses(const ki_recipe *r, const char *method) {
    static const char *const one[] = {"loss", "miner"};
    for (size_t i = 0; i < N_ROWS(one); i++) {
        const ki_value *part = ki_value_get(r->objective, one[i]);
        if (part && strcmp(ki_value_get(part, "name")->text, method) == 0) return true;
    }
    const ki_value *many = ki_value_get(r->objective, "regularizers");
    for (const ki_value *v = many ? many->first : NULL; v; v = v->next) {
        if (strcmp(ki_value_get(v, "name")->text, method) == 0) return true;
    }
    return false;
}

/* A section of a recipe with its defaults: from its name to the next section. */
static void copy_section(const ki_recipe *r, const char *name, char *ret, size_t bytes) {
    const char *at = strstr(r->text, name);
    if (!at) fail_msg("no %s in %s", name, r->text);
    const char *end = at + 1;
    while (*end && !(*end == '\n' && end[1] != ' ')) end++;
    assert_in_range((size_t)(end - at), 1, bytes - 1);
    snprintf(ret, bytes, "%.*s", (int)(end - at), at);
}

/* recipes/methods has each method at least once; a file is about the method that it is called after, and differs from
 * photos.yaml in nothing that a method does not need. */
static void test_every_method_has_a_recipe(void **state) {
    (void)state;
    static const char *const shared[] = {"data:", "\ninput:", "\nbatch:", "\neval:"};
    const char *names[MOST_METHODS];
    bool is_used[MOST_METHODS] = {false};
    kith_error err = {0};
    ki_recipe *photos = NULL;
    glob_t found;
    const int n = list_methods(names);
    assert_ok(
        ki_recipe_read(&(ki_recipe_source){.path = KITH_SOURCE_DIR "/recipes/photos.yaml"}, &photos, &err),
        &err);
    assert_int_equal(glob(KITH_SOURCE_DIR "/recipes/methods/*.yaml", 0, NULL, &found), 0);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        const char *path = found.gl_pathv[k], *file = strrchr(path, '/') + 1;
        ki_recipe *r = NULL;
        bool is_about = false;
        if (ki_recipe_read(&(ki_recipe_source){.path = path}, &r, &err) != KITH_OK)
            fail_msg("%s: %s (%s)", path, err.message, err.hint);
        for (int i = 0; i < n; i++) {
            if (!uses(r, names[i])) continue;
            is_used[i] = true;
            is_about |=
                strlen(names[i]) + 5 == strlen(file) && strncmp(file, names[i], strlen(names[i])) == 0;
        }
        if (!is_about) fail_msg("%s does not use the method of its name", path);
        for (size_t i = 0; i < N_ROWS(shared); i++) {
            char here[2048], there[2048];
            copy_section(r, shared[i], here, sizeof here);
            copy_section(photos, shared[i], there, sizeof there);
            if (strcmp(here, there) != 0) fail_msg("%s has %s where photos.yaml has %s", file, here, there);
        }
        ki_recipe_free(r);
    }
    for (int i = 0; i < n; i++) {
        if (!is_used[i]) fail_msg("no recipe in recipes/methods uses %s", names[i]);
    }
    globfree(&found);
    ki_recipe_free(photos);
}

static void test_every_recipe_of_the_papers_is_taken(void **state) {
    (void)state;
    n_found = 0;
    walk(KITH_SOURCE_DIR "/research/recipes", "", false);
    print_message("%d recipes\n", n_found);
    assert_in_range(n_found, 109, 10000);
}

/* Each paper on the data sets it has. */
static void test_every_paper_is_there(void **state) {
    (void)state;
    static const char *const names[] = {"horde/cub-",   "horde/cars-",     "horde/sop-",   "horde/inshop-",
                                        "jrd/cub",      "jrd/cars",        "jrd/sop",      "ecaml/cub-",
                                        "ecaml/cars-",  "ecaml/sop-",      "ecaml/inshop", "dml-da/cub-",
                                        "dml-da/cars-", "dml-da/sop-",     "raw-vthm/cub", "raw-vthm/cars",
                                        "raw-vthm/sop", "raw-vthm/inshop", "omniglot/"};
    for (size_t k = 0; k < N_ROWS(names); k++) {
        char pattern[1024];
        glob_t found;
        snprintf(pattern, sizeof pattern, KITH_SOURCE_DIR "/research/recipes/%s*.yaml", names[k]);
        if (glob(pattern, 0, NULL, &found) != 0) fail_msg("no recipe is called %s…", names[k]);
        globfree(&found);
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
        snprintf(path, sizeof path, KITH_SOURCE_DIR "/research/recipes/cub/%s.yaml", names[i]);
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
        cmocka_unit_test(test_every_method_has_a_recipe),
        cmocka_unit_test(test_every_recipe_of_the_papers_is_taken),
        cmocka_unit_test(test_every_paper_is_there),
        cmocka_unit_test(test_every_row_of_cub_is_there),
    };
    return cmocka_run_group_tests_name("train/shipped recipes", tests, NULL, NULL);
}
