/* What a shell can complete, from the option tables: shared by the shells' scripts. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/cli.h"

enum { COMPLETION_WORDS = 16384, COMPLETION_ENDINGS = 4 };

/* What can be completed at a place: one of some words, a folder, a file (with one of the endings; none given: any), or
 * nothing that a shell could know. */
typedef struct completion_value {
    enum { COMPLETE_NOTHING, COMPLETE_WORDS, COMPLETE_FOLDERS, COMPLETE_FILES } kind;
    char words[COMPLETION_WORDS]; /* with spaces between them */
    bool ends_open;               /* a word is continued, as in "optim.lr=" */
    char ending[COMPLETION_ENDINGS][16];
    int n_endings;
} completion_value;

/* The value of an option, and the operands of a command. */
void completion_of_option(const cli_option *option, completion_value *ret_value);
void completion_of_operands(const cli_usage *usage, completion_value *ret_value);

/* An option's name without its letter, and the letter ('\0': none). */
const char *completion_name(const cli_option *option, char *buf, size_t bytes);
char completion_letter(const cli_option *option);

/* Call fn for every command ("train") and benchmark ("bench knn"), in the order of help. Its usage lives for the call. */
typedef void (*completion_fn)(const char *command, const char *summary, const cli_usage *usage);
void completion_each(completion_fn fn);

/* `kith list` has kinds, and names of each. */
void completion_kinds(completion_value *ret_value);
void completion_entries(const char *kind, completion_value *ret_value);

/* The scripts, on standard output. */
void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

#endif
