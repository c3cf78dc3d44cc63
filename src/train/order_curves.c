/* R@1 of every order over the steps, for the result card. The log is the only place that knows all evaluations of a run
 * that was stopped and resumed, so they are read from there. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "train/run.h"

/* A card stays small: of more evaluations every other, third … one, and the last. */
enum { MOST_POINTS = 100 };
static const size_t MOST_BYTES = (size_t)512 << 20;
static const char eval_line[] = "{\"kind\": \"eval\"", orders_key[] = "order_recall_at_1";

typedef struct point {
    int64_t step;
    ki_order_recall alone;
} point;

typedef struct curve {
    point *point;
    size_t n, capacity;
} curve;

static const char *text_at(const ki_value *map, const char *key) {
    const ki_value *v = ki_value_get(map, key);
    return v && v->kind == KI_VALUE_SCALAR ? v->text : "";
}

static kith_status add_point(curve *c, const ki_value *line, kith_error *err) {
    const ki_value *orders = ki_value_get(line, orders_key);
    point p = {0};
    if (!orders || !ki_parse_int64(text_at(line, "step"), &p.step)) return KITH_OK;
    for (const ki_value *v = orders->first; v && p.alone.n <= KI_MOST_ORDERS; v = v->next) {
        if (v->kind != KI_VALUE_SCALAR || !ki_parse_double(v->text, &p.alone.at_1[p.alone.n])) return KITH_OK;
        p.alone.n++;
    }
    KI_TRY(ki_grow(&c->point, &c->capacity, c->n + 1, sizeof *c->point, "an order's curve", err));
    c->point[c->n++] = p;
    return KITH_OK;
}

static kith_status read_curve(const char *log, const char *split, curve *c, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    for (const char *line = log; *line && status == KITH_OK;) {
        const size_t n = strcspn(line, "\n");
        ki_value *value = NULL;
        kith_error ignored;
        /* The log of a run that goes on is whole lines: one that is no JSON is not ours. */
        if (strncmp(line, eval_line, sizeof eval_line - 1) == 0 &&
            ki_json_parse(line, n, "log", &arena, &value, &ignored) == KITH_OK &&
            strcmp(text_at(value, "split"), split) == 0)
            status = add_point(c, value, err);
        ki_arena_release(&arena);
        line += n + (line[n] == '\n');
    }
    return status;
}

static void put_curve(kith_json *json, const char *split, const curve *c) {
    const size_t every = (c->n + MOST_POINTS - 1) / MOST_POINTS;
    if (c->n == 0) return;
    kith_json_key(json, split);
    kith_json_object_begin(json);
    for (int64_t k = 0; k <= c->point[0].alone.n; k++) {
        char name[32] = "step";
        if (k > 0) ki_snprintf(name, sizeof name, "%lld", (long long)k);
        kith_json_key(json, name);
        kith_json_array_begin(json);
        for (size_t i = 0; i < c->n; i++) {
            if (i % every != 0 && i + 1 != c->n) continue;
            if (k == 0)
                kith_json_int(json, c->point[i].step);
            else
                kith_json_real32(json, (float)c->point[i].alone.at_1[k - 1]);
        }
        kith_json_array_end(json);
    }
    kith_json_object_end(json);
}

kith_status ki_train_put_order_curves(const ki_train_state *run, kith_json *json, kith_error *err) {
    static const char *const splits[] = {"seen", "validation", "test"};
    enum { N = sizeof splits / sizeof splits[0] };
    kith_status status;
    curve curves[N] = {{0}};
    char *log = NULL;
    size_t n = 0;
    ki_path path;
    if (!run->recipe->eval.all_orders || ki_objective_describe_dim(run->objective) == 0) return KITH_OK;
    KI_CHECK(ki_folder_at(&run->folder, &path, err, "log.jsonl"));
    KI_CHECK(ki_file_read(path.s, MOST_BYTES, &log, &n, err));
    for (int i = 0; i < N; i++) KI_CHECK(read_curve(log, splits[i], &curves[i], err));
    kith_json_key(json, "order_curves");
    kith_json_object_begin(json);
    for (int i = 0; i < N; i++) put_curve(json, splits[i], &curves[i]);
    kith_json_object_end(json);
done:
    for (int i = 0; i < N; i++) ki_free(curves[i].point);
    ki_free(log);
    return status;
}
