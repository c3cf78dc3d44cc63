/* kith eval --compare A.json B.json */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/eval.h"

typedef struct pair {
    const kith_result *a, *b;
} pair;

static void print_value(const kith_result *r, const char *path) {
    double value = 0, low = 0, high = 0;
    char at[160];
    if (!kith_result_real(r, path, &value)) {
        printf("  %-26s", "-");
        return;
    }
    snprintf(at, sizeof at, "intervals.%s.0", path);
    const bool has_low = kith_result_real(r, at, &low);
    snprintf(at, sizeof at, "intervals.%s.1", path);
    char shown[64];
    if (has_low && kith_result_real(r, at, &high))
        snprintf(shown, sizeof shown, "%6.2f (%.2f to %.2f)", 100 * value, 100 * low, 100 * high);
    else
        snprintf(shown, sizeof shown, "%6.2f", 100 * value);
    printf("  %-26s", shown);
}

/* Intervals that do not meet: a difference worth the name. */
static const char *verdict(const pair *p, const char *path) {
    double low[2], high[2];
    const kith_result *both[2] = {p->a, p->b};
    char at[160];
    for (int i = 0; i < 2; i++) {
        snprintf(at, sizeof at, "intervals.%s.0", path);
        if (!kith_result_real(both[i], at, low + i)) return "";
        snprintf(at, sizeof at, "intervals.%s.1", path);
        if (!kith_result_real(both[i], at, high + i)) return "";
    }
    if (low[1] > high[0]) return "  B is better";
    if (low[0] > high[1]) return "  A is better";
    return "  intervals overlap";
}

static void print_row(const pair *p, const char *name, const char *path) {
    double a = 0, b = 0;
    const bool has_a = kith_result_real(p->a, path, &a), has_b = kith_result_real(p->b, path, &b);
    if (!has_a && !has_b) return;
    printf("%-12s", name);
    print_value(p->a, path);
    print_value(p->b, path);
    if (has_a && has_b) printf(" %+7.2f%s", 100 * (b - a), verdict(p, path));
    putchar('\n');
}

static bool differs(const pair *p, const char *path, const char *what) {
    const char *a = kith_result_text(p->a, path), *b = kith_result_text(p->b, path);
    if (!a && !b) return false;
    if (a && b && strcmp(a, b) == 0) return false;
    printf("  not the same %s: %s and %s\n", what, a ? a : "unknown", b ? b : "unknown");
    return true;
}

kith_status eval_compare(const char *path_a, const char *path_b, kith_error *err) {
    kith_result *a = NULL, *b = NULL;
    kith_status status = kith_result_read(path_a, &a, err);
    if (status == KITH_OK) status = kith_result_read(path_b, &b, err);
    if (status == KITH_OK) {
        const pair p = {a, b};
        printf("A  %s\nB  %s\n\n%-12s  %-26s  %-26s %7s\n", path_a, path_b, "percent", "A", "B", "B - A");
        for (size_t i = 0;; i++) {
            char path[160], name[80];
            const char *key = kith_result_key(a, "recall", i);
            if (!key) break;
            snprintf(path, sizeof path, "recall.%.60s", key);
            snprintf(name, sizeof name, "R@%.60s", key);
            print_row(&p, name, path);
        }
        static const char *const rows[][2] = {{"P@1", "precision_at_1"},
                                              {"R-precision", "r_precision"},
                                              {"MAP@R", "map_at_r"},
                                              {"MAP", "map"},
                                              {"MRR", "mrr"},
                                              {"NMI", "nmi"},
                                              {"AMI", "ami"},
                                              {"F1", "f1"}};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) print_row(&p, rows[i][0], rows[i][1]);
        static const char *const facts[][2] = {{"card.backbone", "backbone"},
                                               {"card.embedding_size", "embedding size"},
                                               {"card.resize", "resize"},
                                               {"card.crop", "crop"},
                                               {"card.preprocessing", "preprocessing"},
                                               {"card.pool", "pooling"},
                                               {"card.tap", "tap"},
                                               {"card.data_sha256", "data"},
                                               {"card.labels_sha256", "labels"},
                                               {"card.split", "split"},
                                               {"metric", "similarity"},
                                               {"queries", "number of queries"},
                                               {"gallery", "gallery size"},
                                               {"kmeans.restarts", "k-means restarts"},
                                               {"kmeans.iterations", "k-means iterations"}};
        printf("\nMay they be compared?\n");
        int n_differ = 0;
        for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
            n_differ += differs(&p, facts[i][0], facts[i][1]);
        printf(n_differ ? "  No: a difference in the numbers may come from these and not from the method.\n"
                        : "  Yes, as far as the results say: data, input and embedding size are the same.\n");
    }
    kith_result_free(a);
    kith_result_free(b);
    return status;
}
