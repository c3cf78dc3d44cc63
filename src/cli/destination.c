/* Destinations are checked before the work begins, so that an hour of computing does not end with a file that cannot
 * be written. Things can change in the meantime; then the writer reports the error. */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

enum { PATH_BYTES = 4096 };

/* One of the words that begin with a dot, or any ending when there are none. */
static bool has_ending(const char *path, const char *endings) {
    const size_t n_path = strlen(path);
    if (!*endings) return true;
    for (const char *at = strchr(endings, '.'); at; at = strchr(at + 1, '.')) {
        const size_t n = strcspn(at, " ");
        if (n_path > n && strncasecmp(path + n_path - n, at, n) == 0) return true;
    }
    return false;
}

/* "x.svg" is in ".", "/x.svg" in "/". */
static bool parent_of(const char *path, char parent[PATH_BYTES]) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--; /* of a folder */
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= PATH_BYTES) return false;
    memcpy(parent, n ? path : ".", n ? n : 1);
    parent[n ? n : 1] = '\0';
    return true;
}

static int check_folder(const char *folder) {
    struct stat info;
    if (stat(folder, &info) != 0) return cli_failf("%s: there is no such folder (make it first)", folder);
    if (!S_ISDIR(info.st_mode)) return cli_failf("%s is not a folder", folder);
    if (access(folder, W_OK | X_OK) != 0) return cli_failf("%s: this folder cannot be written to", folder);
    return CLI_RUN;
}

bool cli_is_same_file(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int cli_check_destination(const char *command, const cli_option *option, const char *path) {
    struct stat info;
    char parent[PATH_BYTES];
    const bool is_there = stat(path, &info) == 0, is_folder = is_there && S_ISDIR(info.st_mode);
    if (!*path) return cli_misused(command, "--%.*s is empty", (int)strcspn(option->name, "|"), option->name);
    if (option->destination == CLI_FOLDER && is_there) return check_folder(path);
    if (is_there && !is_folder && !S_ISREG(info.st_mode)) return CLI_RUN; /* a pipe, /dev/null */
    if (is_folder) return cli_failf("%s is a folder; wanted the name of a file", path);
    if (option->destination == CLI_FILE && !has_ending(path, option->endings))
        return cli_misused(command, "--%.*s is '%.200s'; wanted a name that ends in %s",
                           (int)strcspn(option->name, "|"), option->name, path, option->endings);
    if (!parent_of(path, parent)) return cli_failf("%.100s…: the name is longer than 4,095 bytes", path);
    return check_folder(parent);
}
