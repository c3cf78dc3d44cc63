/* Reading a list of rows and checking that its references exist. */
#include "reproduce/list.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/option.h"
#include "base/text.h"
#include "io/yaml.h"
#include "reproduce/grid.h"

typedef struct top {
    const char *title;
    const ki_value *set, *order, *tables, *rows, *orders, *curves, *summary, *gains;
} top;

static const ki_option top_options[] = {
    KI_OPTION_TEXT(top, title, "", "of the page", "ours"),
    KI_OPTION_TREE(top, set, "[]", "overrides of all rows", "ours"),
    KI_OPTION_TREE(top, order, "[]", "passes over groups of rows", "ours"),
    KI_OPTION_TREE(top, tables, "[]", "the page's tables", "ours"),
    KI_OPTION_TREE(top, rows, "[]", "what is run", "ours"),
    KI_OPTION_TREE(top, orders, "[]", "which row beats which in a paper", "ours"),
    KI_OPTION_TREE(top, curves, "[]", "drawings", "ours"),
    KI_OPTION_TREE(top, summary, "{}", "what the page begins with", "ours"),
    KI_OPTION_TREE(top, gains, "{}", "a drawing of gains over overfitting", "ours"),
    KI_OPTION_END};

static const ki_option row_options[] = {
    KI_OPTION_TEXT(ki_list_row, name, "", "of the row and its results", "ours"),
    KI_OPTION_TEXT(ki_list_row, recipe, "", "when it is not the name", "ours"),
    KI_OPTION_TEXT(ki_list_row, of, "", "the row whose runs have the figures", "ours"),
    KI_OPTION_TEXT(ki_list_row, block, "test", "of the result", "ours"),
    KI_OPTION_TEXT(ki_list_row, group, "", "for `order`", "ours"),
    KI_OPTION_TEXT(ki_list_row, table, "", "where it is shown", "ours"),
    KI_OPTION_TEXT(ki_list_row, baseline, "", "the row it is compared with", "ours"),
    KI_OPTION_TEXT(ki_list_row, note, "", "shown below the table", "ours"),
    KI_OPTION_TREE(ki_list_row, set, "[]", "overrides", "ours"),
    KI_OPTION_TREE(ki_list_row, paper, "{}", "R@1 by source", "ours"),
    KI_OPTION_REAL(ki_list_row, pytorch, NAN, 0, 100, "R@1 of an independent loop", "ours"),
    KI_OPTION_REAL(ki_list_row, target, NAN, 0, 100, "R@1 to reach", "ours"),
    KI_OPTION_TREE(ki_list_row, grid, "{}", "keys with lists of values: all combinations are run", "ours"),
    KI_OPTION_TREE(ki_list_row, halving, "{}", "of the grid: {keep: 1/3, steps: [100, 300, 900]}", "ours"),
    KI_OPTION_TEXT(ki_list_row, by, "map_at_r", "what decides about a grid, of validation classes", "ours"),
    KI_OPTION_END};

static const ki_option pass_options[] = {
    KI_OPTION_TREE(ki_list_pass, groups, "[]", "of rows", "ours"),
    KI_OPTION_TEXT(ki_list_pass, seeds, "all", "a number, or all", "ours"), KI_OPTION_END};

static const ki_option table_options[] = {
    KI_OPTION_TEXT(ki_list_table, name, "", "as rows name it", "ours"),
    KI_OPTION_TEXT(ki_list_table, title, "", "its heading", "ours"),
    KI_OPTION_TREE(ki_list_table, set, "[]", "overrides of its rows", "ours"), KI_OPTION_END};

static const ki_option order_options[] = {
    KI_OPTION_TEXT(ki_list_order, title, "", "paper and table", "ours"),
    KI_OPTION_TEXT(ki_list_order, metric, "recall.1", "what is compared", "ours"),
    KI_OPTION_TREE(ki_list_order, rows, "{}", "best first", "ours"), KI_OPTION_END};

static const ki_option curve_options[] = {
    KI_OPTION_TEXT(ki_list_curve, name, "", "of the file", "ours"),
    KI_OPTION_TEXT(ki_list_curve, title, "", "of the drawing", "ours"),
    KI_OPTION_TREE(ki_list_curve, rows, "[]", "lines", "ours"),
    KI_OPTION_TEXT(ki_list_curve, variants, "", "a row whose variants are the lines", "ours"),
    KI_OPTION_TEXT(ki_list_curve, orders, "", "an earlier name of variants", "ours"),
    KI_OPTION_END};

static const ki_option summary_options[] = {
    KI_OPTION_TEXT(ki_list_summary, name, "", "of the drawing's file", "ours"),
    KI_OPTION_TEXT(ki_list_summary, title, "", "of the drawing", "ours"),
    KI_OPTION_TREE(ki_list_summary, rows, "[]", "methods", "ours"), KI_OPTION_END};

static const ki_option method_options[] = {
    KI_OPTION_TEXT(ki_list_method, method, "", "what it is called", "ours"),
    KI_OPTION_TEXT(ki_list_method, row, "", "whose gain is shown", "ours"), KI_OPTION_END};

static const ki_option gains_options[] = {
    KI_OPTION_TEXT(ki_list_gains, name, "", "of the drawing's file", "ours"),
    KI_OPTION_TEXT(ki_list_gains, title, "", "of the drawing", "ours"),
    KI_OPTION_TREE(ki_list_gains, series, "[]", "series of rows", "ours"), KI_OPTION_END};

static const ki_option series_options[] = {KI_OPTION_TEXT(ki_list_series, title, "", "in the legend", "ours"),
                                           KI_OPTION_TREE(ki_list_series, rows, "[]", "names", "ours"),
                                           KI_OPTION_END};

/* A list of maps as an array of structs of `size` bytes. */
static kith_status read_items(ki_list *list, const ki_value *items, const char *what,
                              const ki_option *options, size_t size, void *ret_array, size_t *ret_n,
                              kith_error *err) {
    char found[80];
    *ret_n = 0;
    if (!items || items->kind == KI_VALUE_NULL) return KITH_OK;
    if (items->kind != KI_VALUE_LIST)
        return ki_fail(err, KITH_EFORMAT, "%s is %s; wanted a list", what,
                       ki_value_describe(items, found, sizeof found));
    char *array = ki_arena_alloc(&list->arena, items->n_items, size);
    if (!array) return ki_fail_memory(err, items->n_items * size, what);
    memset(array, 0, items->n_items * size);
    for (const ki_value *v = items->first; v; v = v->next, ++*ret_n) {
        if (v->kind != KI_VALUE_MAP)
            return ki_fail(err, KITH_EFORMAT, "line %d: an item of %s is %s; wanted a map", v->line, what,
                           ki_value_describe(v, found, sizeof found));
        const kith_status status = ki_options_parse(options, v, NULL, what, array + *ret_n * size, err);
        if (status != KITH_OK) return ki_prefix(err, status, "line %d", v->line);
    }
    memcpy(ret_array, &array, sizeof array);
    return KITH_OK;
}

const ki_list_row *ki_list_find(const ki_list *list, const char *name) {
    for (size_t i = 0; i < list->n_rows; i++) {
        if (strcmp(list->row[i].name, name) == 0) return &list->row[i];
    }
    return NULL;
}

const ki_list_row *ki_list_source(const ki_list *list, const ki_list_row *row) {
    return *row->of ? ki_list_find(list, row->of) : row;
}

const ki_list_table *ki_list_table_of(const ki_list *list, const ki_list_row *row) {
    for (size_t i = 0; i < list->n_tables; i++) {
        if (strcmp(list->table[i].name, row->table) == 0) return &list->table[i];
    }
    return NULL;
}

/* ---- checks ---- */

static kith_status need_row(const ki_list *list, const char *name, const char *where, kith_error *err) {
    const char *names[512];
    size_t n = 0;
    if (ki_list_find(list, name)) return KITH_OK;
    for (; n < list->n_rows && n < 512; n++) names[n] = list->row[n].name;
    const kith_status status = ki_fail_unknown(err, "row", name, names, n);
    return ki_prefix(err, status, "%s", where);
}

/* A file's name: letters, digits, dots, dashes and underscores, no dot first. */
static bool is_name(const char *s) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return *s && *s != '.' && strlen(s) <= 100 && s[strspn(s, letters)] == '\0';
}

static kith_status check_texts(const ki_value *items, const char *what, const char *name, kith_error *err) {
    char found[80];
    for (const ki_value *v = items ? items->first : NULL; v; v = v->next) {
        if (v->kind != KI_VALUE_SCALAR)
            return ki_fail(err, KITH_EFORMAT, "%s: %s has %s; wanted text", name, what,
                           ki_value_describe(v, found, sizeof found));
    }
    if (!items || items->kind == KI_VALUE_LIST) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "%s: %s is %s; wanted a list", name, what,
                   ki_value_describe(items, found, sizeof found));
}

static kith_status check_numbers(const ki_value *map, const char *what, const char *name, kith_error *err) {
    char found[80];
    double number;
    if (map && map->kind != KI_VALUE_MAP)
        return ki_fail(err, KITH_EFORMAT, "%s: %s is %s; wanted a map", name, what,
                       ki_value_describe(map, found, sizeof found));
    for (const ki_value *v = map ? map->first : NULL; v; v = v->next) {
        if (v->kind == KI_VALUE_NULL || (v->kind == KI_VALUE_SCALAR && ki_parse_double(v->text, &number)))
            continue;
        return ki_fail(err, KITH_EFORMAT, "%s: %s of %s is %s; wanted a number", name, what, v->key,
                       ki_value_describe(v, found, sizeof found));
    }
    return KITH_OK;
}

static kith_status check_row(const ki_list *list, size_t i, kith_error *err) {
    const ki_list_row *r = &list->row[i];
    if (!is_name(r->name))
        return ki_fail(err, KITH_EFORMAT, "row %zu is called '%.60s'; wanted a name for a file", i + 1,
                       r->name);
    if (ki_list_find(list, r->name) != r)
        return ki_fail(err, KITH_EFORMAT, "there are two rows called %s", r->name);
    if (*r->baseline) KI_TRY(need_row(list, r->baseline, r->name, err));
    if (*r->of) KI_TRY(need_row(list, r->of, r->name, err));
    if (*r->of && (*ki_list_find(list, r->of)->of || *r->recipe || r->set))
        return ki_fail(err, KITH_EFORMAT,
                       "%s: `of` names a row with runs of its own, and goes without "
                       "recipe and set",
                       r->name);
    if (*r->table && !ki_list_table_of(list, r))
        return ki_fail(err, KITH_EFORMAT, "%s: there is no table %s", r->name, r->table);
    int64_t k = 0;
    const bool is_recall = strncmp(r->by, "recall.", 7) == 0 && ki_parse_whole(r->by + 7, &k) && k > 0;
    if (!is_recall && strcmp(r->by, "map_at_r") != 0 && strcmp(r->by, "r_precision") != 0)
        return ki_fail(err, KITH_EFORMAT, "%s: by is '%.40s'; wanted map_at_r, r_precision or recall.K",
                       r->name, r->by);
    KI_TRY(check_texts(r->set, "set", r->name, err));
    return check_numbers(r->paper, "paper", r->name, err);
}

static kith_status check_pass(const ki_list *list, const ki_list_pass *pass, kith_error *err) {
    int64_t n;
    KI_TRY(check_texts(pass->groups, "groups", "order", err));
    if (strcmp(pass->seeds, "all") != 0 && !(ki_parse_int64(pass->seeds, &n) && n >= 1))
        return ki_fail(err, KITH_EFORMAT, "order: seeds is '%.40s'; wanted all, or a number from 1",
                       pass->seeds);
    for (const ki_value *v = pass->groups ? pass->groups->first : NULL; v; v = v->next) {
        bool is_there = false;
        for (size_t i = 0; i < list->n_rows; i++) is_there |= strcmp(list->row[i].group, v->text) == 0;
        if (!is_there) return ki_fail(err, KITH_EFORMAT, "order: no row is in group %s", v->text);
    }
    return KITH_OK;
}

/* A row whose gain can be shown. */
static kith_status need_gain(const ki_list *list, const char *name, const char *where, kith_error *err) {
    KI_TRY(need_row(list, name, where, err));
    if (*ki_list_find(list, name)->baseline) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "%s: row %s has no baseline to gain over", where, name);
}

static kith_status check_drawing_name(const char *name, const char *where, kith_error *err) {
    if (is_name(name)) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "%s is called '%.60s'; wanted a name for a file", where, name);
}

static kith_status check_overviews(const ki_list *list, kith_error *err) {
    if (list->summary.n) KI_TRY(check_drawing_name(list->summary.name, "summary", err));
    for (size_t i = 0; i < list->summary.n; i++)
        KI_TRY(need_gain(list, list->summary.method[i].row, "summary", err));
    if (list->gains.n) KI_TRY(check_drawing_name(list->gains.name, "gains", err));
    for (size_t i = 0; i < list->gains.n; i++) {
        const ki_list_series *s = &list->gains.item[i];
        KI_TRY(check_texts(s->rows, "rows", "gains", err));
        for (const ki_value *v = s->rows ? s->rows->first : NULL; v; v = v->next)
            KI_TRY(need_gain(list, v->text, "gains", err));
    }
    return KITH_OK;
}

static kith_status check(const ki_list *list, kith_error *err) {
    if (list->n_rows == 0) return ki_fail(err, KITH_EFORMAT, "there are no rows");
    for (size_t i = 0; i < list->n_rows; i++) KI_TRY(check_row(list, i, err));
    for (size_t i = 0; i < list->n_tables; i++)
        KI_TRY(check_texts(list->table[i].set, "set", list->table[i].name, err));
    for (size_t i = 0; i < list->n_passes; i++) KI_TRY(check_pass(list, &list->pass[i], err));
    for (size_t i = 0; i < list->n_orders; i++) {
        const ki_list_order *o = &list->order[i];
        KI_TRY(check_numbers(o->rows, "rows", o->title, err));
        for (const ki_value *v = o->rows ? o->rows->first : NULL; v; v = v->next)
            KI_TRY(need_row(list, v->key, o->title, err));
    }
    for (size_t i = 0; i < list->n_curves; i++) {
        const ki_list_curve *c = &list->curve[i];
        if (!is_name(c->name))
            return ki_fail(err, KITH_EFORMAT, "a curve is called '%.60s'; wanted a name for a file", c->name);
        if (*c->variants) KI_TRY(need_row(list, c->variants, c->name, err));
        KI_TRY(check_texts(c->rows, "rows", c->name, err));
        for (const ki_value *v = c->rows ? c->rows->first : NULL; v; v = v->next)
            KI_TRY(need_row(list, v->text, c->name, err));
    }
    return check_overviews(list, err);
}

/* A map of the top level, where it is given. */
static kith_status read_map(const ki_value *v, const char *what, const ki_option *options, void *ret,
                            kith_error *err) {
    char found[80];
    if (v && v->kind != KI_VALUE_MAP)
        return ki_fail(err, KITH_EFORMAT, "%s is %s; wanted a map", what,
                       ki_value_describe(v, found, sizeof found));
    return ki_options_parse(options, v, NULL, what, ret, err);
}

static kith_status read_all(ki_list *list, const ki_value *root, kith_error *err) {
    top t;
    char found[80];
    if (root->kind != KI_VALUE_MAP)
        return ki_fail(err, KITH_EFORMAT, "the list is %s; wanted a map with rows",
                       ki_value_describe(root, found, sizeof found));
    KI_TRY(ki_options_parse(top_options, root, NULL, "list", &t, err));
    list->title = t.title;
    list->set = t.set;
    KI_TRY(check_texts(t.set, "set", "list", err));
    KI_TRY(read_items(list, t.rows, "rows", row_options, sizeof *list->row, &list->row, &list->n_rows, err));
    KI_TRY(ki_grid_expand(list, err));
    KI_TRY(read_items(list, t.order, "order", pass_options, sizeof *list->pass, &list->pass, &list->n_passes,
                      err));
    KI_TRY(read_items(list, t.tables, "tables", table_options, sizeof *list->table, &list->table,
                      &list->n_tables, err));
    KI_TRY(read_items(list, t.orders, "orders", order_options, sizeof *list->order, &list->order,
                      &list->n_orders, err));
    KI_TRY(read_items(list, t.curves, "curves", curve_options, sizeof *list->curve, &list->curve,
                      &list->n_curves, err));
    for (size_t i = 0; i < list->n_curves; i++) {
        ki_list_curve *c = &list->curve[i];
        if (!*c->variants) c->variants = c->orders;
    }
    ki_list_summary *summary = &list->summary;
    KI_TRY(read_map(t.summary, "summary", summary_options, summary, err));
    KI_TRY(read_items(list, summary->rows, "summary", method_options, sizeof *summary->method,
                      &summary->method, &summary->n, err));
    ki_list_gains *gains = &list->gains;
    KI_TRY(read_map(t.gains, "gains", gains_options, gains, err));
    KI_TRY(read_items(list, gains->series, "gains", series_options, sizeof *gains->item, &gains->item,
                      &gains->n, err));
    return check(list, err);
}

kith_status ki_list_read(const char *path, ki_list *ret_list, kith_error *err) {
    kith_status status;
    ki_list list = {0};
    ki_value *root = NULL;
    const char *slash = strrchr(path, '/');
    list.path = ki_arena_strdup(&list.arena, path);
    list.folder = slash ? ki_arena_strndup(&list.arena, path, (size_t)(slash - path))
                        : ki_arena_strdup(&list.arena, ".");
    if (!list.path || !list.folder) KI_CHECK(ki_fail_memory(err, strlen(path), "a list"));
    KI_CHECK(ki_yaml_read(path, &list.arena, &root, err));
    status = read_all(&list, root, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s", path);
done:
    if (status != KITH_OK) ki_list_release(&list);
    if (status == KITH_OK) *ret_list = list;
    return status;
}

void ki_list_release(ki_list *list) {
    ki_arena_release(&list->arena);
    *list = (ki_list){0};
}
