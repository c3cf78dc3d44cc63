/* Runs of `kith train` over ranks, as a user types them, and how far two of them are apart. Included by one test program each. */
#ifndef TEST_TRAIN_RANK_RUNS_H
#define TEST_TRAIN_RANK_RUNS_H

#include <math.h>

#include "kith/array.h"
#include "support/mpirun.h"
#include "train/tiny.h"

static char rank_runs_said[TINY_OUTPUT]; /* by the last command */

/* `VARIABLES mpirun -np N kith train TINY.yaml --out FOLDER/OUT ARGUMENTS`; n 1: without mpirun. Its exit status. */
static inline int rank_runs_try(const char *variables, int n, const char *out, const char *arguments) {
    char mpirun[1024] = "";
    if (n > 1) snprintf(mpirun, sizeof mpirun, MPIRUN " -np %d", n);
    return testing_run(rank_runs_said, sizeof rank_runs_said,
                       "%s %s %s train %s --out %s/%s --no-report -q %s 2>&1", variables, mpirun,
                       testing_program(), tiny_make(), testing_folder(), out, arguments);
}

static inline void rank_runs_train(const char *variables, int n, const char *out, const char *arguments) {
    const int status = rank_runs_try(variables, n, out, arguments);
    if (status != 0) fail_msg("%d ranks: status %d, %s", n, status, rank_runs_said);
}

/* The largest difference of two runs' test embeddings, over the largest number. */
static inline double rank_runs_apart(const char *a, const char *b) {
    kith_array x, y;
    kith_error err;
    char path[2][4096];
    snprintf(path[0], sizeof path[0], "%s/%s/test/embedding.npy", testing_folder(), a);
    snprintf(path[1], sizeof path[1], "%s/%s/test/embedding.npy", testing_folder(), b);
    assert_ok(kith_npy_read(path[0], &x, &err), &err);
    assert_ok(kith_npy_read(path[1], &y, &err), &err);
    assert_int_equal(kith_array_count(&x), kith_array_count(&y));
    double most = 0, off = 0;
    for (int64_t i = 0; i < kith_array_count(&x); i++) {
        const double u = (double)((float *)x.data)[i], v = (double)((float *)y.data)[i];
        most = fmax(most, fabs(u));
        off = fmax(off, fabs(u - v));
    }
    kith_array_release(&x);
    kith_array_release(&y);
    return off / most;
}

static inline void rank_runs_near(const char *a, const char *b, double most) {
    const double off = rank_runs_apart(a, b);
    if (!(off < most)) fail_msg("embeddings of %s and %s are %g apart; wanted less than %g", a, b, off, most);
}

/* Arguments for a teacher and two data sets, one without labels, which are made on the first call: of a batch of 12 the last 4 have no class. */
static inline const char *rank_runs_taught(void) {
    static char arguments[4096];
    const char *folder = testing_folder(), *program = testing_program();
    if (*arguments) return arguments;
    if (testing_run(rank_runs_said, sizeof rank_runs_said,
                    "%s train %s --out %s/teacher --set optim.steps=3 --set seed=5 --no-report -q && cd %s "
                    "&& mkdir flat && n=0 && "
                    "for f in tiny/*/0000[0-2].png; do n=$((n+1)); cp $f flat/$n.png; done",
                    program, tiny_make(), folder, folder) != 0)
        fail_msg("%s", rank_runs_said);
    snprintf(arguments, sizeof arguments,
             " --set 'data=[{root: %s/tiny, validation: 0.2, weight: 2}, {root: %s/flat, labels: false, "
             "weight: 1}]' "
             "--set 'teachers=[{weights: %s/teacher}]' --set 'batch={classes: 6, images: 2}' --set "
             "'objective={loss: "
             "binomial, regularizers: [{name: relational, form: softmax, temperature: 0.2}, {name: match, "
             "weight: 0.5}]}' ",
             folder, folder, folder);
    return arguments;
}

#endif
