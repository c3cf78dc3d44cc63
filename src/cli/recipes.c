/* Finding the recipes that came with kith, wherever it was installed or built. */
#include "cli/recipes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/experimental/list.h"

static const char prefix[] = "recipe:";

bool cli_recipe_file(const char *name, char ret_path[CLI_RECIPE_BYTES]) {
    /* As installed; of build/kith; of build/asan/kith. */
    static const char *const places[] = {"../share/kith/recipes", "../recipes", "../../recipes"};
    /* A method's recipe goes by the method's name alone, too. */
    static const char *const folders[] = {"", "methods/"};
    char self[CLI_RECIPE_BYTES / 2];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ret_path[0] = '\0';
    if (n <= 0 || !*name || strstr(name, "..")) return false;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < 2 * (sizeof places / sizeof places[0]); i++) {
        const int used = snprintf(ret_path, CLI_RECIPE_BYTES, "%s/%s/%s%s.yaml", self, places[i / 2],
                                  folders[i % 2], name);
        if (used > 0 && used < CLI_RECIPE_BYTES && access(ret_path, R_OK) == 0) {
            char *whole = realpath(ret_path, NULL);
            if (whole && strlen(whole) < CLI_RECIPE_BYTES) memcpy(ret_path, whole, strlen(whole) + 1);
            free(whole);
            return true;
        }
    }
    ret_path[0] = '\0';
    return false;
}

static int unknown(const char *command, const char *word) {
    enum { MOST_NAMES = 512 };
    const char *names[MOST_NAMES];
    kith_list_entry entry;
    size_t n = 0;
    bool is_listed = false;
    for (int i = 0; n < MOST_NAMES && kith_list_entry_at("recipes", i, &entry); i++) {
        names[n++] = entry.name;
        is_listed = is_listed || strcmp(entry.name, word) == 0;
    }
    if (is_listed)
        return cli_misused(command, "the file of recipe '%.60s' is not installed beside this kith", word);
    return cli_unknown(command, "recipe", word, names, n);
}

int cli_recipe_take(const char *command, bool bare, bool quiet, const char **word,
                    char buf[CLI_RECIPE_BYTES]) {
    const bool is_named = strncmp(*word, prefix, sizeof prefix - 1) == 0;
    const char *name = is_named ? *word + sizeof prefix - 1 : *word;
    const bool speaks = !quiet && cli_is_first_rank();
    if (!is_named && (!bare || cli_ends_with(name, ".yaml"))) return CLI_RUN;
    const bool is_recipe = cli_recipe_file(name, buf);
    if (!is_named && access(name, F_OK) == 0) {
        if (is_recipe && speaks)
            fprintf(stderr, "kith: %s is the one in this folder; %s%s is the recipe of that name\n", name,
                    prefix, name);
        return CLI_RUN;
    }
    if (!is_recipe) return is_named ? unknown(command, name) : CLI_RUN;
    if (speaks) fprintf(stderr, "kith: recipe %s: %s\n", name, buf);
    *word = buf;
    return CLI_RUN;
}
