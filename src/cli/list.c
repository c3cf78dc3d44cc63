/* kith list: what this build has, from the library's own tables. */
#include "kith/experimental/list.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/recipes.h"
#include "kith/experimental/json.h"

static void print_kinds(void) {
    kith_list_kind kind;
    for (int i = 0; kith_list_kind_at(i, &kind); i++) printf("%-14s %s\n", kind.name, kind.summary);
}

/* Where an entry comes from; of a recipe the file, as it lies on this machine. */
static const char *source_of(const char *kind, const kith_list_entry *entry, char buf[CLI_RECIPE_BYTES]) {
    if (strcmp(kind, "recipes") != 0) return entry->source;
    return cli_recipe_file(entry->name, buf) ? buf : "not installed beside this kith";
}

static void print_entries(const char *kind) {
    kith_list_entry entry;
    char file[CLI_RECIPE_BYTES];
    for (int i = 0; kith_list_entry_at(kind, i, &entry); i++) {
        printf("%-14s %s%s\n", entry.name, entry.summary, entry.cpu_only ? " (cpu only)" : "");
        if (entry.note[0]) printf("%-14s   %s\n", "", entry.note);
        const char *source = source_of(kind, &entry, file);
        if (source) printf("%-14s   source: %s\n", "", source);
        kith_list_option option;
        for (int k = 0; kith_list_option_at(kind, i, k, &option); k++) {
            printf("%-14s   %s = %s (%s): %s", "", option.name, option.default_text, option.range,
                   option.help);
            if (option.source) printf("; %s", option.source);
            putchar('\n');
        }
    }
}

/* Losses, miners and regularizers run on the host; most of them also run on a device. */
static bool has_device(const char *kind) {
    static const char *const kinds[] = {"losses", "miners", "regularizers"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], kind) == 0) return true;
    }
    return false;
}

static void print_field(const char *name, const char *text) {
    if (!text || !*text) return;
    printf("%-9s ", name);
    cli_print_wrapped(stdout, text, 10);
}

static void print_option(const kith_list_option *o) {
    char left[160], help[512];
    snprintf(left, sizeof left, "  %s = %s", o->name, *o->default_text ? o->default_text : "''");
    snprintf(help, sizeof help, "%s; %s%s%s", o->help, o->range, o->source ? "; default: " : "",
             o->source ? o->source : "");
    const int column = cli_help_column(), n_left = column - cli_text_columns(left, sizeof left);
    printf("%s%s%*s", left, n_left < 2 ? "\n" : "", n_left < 2 ? column : n_left, "");
    cli_print_wrapped(stdout, help, column);
}

static void print_one(const char *kind, int i) {
    kith_list_entry entry;
    kith_list_option option;
    char file[CLI_RECIPE_BYTES];
    if (!kith_list_entry_at(kind, i, &entry)) return;
    print_field(entry.name, entry.summary);
    print_field("source", source_of(kind, &entry, file));
    if (has_device(kind))
        print_field("devices", entry.cpu_only ? "cpu only: there is no twin for cuda" : "cpu and cuda");
    print_field("note", entry.note);
    print_field("options",
                entry.n_options ? "NAME = DEFAULT, what it is and what it may be" : "none of its own");
    for (int k = 0; kith_list_option_at(kind, i, k, &option); k++) print_option(&option);
}

static void json_field(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

/* All entries, or the one of that number. */
static int print_json(const char *kind, int only) {
    kith_error err = {0};
    kith_json *json = NULL;
    if (kith_json_new(&json, &err) != KITH_OK) return cli_fail(&err);
    kith_list_entry entry;
    char file[CLI_RECIPE_BYTES];
    kith_json_array_begin(json);
    for (int i = 0; kith_list_entry_at(kind, i, &entry); i++) {
        if (only >= 0 && i != only) continue;
        kith_json_object_begin(json);
        json_field(json, "name", entry.name);
        json_field(json, "summary", entry.summary);
        json_field(json, "source", source_of(kind, &entry, file));
        kith_json_key(json, "cpu_only");
        kith_json_bool(json, entry.cpu_only);
        if (entry.note[0]) json_field(json, "note", entry.note);
        kith_json_key(json, "options");
        kith_json_array_begin(json);
        kith_list_option option;
        for (int k = 0; kith_list_option_at(kind, i, k, &option); k++) {
            kith_json_object_begin(json);
            json_field(json, "name", option.name);
            json_field(json, "default", option.default_text);
            json_field(json, "range", option.range);
            json_field(json, "help", option.help);
            json_field(json, "source", option.source);
            kith_json_object_end(json);
        }
        kith_json_array_end(json);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    return cli_print_json(json, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}

enum { MOST_NAMES = 256 };

/* The place of a name among the entries of a kind, else -1; all names for a hint. */
static int find_entry(const char *kind, const char *name, const char *names[MOST_NAMES], size_t *ret_n) {
    kith_list_entry entry;
    int found = -1;
    *ret_n = 0;
    for (int i = 0; i < MOST_NAMES && kith_list_entry_at(kind, i, &entry); i++) {
        if (strcmp(entry.name, name) == 0) found = i;
        names[(*ret_n)++] = entry.name;
    }
    return found;
}

static int unknown_kind(const char *word) {
    const char *names[MOST_NAMES], *entries[MOST_NAMES];
    size_t n = 0, n_entries = 0;
    kith_list_kind kind;
    for (; n < MOST_NAMES && kith_list_kind_at((int)n, &kind); n++) {
        if (find_entry(kind.name, word, entries, &n_entries) >= 0)
            return cli_misused("list", "'%.60s' is one of %s; write kith list %s %.60s", word, kind.name,
                               kind.name, word);
        names[n] = kind.name;
    }
    return cli_unknown("list", "kind", word, names, n);
}

static int list(const char *word, const char *name, bool json) {
    kith_list_kind kind;
    for (int i = 0; kith_list_kind_at(i, &kind); i++) {
        if (strcmp(kind.name, word) != 0) continue;
        if (!name) {
            if (json) return print_json(kind.name, -1);
            print_entries(kind.name);
            return CLI_OK;
        }
        const char *names[MOST_NAMES];
        size_t n = 0;
        const int found = find_entry(kind.name, name, names, &n);
        char what[64];
        snprintf(what, sizeof what, "name among the %s", kind.name);
        if (found < 0) return cli_unknown("list", what, name, names, n);
        if (json) return print_json(kind.name, found);
        print_one(kind.name, found);
        return CLI_OK;
    }
    return unknown_kind(word);
}

int cmd_list(int argc, char **argv) {
    bool json = false;
    const cli_option options[] = {CLI_FLAG("json", &json, "print the list as JSON"), CLI_END};
    const cli_usage usage = {
        .operands = "[KIND [NAME]]",
        .most = 2,
        .options = options,
        .details =
            "Without a KIND: the kinds there are. With one: every method of it, its options with default and "
            "range, and where they come from. With a NAME: that method alone."};
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) return status;
    if (argc >= 2) return list(argv[1], argc > 2 ? argv[2] : NULL, json);
    if (json) return cli_misused("list", "--json wants a KIND");
    print_kinds();
    return CLI_OK;
}
