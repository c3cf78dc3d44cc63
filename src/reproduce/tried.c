/* The page's part about grids: every combination with its scores of validation classes, the best first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "reproduce/grid.h"
#include "reproduce/sample.h"

typedef struct standing {
    size_t setting, n_rungs; /* rounds that it has results of */
    double last;             /* score in the last of them */
} standing;

static int by_standing(const void *a, const void *b) {
    const standing *x = a, *y = b;
    if (x->n_rungs != y->n_rungs) return x->n_rungs > y->n_rungs ? -1 : 1;
    if (x->last != y->last) return x->last > y->last ? -1 : 1;
    return (x->setting > y->setting) - (x->setting < y->setting);
}

static ki_sample sample_at(const ki_list *list, const ki_outcomes *all, const ki_list_grid *g, size_t rung,
                           size_t setting) {
    return ki_sample_in(list, all, &g->row[rung * g->n_settings + setting], "validation", g->by);
}

static standing standing_of(const ki_list *list, const ki_outcomes *all, const ki_list_grid *g,
                            size_t setting) {
    standing s = {.setting = setting, .last = NAN};
    for (size_t rung = 0; rung < g->n_rungs; rung++) {
        const ki_sample sample = sample_at(list, all, g, rung, setting);
        if (sample.n == 0) continue;
        s.n_rungs = rung + 1;
        s.last = sample.estimate.mean;
    }
    return s;
}

static const char *title_of(const char *by, char *buf, size_t bytes) {
    if (strncmp(by, "recall.", 7) == 0)
        ki_snprintf(buf, bytes, "R@%s", by + 7);
    else
        ki_snprintf(buf, bytes, "%s", strcmp(by, "map_at_r") == 0 ? "MAP@R" : "R-precision");
    return buf;
}

static void put_scores(const ki_list *list, const ki_outcomes *all, const ki_list_grid *g, size_t setting,
                       bool is_best, ki_buffer *to) {
    for (size_t rung = 0; rung < g->n_rungs; rung++) {
        const ki_sample s = sample_at(list, all, g, rung, setting);
        const bool is_bold = is_best && rung + 1 == g->n_rungs;
        if (s.n == 0)
            ki_buffer_put(to, " |");
        else
            ki_buffer_put(to, " %s%.2f%s |", is_bold ? "**" : "", 100 * s.estimate.mean, is_bold ? "**" : "");
    }
    ki_buffer_put(to, "\n");
}

/* Code in a cell of a table. */
static void put_code(ki_buffer *to, const char *text) {
    ki_buffer_put(to, " `");
    for (; *text; text++) ki_buffer_put(to, *text == '|' ? "\\|" : "%c", *text);
    ki_buffer_put(to, "` |");
}

static void put_head(const ki_list_grid *g, ki_buffer *to) {
    char title[KI_NUMBER_TEXT];
    ki_buffer_put(to, "## Grid: %s\n\n%s of the validation classes in percent, of %zu combinations", g->name,
                  title_of(g->by, title, sizeof title), g->n_settings);
    if (g->n_rungs > 1)
        ki_buffer_put(to, "; after so many steps the best %s %% of them went on",
                      ki_number_text(100 * g->keep, 3, title));
    ki_buffer_put(to, ".\n\n| |");
    for (size_t k = 0; k < g->n_keys; k++) ki_buffer_put(to, " %s |", g->key[k]);
    for (size_t rung = 0; rung < g->n_rungs; rung++) {
        if (g->n_rungs > 1)
            ki_buffer_put(to, " %lld |", (long long)g->steps[rung]);
        else
            ki_buffer_put(to, " %s |", title);
    }
    ki_buffer_put(to, "\n|---|");
    for (size_t i = 0; i < g->n_keys + g->n_rungs; i++) ki_buffer_put(to, "---|");
    ki_buffer_put(to, "\n");
}

/* What halving has cost, beside all combinations with the last number of steps. */
static void put_cost(const ki_outcomes *all, const ki_list_grid *g, ki_buffer *to) {
    double taken = 0, n_first = 0;
    char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT], c[KI_NUMBER_TEXT];
    for (size_t i = 0; i < g->n_rungs * g->n_settings; i++) {
        for (size_t o = 0; o < all->n; o++) {
            if (all->item[o].error || !ki_outcome_is_of(&all->item[o], g->row[i].name)) continue;
            taken += ki_outcome_real(&all->item[o], "", "steps");
            n_first += i == 0;
        }
    }
    const double whole = n_first * (double)g->n_settings * (double)g->steps[g->n_rungs - 1];
    if (g->n_rungs < 2 || !(whole > 0)) return;
    ki_buffer_put(to, "\n%s steps were taken; all combinations to the end take %s (%s %%).\n",
                  ki_count_text(taken, a), ki_count_text(whole, b),
                  ki_number_text(100 * taken / whole, 3, c));
}

static void put_grid(const ki_list *list, const ki_outcomes *all, const ki_list_grid *g,
                     const standing *order, ki_buffer *to) {
    const bool is_over = order[0].n_rungs == g->n_rungs;
    put_head(g, to);
    for (size_t i = 0; i < g->n_settings; i++) {
        const size_t s = order[i].setting;
        ki_buffer_put(to, "| %zu |", s + 1);
        for (size_t k = 0; k < g->n_keys; k++) put_code(to, g->value[s * g->n_keys + k]);
        put_scores(list, all, g, s, i == 0 && is_over, to);
    }
    put_cost(all, g, to);
    if (is_over) {
        ki_buffer_put(to, "\nThe best:");
        for (size_t k = 0; k < g->n_keys; k++)
            ki_buffer_put(to, " `--set '%s=%s'`", g->key[k], g->value[order[0].setting * g->n_keys + k]);
        if (g->steps[g->n_rungs - 1] > 0)
            ki_buffer_put(to, " `--set optim.epochs=0` `--set optim.steps=%lld`",
                          (long long)g->steps[g->n_rungs - 1]);
        ki_buffer_put(to, "\n");
    }
    ki_buffer_put(to, "\n");
}

kith_status ki_grids_put(const ki_list *list, const ki_outcomes *all, ki_buffer *to, kith_error *err) {
    for (size_t i = 0; i < list->n_grids; i++) {
        const ki_list_grid *g = &list->grid[i];
        standing *order = NULL;
        KI_TRY(ki_alloc_or(&order, g->n_settings, sizeof *order, "a grid", err));
        for (size_t s = 0; s < g->n_settings; s++) order[s] = standing_of(list, all, g, s);
        qsort(order, g->n_settings, sizeof *order, by_standing);
        put_grid(list, all, g, order, to);
        ki_free(order);
    }
    return to->status;
}
