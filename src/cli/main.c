/* kith: find the subcommand and run it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "kith/log.h"
#include "kith/text.h"
#include "kith/version.h"

typedef struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
#define X(name, summary) {#name, summary, cmd_##name},
#include "cli/table.def"
#undef X
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static int print_help(FILE *to) {
    fprintf(to,
            "usage: kith COMMAND [options] …\n"
            "       kith help COMMAND\n"
            "       kith --version\n\n"
            "Train image embeddings and judge them fairly.\n\n"
            "commands:\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(to, "  %-12s ", commands[i].name);
        cli_print_wrapped(to, commands[i].summary, 15);
    }
    fprintf(to, "\nkith -v COMMAND … prints more about what it does.\n");
    return CLI_OK;
}

static const command *find_command(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name) {
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
    const char *near = kith_nearest(name, names, N_COMMANDS);
    if (near)
        fprintf(stderr, "kith: unknown command '%.60s' (did you mean '%s'?)\n", name, near);
    else
        fprintf(stderr, "kith: unknown command '%.60s' (see kith --help)\n", name);
    return CLI_USAGE;
}

int cmd_help(int argc, char **argv) {
    const cli_usage usage = {.operands = "[COMMAND]", .most = 1};
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) return status;
    if (argc < 2) return print_help(stdout);
    const command *found = find_command(argv[1]);
    if (!found) return unknown_command(argv[1]);
    char help[] = "--help";
    return found->run(2, (char *[]){argv[1], help, NULL});
}

static void print_log(void *user, kith_log_level level, const char *line) {
    (void)user;
    /* The line may come from any thread while the terminal shows a bar: it replaces the bar. */
    fprintf(stderr, "%skith: %s%s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
            level == KITH_LOG_WARNING ? "warning: " : "", line);
}

static int run(int argc, char **argv) {
    kith_log_set(print_log, NULL, KITH_LOG_INFO);
    if (argc > 1 && strcmp(argv[1], "-v") == 0) {
        kith_log_set(print_log, NULL, KITH_LOG_DEBUG);
        argc--, argv++;
    }
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return print_help(stdout);
    if (strcmp(name, "--version") == 0) {
        printf("kith %s\n", kith_version());
        return CLI_OK;
    }
    if (name[0] == '-') {
        fprintf(stderr, "kith: unknown option '%.60s' before the command (see kith --help)\n", name);
        return CLI_USAGE;
    }
    const command *found = find_command(name);
    return found ? found->run(argc - 1, argv + 1) : unknown_command(name);
}

/* If the program is started with a closed standard stream (2>&-), the next file that is opened gets that
 * stream's number, and messages would be written into it. So /dev/null is opened in its place. It is read-only:
 * writing a result to a closed stdout is still a failure. */
static void fill_standard_streams(void) {
    int fd;
    do fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
    fill_standard_streams();
    const int refused = cli_take_passwords(argc, argv);
    if (refused) return refused;
    if (argc > 1) cli_wait_shortly(argv);
    const int status = run(argc, argv);
    /* A result that could not be written is a failure, as on a full disk. If the reader of a pipe has gone, no
     * message is needed: most commands have been ended by the signal already. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (cli_stop_signal() == SIGPIPE) return 128 + SIGPIPE;
        perror("kith: standard output");
        return status ? status : CLI_FAILURE;
    }
    return status;
}
