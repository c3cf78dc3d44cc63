/* What the subcommands share: options, messages, exit statuses. */
#include "cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"

enum { MOST_OPTIONS = 64 };

kith_status cli_error(kith_error *err, kith_status status, const char *hint, const char *fmt, ...) {
    va_list ap;
    *err = (kith_error){.status = status};
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    if (hint) snprintf(err->hint, sizeof err->hint, "%s", hint);
    return status;
}

int cli_fail(const kith_error *err) {
    fflush(stdout);
    if (err->hint[0])
        fprintf(stderr, "kith: %s (%s)\n", err->message, err->hint);
    else
        fprintf(stderr, "kith: %s\n", err->message);
    return CLI_FAILURE;
}

kith_status cli_print_json(kith_json *json, kith_error *err) {
    const char *text = NULL;
    const kith_status status = kith_json_finish(json, &text, err);
    if (status == KITH_OK) puts(text);
    kith_json_free(json);
    return status;
}

int cli_failf(const char *fmt, ...) {
    fflush(stdout);
    va_list ap;
    va_start(ap, fmt);
    fputs("kith: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return CLI_FAILURE;
}

int cli_misused(const char *name, const char *fmt, ...) {
    fflush(stdout);
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "kith: %s: ", name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, " (see kith help %s)\n", name);
    va_end(ap);
    return CLI_USAGE;
}

int cli_unknown(const char *name, const char *what, const char *word, const char *const *names,
                size_t n_names) {
    const char *near = kith_nearest(word, names, (int64_t)n_names);
    if (near) return cli_misused(name, "unknown %s '%.60s'; did you mean '%s'?", what, word, near);
    return cli_misused(name, "unknown %s '%.60s'", what, word);
}

/* "out|o": the long name ends at the bar, the letter follows it. */
static size_t name_length(const cli_option *o) { return strcspn(o->name, "|"); }
static char letter_of(const cli_option *o) {
    const char *bar = strchr(o->name, '|');
    return bar ? bar[1] : '\0';
}

static const cli_option *find_long(const cli_option *options, const char *name, size_t length) {
    for (const cli_option *o = options; o && o->name; o++) {
        if (name_length(o) == length && strncmp(o->name, name, length) == 0) return o;
    }
    return NULL;
}

static const cli_option *find_letter(const cli_option *options, char letter) {
    for (const cli_option *o = options; o && o->name; o++) {
        if (letter && letter_of(o) == letter) return o;
    }
    return NULL;
}

static int unknown_option(const char *command, const cli_option *options, const char *word, size_t length) {
    char found[64], text[MOST_OPTIONS][64];
    const char *names[MOST_OPTIONS];
    size_t n = 0;
    snprintf(found, sizeof found, "%.*s", (int)length, word);
    for (const cli_option *o = options; o && o->name && n < MOST_OPTIONS; o++, n++) {
        snprintf(text[n], sizeof text[n], "--%.*s", (int)name_length(o), o->name);
        names[n] = text[n];
    }
    return cli_unknown(command, "option", found, names, n);
}

static int wrong_value(const char *command, const cli_option *o, const char *value, const char *wanted) {
    return cli_misused(command, "--%.*s is '%.60s'; wanted %s", (int)name_length(o), o->name, value, wanted);
}

static int wrong_number(const char *command, const cli_option *o, const char *value, const char *kind) {
    char wanted[96];
    if (isinf(o->most) || o->most >= 0x1p53)
        snprintf(wanted, sizeof wanted, "a %snumber from %.10g", kind, o->least);
    else
        snprintf(wanted, sizeof wanted, "a %snumber from %.10g to %.10g", kind, o->least, o->most);
    return wrong_value(command, o, value, wanted);
}

static int wrong_choice(const char *command, const cli_option *o, const char *value) {
    char wanted[240] = "one of ";
    size_t used = strlen(wanted);
    for (int i = 0; o->choices[i] && used < sizeof wanted; i++)
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s%s", i ? ", " : "", o->choices[i]);
    return wrong_value(command, o, value, wanted);
}

static int set_option(const char *command, const cli_option *o, const char *value) {
    if (o->ret_text) {
        *o->ret_text = value;
    } else if (o->ret_int) {
        int64_t whole = 0;
        if (!kith_parse_int(value, &whole) || (double)whole < o->least || (double)whole > o->most)
            return wrong_number(command, o, value, "whole ");
        *o->ret_int = whole;
    } else if (o->ret_real) {
        double real = 0;
        if (!kith_parse_real(value, &real) || !(real >= o->least && real <= o->most))
            return wrong_number(command, o, value, "");
        *o->ret_real = real;
    } else if (o->ret_choice) {
        int i = 0;
        while (o->choices[i] && strcmp(o->choices[i], value) != 0) i++;
        if (!o->choices[i]) return wrong_choice(command, o, value);
        *o->ret_choice = i;
    } else if (o->ret_list) {
        if (o->ret_list->n_items == CLI_MOST_ITEMS)
            return cli_misused(command, "--%.*s is given more than %d times", (int)name_length(o), o->name,
                               CLI_MOST_ITEMS);
        o->ret_list->item[o->ret_list->n_items++] = value;
    }
    return CLI_RUN;
}

/* One option at argv[*i]. Its value is after "=", right after the letter, or the next word. */
static int take_option(const cli_usage *usage, int argc, char **argv, int *i) {
    const char *command = argv[0], *word = argv[*i];
    const bool is_long = word[1] == '-';
    const size_t length = is_long ? strcspn(word, "=") : 2;
    const cli_option *o =
        is_long ? find_long(usage->options, word + 2, length - 2) : find_letter(usage->options, word[1]);
    if (!o) return unknown_option(command, usage->options, word, length);
    const char *value = !word[length] ? NULL : is_long ? word + length + 1 : word + length;
    if (o->ret_flag) {
        if (value) return cli_misused(command, "%.*s takes no value", (int)length, word);
        *o->ret_flag = true;
        return CLI_RUN;
    }
    if (!value && *i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0) value = argv[++*i];
    if (!value) return cli_misused(command, "%s wants a value (%s)", word, o->argument);
    return set_option(command, o, value);
}

static void describe(const cli_option *o, char *buf, size_t bytes) {
    char def[128] = "";
    if (o->ret_int) snprintf(def, sizeof def, " (default %lld)", (long long)*o->ret_int);
    if (o->ret_real && !isnan(*o->ret_real)) snprintf(def, sizeof def, " (default %.10g)", *o->ret_real);
    if (o->ret_text && *o->ret_text) snprintf(def, sizeof def, " (default %s)", *o->ret_text);
    if (o->ret_list) snprintf(def, sizeof def, " (may be repeated)");
    size_t used = (size_t)snprintf(buf, bytes, "%s", o->help);
    for (int i = 0; o->choices && o->choices[i] && used < bytes; i++) {
        used += (size_t)snprintf(buf + used, bytes - used, "%s%s", i ? ", " : ": ", o->choices[i]);
        if (*o->ret_choice == i) snprintf(def, sizeof def, " (default %s)", o->choices[i]);
    }
    if (used < bytes) snprintf(buf + used, bytes - used, "%s", def);
}

static void print_option(const cli_option *o) {
    char left[80], help[512];
    const char letter = letter_of(o);
    char shorter[8] = "";
    if (letter) snprintf(shorter, sizeof shorter, "-%c, ", letter);
    snprintf(left, sizeof left, "  %s--%.*s%s%s", shorter, (int)name_length(o), o->name,
             o->argument ? " " : "", o->argument ? o->argument : "");
    describe(o, help, sizeof help);
    const int column = cli_help_column(), n_left = column - cli_text_columns(left, sizeof left);
    printf("%s%s%*s", left, n_left < 2 ? "\n" : "", n_left < 2 ? column : n_left, "");
    cli_print_wrapped(stdout, help, column);
}

static const char *summary_of(const char *command) {
#define X(name, summary) \
    if (strcmp(command, #name) == 0) return summary;
#include "cli/table.def"
#undef X
    return "";
}

static int print_help(const char *command, const cli_usage *usage) {
    char line[256];
    snprintf(line, sizeof line, "kith %s [options]%s%s", command, usage->operands ? " " : "",
             usage->operands ? usage->operands : "");
    printf("usage: ");
    cli_print_wrapped(stdout, line, (int)strlen("usage: "));
    putchar('\n');
    cli_print_wrapped(stdout, summary_of(command), 0);
    if (usage->details) {
        putchar('\n');
        cli_print_paragraphs(usage->details);
    }
    printf("\noptions:\n");
    for (const cli_option *o = usage->options; o && o->name; o++) print_option(o);
    static const cli_option help = {.name = "help", .help = "show this text"};
    print_option(&help);
    return CLI_OK;
}

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    }
    return false;
}

static cli_usage_fn watcher;
static void *watcher_user;

void cli_watch_usage(cli_usage_fn fn, void *user) {
    watcher = fn;
    watcher_user = user;
}

int cli_parse(const cli_usage *usage, int *argc, char **argv) {
    if (watcher) {
        watcher(watcher_user, usage);
        return CLI_OK;
    }
    if (wants_help(*argc, argv)) return print_help(argv[0], usage);
    int n_kept = 1;
    bool options_end = false;
    for (int i = 1; i < *argc; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0) {
            options_end = true;
        } else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
            const int status = take_option(usage, *argc, argv, &i);
            if (status != CLI_RUN) return status;
        } else {
            argv[n_kept++] = argv[i];
        }
    }
    *argc = n_kept;
    const int n_operands = n_kept - 1;
    const char *operands = usage->operands ? usage->operands : "no operands";
    if (n_operands < usage->least) return cli_misused(argv[0], "wants %s", operands);
    if (usage->most >= 0 && n_operands > usage->most)
        return cli_misused(argv[0], "'%.60s' is one too many; wants %s", argv[usage->most + 1], operands);
    for (const cli_option *o = usage->options; o && o->name; o++) {
        if (!o->destination || !*o->ret_text) continue;
        const int status = cli_check_destination(argv[0], o, *o->ret_text);
        if (status != CLI_RUN) return status;
    }
    return CLI_RUN;
}

static void put_text(const char *text, size_t length, char *buf, size_t bytes, size_t *n) {
    for (size_t i = 0; i < length; i++, (*n)++) {
        if (*n + 1 < bytes) buf[*n] = text[i];
    }
}

bool cli_ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A quote closes the quoted part, is written escaped, and opens the next part. */
size_t cli_quote(const char *word, char *buf, size_t bytes) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    const bool is_plain = *word && word[strspn(word, plain)] == '\0';
    size_t n = 0;
    if (!is_plain) put_text("'", 1, buf, bytes, &n);
    for (const char *c = word; *c; c++)
        put_text(*c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1, buf, bytes, &n);
    if (!is_plain) put_text("'", 1, buf, bytes, &n);
    if (bytes > 0) buf[n < bytes ? n : bytes - 1] = '\0';
    return n;
}

char *cli_command_text(int argc, char **argv) {
    size_t bytes = sizeof "kith", used = 0;
    for (int i = 0; i < argc; i++) bytes += cli_quote(argv[i], NULL, 0) + 1;
    char *text = malloc(bytes);
    if (!text) return NULL;
    used = (size_t)snprintf(text, bytes, "kith");
    for (int i = 0; i < argc; i++) {
        text[used++] = ' ';
        used += cli_quote(argv[i], text + used, bytes - used);
    }
    return text;
}
