/* Filters: random expressions against a plain evaluation of each item, and what is said of expressions that are wrong. */
#include <math.h>

#include "made_index.h"
#include "search/filter.h"

enum { N = 700, MOST_TEXT = 6000 };

static kith_index *index_;
static made_item items[N];

static int set_up(void **state) {
    (void)state;
    kith_error err;
    index_ = made_create(made_path("filter.kith"), KITH_COSINE);
    made_add(index_, 0, 400);
    assert_ok(kith_index_commit(index_, NULL, &err), &err);
    made_add(index_, 400, N - 400);
    assert_ok(kith_index_commit(index_, NULL, &err), &err);
    for (int64_t i = 0; i < N; i++) made_known(i, &items[i]);
    return 0;
}

static int tear_down(void **state) {
    kith_index_free(index_);
    return testing_tear_down(state);
}

/* ---- a second opinion ---- */

typedef struct expression {
    char text[MOST_TEXT];
    bool is_true[N];
} expression;

static kith_value value_of(int64_t i, int column) {
    const kith_index_item *item = &items[i].item;
    switch (column) {
    case 0: return (kith_value){.type = KITH_VALUE_INT, .integer = i};
    case 1: return (kith_value){.type = KITH_VALUE_TEXT, .text = item->path};
    case 2: return (kith_value){.type = item->label ? KITH_VALUE_TEXT : KITH_VALUE_NONE, .text = item->label};
    default: return items[i].values[column - 3];
    }
}

/* By recursion: slow and plain. */
static bool like(const char *text, const char *pattern) {
    if (!*pattern) return !*text;
    const char *next = text + (*text != '\0');
    while ((*next & 0xc0) == 0x80) next++;
    if (*pattern == '%') return like(text, pattern + 1) || (*text && like(next, pattern));
    if (*pattern == '\\' && pattern[1]) return *text == pattern[1] && like(text + 1, pattern + 2);
    if (!*text) return false;
    if (*pattern == '_') return like(next, pattern + 1);
    return *text == *pattern && like(text + 1, pattern + 1);
}

static bool is_met(const char *op, double order) {
    if (strcmp(op, "=") == 0) return order == 0;
    if (strcmp(op, "!=") == 0) return order != 0;
    if (strcmp(op, "<") == 0) return order < 0;
    if (strcmp(op, "<=") == 0) return order <= 0;
    if (strcmp(op, ">") == 0) return order > 0;
    return order >= 0;
}

static double order_of(kith_value x, const char *wanted) {
    if (x.type == KITH_VALUE_TEXT) return strcmp(x.text, wanted);
    const double number = atof(wanted);
    return x.type == KITH_VALUE_INT ? (double)x.integer - number : x.real - number;
}

static const char *const names[] = {"id", "path", "label", "year", "weight", "place"};
static const bool is_text[] = {false, true, true, false, false, true};

static const char *a_value(ki_rng *rng, int column) {
    static const char *const values[6][6] = {
        {"0", "33", "250.5", "699", "1e2", "-4"},
        {"2015/picture-0.jpg", "2019/picture-14.jpg", "2020", "", "2018/picture-3.jpg", "zzz"},
        {"tern", "gull", "black tern", "Möwe", "Tern", ""},
        {"2015", "2019", "2020", "2019.5", "2_024", "1e99"},
        {"0", "-1.5", "0.25", "1e-3", "2", "-2"},
        {"Texel", "Helgoland", "texel", "H", "", "Zz"},
    };
    return values[column][ki_rng_below(rng, 6)];
}

static bool is_plain(const char *text) { return *text && !strpbrk(text, " ()'\",=<>!"); }

static void put_value(ki_rng *rng, char *to, size_t bytes, const char *value) {
    const uint32_t how = ki_rng_below(rng, 3);
    if (how == 0 && is_plain(value))
        snprintf(to, bytes, "%s", value);
    else
        snprintf(to, bytes, how == 1 ? "'%s'" : "\"%s\"", value);
}

static double number_of(const char *text) { return strcmp(text, "2_024") == 0 ? 2024 : atof(text); }

static void make_comparison(ki_rng *rng, expression *e) {
    static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">="};
    static const char *const patterns[] = {"%",    "t%",    "%er_",  "2019/%", "%picture-1_.jpg",
                                           "M_we", "_____", "%l%l%", ""};
    const int column = (int)ki_rng_below(rng, 6);
    const uint32_t how = ki_rng_below(rng, 4);
    char value[64];
    if (how == 0 && is_text[column]) {
        const char *pattern = patterns[ki_rng_below(rng, N_ROWS(patterns))];
        const bool is_not = ki_rng_below(rng, 2);
        snprintf(e->text, sizeof e->text, "%s %slike '%s'", names[column], is_not ? "NOT " : "", pattern);
        for (int64_t i = 0; i < N; i++) {
            const kith_value x = value_of(i, column);
            e->is_true[i] = x.type != KITH_VALUE_NONE && like(x.text, pattern) != is_not;
        }
        return;
    }
    if (how == 1) {
        const uint32_t n = 1 + ki_rng_below(rng, 4);
        const bool is_not = ki_rng_below(rng, 2);
        const char *list[4];
        size_t at =
            (size_t)snprintf(e->text, sizeof e->text, "%s %sin (", names[column], is_not ? "not " : "");
        for (uint32_t j = 0; j < n; j++) {
            list[j] = a_value(rng, column);
            put_value(rng, value, sizeof value, list[j]);
            at += (size_t)snprintf(e->text + at, sizeof e->text - at, "%s%s", j ? ", " : "", value);
        }
        snprintf(e->text + at, sizeof e->text - at, ")");
        for (int64_t i = 0; i < N; i++) {
            const kith_value x = value_of(i, column);
            bool is_in = false;
            for (uint32_t j = 0; j < n && x.type != KITH_VALUE_NONE; j++)
                is_in |= is_text[column]            ? strcmp(x.text, list[j]) == 0
                         : x.type == KITH_VALUE_INT ? (double)x.integer == number_of(list[j])
                                                    : x.real == number_of(list[j]);
            e->is_true[i] = x.type != KITH_VALUE_NONE && is_in != is_not;
        }
        return;
    }
    const char *op = ops[ki_rng_below(rng, 6)], *wanted = a_value(rng, column);
    put_value(rng, value, sizeof value, wanted);
    snprintf(e->text, sizeof e->text, ki_rng_below(rng, 2) ? "%s %s %s" : "%s%s%s", names[column], op, value);
    char plain[64];
    snprintf(plain, sizeof plain, "%.9g", number_of(wanted));
    for (int64_t i = 0; i < N; i++) {
        const kith_value x = value_of(i, column);
        e->is_true[i] =
            x.type != KITH_VALUE_NONE && is_met(op, order_of(x, is_text[column] ? wanted : plain));
    }
}

static void make(ki_rng *rng, int depth, expression *e) {
    const uint32_t how = ki_rng_below(rng, 4);
    if (depth == 0 || how == 0) {
        make_comparison(rng, e);
        return;
    }
    expression *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    make(rng, depth - 1, a);
    make(rng, depth - 1, b);
    if (how == 1) {
        snprintf(e->text, sizeof e->text, "not (%.2500s)", a->text);
        for (int64_t i = 0; i < N; i++) e->is_true[i] = !a->is_true[i];
    } else {
        snprintf(e->text, sizeof e->text, how == 2 ? "(%.2500s) and (%.2500s)" : "(%.2500s) OR (%.2500s)",
                 a->text, b->text);
        for (int64_t i = 0; i < N; i++)
            e->is_true[i] = how == 2 ? a->is_true[i] && b->is_true[i] : a->is_true[i] || b->is_true[i];
    }
    free(a);
    free(b);
}

static void assert_holds(const expression *e) {
    kith_error err;
    int64_t *ids = NULL, n = 0;
    if (kith_index_ids(index_, e->text, &ids, &n, &err) != KITH_OK) fail_msg("%s: %s", e->text, err.message);
    int64_t at = 0;
    for (int64_t i = 0; i < N; i++) {
        const bool found = at < n && ids[at] == i;
        if (found != e->is_true[i])
            fail_msg("%s: item %lld is %sfound", e->text, (long long)i, found ? "" : "not ");
        at += found;
    }
    kith_ids_free(ids);
}

static void test_random_expressions(void **state) {
    (void)state;
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    expression *e = malloc(sizeof *e);
    int64_t n_some = 0;
    for (int i = 0; i < 1500; i++) {
        make(&rng, i % 4, e);
        assert_holds(e);
        int64_t n_true = 0;
        for (int64_t j = 0; j < N; j++) n_true += e->is_true[j];
        n_some += n_true > 0 && n_true < N;
    }
    assert_true(n_some > 700); /* not all of them say all or nothing */
    free(e);
}

/* `and` binds tighter than `or`, `not` tighter than both. */
static void test_binding(void **state) {
    (void)state;
    static const struct {
        const char *loose, *tight;
    } rows[] = {
        {"label = tern or label = gull and year > 2019", "label = tern or (label = gull and year > 2019)"},
        {"label = tern and year > 2019 or label = gull", "(label = tern and year > 2019) or label = gull"},
        {"not label = tern and year > 2019", "(not (label = tern)) and year > 2019"},
        {"not not id < 10", "id < 10"},
        {"id>=5 AND id<=7", "id in (5,6,7)"},
        {"label = 'tern' ", "  label==\"tern\""},
        /* tokens that touch do not spill into each other */
        {"label in(tern,'gull')or id=3", "label in ( 'tern' , 'gull' ) or id = 3"},
        {"label='tern'or label=gull", "label = tern or label = gull"},
        {"not(label=\"tern\")and id<=12", "not ( label = 'tern' ) and id <= 12"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err;
        int64_t *a = NULL, *b = NULL, n = 0, m = 0;
        assert_ok(kith_index_ids(index_, rows[i].loose, &a, &n, &err), &err);
        assert_ok(kith_index_ids(index_, rows[i].tight, &b, &m, &err), &err);
        assert_true(n > 0 && n < N);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
        kith_ids_free(a);
        kith_ids_free(b);
    }
}

static void test_wrong_expressions(void **state) {
    (void)state;
    static const struct {
        const char *text, *message, *hint;
    } rows[] = {
        {"", "where: it ends at character 1; wanted the name of a column", "for example"},
        {"label", "where: it ends at character 6; wanted one of = != < <= > >= in like", ""},
        {"label =", "where: it ends at character 8; wanted a value", ""},
        {"label = tern and", "where: it ends at character 17; wanted the name of a column", ""},
        {"label = tern year = 3", "where: character 14, at 'year = 3': wanted 'and', 'or' or the end", ""},
        {"(label = tern", "where: it ends at character 14; wanted 'and', 'or' or ')'", ""},
        {"label = 'tern", "where: character 9, at ''tern': wanted a quote at the end of the text", ""},
        {"lable = tern", "where: character 1: unknown column 'lable'", "did you mean 'label'?"},
        {"id = 3 or yeer > 2", "where: character 11: unknown column 'yeer'", "did you mean 'year'?"},
        {"year = tern", "where: character 8, at 'tern': wanted a number: the column holds numbers", ""},
        {"year like '20%'", "where: character 6, at 'like '20%'': wanted = or another comparison", ""},
        {"label in tern", "where: character 10, at 'tern': wanted '(' and the values of a list", ""},
        {"label in (tern gull)", "where: character 16, at 'gull)': wanted ',' or ')'", ""},
        {"label in ()", "where: character 11, at ')': wanted a value", ""},
        {"label not tern", "where: character 11, at 'tern': wanted 'in' or 'like'", ""},
        {"label ! tern", "where: character 7, at '! tern': wanted one of", ""},
        {"year = nan", "where: character 8", ""},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        int64_t *ids = NULL, n = 0;
        assert_int_equal(kith_index_ids(index_, rows[i].text, &ids, &n, &err), KITH_EINVAL);
        if (strncmp(err.message, rows[i].message, strlen(rows[i].message)) != 0)
            fail_msg("'%s': %s; wanted %s", rows[i].text, err.message, rows[i].message);
        assert_non_null(strstr(err.hint, rows[i].hint));
    }
    /* too deep, too long, too many: one line, no crash */
    char *deep = malloc(200000);
    memset(deep, '(', 65000);
    deep[65000] = '\0';
    kith_error err;
    int64_t *ids = NULL, n = 0;
    assert_int_equal(kith_index_ids(index_, deep, &ids, &n, &err), KITH_EINVAL);
    memset(deep, ' ', 100000);
    deep[100000] = '\0';
    assert_int_equal(kith_index_ids(index_, deep, &ids, &n, &err), KITH_EINVAL);
    size_t at = 0;
    for (int i = 0; i < 5000; i++)
        at += (size_t)snprintf(deep + at, 200000 - at, "%sid=%d", i ? " or " : "", i);
    assert_ok(kith_index_ids(index_, deep, &ids, &n, &err), &err); /* a long chain is no depth */
    assert_int_equal(n, N);
    kith_ids_free(ids);
    free(deep);
}

static void test_like(void **state) {
    (void)state;
    ki_rng rng = ki_rng_at(4, KI_RNG_TEST, 0, 0);
    static const char *const parts[] = {"a", "b", "ab", "%", "_", "%", "\\%", "€", "\\"};
    for (int i = 0; i < 20000; i++) {
        char text[64] = "", pattern[64] = "";
        for (uint32_t j = 0, n = ki_rng_below(&rng, 7); j < n; j++)
            strcat(text, parts[(ki_rng_below(&rng, 4) * 7) % 8]);
        for (uint32_t j = 0, n = ki_rng_below(&rng, 6); j < n; j++)
            strcat(pattern, parts[ki_rng_below(&rng, 9)]);
        if (ki_like(text, pattern) != like(text, pattern))
            fail_msg("'%s' like '%s' is %d; wanted %d", text, pattern, ki_like(text, pattern),
                     like(text, pattern));
    }
    assert_false(ki_like("€", "%__")); /* one character, though three bytes */
    char many[3000];
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_false(ki_like(many, "%a%a%a%a%a%a%a%a%a%a%a%b")); /* not after an age */
}

/* Memory in proportion to the text: each shape of a long filter, and how many bytes there may be for one of the text. */
static void test_memory_of_a_long_filter(void **state) {
    (void)state;
    enum { N_TEXT = 60000, MOST_PER_BYTE = 64 };
    static const struct {
        const char *begin, *again, *end;
        int most; /* repetitions */
    } row[] = {{"label in (''", ",''", ")", 9990},
               {"id >= 0", " or label = 'a''b'", "", 1 << 20},
               {"id >= 0", " and not year<2", "", 1 << 20},
               {"year in (1", ",1", ")", 9990}};
    kith_column columns[200] = {{.name = "year", .type = KITH_VALUE_INT}};
    const int n_columns = (int)N_ROWS(columns);
    for (int i = 1; i < n_columns; i++) columns[i] = (kith_column){.name = "other", .type = KITH_VALUE_TEXT};
    char *text = malloc(N_TEXT + 100);
    assert_non_null(text);
    for (size_t i = 0; i < N_ROWS(row); i++) {
        size_t n = (size_t)sprintf(text, "%s", row[i].begin);
        for (int j = 0; j < row[i].most && n < N_TEXT; j++)
            n += (size_t)sprintf(text + n, "%s", row[i].again);
        n += (size_t)sprintf(text + n, "%s", row[i].end);
        kith_memory_stats before, after;
        ki_where *filter = NULL;
        kith_error err;
        kith_memory_stats_get(&before);
        assert_ok(ki_where_parse(text, columns, n_columns, &filter, &err), &err);
        kith_memory_stats_get(&after);
        const uint64_t taken = after.live_bytes - before.live_bytes;
        if (taken > MOST_PER_BYTE * (uint64_t)n)
            fail_msg("'%.20s …': %llu bytes for a text of %zu", text, (unsigned long long)taken, n);
        ki_where_free(filter);
    }
    free(text);
}

/* Beyond 2^53 a real holds every second number, then every fourth … A whole number that it cannot hold is refused, not rounded. */
static void test_large_numbers(void **state) {
    (void)state;
    static const double weight[] = {9007199254740992, 9007199254740994, -9007199254740996, 1e300};
    static const struct {
        const char *where;
        int64_t n; /* -1: refused */
    } rows[] = {{"weight = 9007199254740992", 1},
                {"weight = 9_007_199_254_740_994", 1},
                {"weight = 9007199254740993", -1},
                {"weight < 9007199254740993", -1},
                {"weight != -9007199254740995", -1},
                {"weight in (1, 9007199254740993)", -1},
                {"weight = 9007199254740993.0", -1},
                {"weight = 9.007199254740993e15", -1},
                {"weight = -9007199254740996", 1},
                {"weight = 9223372036854775807", -1},
                {"weight > 9223372036854775808", 1},
                {"weight > 9223372036854775809", -1},
                {"weight > 100000000000000000000", 1},
                {"weight > 100000000000000000001", -1},
                {"weight = 1e300", 1},
                {"weight > 0.1", 3},
                {"year = 9007199254740993", 1},
                {"year > 9007199254740992", 1},
                {"year > 9007199254740992.5", 1},
                {"year < 100000000000000000001", 4}};
    kith_error err = {0};
    float x[4 * MADE_DIM];
    kith_value values[4][3] = {{{0}}};
    kith_index_item list[4];
    for (int i = 0; i < 4; i++) {
        made_row(i, x + i * MADE_DIM);
        values[i][0] = (kith_value){.type = KITH_VALUE_INT, .integer = 9007199254740990 + i};
        values[i][1] = (kith_value){.type = KITH_VALUE_REAL, .real = weight[i]};
        list[i] = (kith_index_item){.bytes = -1, .mtime_ns = -1, .values = values[i]};
    }
    kith_index *index = made_create(made_path("large.kith"), KITH_COSINE);
    const kith_array array = {KITH_F32, 2, {4, MADE_DIM}, x};
    assert_ok(kith_index_add(index, &array, list, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        int64_t *ids = NULL, n = 0;
        const kith_status status = kith_index_ids(index, rows[i].where, &ids, &n, &err);
        if (rows[i].n >= 0) {
            if (status != KITH_OK || n != rows[i].n)
                fail_msg("%s: %lld, wanted %lld (%s)", rows[i].where, (long long)n, (long long)rows[i].n,
                         status ? err.message : "");
        } else if (status != KITH_EINVAL || !strstr(err.message, "a column of real numbers cannot hold it")) {
            fail_msg("%s was not refused: %lld", rows[i].where, (long long)n);
        }
        kith_ids_free(ids);
    }
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_expressions), cmocka_unit_test(test_binding),
        cmocka_unit_test(test_wrong_expressions),  cmocka_unit_test(test_like),
        cmocka_unit_test(test_large_numbers),      cmocka_unit_test(test_memory_of_a_long_filter),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
