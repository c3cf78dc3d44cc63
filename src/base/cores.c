/* A container that may use half a core still sees every core of the machine: its limit is a share of time in
 * its control group. If there are more threads than that share allows, they are stopped in turn, while the
 * others wait for the stopped one. The same with memory: what is beyond the group's limit ends the process. */
#include "base/cores.h"

#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { MOST_PATH = 4096 };

/* One line of a file, without its newline. */
static bool read_line(const char *path, char *ret_line, size_t ret_bytes) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool has_line = fgets(ret_line, (int)ret_bytes, file) != NULL;
    fclose(file);
    if (has_line) ret_line[strcspn(ret_line, "\n")] = '\0';
    return has_line;
}

/* Limits of a group: 0 if there is none or it makes no sense. */
typedef int64_t (*limit_fn)(const char *folder);

/* How many cores a quota of microseconds per period is worth. */
static int64_t cores_of(const char *quota, const char *period) {
    int64_t used = 0, each = 0;
    if (!ki_parse_int64(quota, &used) || !ki_parse_int64(period, &each) || used <= 0 || each <= 0) return 0;
    const int64_t cores = used / each + (used % each != 0);
    return cores < INT_MAX ? cores : 0;
}

static int64_t quota_v2(const char *folder) {
    char path[MOST_PATH + 32], line[128];
    ki_snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_line(path, line, sizeof line)) return 0;
    char *period = strchr(line, ' ');
    if (!period) return 0;
    *period++ = '\0';
    return cores_of(line, period); /* "max" is no number */
}

static int64_t quota_v1(const char *folder) {
    char path[MOST_PATH + 32], quota[64], period[64];
    ki_snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, quota, sizeof quota)) return 0;
    ki_snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_line(path, period, sizeof period) ? cores_of(quota, period) : 0;
}

/* A file with one number. */
static int64_t number_in(const char *folder, const char *name) {
    char path[MOST_PATH + 32], line[64];
    int64_t n = 0;
    ki_snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_line(path, line, sizeof line) && ki_parse_int64(line, &n) && n > 0 ? n : 0;
}
static int64_t memory_v2(const char *folder) { return number_in(folder, "memory.max"); }
static int64_t memory_v1(const char *folder) { return number_in(folder, "memory.limit_in_bytes"); }

/* The smallest limit from the folder of the group up to its mount: a group cannot have more than the groups
 * above it. */
static int64_t least_limit(const char *mount, const char *group, limit_fn read_limit) {
    char folder[MOST_PATH];
    const int n = ki_snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof folder) return 0;
    const size_t top = strlen(mount);
    int64_t least = 0;
    for (;;) {
        const int64_t found = read_limit(folder);
        if (found > 0 && (least == 0 || found < least)) least = found;
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= top || !slash) return least;
        *((size_t)(slash - folder) < top ? folder + top : slash) = '\0';
    }
}

static bool has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    }
    return false;
}

/* The least limit of the process's groups, of the second version of control groups or of this controller of the first. */
static int64_t limit_of_groups(const char *root, const char *controller, limit_fn v2, limit_fn v1) {
    char path[MOST_PATH], line[MOST_PATH], mount[MOST_PATH];
    ki_snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    int64_t least = 0;
    while (fgets(line, sizeof line, file)) { /* NUMBER:CONTROLLERS:GROUP */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        const bool is_v2 = *controllers == '\0';
        if (!is_v2 && !has_word(controllers, controller)) continue;
        ki_snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, is_v2 ? "" : "/",
                    is_v2 ? "" : controller);
        const int64_t found = least_limit(mount, group, is_v2 ? v2 : v1);
        if (found > 0 && (least == 0 || found < least)) least = found;
    }
    fclose(file);
    return least;
}

int ki_cores_quota(const char *root) { return (int)limit_of_groups(root, "cpu", quota_v2, quota_v1); }

int64_t ki_memory_quota(const char *root) { return limit_of_groups(root, "memory", memory_v2, memory_v1); }

int64_t ki_memory_allowed(void) {
    const int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE), quota = ki_memory_quota("");
    const int64_t all = pages > 0 && bytes > 0 ? pages * bytes : 0;
    return quota > 0 && (all == 0 || quota < all) ? quota : all;
}

int ki_cores_allowed(void) {
    const char *asked = getenv("OMP_NUM_THREADS"); /* one number, or one for each level of nesting */
    char first[16] = "";
    int64_t n = 0;
    if (asked && strcspn(asked, ",") < sizeof first) {
        memcpy(first, asked, strcspn(asked, ","));
        if (ki_parse_int64(first, &n) && n > 0 && n <= INT_MAX) return (int)n;
    }
    const int cores = omp_get_num_procs(), quota = ki_cores_quota("");
    return quota > 0 && quota < cores ? quota : cores;
}

int64_t ki_memory_part(int64_t wanted, int parts) {
    const int64_t most = ki_memory_allowed() / parts;
    return most > 0 && most < wanted ? most : wanted;
}

int ki_cores_each(int64_t n_processes) {
    const int allowed = ki_cores_allowed(), quota = ki_cores_quota("");
    int64_t all = sysconf(_SC_NPROCESSORS_ONLN);
    if (quota > 0 && quota < all) all = quota;
    const int64_t each = n_processes > 0 && all / n_processes > 1 ? all / n_processes : 1;
    return allowed < each ? allowed : (int)each;
}
