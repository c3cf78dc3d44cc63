/* kith list: what this build has, from the library's own tables. */
#include "kith/experimental/list.h"

#include <string.h>

#include "cli/cli.h"
#include "kith/experimental/json.h"

static void print_kinds(void) {
    kith_list_kind kind;
    for (int i = 0; kith_list_kind_at(i, &kind); i++) printf("%-14s %s\n", kind.name, kind.summary);
}

static void print_entries(const char *kind) {
    kith_list_entry entry;
    for (int i = 0; kith_list_entry_at(kind, i, &entry); i++) {
        printf("%-14s %s%s\n", entry.name, entry.summary, entry.cpu_only ? " (cpu only)" : "");
        if (entry.note[0]) printf("%-14s   %s\n", "", entry.note);
        if (entry.source) printf("%-14s   source: %s\n", "", entry.source);
        kith_list_option option;
        for (int k = 0; kith_list_option_at(kind, i, k, &option); k++) {
            printf("%-14s   %s = %s (%s): %s", "", option.name, option.default_text, option.range,
                   option.help);
            if (option.source) printf("; %s", option.source);
            putchar('\n');
        }
    }
}

static void json_field(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static int print_json(const char *kind) {
    kith_error err = {0};
    kith_json *json = NULL;
    if (kith_json_new(&json, &err) != KITH_OK) return cli_fail(&err);
    kith_list_entry entry;
    kith_json_array_begin(json);
    for (int i = 0; kith_list_entry_at(kind, i, &entry); i++) {
        kith_json_object_begin(json);
        json_field(json, "name", entry.name);
        json_field(json, "summary", entry.summary);
        json_field(json, "source", entry.source);
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
    const char *text = NULL;
    const kith_status status = kith_json_finish(json, &text, &err);
    if (status == KITH_OK) puts(text);
    kith_json_free(json);
    return status == KITH_OK ? CLI_OK : cli_fail(&err);
}

int cmd_list(int argc, char **argv) {
    bool json = false;
    const cli_option options[] = {CLI_FLAG("json", &json, "print the list as JSON"), CLI_END};
    const cli_usage usage = {
        .operands = "[KIND]",
        .most = 1,
        .options = options,
        .details =
            "Without a KIND: the kinds there are. With one: every method of it, its options\n"
            "with default and range, and where they come from."};
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) return status;
    if (argc < 2) {
        if (json) return cli_misused("list", "--json wants a KIND");
        print_kinds();
        return CLI_OK;
    }
    const char *names[64];
    size_t n_names = 0;
    kith_list_kind kind;
    while (n_names < 64 && kith_list_kind_at((int)n_names, &kind)) {
        if (strcmp(kind.name, argv[1]) == 0) {
            if (json) return print_json(kind.name);
            print_entries(kind.name);
            return CLI_OK;
        }
        names[n_names++] = kind.name;
    }
    return cli_unknown("list", "kind", argv[1], names, n_names);
}
