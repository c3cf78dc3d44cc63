/* What the subcommands share. Only public headers (kith/…) are used in this folder, and serve/serve.h in serve.c.
 *
 * A subcommand is one file with one function, `int cmd_NAME(int argc, char **argv)` (argv[0] is the
 * subcommand's name, the result is the exit status), and one row in table.def:
 *
 *     int cmd_embed(int argc, char **argv) {
 *         const char *backbone = NULL, *out = NULL;
 *         int64_t batch = 32;
 *         bool json = false;
 *         const cli_option options[] = {
 *             CLI_TEXT("backbone", "NAME", &backbone, "the network (see kith list backbones)"),
 *             CLI_INT("batch", "N", &batch, 1, 65536, "items per step"),
 *             CLI_TEXT("out|o", "FILE", &out, "where the embeddings go"),
 *             CLI_FLAG("json", &json, "print the result as JSON"),
 *             CLI_END};
 *         const cli_usage usage = {.operands = "BATCH.npy", .least = 1, .most = 1, .options = options};
 *         const int status = cli_parse(&usage, &argc, argv);
 *         if (status != CLI_RUN) return status;
 *         … argv[1] to argv[argc - 1] are the operands …
 *
 * Exit statuses: 0 success, 1 failure, 2 wrong usage. A failure prints one line to standard error;
 * results go to standard output. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/experimental/json.h"
#include "kith/status.h"

enum { CLI_RUN = -1, CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

#define X(name, summary) int cmd_##name(int argc, char **argv);
#include "cli/table.def"
#undef X

/* An option that may be given several times, as in --set key=value --set key=value. */
enum { CLI_MOST_ITEMS = 64 };
typedef struct cli_list {
    int n_items;
    const char *item[CLI_MOST_ITEMS];
} cli_list;

/* What an option that names a destination makes the command write there. */
typedef enum cli_destination { CLI_NO_DESTINATION, CLI_FILE, CLI_FOLDER } cli_destination;

/* A row points at one variable of the type its macro wants; the variable's value before parsing is
 * the default that --help shows (a NaN: none). "out|o" is --out with the short form -o. */
typedef struct cli_option {
    const char *name;
    const char *argument; /* what --help calls the value; NULL for a flag */
    const char *help;
    bool *ret_flag;
    int64_t *ret_int;
    double *ret_real;
    const char **ret_text;
    cli_list *ret_list;
    int *ret_choice;            /* index into choices */
    const char *const *choices; /* NULL-terminated */
    double least, most;         /* int and real: the range allowed, both ends included */
    cli_destination destination;
    const char *endings; /* of a file: endings its name may have, " or " between them; "": any */
} cli_option;

#define CLI_FLAG(name_, ret_, help_) \
    { .name = (name_), .ret_flag = (ret_), .help = (help_) }
#define CLI_INT(name_, argument_, ret_, least_, most_, help_)                                   \
    {                                                                                           \
        .name = (name_), .argument = (argument_), .ret_int = (ret_), .least = (double)(least_), \
        .most = (double)(most_), .help = (help_)                                                \
    }
#define CLI_REAL(name_, argument_, ret_, least_, most_, help_)                                            \
    {                                                                                                     \
        .name = (name_), .argument = (argument_), .ret_real = (ret_), .least = (least_), .most = (most_), \
        .help = (help_)                                                                                   \
    }
#define CLI_TEXT(name_, argument_, ret_, help_) \
    { .name = (name_), .argument = (argument_), .ret_text = (ret_), .help = (help_) }
/* A file or a folder that the command writes; cli_parse checks that it can be written. */
#define CLI_OUT(name_, argument_, ret_, endings_, help_)                                       \
    {                                                                                          \
        .name = (name_), .argument = (argument_), .ret_text = (ret_), .destination = CLI_FILE, \
        .endings = (endings_), .help = (help_)                                                 \
    }
#define CLI_OUT_FOLDER(name_, argument_, ret_, help_)                                            \
    {                                                                                            \
        .name = (name_), .argument = (argument_), .ret_text = (ret_), .destination = CLI_FOLDER, \
        .help = (help_)                                                                          \
    }
#define CLI_LIST(name_, argument_, ret_, help_) \
    { .name = (name_), .argument = (argument_), .ret_list = (ret_), .help = (help_) }
#define CLI_CHOICE(name_, argument_, ret_, choices_, help_) \
    { .name = (name_), .argument = (argument_), .ret_choice = (ret_), .choices = (choices_), .help = (help_) }
#define CLI_END \
    { .name = NULL }

typedef struct cli_usage {
    const char *operands;      /* as --help shows them: "BATCH.npy", "IMAGE…"; NULL when none */
    int least, most;           /* how many operands; most < 0 = any number */
    const cli_option *options; /* ends with CLI_END; NULL when none */
    const char *details;       /* paragraphs for --help after the summary; may be NULL */
} cli_usage;

/* Read the options into their variables and leave the operands in argv[1] … argv[*argc - 1].
 * Options and operands may be mixed; "--" ends the options. Returns CLI_RUN, or the exit status
 * when the command is over: --help was printed, or the usage was wrong and said so, or a destination
 * cannot be written. */
int cli_parse(const cli_usage *usage, int *argc, char **argv);

/* Quotes a word for a shell, if it needs quotes. Returns the length of the result like snprintf, also if it did not
 * fit. */
size_t cli_quote(const char *word, char *buf, size_t bytes);
bool cli_ends_with(const char *text, const char *end);

/* Can this destination be written? Checks the ending of the name, the folder, and whether the folder can be written
 * to. Returns CLI_RUN, or prints one line that says why not and returns the exit status. cli_parse calls this for
 * every destination. */
int cli_check_destination(const char *command, const cli_option *option, const char *path);

/* Do both names mean one file that is there? */
bool cli_is_same_file(const char *one, const char *other);

/* From now on cli_parse passes its usage to fn and parses nothing. This gives the options of a command without running
 * it. NULL ends this. */
typedef void (*cli_usage_fn)(void *user, const cli_usage *usage);
void cli_watch_usage(cli_usage_fn fn, void *user);

/* The command line as one string that a shell can read, for run.json. Free it. NULL when there is no memory. */
char *cli_command_text(int argc, char **argv);

/* Fill err as the library does (hint may be NULL) and return status. */
kith_status cli_error(kith_error *err, kith_status status, const char *hint, const char *fmt, ...)
    KITH_PRINTF(4, 5);

/* Print what was written, a line, and free it, also after a failure. */
kith_status cli_print_json(kith_json *json, kith_error *err);

/* Print "kith: message (hint)" to standard error; returns 1. */
int cli_fail(const kith_error *err);
/* The same for a failure that no library call reports. */
int cli_failf(const char *fmt, ...) KITH_PRINTF(1, 2);
/* Print "kith: NAME: message (see kith help NAME)" to standard error; returns 2. */
int cli_misused(const char *name, const char *fmt, ...) KITH_PRINTF(2, 3);
/* As cli_misused, for a word that is not one of the names; suggests the nearest one. */
int cli_unknown(const char *name, const char *what, const char *word, const char *const *names,
                size_t n_names);

/* Width of the terminal at fd in columns, or the value of COLUMNS; 0: neither is known. */
int cli_columns(int fd);
/* Width in columns of (the first n bytes of) a UTF-8 text. */
int cli_text_columns(const char *text, size_t n);
/* Where the explanations of a table of options begin. */
int cli_help_column(void);
/* Print a text wrapped at the terminal's width (84 if that is unknown), with a newline at its end. The cursor is at
 * `column` already; the other lines begin there, too. */
void cli_print_wrapped(FILE *to, const char *text, int column);
/* The same on standard output for several paragraphs: an empty line ends one, other newlines are spaces, and an
 * indented line is kept as a line. */
void cli_print_paragraphs(const char *text);

/* Seconds on the monotonic clock. */
double cli_seconds_now(void);

/* Start the program again with threads that spin only briefly when they wait, unless the environment says how
 * they wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT). Returns if this is the case already. */
void cli_wait_shortly(char **argv);

/* For commands that can stop and save. From now on the first SIGINT, SIGTERM, SIGHUP or SIGPIPE is only noted, a
 * second SIGINT or SIGTERM ends the process at once, and writing beyond a file's size limit is an error of the write.
 * SIGHUP and SIGPIPE stay ignored where they were (nohup). */
void cli_catch_signals(void);
/* The signal that asked for a stop; 0: none. */
int cli_stop_signal(void);
/* Not one of several processes that mpirun has started, or the first of them. */
bool cli_is_first_rank(void);

/* "2:05", "1:00:00". Returns buf. */
const char *cli_time_text(double seconds, char *buf, size_t bytes);

/* How long the rest takes, from the pace since the first count: what comes before it (opening files, making plans) says nothing of
 * what follows. Begin with zeros. */
typedef struct cli_pace {
    bool has_begun;
    double began; /* when the first count came */
    int64_t first;
} cli_pace;

/* Seconds; NaN while it is too early to say, and when nothing is left. */
double cli_pace_left(cli_pace *pace, double now, int64_t done, int64_t total);

/* Progress of a long run, on standard error: on a terminal a bar that is redrawn, in a pipe or a file a plain
 * line now and then. Nothing is printed for runs shorter than a second. */
typedef struct cli_progress {
    const char *what; /* "embedding" */
    int64_t total, done;
    bool is_terminal, has_drawn;
    double began, drawn; /* seconds on the monotonic clock */
    cli_pace pace;
} cli_progress;

void cli_progress_begin(cli_progress *progress, const char *what, int64_t total);
/* `note` (may be NULL) is shown after the count: "loss 0.31". */
void cli_progress_update(cli_progress *progress, int64_t done, const char *note);
/* Finish the line, so that results start on a fresh one. */
void cli_progress_end(cli_progress *progress);

/* ---- indexes on a server (address.c) ---- */

/* postgresql://… or postgres://… */
bool cli_is_address(const char *path);
/* Take the passwords out of all addresses among the arguments, and give them to libpq as PGPASSWORD, so that nothing prints them: no
 * message, also where a file was wanted, and no list of processes. */
int cli_take_passwords(int argc, char **argv);

#endif
