/* kith eval --compare A B: two results side by side, by how much they differ, and whether they may be compared. */
#include <math.h>
#include <stdio.h>

#include "cli/eval.h"
#include "kith/experimental/json.h"

static void print_side(const struct kith_card_side *side) {
    char shown[64] = "-";
    if (side->has_interval)
        snprintf(shown, sizeof shown, "%6.2f (%.2f to %.2f)", 100 * side->value, 100 * side->interval.low,
                 100 * side->interval.high);
    else if (side->has_value)
        snprintf(shown, sizeof shown, "%6.2f", 100 * side->value);
    printf("  %-26s", shown);
}

/* Does the interval of the difference leave out 0? */
static bool is_certain(const kith_card_row *row) {
    return row->is_paired && (row->difference.low > 0 || row->difference.high < 0);
}

static const char *verdict(const kith_card_row *row) {
    if (row->difference.low == 0 && row->difference.high == 0) return "the same";
    if (!is_certain(row)) return "may be chance";
    return row->difference.low > 0 ? "B is better" : "A is better";
}

static void print_row(const kith_card_row *row) {
    const struct kith_card_side *a = &row->side[0], *b = &row->side[1];
    printf("%-12s", row->name);
    print_side(a);
    print_side(b);
    if (a->has_value && b->has_value) printf(" %+7.2f", 100 * (b->value - a->value));
    if (row->is_paired)
        printf("  (%+.2f to %+.2f)  %s", 100 * row->difference.low, 100 * row->difference.high, verdict(row));
    putchar('\n');
}

/* How the intervals of differences were made, or why there are none. */
static void print_pairing(const kith_card_comparison *c) {
    if (c->n_draws == 0) {
        if (*c->why) printf("\nNo intervals of the differences: %s.\n", c->why);
        return;
    }
    printf("\nDifferences: 95 %% intervals of a paired bootstrap over the same %lld queries",
           (long long)c->n_queries);
    if (c->n_runs[0] > 1 || c->n_runs[1] > 1)
        printf(" and over runs (%lld of A, %lld of B)", (long long)c->n_runs[0], (long long)c->n_runs[1]);
    printf(".\n");
    if (c->n_runs[0] > 1 && c->n_runs[1] > 1) return;
    const bool is_alone[2] = {c->n_runs[0] == 1, c->n_runs[1] == 1};
    printf("%s one run: by how much other seeds would move the scores is not in the intervals.\n",
           is_alone[0] && is_alone[1] ? "A and B are each"
           : is_alone[0]              ? "A is"
                                      : "B is");
}

static void print_differences(const kith_card_comparison *c) {
    for (int64_t i = 0; i < c->n_differences; i++) {
        const kith_card_difference *d = &c->difference[i];
        if (d->side[0] && d->side[1])
            printf("  not the same %s: %s and %s\n", d->what, d->side[0], d->side[1]);
    }
}

/* One line each for the facts that only A lacks, only B lacks, and both lack. */
static void print_missing(const kith_card_comparison *c) {
    static const struct {
        const char *where;
        bool has[2];
    } lines[] = {{"A", {false, true}}, {"B", {true, false}}, {"both", {false, false}}};
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
    }
}

/* May the two be compared? */
static const char *answer(const kith_card_comparison *c) {
    int64_t n_missing = 0;
    for (int64_t i = 0; i < c->n_differences; i++)
        n_missing += !c->difference[i].side[0] || !c->difference[i].side[1];
    return n_missing < c->n_differences ? "no" : n_missing > 0 ? "unknown" : "yes";
}

static void print(const kith_card_comparison *c, const char *path_a, const char *path_b) {
    printf("A  %s\nB  %s\n\n%-12s  %-26s  %-26s %7s\n", path_a, path_b, "percent", "A", "B", "B - A");
    for (int64_t i = 0; i < c->n_rows; i++) print_row(&c->row[i]);
    print_pairing(c);
    printf("\nMay they be compared?\n");
    print_differences(c);
    print_missing(c);
    switch (answer(c)[0]) {
    case 'n':
        printf("  No: a difference in the numbers may come from these and not from the method.\n");
        break;
    case 'u': printf("  Unknown: what is missing may differ. What both results say is the same.\n"); break;
    default: printf("  Yes: network, input, embedding size, data and scoring are the same.\n");
    }
}

/* ---- for programs ---- */

static void put_interval(kith_json *json, const char *key, kith_interval v) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    kith_json_real(json, v.low);
    kith_json_real(json, v.high);
    kith_json_array_end(json);
}

static void put_side(kith_json *json, const char *key, const struct kith_card_side *side) {
    kith_json_key(json, key);
    kith_json_object_begin(json);
    kith_json_key(json, "value");
    kith_json_real(json, side->has_value ? side->value : NAN);
    if (side->has_interval) put_interval(json, "interval", side->interval);
    kith_json_object_end(json);
}

static void put_row(kith_json *json, const kith_card_row *row) {
    const struct kith_card_side *a = &row->side[0], *b = &row->side[1];
    kith_json_object_begin(json);
    kith_json_key(json, "name");
    kith_json_string(json, row->name);
    put_side(json, "a", a);
    put_side(json, "b", b);
    if (a->has_value && b->has_value) {
        kith_json_key(json, "difference");
        kith_json_real(json, b->value - a->value);
    }
    if (row->is_paired) {
        put_interval(json, "interval", row->difference);
        kith_json_key(json, "excludes_0");
        kith_json_bool(json, is_certain(row));
    }
    kith_json_object_end(json);
}

static void put_counts(kith_json *json, const kith_card_comparison *c) {
    kith_json_key(json, "runs");
    kith_json_array_begin(json);
    for (int i = 0; i < 2; i++) kith_json_int(json, c->n_runs[i]);
    kith_json_array_end(json);
    kith_json_key(json, "paired");
    kith_json_bool(json, c->n_draws > 0);
    if (c->n_draws > 0) {
        kith_json_key(json, "queries");
        kith_json_int(json, c->n_queries);
        kith_json_key(json, "draws");
        kith_json_int(json, c->n_draws);
    } else {
        kith_json_key(json, "why");
        kith_json_string(json, c->why);
    }
}

static kith_status print_json(const kith_card_comparison *c, const char *path_a, const char *path_b,
                              kith_error *err) {
    kith_json *json = NULL;
    const char *text = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    kith_json_key(json, "a");
    kith_json_string(json, path_a);
    kith_json_key(json, "b");
    kith_json_string(json, path_b);
    put_counts(json, c);
    kith_json_key(json, "scores");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < c->n_rows; i++) put_row(json, &c->row[i]);
    kith_json_array_end(json);
    kith_json_key(json, "comparable");
    kith_json_string(json, answer(c));
    kith_json_key(json, "facts");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < c->n_differences; i++) {
        kith_json_object_begin(json);
        kith_json_key(json, "what");
        kith_json_string(json, c->difference[i].what);
        kith_json_key(json, "a");
        kith_json_string(json, c->difference[i].side[0]);
        kith_json_key(json, "b");
        kith_json_string(json, c->difference[i].side[1]);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    status = kith_json_finish(json, &text, err);
    if (status == KITH_OK) puts(text);
    kith_json_free(json);
    return status;
}

kith_status eval_compare(const char *path_a, const char *path_b, bool as_json, kith_error *err) {
    kith_card *a = NULL, *b = NULL;
    kith_card_comparison c = {0};
    kith_status status = kith_card_read(path_a, &a, err);
    if (status == KITH_OK) status = kith_card_read(path_b, &b, err);
    if (status == KITH_OK) status = kith_card_compare(a, b, &c, err);
    if (status == KITH_OK && as_json) status = print_json(&c, path_a, path_b, err);
    if (status == KITH_OK && !as_json) print(&c, path_a, path_b);
    kith_card_comparison_release(&c);
    kith_card_free(a);
    kith_card_free(b);
    return status;
}
