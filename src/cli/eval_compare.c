/* kith eval --compare A.json B.json */
#include <stdio.h>

#include "cli/eval.h"

static void print_side(const struct kith_card_side *side) {
    char shown[64] = "-";
    if (side->has_interval)
        snprintf(shown, sizeof shown, "%6.2f (%.2f to %.2f)", 100 * side->value, 100 * side->interval.low,
                 100 * side->interval.high);
    else if (side->has_value)
        snprintf(shown, sizeof shown, "%6.2f", 100 * side->value);
    printf("  %-26s", shown);
}

/* A result is better if the intervals do not overlap. */
static const char *verdict(const struct kith_card_side *a, const struct kith_card_side *b) {
    if (!a->has_interval || !b->has_interval) return "";
    if (b->interval.low > a->interval.high) return "  B is better";
    if (a->interval.low > b->interval.high) return "  A is better";
    return "  intervals overlap";
}

static void print_row(const kith_card_row *row) {
    const struct kith_card_side *a = &row->side[0], *b = &row->side[1];
    printf("%-12s", row->name);
    print_side(a);
    print_side(b);
    if (a->has_value && b->has_value) printf(" %+7.2f%s", 100 * (b->value - a->value), verdict(a, b));
    putchar('\n');
}

static void print_differences(const kith_card_comparison *c) {
    for (int64_t i = 0; i < c->n_differences; i++) {
        const kith_card_difference *d = &c->difference[i];
        if (d->side[0] && d->side[1])
            printf("  not the same %s: %s and %s\n", d->what, d->side[0], d->side[1]);
    }
}

/* One line each for the facts that only A lacks, only B lacks, and both lack. Returns how many facts there
 * are. */
static int64_t print_missing(const kith_card_comparison *c) {
    static const struct {
        const char *where;
        bool has[2];
    } lines[] = {{"A", {false, true}}, {"B", {true, false}}, {"both", {false, false}}};
    int64_t n = 0;
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        int64_t n_here = 0;
        for (int64_t i = 0; i < c->n_differences; i++) {
            const kith_card_difference *d = &c->difference[i];
            if (!d->side[0] == lines[k].has[0] || !d->side[1] == lines[k].has[1]) continue;
            if (n_here++)
                printf(", %s", d->what);
            else
                printf("  missing in %s: %s", lines[k].where, d->what);
        }
        if (n_here) putchar('\n');
        n += n_here;
    }
    return n;
}

static void print(const kith_card_comparison *c, const char *path_a, const char *path_b) {
    printf("A  %s\nB  %s\n\n%-12s  %-26s  %-26s %7s\n", path_a, path_b, "percent", "A", "B", "B - A");
    for (int64_t i = 0; i < c->n_rows; i++) print_row(&c->row[i]);
    printf("\nMay they be compared?\n");
    print_differences(c);
    const int64_t n_missing = print_missing(c);
    if (n_missing < c->n_differences)
        printf("  No: a difference in the numbers may come from these and not from the method.\n");
    else if (n_missing > 0)
        printf("  Unknown: what is missing may differ. What both results say is the same.\n");
    else
        printf("  Yes: network, input, embedding size, data and scoring are the same.\n");
}

kith_status eval_compare(const char *path_a, const char *path_b, kith_error *err) {
    kith_card *a = NULL, *b = NULL;
    kith_card_comparison c = {0};
    kith_status status = kith_card_read(path_a, &a, err);
    if (status == KITH_OK) status = kith_card_read(path_b, &b, err);
    if (status == KITH_OK) status = kith_card_compare(a, b, &c, err);
    if (status == KITH_OK) print(&c, path_a, path_b);
    kith_card_comparison_release(&c);
    kith_card_free(a);
    kith_card_free(b);
    return status;
}
