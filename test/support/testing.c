/* Folders, files, programs and numbers for tests. */
#include "support/testing.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

double testing_relative_l2(const float *a, const float *b, int64_t n) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        error += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

const char *testing_shared(const char *path) {
    static char full[4096];
    const char *root = getenv("KITH_SHARED");
    if (root)
        snprintf(full, sizeof full, "%s/%s", root, path);
    else
        snprintf(full, sizeof full, "%s/../shared/%s", KITH_TESTING_SOURCE_DIR, path);
    return access(full, R_OK) == 0 ? full : NULL;
}

static char folder[512];

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

void testing_clean_up(void) {
    if (folder[0]) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

const char *testing_folder(void) {
    if (!folder[0]) {
        const char *temporary = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/kith-test-XXXXXX", temporary && *temporary ? temporary : "/tmp");
        if (!mkdtemp(folder)) abort();
        atexit(testing_clean_up);
    }
    return folder;
}

int testing_tear_down(void **state) {
    (void)state;
    testing_clean_up();
    return 0;
}

char *testing_read(const char *path) {
    FILE *file = fopen(path, "rb");
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    if (!file || !text) fail_msg("cannot read %s", path);
    while ((n += fread(text + n, 1, room - 1 - n, file)) == room - 1) {
        text = realloc(text, room *= 2);
        if (!text) abort();
    }
    text[n] = '\0';
    fclose(file);
    return text;
}

void testing_write(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) fail_msg("cannot write %s", path);
}

/* Words, N/M, and the end of the line or a comma. */
static bool is_progress(const char *line, size_t n) {
    size_t i = strcspn(line, "0123456789\n");
    if (i == 0 || i >= n || line[i - 1] != ' ' || memchr(line, ':', i)) return false;
    i += strspn(line + i, "0123456789");
    if (i >= n || line[i] != '/') return false;
    const size_t digits = strspn(line + i + 1, "0123456789");
    i += 1 + digits;
    return digits > 0 && (i == n || line[i] == ',');
}

bool testing_is_one_line(const char *output) {
    size_t n_lines = 0;
    for (const char *line = output; *line;) {
        const size_t n = strcspn(line, "\n");
        if (!line[n]) return false;
        if (!is_progress(line, n)) n_lines++;
        line += n + 1;
    }
    return n_lines == 1;
}

int testing_run(char *ret_output, size_t ret_bytes, const char *fmt, ...) {
    char command[8192], whole[8300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    snprintf(whole, sizeof whole, "( %s ) 2>&1", command);
    FILE *pipe = popen(whole, "r");
    if (!pipe) return -1;
    size_t used = fread(ret_output, 1, ret_bytes - 1, pipe);
    ret_output[used] = '\0';
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In single quotes, unless there is nothing to quote. */
static const char *quoted(const char *path, char *buf, size_t buf_bytes) {
    const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-";
    if (strspn(path, plain) == strlen(path)) return path;
    size_t n = 0;
    buf[n++] = '\'';
    for (; *path && n + 8 < buf_bytes; path++) {
        if (*path == '\'')
            n += (size_t)snprintf(buf + n, buf_bytes - n, "'\\''");
        else
            buf[n++] = *path;
    }
    if (*path) abort();
    buf[n++] = '\'';
    buf[n] = '\0';
    return buf;
}

/* A file beside the program. */
static const char *beside(const char *name, char *buf, size_t buf_bytes) {
    const ssize_t n = readlink("/proc/self/exe", buf, buf_bytes - 1);
    if (n <= 0) abort();
    buf[n] = '\0';
    char *base = strrchr(buf, '/') + 1;
    const size_t room = buf_bytes - (size_t)(base - buf);
    if ((size_t)snprintf(base, room, "%s", name) >= room) abort();
    return buf;
}

const char *testing_fault_io(void) {
    static char copy[600];
    char output[1024], from[5000], buf[8192];
    snprintf(copy, sizeof copy, "%s/libfault_io.so", testing_folder());
    if (access(copy, R_OK) == 0) return copy;
    beside("libfault_io.so", from, sizeof from);
    if (testing_run(output, sizeof output, "cp %s %s", quoted(from, buf, sizeof buf), copy) != 0)
        fail_msg("%s", output);
    return copy;
}

static const char *own_name;
static char **arguments;
static int n_arguments;

const char *testing_self(void) {
    static char buf[4096];
    return beside(own_name, buf, sizeof buf);
}

const char *testing_argument(int n) { return n <= n_arguments ? arguments[n] : NULL; }

int testing_start(const testing_entry *entries, size_t n_entries, int argc, char **argv) {
    for (int at = 0; at < argc && at < 2; at++) {
        const char *slash = strrchr(argv[at], '/'), *name = slash ? slash + 1 : argv[at];
        for (size_t i = 0; i < n_entries; i++) {
            if (strcmp(name, entries[i].name) != 0) continue;
            own_name = entries[i].name;
            arguments = argv + at;
            n_arguments = argc - 1 - at;
            return entries[i].main();
        }
    }
    fprintf(stderr, "which test? There are:");
    for (size_t i = 0; i < n_entries; i++) fprintf(stderr, " %s", entries[i].name);
    fprintf(stderr, "\n");
    return 2;
}

bool testing_has_placeholder(const char *text) {
    for (const char *at = strchr(text, '@'); at; at = strchr(at + 1, '@')) {
        const size_t n = strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (n > 1 && at[n + 1] == '@') return true;
    }
    return false;
}

const char *testing_program_path(void) {
    const char *program = getenv("KITH_PROGRAM");
    return program ? program : "./kith";
}

const char *testing_program(void) {
    static char buf[8192];
    return quoted(testing_program_path(), buf, sizeof buf);
}

const char *testing_source(void) {
    static char buf[8192];
    return quoted(KITH_TESTING_SOURCE_DIR, buf, sizeof buf);
}
