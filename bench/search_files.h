/* What the programs of bench/search.sh share, in C and C++: the files of search_rows, time, recall, and the measured rounds. */
#ifndef BENCH_SEARCH_FILES_H
#define BENCH_SEARCH_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BENCH_K = 10 };

typedef struct bench_rows {
    int64_t n, width;
    void *data;
} bench_rows;

static inline void bench_stop(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline bench_rows bench_read(const char *prefix, const char *name, size_t bytes) {
    char path[4096];
    int64_t shape[2];
    snprintf(path, sizeof path, "%s.%s", prefix, name);
    FILE *file = fopen(path, "rb");
    if (!file || fread(shape, sizeof shape, 1, file) != 1)
        bench_stop("a file of bench/search_rows is missing");
    bench_rows rows = {shape[0], shape[1], NULL};
    const size_t n = (size_t)(shape[0] * shape[1]);
    rows.data = aligned_alloc(64, (n * bytes + 63) / 64 * 64);
    if (!rows.data || fread(rows.data, bytes, n, file) != n)
        bench_stop("a file of bench/search_rows is cut short");
    fclose(file);
    return rows;
}

static inline double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of all threads: on a machine that others use too it says what a round costs, which the clock on the wall does
 * not. Threads must wait without spinning (OMP_WAIT_POLICY=passive). */
static inline double bench_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Queries a second, the best of several rounds: by the clock on the wall, and by processor time as if no one else had used
 * the n_threads processors. */
typedef struct bench_speed {
    double wall, cpu;
} bench_speed;

static inline void bench_round(bench_speed *speed, int64_t n, double wall, double cpu, int n_threads) {
    const double by_wall = (double)n / wall, by_cpu = (double)n * n_threads / cpu;
    if (by_wall > speed->wall) speed->wall = by_wall;
    if (by_cpu > speed->cpu) speed->cpu = by_cpu;
}

/* The part of the true neighbours that was found: found [n, K] row numbers. */
static inline double bench_recall(const bench_rows *truth, const int64_t *found) {
    const int64_t *wanted = (const int64_t *)truth->data;
    int64_t n_hits = 0;
    for (int64_t i = 0; i < truth->n * BENCH_K; i++) {
        for (int j = 0; j < BENCH_K; j++) n_hits += found[i] == wanted[i / BENCH_K * BENCH_K + j];
    }
    return (double)n_hits / (double)(truth->n * BENCH_K);
}

#endif
