/* A container that may use half a core still sees every core of the machine: its limit is a share of time in
 * its control group. If there are more threads than that share allows, they are stopped in turn, while the
 * others wait for the stopped one. */
#include "core/cores.h"

#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

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

/* How many cores a quota of microseconds per period is worth; 0 if there is no limit or it makes no sense. */
static int cores_of(const char *quota, const char *period) {
    int64_t used = 0, each = 0;
    if (!ki_parse_int64(quota, &used) || !ki_parse_int64(period, &each) || used <= 0 || each <= 0) return 0;
    const int64_t cores = used / each + (used % each != 0);
    return cores < INT_MAX ? (int)cores : 0;
}

static int quota_v2(const char *folder) {
    char path[MOST_PATH + 32], line[128];
    ki_snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_line(path, line, sizeof line)) return 0;
    char *period = strchr(line, ' ');
    if (!period) return 0;
    *period++ = '\0';
    return cores_of(line, period); /* "max" is no number */
}

static int quota_v1(const char *folder) {
    char path[MOST_PATH + 32], quota[64], period[64];
    ki_snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, quota, sizeof quota)) return 0;
    ki_snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_line(path, period, sizeof period) ? cores_of(quota, period) : 0;
}

/* The smallest quota from the folder of the group up to its mount: a group cannot have more than the groups
 * above it. */
static int least_quota(const char *mount, const char *group, int (*read_quota)(const char *folder)) {
    char folder[MOST_PATH];
    const int n = ki_snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof folder) return 0;
    const size_t top = strlen(mount);
    int least = 0;
    for (;;) {
        const int found = read_quota(folder);
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

int ki_cores_quota(const char *root) {
    char path[MOST_PATH], line[MOST_PATH], mount[MOST_PATH];
    ki_snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    int least = 0;
    while (fgets(line, sizeof line, file)) { /* NUMBER:CONTROLLERS:GROUP */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        const bool is_v2 = *controllers == '\0';
        if (!is_v2 && !has_word(controllers, "cpu")) continue;
        ki_snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, is_v2 ? "" : "/cpu");
        const int found = least_quota(mount, group, is_v2 ? quota_v2 : quota_v1);
        if (found > 0 && (least == 0 || found < least)) least = found;
    }
    fclose(file);
    return least;
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
