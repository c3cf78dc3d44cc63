/* The completion scripts of bash, zsh and fish. */
#include <string.h>

#include "cli/completion.h"
#include "kith/experimental/list.h"

/* Inside a single-quoted string: a quote closes it, is written escaped, and opens it again. The letters of
 * `also` get a backslash. */
static void put_quoted(const char *text, const char *quote, const char *also) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(also, *text) ? "\\" : "", *text);
    }
}

static bool is_plain_command(const char *command) { return !strchr(command, ' '); }

static void put_command_names(const char *command, const char *summary, const cli_usage *usage) {
    (void)summary, (void)usage;
    if (is_plain_command(command)) printf(" %s", command);
}

static void put_bench_names(const char *command, const char *summary, const cli_usage *usage) {
    (void)summary, (void)usage;
    if (!is_plain_command(command)) printf(" %s", strchr(command, ' ') + 1);
}

static bool takes_commands(const cli_usage *u) {
    return u->operands && strcmp(u->operands, "[COMMAND]") == 0;
}
static bool takes_kinds(const cli_usage *u) { return u->operands && strncmp(u->operands, "[KIND", 5) == 0; }
static bool takes_words(const cli_usage *u) {
    return u->operands && !u->operands[strcspn(u->operands, " .[]")] && strchr(u->operands, '|') &&
           strspn(u->operands, "abcdefghijklmnopqrstuvwxyz|") == strlen(u->operands);
}

static void put_operand_words(const cli_usage *u) {
    for (const char *c = u->operands; *c; c++) putchar(*c == '|' ? ' ' : *c);
}

/* ---- bash ---- */

static void bash_value(const completion_value *v) {
    switch (v->kind) {
    case COMPLETE_WORDS:
        printf("_kith_words '");
        put_quoted(v->words, "'\\''", "");
        printf("'%s", v->ends_open ? "; compopt -o nospace 2>/dev/null || :" : "");
        break;
    case COMPLETE_FOLDERS: printf("_kith_files /"); break;
    case COMPLETE_FILES:
        printf("_kith_files");
        for (int i = 0; i < v->n_endings; i++) printf(" %s", v->ending[i]);
        break;
    case COMPLETE_NOTHING: printf(":"); break;
    }
}

static void bash_options(const char *command, const char *summary, const cli_usage *usage) {
    (void)summary;
    for (const cli_option *o = usage->options; o && o->name; o++) {
        char name[64];
        completion_value value;
        if (o->ret_flag) continue;
        completion_of_option(o, &value);
        printf("    '%s --%s'", command, completion_name(o, name, sizeof name));
        if (completion_letter(o)) printf(" | '%s -%c'", command, completion_letter(o));
        printf(") ");
        bash_value(&value);
        printf("; return ;;\n");
    }
}

static void bash_names(const char *command, const char *summary, const cli_usage *usage) {
    (void)summary;
    printf("        '%s') _kith_words '--help", command);
    for (const cli_option *o = usage->options; o && o->name; o++) {
        char name[64];
        printf(" --%s", completion_name(o, name, sizeof name));
    }
    printf("' ;;\n");
}

static void bash_operands(const char *command, const char *summary, const cli_usage *usage) {
    (void)summary;
    completion_value value;
    printf("    '%s') ", command);
    if (takes_commands(usage)) {
        printf("_kith_words \"$commands\"");
    } else if (takes_kinds(usage)) {
        kith_list_kind kind;
        printf("case $prev in\n");
        for (int i = 0; kith_list_kind_at(i, &kind); i++) {
            completion_entries(kind.name, &value);
            printf("        %s) ", kind.name);
            bash_value(&value);
            printf(" ;;\n");
        }
        completion_kinds(&value);
        printf("        *) ");
        bash_value(&value);
        printf(" ;;\n        esac");
    } else if (takes_words(usage)) {
        printf("_kith_words '");
        put_operand_words(usage);
        printf("'");
    } else if (strcmp(command, "bench") == 0) {
        printf("_kith_words '");
        completion_each(put_bench_names);
        printf("'");
    } else {
        completion_of_operands(usage, &value);
        bash_value(&value);
    }
    printf(" ;;\n");
}

void completion_bash(void) {
    printf(
        "# bash completion for kith, made by: kith completion bash\n"
        "_kith_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
        "# Files with one of the endings, and folders on the way; any file without one; /: folders alone.\n"
        "_kith_files() {\n"
        "    local ending\n"
        "    COMPREPLY=()\n"
        "    if [ $# -eq 0 ]; then mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
        "    else mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); fi\n"
        "    for ending; do\n"
        "        [ \"$ending\" = / ] ||\n"
        "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X \"!*.$ending\" -- \"$cur\")\n"
        "    done\n"
        "    compopt -o filenames 2>/dev/null || :\n"
        "}\n"
        "_kith() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at=1 command commands='");
    completion_each(put_command_names);
    printf(
        "'\n"
        "    COMPREPLY=()\n"
        "    # --option=value comes as three words.\n"
        "    if [ \"$cur\" = = ]; then cur=\n"
        "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; "
        "fi\n"
        "    [ \"${COMP_WORDS[1]}\" = -v ] && at=2\n"
        "    if [ \"$COMP_CWORD\" -le \"$at\" ]; then _kith_words \"$commands --help --version\"; return; "
        "fi\n"
        "    command=${COMP_WORDS[at]}\n"
        "    if [ \"$command\" = bench ] && [ \"$COMP_CWORD\" -gt $((at + 1)) ]; then\n"
        "        command=\"bench ${COMP_WORDS[at + 1]}\"\n"
        "    fi\n"
        "    case \"$command $prev\" in\n");
    completion_each(bash_options);
    printf("    esac\n    case $cur in -*)\n        case $command in\n");
    completion_each(bash_names);
    printf("        esac\n        return ;;\n    esac\n    case $command in\n");
    completion_each(bash_operands);
    printf("    esac\n}\ncomplete -F _kith kith\n");
}

/* ---- zsh ---- */

static const char zsh_quote[] = "'\\''";

static void zsh_value(const completion_value *v) {
    switch (v->kind) {
    case COMPLETE_WORDS:
        putchar('(');
        put_quoted(v->words, zsh_quote, ":");
        putchar(')');
        break;
    case COMPLETE_FOLDERS: printf("_files -/"); break;
    case COMPLETE_FILES:
        printf("_files");
        if (v->n_endings == 1) printf(" -g \"*.%s\"", v->ending[0]); /* (one) would be a qualifier */
        for (int i = 0; v->n_endings > 1 && i < v->n_endings; i++)
            printf("%s%s%s", i ? "|" : " -g \"*.(", v->ending[i], i + 1 == v->n_endings ? ")\"" : "");
        break;
    case COMPLETE_NOTHING: putchar(' '); break;
    }
}

static void zsh_options(const cli_usage *usage) {
    for (const cli_option *o = usage->options; o && o->name; o++) {
        char name[64];
        const char letter = completion_letter(o);
        completion_value value;
        completion_name(o, name, sizeof name);
        printf(" \\\n            ");
        if (o->ret_list && letter)
            printf("'*'{-%c,--%s}'", letter, name);
        else if (o->ret_list)
            printf("'*--%s", name);
        else if (letter)
            printf("'(-%c --%s)'{-%c,--%s}'", letter, name, letter, name);
        else
            printf("'--%s", name);
        printf("[");
        put_quoted(o->help, zsh_quote, "[]:\\");
        printf("]");
        if (!o->ret_flag) {
            completion_of_option(o, &value);
            printf(":");
            put_quoted(o->argument, zsh_quote, ":\\");
            printf(":");
            zsh_value(&value);
        }
        printf("'");
    }
}

static void zsh_operands(const cli_usage *usage) {
    completion_value value;
    if (takes_commands(usage)) {
        printf(" '1:command:($names)'");
    } else if (takes_kinds(usage)) {
        kith_list_kind kind;
        completion_kinds(&value);
        printf(" '1:kind:");
        zsh_value(&value);
        printf("' '2:name:{case $words[2] in");
        for (int i = 0; kith_list_kind_at(i, &kind); i++) {
            completion_entries(kind.name, &value);
            printf(" %s) compadd -- %s ;;", kind.name, value.words);
        }
        printf(" esac}'");
    } else if (takes_words(usage)) {
        printf(" '1:shell:(");
        put_operand_words(usage);
        printf(")'");
    } else {
        completion_of_operands(usage, &value);
        if (value.kind == COMPLETE_NOTHING) return;
        printf(" '*:operand:");
        zsh_value(&value);
        printf("'");
    }
}

static void zsh_command(const char *command, const char *summary, const cli_usage *usage) {
    (void)summary;
    printf("    '%s')\n        _arguments -s '--help[show help]'", command);
    if (strcmp(command, "bench") == 0) {
        printf(" '1:what:(");
        completion_each(put_bench_names);
        printf(")'");
    } else {
        zsh_options(usage);
        zsh_operands(usage);
    }
    printf(" ;;\n");
}

static void zsh_summary(const char *command, const char *summary, const cli_usage *usage) {
    (void)usage;
    if (!is_plain_command(command)) return;
    printf("        '%s:", command);
    put_quoted(summary, zsh_quote, "\\");
    printf("'\n");
}

void completion_zsh(void) {
    printf(
        "#compdef kith\n# zsh completion for kith, made by: kith completion zsh\n"
        "_kith() {\n    local curcontext=$curcontext context state line command\n"
        "    local -a commands names\n    local -A opt_args\n    commands=(\n");
    completion_each(zsh_summary);
    printf(
        "    )\n    names=(${commands%%%%:*})\n"
        "    [[ $words[2] == -v ]] && { shift words; (( CURRENT-- )) }\n"
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
        "    command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
        "    if [[ $command == bench ]] && (( CURRENT > 2 )); then\n"
        "        command=\"bench $words[2]\"; shift words; (( CURRENT-- ))\n    fi\n"
        "    case $command in\n");
    completion_each(zsh_command);
    printf(
        "    esac\n}\n"
        "if [ \"$funcstack[1]\" = _kith ]; then _kith \"$@\"; else compdef _kith kith; fi\n");
}

/* ---- fish ---- */

static void fish_value(const completion_value *v) {
    switch (v->kind) {
    case COMPLETE_WORDS:
        printf(" -x -a '");
        put_quoted(v->words, "\\'", "\\");
        printf("'");
        break;
    case COMPLETE_FOLDERS: printf(" -x -a '(__fish_complete_directories)'"); break;
    case COMPLETE_FILES:
        if (v->n_endings == 0) printf(" -r -F");
        for (int i = 0; i < v->n_endings; i++)
            printf("%s(__fish_complete_suffix .%s)%s", i ? " " : " -x -a '", v->ending[i],
                   i + 1 == v->n_endings ? "'" : "");
        break;
    case COMPLETE_NOTHING: printf(" -x"); break;
    }
}

static void fish_begin(const char *command) {
    const char *space = strchr(command, ' ');
    if (space)
        printf("complete -c kith -n '__fish_seen_subcommand_from bench; and __fish_seen_subcommand_from %s'",
               space + 1);
    else
        printf("complete -c kith -n '__fish_seen_subcommand_from %s'", command);
}

static void fish_operands(const char *command, const cli_usage *usage) {
    completion_value value;
    if (takes_kinds(usage)) {
        kith_list_kind kind;
        completion_kinds(&value);
        fish_begin(command);
        fish_value(&value);
        putchar('\n');
        for (int i = 0; kith_list_kind_at(i, &kind); i++) {
            completion_entries(kind.name, &value);
            printf(
                "complete -c kith -n '__fish_seen_subcommand_from list; and __fish_seen_subcommand_from %s'",
                kind.name);
            fish_value(&value);
            putchar('\n');
        }
        return;
    }
    completion_of_operands(usage, &value);
    if (takes_commands(usage) || takes_words(usage) || strcmp(command, "bench") == 0) {
        fish_begin(command);
        printf(" -x -a '");
        if (takes_commands(usage))
            completion_each(put_command_names);
        else if (takes_words(usage))
            put_operand_words(usage);
        else
            completion_each(put_bench_names);
        printf("'\n");
    } else if (value.kind == COMPLETE_FILES && value.n_endings == 0) {
        fish_begin(command);
        printf(" -F\n");
    } else if (value.kind != COMPLETE_NOTHING) {
        fish_begin(command);
        fish_value(&value);
        putchar('\n');
    }
}

static void fish_command(const char *command, const char *summary, const cli_usage *usage) {
    if (is_plain_command(command)) {
        printf("complete -c kith -n __fish_use_subcommand -a %s -d '", command);
        put_quoted(summary, "\\'", "\\");
        printf("'\n");
    }
    for (const cli_option *o = usage->options; o && o->name; o++) {
        char name[64];
        completion_value value;
        fish_begin(command);
        printf(" -l %s", completion_name(o, name, sizeof name));
        if (completion_letter(o)) printf(" -s %c", completion_letter(o));
        if (!o->ret_flag) {
            completion_of_option(o, &value);
            fish_value(&value);
        }
        printf(" -d '");
        put_quoted(o->help, "\\'", "\\");
        printf("'\n");
    }
    fish_operands(command, usage);
}

void completion_fish(void) {
    printf("# fish completion for kith, made by: kith completion fish\ncomplete -c kith -f\n");
    completion_each(fish_command);
}
