/* What scripts of the long tests need at sizes no test of the short tier has:
 *
 *   scale rows N DIM PER_CLASS E.npy Y.npy   embeddings of N rows, PER_CLASS of every class near each other
 *   scale proxies CLASSES                    a loss over that many proxies: seconds, memory, a gradient checked
 *   scale within SECONDS MIB FILE COMMAND…   run it; the seconds and MiB it took go to FILE; fails beyond either
 *
 * Exit status 1 when something is wrong, with a line that says what. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "kith/array.h"
#include "kith/objective.h"

static int failed(const char *what, const kith_error *err) {
    fprintf(stderr, "scale: %s: %s\n", what, err->message);
    return 1;
}

static int write_rows(int64_t n, int64_t dim, int64_t per_class, const char *to, const char *labels_to) {
    kith_error err = {0};
    kith_array x = {0}, y = {0};
    int status = 1;
    if (kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &x, &err) != KITH_OK ||
        kith_array_init(KITH_I64, 1, (int64_t[]){n}, &y, &err) != KITH_OK) {
        failed("memory", &err);
        goto done;
    }
    float *value = x.data;
    for (int64_t i = 0; i < n; i++) {
        const int64_t class_ = i / per_class;
        ((int64_t *)y.data)[i] = class_;
        ki_rng centre = ki_rng_at(1, KI_RNG_TEST, (uint32_t)class_, 0);
        ki_rng noise = ki_rng_at(1, KI_RNG_TEST, (uint32_t)i, 1);
        for (int64_t k = 0; k < dim; k++)
            value[i * dim + k] = (float)(ki_rng_double(&centre) - 0.5 + 2 * (ki_rng_double(&noise) - 0.5));
    }
    if (kith_npy_write(to, &x, &err) != KITH_OK || kith_npy_write(labels_to, &y, &err) != KITH_OK) {
        failed(to, &err);
        goto done;
    }
    status = 0;
done:
    kith_array_release(&x);
    kith_array_release(&y);
    return status;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { BATCH = 64, DIM = 64 };
static const double temperature = 0.05;

/* The same loss written down once more, in double and without any vector code: the gradient at one proxy. Its cosines
 * are those of a normalised embedding and a normalised proxy; softmax over all classes needs every one of them. */
static void gradient_of_proxy(const float *x, const int64_t *labels, const double *log_sum,
                              const float *proxy, int64_t class_, double *ret) {
    double length = 0, unit[DIM], by_unit[DIM] = {0}, along = 0;
    for (int k = 0; k < DIM; k++) length += (double)proxy[k] * (double)proxy[k];
    length = sqrt(length);
    for (int k = 0; k < DIM; k++) unit[k] = (double)proxy[k] / length;
    for (int i = 0; i < BATCH; i++) {
        double s = 0, row = 0;
        for (int k = 0; k < DIM; k++) {
            row += (double)x[i * DIM + k] * (double)x[i * DIM + k];
            s += (double)x[i * DIM + k] * unit[k];
        }
        row = sqrt(row);
        s /= row;
        const double share =
            (exp(s / temperature - log_sum[i]) - (labels[i] == class_ ? 1 : 0)) / (temperature * BATCH);
        for (int k = 0; k < DIM; k++) by_unit[k] += share * (double)x[i * DIM + k] / row;
    }
    for (int k = 0; k < DIM; k++) along += by_unit[k] * unit[k];
    for (int k = 0; k < DIM; k++) ret[k] = (by_unit[k] - along * unit[k]) / length;
}

static void log_sums(const float *x, const float *proxies, int64_t n_classes, double *ret) {
    for (int i = 0; i < BATCH; i++) {
        double row = 0, sum = 0;
        for (int k = 0; k < DIM; k++) row += (double)x[i * DIM + k] * (double)x[i * DIM + k];
        for (int64_t j = 0; j < n_classes; j++) {
            double s = 0, length = 0;
            for (int k = 0; k < DIM; k++) {
                s += (double)x[i * DIM + k] * (double)proxies[j * DIM + k];
                length += (double)proxies[j * DIM + k] * (double)proxies[j * DIM + k];
            }
            sum += exp(s / sqrt(row * length) / temperature);
        }
        ret[i] = log(sum);
    }
}

static int check_proxies(int64_t n_classes) {
    static float x[BATCH * DIM];
    static int64_t labels[BATCH];
    kith_error err = {0};
    kith_objective *objective = NULL;
    kith_objective_param proxies = {0};
    kith_objective_result result;
    double log_sum[BATCH], worst = 0, largest = 0;
    int status = 1;
    ki_rng rng = ki_rng_at(2, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < BATCH; i++) {
        labels[i] = (int64_t)(ki_rng_double(&rng) * (double)n_classes);
        for (int k = 0; k < DIM; k++) x[i * DIM + k] = (float)(ki_rng_double(&rng) - 0.5);
    }
    const kith_objective_sizes sizes = {.n_classes = n_classes, .embedding = DIM};
    const kith_batch batch = {
        .n = BATCH, .labels = labels, .tap[KITH_TAP_EMBEDDING] = {.data = x, .rows = BATCH, .cols = DIM}};
    if (kith_objective_new("loss: {name: normsoftmax, temperature: 0.05}", &sizes, 1, &objective, &err) !=
        KITH_OK)
        return failed("objective", &err);
    double seconds = 0;
    for (int round = 0; round < 3; round++) { /* the last one: its memory is there already */
        kith_objective_clear_gradients(objective);
        const double began = seconds_now();
        if (kith_objective_evaluate(objective, &batch, &result, &err) != KITH_OK) {
            failed("evaluation", &err);
            goto done;
        }
        seconds = seconds_now() - began;
    }
    if (!kith_objective_param_at(objective, 0, &proxies) || proxies.dim[0] != n_classes) {
        fprintf(stderr, "scale: no proxies of %lld classes\n", (long long)n_classes);
        goto done;
    }
    log_sums(x, proxies.value, n_classes, log_sum);
    double value = 0;
    for (int i = 0; i < BATCH; i++) {
        const float *own = proxies.value + labels[i] * DIM;
        double s = 0, row = 0, length = 0;
        for (int k = 0; k < DIM; k++) {
            s += (double)x[i * DIM + k] * (double)own[k];
            row += (double)x[i * DIM + k] * (double)x[i * DIM + k], length += (double)own[k] * (double)own[k];
        }
        value += (log_sum[i] - s / sqrt(row * length) / temperature) / BATCH;
    }
    for (int64_t j = 0; j < n_classes * DIM; j++) {
        if (!isfinite(proxies.gradient[j])) {
            fprintf(stderr, "scale: the gradient of proxy %lld is not finite\n", (long long)(j / DIM));
            goto done;
        }
    }
    /* The classes of the batch, where the gradient is large, and as many others over the whole range. */
    for (int i = 0; i < 2 * BATCH; i++) {
        const int64_t class_ = i < BATCH ? labels[i] : (int64_t)(i - BATCH) * (n_classes / BATCH);
        double wanted[DIM];
        gradient_of_proxy(x, labels, log_sum, proxies.value + class_ * DIM, class_, wanted);
        for (int k = 0; k < DIM; k++) {
            worst = fmax(worst, fabs(wanted[k] - (double)proxies.gradient[class_ * DIM + k]));
            largest = fmax(largest, fabs(wanted[k]));
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "%lld proxies: %.3f s an evaluation, %ld MiB, value %.6f (wanted %.6f), gradient off by %.1e of the "
        "largest\n",
        (long long)n_classes, seconds, usage.ru_maxrss / 1024, result.total, value, worst / largest);
    if (fabs(result.total - value) > 1e-5 * fabs(value) || worst > 1e-4 * largest) {
        fprintf(stderr, "scale: wanted the value within 1e-5 and the gradient within 1e-4 of double's\n");
        goto done;
    }
    status = 0;
done:
    kith_objective_free(objective);
    return status;
}

/* The command's standard output stays its own. */
static int run_within(long seconds_most, long mib_most, const char *to, char **command) {
    const double began = seconds_now();
    const pid_t child = fork();
    if (child == 0) {
        alarm((unsigned)seconds_most); /* outlives exec; nobody here catches it */
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("scale");
        return 1;
    }
    const double seconds = seconds_now() - began;
    const long mib = usage.ru_maxrss / 1024;
    FILE *file = fopen(to, "w");
    if (!file || fprintf(file, "%.1f %ld\n", seconds, mib) < 0 || fclose(file) != 0) {
        perror(to);
        return 1;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fprintf(stderr, "scale: %s %s took more than %ld s\n", command[0], command[1], seconds_most);
    else if (status != 0)
        fprintf(stderr, "scale: %s %s ended with status %d, signal %d\n", command[0], command[1],
                WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    else if (mib > mib_most)
        fprintf(stderr, "scale: %s %s took %ld MiB; wanted at most %ld\n", command[0], command[1], mib,
                mib_most);
    else
        return 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc == 7 && strcmp(argv[1], "rows") == 0)
        return write_rows(strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10),
                          argv[5], argv[6]);
    if (argc == 3 && strcmp(argv[1], "proxies") == 0) return check_proxies(strtoll(argv[2], NULL, 10));
    if (argc > 6 && strcmp(argv[1], "within") == 0)
        return run_within(strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10), argv[4], argv + 5);
    fprintf(stderr,
            "usage: scale rows N DIM PER_CLASS E.npy Y.npy | proxies CLASSES | within SECONDS MIB FILE "
            "COMMAND…\n");
    return 2;
}
