/* From a row with a grid to rows for its combinations, and which of them go on. */
#include "reproduce/grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/option.h"
#include "base/text.h"

enum { MOST_SETTINGS = 1000, MOST_RUNGS = 16 };

typedef struct halving {
    const char *keep;
    const ki_value *steps;
} halving;

static const ki_option halving_options[] = {
    KI_OPTION_TEXT(halving, keep, "1/3", "the part that goes on", "ours"),
    KI_OPTION_TREE(halving, steps, "[]", "of each round, rising", "ours"), KI_OPTION_END};

/* ---- values as text ---- */

static bool is_plain(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+/";
    return *text && text[strspn(text, letters)] == '\0';
}

/* YAML on one line. */
static void put_flow(ki_buffer *to, const ki_value *v) {
    if (v->kind == KI_VALUE_NULL) ki_buffer_put(to, "~");
    if (v->kind == KI_VALUE_SCALAR && is_plain(v->text)) ki_buffer_put(to, "%s", v->text);
    if (v->kind == KI_VALUE_SCALAR && !is_plain(v->text)) {
        ki_buffer_put(to, "'");
        for (const char *c = v->text; *c; c++) ki_buffer_put(to, *c == '\'' ? "''" : "%c", *c);
        ki_buffer_put(to, "'");
    }
    if (v->kind != KI_VALUE_LIST && v->kind != KI_VALUE_MAP) return;
    const bool is_map = v->kind == KI_VALUE_MAP;
    ki_buffer_put(to, is_map ? "{" : "[");
    for (const ki_value *item = v->first; item; item = item->next) {
        if (is_map) ki_buffer_put(to, "%s: ", item->key);
        put_flow(to, item);
        if (item->next) ki_buffer_put(to, ", ");
    }
    ki_buffer_put(to, is_map ? "}" : "]");
}

static kith_status flow_text(ki_list *list, const ki_value *v, const char **ret, kith_error *err) {
    ki_buffer text = {.err = err};
    put_flow(&text, v);
    ki_buffer_add(&text, "", 1);
    kith_status status = text.status;
    if (status == KITH_OK) {
        *ret = ki_arena_strdup(&list->arena, text.data);
        if (!*ret) status = ki_fail_memory(err, text.n, "a grid");
    }
    ki_buffer_release(&text);
    return status;
}

/* ---- reading ---- */

static kith_status fail_grid(const ki_list_row *row, kith_error *err, const char *what) {
    return ki_fail(err, KITH_EFORMAT, "%s: %s", row->name, what);
}

/* "1/3" or "0.3". */
static double part_of(const char *text) {
    const char *slash = strchr(text, '/');
    char above[24];
    double a = NAN, b = NAN;
    if (!slash) return ki_parse_double(text, &a) ? a : NAN;
    ki_snprintf(above, sizeof above, "%.*s", (int)(slash - text), text);
    return ki_parse_double(above, &a) && ki_parse_double(slash + 1, &b) ? a / b : NAN;
}

static kith_status read_halving(ki_list *list, const ki_list_row *row, ki_list_grid *g, kith_error *err) {
    halving h;
    char found[80];
    g->n_rungs = 1;
    g->steps = ki_arena_alloc(&list->arena, MOST_RUNGS, sizeof *g->steps);
    if (!g->steps) return ki_fail_memory(err, sizeof *g->steps, "a grid");
    g->steps[0] = 0;
    if (!row->halving) return KITH_OK;
    if (row->halving->kind != KI_VALUE_MAP)
        return ki_fail(err, KITH_EFORMAT, "%s: halving is %s; wanted {keep: 1/3, steps: [100, 300, 900]}",
                       row->name, ki_value_describe(row->halving, found, sizeof found));
    KI_TRY(ki_options_parse(halving_options, row->halving, NULL, "halving", &h, err));
    g->keep = part_of(h.keep);
    if (!(g->keep > 0 && g->keep < 1))
        return ki_fail(err, KITH_EFORMAT,
                       "%s: halving.keep is '%.40s'; wanted a part between 0 and 1, as 1/3", row->name,
                       h.keep);
    if (!h.steps || h.steps->kind != KI_VALUE_LIST || h.steps->n_items < 2 || h.steps->n_items > MOST_RUNGS)
        return ki_fail(err, KITH_EFORMAT, "%s: halving.steps is %s; wanted 2 to %d rising numbers", row->name,
                       h.steps ? ki_value_describe(h.steps, found, sizeof found) : "nothing", MOST_RUNGS);
    g->n_rungs = 0;
    for (const ki_value *v = h.steps->first; v; v = v->next) {
        int64_t steps = 0;
        if (v->kind != KI_VALUE_SCALAR || !ki_parse_whole(v->text, &steps) ||
            steps <= (g->n_rungs ? g->steps[g->n_rungs - 1] : 0))
            return ki_fail(err, KITH_EFORMAT, "%s: halving.steps has %s; wanted rising numbers from 1",
                           row->name, ki_value_describe(v, found, sizeof found));
        g->steps[g->n_rungs++] = steps;
    }
    return KITH_OK;
}

static bool begins_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* Combinations that differ in these are not compared by the same images and steps, or are compared by chance. */
static kith_status check_key(const ki_list_row *row, const char *key, kith_error *err) {
    static const char *const held[] = {"validation", "fold", "folds"};
    const char *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key;
    if (row->halving && (strcmp(key, "optim.steps") == 0 || strcmp(key, "optim.epochs") == 0))
        return ki_fail(err, KITH_EFORMAT, "%s: grid has %s, which is what halving sets; wanted one of them",
                       row->name, key);
    if (strcmp(key, "seed") == 0 || strcmp(key, "seeds") == 0)
        return ki_fail(err, KITH_EFORMAT,
                       "%s: grid has %s; --seeds runs every combination with several seeds", row->name, key);
    if (strcmp(key, "eval.test") == 0 || strcmp(key, "eval.watch_test") == 0)
        return ki_fail(err, KITH_EFORMAT, "%s: grid has %s; a grid does not look at the test classes",
                       row->name, key);
    bool holds = strcmp(key, "folds") == 0 || strcmp(key, "data") == 0;
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        holds |= begins_with(key, "data.") && strcmp(last, held[i]) == 0;
    holds |= begins_with(key, "data.") && begins_with(last, "split");
    if (!holds) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT,
                   "%s: grid has %s; scores of different validation classes cannot be compared", row->name,
                   key);
}

static kith_status count_settings(const ki_list_row *row, ki_list_grid *g, kith_error *err) {
    char found[80];
    if (row->grid->kind != KI_VALUE_MAP || row->grid->n_items == 0)
        return ki_fail(err, KITH_EFORMAT,
                       "%s: grid is %s; wanted keys with lists, as {optim.lr: [1e-3, 1e-4]}", row->name,
                       ki_value_describe(row->grid, found, sizeof found));
    g->n_settings = 1;
    for (const ki_value *v = row->grid->first; v; v = v->next) {
        if (v->kind != KI_VALUE_LIST || v->n_items == 0)
            return ki_fail(err, KITH_EFORMAT, "%s: grid.%s is %s; wanted a list of values", row->name, v->key,
                           ki_value_describe(v, found, sizeof found));
        KI_TRY(check_key(row, v->key, err));
        g->n_settings *= v->n_items;
        if (g->n_settings > MOST_SETTINGS)
            return ki_fail(err, KITH_EFORMAT, "%s: the grid has more than %d combinations", row->name,
                           MOST_SETTINGS);
        g->n_keys++;
    }
    return KITH_OK;
}

/* Combinations count up like a number whose last digit is the last key. */
static kith_status make_settings(ki_list *list, const ki_list_row *row, ki_list_grid *g, kith_error *err) {
    g->key = ki_arena_alloc(&list->arena, g->n_keys, sizeof *g->key);
    g->value = ki_arena_alloc(&list->arena, g->n_settings * g->n_keys, sizeof *g->value);
    if (!g->key || !g->value) return ki_fail_memory(err, g->n_settings, "a grid");
    size_t k = 0, every = g->n_settings;
    for (const ki_value *v = row->grid->first; v; v = v->next, k++) {
        g->key[k] = v->key;
        every /= v->n_items;
        for (size_t i = 0; i < v->n_items; i++) {
            const char *text = NULL;
            KI_TRY(flow_text(list, ki_value_at(v, i), &text, err));
            for (size_t s = 0; s < g->n_settings; s++) {
                if (s / every % v->n_items == i) g->value[s * g->n_keys + k] = text;
            }
        }
    }
    return KITH_OK;
}

static kith_status add_set(ki_list *list, ki_value *sets, const char *text, kith_error *err) {
    ki_value *item = text ? ki_value_new(&list->arena, KI_VALUE_SCALAR, text) : NULL;
    if (!item) return ki_fail_memory(err, sizeof *item, "overrides");
    ki_value_append(sets, NULL, item);
    return KITH_OK;
}

/* What the row says, the values, the steps, and after all of them: no test classes. */
static kith_status make_sets(ki_list *list, const ki_list_row *row, const ki_list_grid *g, size_t setting,
                             size_t rung, const ki_value **ret, kith_error *err) {
    ki_value *sets = ki_value_new(&list->arena, KI_VALUE_LIST, NULL);
    if (!sets) return ki_fail_memory(err, sizeof *sets, "overrides");
    for (const ki_value *v = row->set ? row->set->first : NULL; v; v = v->next) {
        if (v->kind != KI_VALUE_SCALAR) return fail_grid(row, err, "set has a value that is no text");
        KI_TRY(add_set(list, sets, v->text, err));
    }
    for (size_t k = 0; k < g->n_keys; k++)
        KI_TRY(add_set(list, sets,
                       ki_arena_printf(&list->arena, "%s=%s", g->key[k], g->value[setting * g->n_keys + k]),
                       err));
    if (g->steps[rung] > 0) {
        KI_TRY(add_set(list, sets, "optim.epochs=0", err));
        KI_TRY(add_set(list, sets,
                       ki_arena_printf(&list->arena, "optim.steps=%lld", (long long)g->steps[rung]), err));
    }
    KI_TRY(add_set(list, sets, "eval.test=false", err));
    KI_TRY(add_set(list, sets, "eval.watch_test=false", err));
    *ret = sets;
    return KITH_OK;
}

/* "NAME-07", or with halving "NAME-07-150": numbers as wide as the largest, so that files are sorted. */
static const char *name_row(ki_list *list, const ki_list_grid *g, size_t setting, size_t rung) {
    char width[24];
    const int n = ki_snprintf(width, sizeof width, "%zu", g->n_settings);
    if (g->steps[rung] == 0) return ki_arena_printf(&list->arena, "%s-%0*zu", g->name, n, setting + 1);
    return ki_arena_printf(&list->arena, "%s-%0*zu-%lld", g->name, n, setting + 1, (long long)g->steps[rung]);
}

static kith_status add_rows(ki_list *list, const ki_list_row *row, const ki_list_grid *g, ki_list_row *to,
                            kith_error *err) {
    for (size_t rung = 0; rung < g->n_rungs; rung++) {
        for (size_t s = 0; s < g->n_settings; s++, to++) {
            *to = *row;
            to->name = name_row(list, g, s, rung);
            if (!to->name) return ki_fail_memory(err, 64, "a row's name");
            if (!*row->recipe) to->recipe = row->name;
            to->table = "";
            to->grid = to->halving = NULL;
            to->in = g;
            to->setting = s;
            to->rung = rung;
            KI_TRY(make_sets(list, row, g, s, rung, &to->set, err));
        }
    }
    return KITH_OK;
}

static kith_status read_grid(ki_list *list, const ki_list_row *row, ki_list_grid *g, kith_error *err) {
    if (*row->of || *row->table || *row->baseline || row->paper)
        return fail_grid(row, err, "a row with a grid goes without of, table, baseline and paper");
    g->name = row->name;
    g->by = row->by;
    KI_TRY(count_settings(row, g, err));
    KI_TRY(read_halving(list, row, g, err));
    return make_settings(list, row, g, err);
}

kith_status ki_grid_expand(ki_list *list, kith_error *err) {
    size_t n_rows = 0, n_grids = 0, at = 0;
    for (size_t i = 0; i < list->n_rows; i++) n_grids += list->row[i].grid != NULL;
    for (size_t i = 0; i < list->n_rows; i++) {
        if (list->row[i].halving && !list->row[i].grid)
            return fail_grid(&list->row[i], err, "halving goes with a grid");
    }
    if (n_grids == 0) return KITH_OK;
    list->grid = ki_arena_alloc(&list->arena, n_grids, sizeof *list->grid);
    if (!list->grid) return ki_fail_memory(err, n_grids * sizeof *list->grid, "grids");
    memset(list->grid, 0, n_grids * sizeof *list->grid);
    for (size_t i = 0; i < list->n_rows; i++) {
        ki_list_grid *g = &list->grid[list->n_grids];
        n_rows++;
        if (!list->row[i].grid) continue;
        KI_TRY(read_grid(list, &list->row[i], g, err));
        n_rows += g->n_settings * g->n_rungs - 1;
        list->n_grids++;
    }
    ki_list_row *rows = ki_arena_alloc(&list->arena, n_rows, sizeof *rows);
    if (!rows) return ki_fail_memory(err, n_rows * sizeof *rows, "rows");
    ki_list_grid *g = list->grid;
    for (size_t i = 0; i < list->n_rows; i++) {
        if (!list->row[i].grid) {
            rows[at++] = list->row[i];
            continue;
        }
        g->row = rows + at;
        KI_TRY(add_rows(list, &list->row[i], g, rows + at, err));
        at += g->n_settings * g->n_rungs;
        g++;
    }
    list->row = rows;
    list->n_rows = n_rows;
    return KITH_OK;
}

/* ---- halving ---- */

size_t ki_grid_n_kept(const ki_list_grid *grid, size_t n) {
    const size_t kept = (size_t)ceil((double)n * grid->keep - 1e-9);
    return kept < 1 ? 1 : kept < n ? kept : n;
}

void ki_grid_halve(const ki_list_grid *grid, const double *score, bool *alive) {
    size_t n = 0;
    for (size_t s = 0; s < grid->n_settings; s++) n += alive[s] = alive[s] && !isnan(score[s]);
    for (size_t left = n - (n > 0 ? ki_grid_n_kept(grid, n) : 0); left > 0; left--) {
        size_t worst = grid->n_settings;
        for (size_t s = 0; s < grid->n_settings; s++) {
            /* of equals the later one goes */
            if (alive[s] && (worst == grid->n_settings || score[s] <= score[worst])) worst = s;
        }
        alive[worst] = false;
    }
}
