/* The index of the server's tests, and what is around the server. */
#include "support/served.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/http.h"
#include "support/testing.h"

static char index_path[1024];

void served_make(void) {
    char output[4096];
    const int status = testing_run(
        output, sizeof output,
        "cd %s && " TESTING_K
        " && $K synth photos --classes %d --images %d && "
        "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
        "$K index photos -o p.kith --model m.safetensors && $K index p.kith --calibrate photos",
        testing_folder(), testing_program(), SERVED_CLASSES, SERVED_EACH);
    if (status != 0) fail_msg("no index: %s", output);
}

ki_serve_options served_options(void) {
    ki_serve_options o;
    ki_serve_options_init(&o);
    snprintf(index_path, sizeof index_path, "%s/p.kith", testing_folder());
    o.index = index_path;
    o.port = 0;
    o.program = testing_program_path();
    o.n_decoders = 2;
    return o;
}

ki_server *served_start(const ki_serve_options *options, int *ret_port) {
    ki_server *server = NULL;
    kith_error err;
    assert_ok(ki_server_start(options, &server, &err), &err);
    *ret_port = http_port(ki_server_url(server));
    return server;
}

const char *served_tokens(void) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/tokens", testing_folder());
    testing_write(path, "token aaaaaaaaaaaaaaaaaaaaaaaa\nread-only bbbbbbbbbbbbbbbbbbbbbbbb\n");
    assert_int_equal(chmod(path, 0600), 0);
    return path;
}

char *served_photo(const char *name, size_t *ret_n) {
    char path[1200];
    snprintf(path, sizeof path, "%s/photos/%s", testing_folder(), name);
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 20);
    if (!file || !bytes) fail_msg("no %s", path);
    *ret_n = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* Whether a process is a living decoder of this one, and when it began, in ticks since the machine did. */
static bool is_our_decoder(long pid, unsigned long long *ret_start) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    for (size_t i = 0; i + 1 < n; i++) {
        if (!text[i]) text[i] = ' ';
    }
    if (!strstr(text, "--decode-images")) return false;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    file = fopen(path, "rb");
    if (!file) return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *behind = strrchr(text, ')');
    char letter = 0;
    long parent = 0;
    return behind &&
           sscanf(behind + 1,
                  " %c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &letter,
                  &parent, ret_start) == 3 &&
           parent == (long)getpid() && letter != 'Z';
}

typedef struct process {
    unsigned long long start;
    pid_t pid;
} process;

/* By when they began: their numbers begin anew after the largest. */
static int compare(const void *one, const void *other) {
    const process *a = one, *b = other;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int served_decoders(pid_t *ret_pids, int most) {
    DIR *folder = opendir("/proc");
    process found[16];
    int n = 0;
    assert_non_null(folder);
    assert_true(most <= 16);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || n == most || !is_our_decoder(pid, &found[n].start)) continue;
        found[n++].pid = (pid_t)pid;
    }
    closedir(folder);
    qsort(found, (size_t)n, sizeof *found, compare);
    for (int i = 0; i < n; i++) ret_pids[i] = found[i].pid;
    return n;
}
