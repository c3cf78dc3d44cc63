/* kith completion: scripts for shells, made from the option tables. */
#include "cli/completion.h"

#include <ctype.h>
#include <string.h>

#include "kith/experimental/list.h"

/* ---- words ---- */

static void add_word(completion_value *v, const char *word, const char *end) {
    const size_t used = strlen(v->words);
    v->kind = COMPLETE_WORDS;
    if (used + strlen(word) + strlen(end) + 2 > sizeof v->words) return;
    snprintf(v->words + used, sizeof v->words - used, "%s%s%s", used ? " " : "", word, end);
}

void completion_kinds(completion_value *v) {
    kith_list_kind kind;
    *v = (completion_value){0};
    for (int i = 0; kith_list_kind_at(i, &kind); i++) add_word(v, kind.name, "");
}

void completion_entries(const char *kind, completion_value *v) {
    kith_list_entry entry;
    *v = (completion_value){0};
    for (int i = 0; kith_list_entry_at(kind, i, &entry); i++) add_word(v, entry.name, "");
}

/* Keys of a recipe for --set: "optim.lr=". The top level is the section called recipe. */
static void add_keys(completion_value *v) {
    kith_list_entry section;
    kith_list_option option;
    for (int i = 0; kith_list_entry_at("sections", i, &section); i++) {
        const bool is_top = strcmp(section.name, "recipe") == 0;
        for (int k = 0; kith_list_option_at("sections", i, k, &option); k++) {
            char key[160];
            snprintf(key, sizeof key, "%s%s%s", is_top ? "" : section.name, is_top ? "" : ".", option.name);
            add_word(v, key, "=");
        }
    }
    v->ends_open = true;
}

/* The choices of a recipe's option: its range is "float32|bf16". */
static void add_choices(completion_value *v, const char *section, const char *name) {
    kith_list_entry entry;
    kith_list_option option;
    for (int i = 0; kith_list_entry_at("sections", i, &entry); i++) {
        if (strcmp(entry.name, section) != 0) continue;
        for (int k = 0; kith_list_option_at("sections", i, k, &option); k++) {
            if (strcmp(option.name, name) != 0 || !strchr(option.range, '|')) continue;
            for (const char *word = option.range; *word;) {
                char one[sizeof option.range];
                const size_t n = strcspn(word, "|");
                snprintf(one, sizeof one, "%.*s", (int)n, word);
                add_word(v, one, "");
                word += n + (word[n] == '|');
            }
        }
    }
}

/* ---- values ---- */

/* Options whose values are rows of a table of the library, whatever command they belong to. */
static bool add_named(completion_value *v, const char *name) {
    static const struct {
        const char *option, *kind;
    } lists[] = {
        {"backbone", "backbones"}, {"device", "devices"}, {"dataset", "datasets"}, {"loss", "losses"}};
    static const struct {
        const char *option, *section;
    } choices[] = {{"precision", "recipe"}, {"pool", "model"}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].option, name) != 0) continue;
        completion_entries(lists[i].kind, v);
        return true;
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (strcmp(choices[i].option, name) == 0) add_choices(v, choices[i].section, name);
    }
    return v->kind == COMPLETE_WORDS;
}

/* "Y.npy", "RECIPE.yaml|RUN": endings, folders, files. */
static void read_argument(completion_value *v, const char *argument) {
    static const char *const folders[] = {"DIR", "FOLDER", "RUN"};
    static const char *const files[] = {"FILE", "PATHS", "IMAGE", "ROOT"};
    bool is_any = false;
    for (const char *word = argument; *word;) {
        char name[64];
        size_t n = 0;
        while (!isalnum((unsigned char)*word) && *word) word++;
        while (n + 1 < sizeof name && (isalnum((unsigned char)word[n]) || word[n] == '.')) n++;
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        word += n;
        const char *dot = strchr(name, '.');
        if (dot && dot > name && v->n_endings < COMPLETION_ENDINGS)
            snprintf(v->ending[v->n_endings++], sizeof v->ending[0], "%.15s", dot + 1);
        for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
            if (strcmp(name, folders[i]) == 0 && v->kind == COMPLETE_NOTHING) v->kind = COMPLETE_FOLDERS;
        }
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) is_any |= strcmp(name, files[i]) == 0;
    }
    if (is_any) v->n_endings = 0;
    if (is_any || v->n_endings) v->kind = COMPLETE_FILES;
}

const char *completion_name(const cli_option *o, char *buf, size_t bytes) {
    snprintf(buf, bytes, "%.*s", (int)strcspn(o->name, "|"), o->name);
    return buf;
}

char completion_letter(const cli_option *o) {
    const char *bar = strchr(o->name, '|');
    return bar ? bar[1] : '\0';
}

void completion_of_option(const cli_option *o, completion_value *v) {
    char name[64];
    *v = (completion_value){0};
    if (o->choices) {
        for (int i = 0; o->choices[i]; i++) add_word(v, o->choices[i], "");
    } else if (o->ret_text || o->ret_list) {
        if (add_named(v, completion_name(o, name, sizeof name))) return;
        if (strcmp(o->argument, "KEY=VALUE") == 0)
            add_keys(v);
        else
            read_argument(v, o->argument);
    }
}

void completion_of_operands(const cli_usage *usage, completion_value *v) {
    *v = (completion_value){0};
    if (usage->operands) read_argument(v, usage->operands);
}

/* ---- every command ---- */

typedef struct watch {
    completion_fn fn;
    const char *command, *summary;
} watch;

static void on_usage(void *user, const cli_usage *usage) {
    const watch *w = user;
    w->fn(w->command, w->summary, usage);
}

static void ask(const watch *w, int (*run)(int argc, char **argv), char *name, char *what) {
    char *argv[] = {name, what, NULL};
    cli_watch_usage(on_usage, (void *)(uintptr_t)w);
    run(what ? 2 : 1, argv);
    cli_watch_usage(NULL, NULL);
}

void completion_each(completion_fn fn) {
#define X(name_, summary_)                                          \
    {                                                               \
        char name[] = #name_;                                       \
        ask(&(watch){fn, name, summary_}, cmd_##name_, name, NULL); \
    }
#include "cli/table.def"
#undef X
#define X(name_, summary_)                                                   \
    {                                                                        \
        char name[] = "bench", what[] = #name_;                              \
        ask(&(watch){fn, "bench " #name_, summary_}, cmd_bench, name, what); \
    }
#include "cli/bench.def"
#undef X
}

int cmd_completion(int argc, char **argv) {
    static const char *const shells[] = {"bash", "zsh", "fish"};
    static void (*const print[])(void) = {completion_bash, completion_zsh, completion_fish};
    const cli_usage usage = {
        .operands = "bash|zsh|fish",
        .least = 1,
        .most = 1,
        .details =
            "Prints a script for the shell, made from the options of all commands. make install puts the "
            "scripts "
            "where the shells look for them. Without that, in bash: source <(kith completion bash)"};
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) return status;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(argv[1], shells[i]) != 0) continue;
        print[i]();
        return CLI_OK;
    }
    return cli_unknown("completion", "shell", argv[1], shells, sizeof shells / sizeof shells[0]);
}
