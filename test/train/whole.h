/* A run that nothing happens to, runs that are stopped on the way, and whether both end the same. Included by one test
 * program each. */
#ifndef TEST_TRAIN_WHOLE_H
#define TEST_TRAIN_WHOLE_H

#include <sys/stat.h>

#include "kith/array.h"
#include "kith/train.h"
#include "train/tiny.h"

static inline const char *path_of(const char *out) {
    static char path[4][4096];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", testing_folder(), out);
    return to;
}

typedef struct stopper {
    int64_t stop_at;           /* -1: never */
    const char *chmod_at_stop; /* make this folder read-only then instead of stopping */
    const char *inside; /* only inside an evaluation, when this split has been judged; NULL: anywhere */
} stopper;

static inline int on_event(void *user, const kith_train_event *event) {
    const stopper *s = user;
    if (s->stop_at < 0 || event->step < s->stop_at) return 0;
    if (s->inside && (event->kind != KITH_TRAIN_EVAL || strcmp(event->split, s->inside) != 0)) return 0;
    if (!s->chmod_at_stop) return 1;
    return chmod(s->chmod_at_stop, 0555) != 0;
}

static inline kith_status train_sets(const char *out, bool resume, stopper s, const char *const *sets,
                                     int64_t n_sets, kith_error *err) {
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = tiny_make(),
                                        .sets = sets,
                                        .n_sets = n_sets,
                                        .out = path_of(out),
                                        .resume = resume,
                                        .no_report = true,
                                        .notify = on_event,
                                        .user = &s};
    return kith_train_run(&options, NULL, err);
}

static inline kith_status train(const char *out, bool resume, stopper s, const char *set, kith_error *err) {
    const char *const sets[] = {set ? set : "seed=0"};
    return train_sets(out, resume, s, sets, 1, err);
}

static const stopper never = {.stop_at = -1};

/* The run that nothing happens to. */
static inline void make_whole(void) {
    static bool is_made;
    kith_error err;
    if (is_made) return;
    assert_ok(train("whole", false, never, NULL, &err), &err);
    is_made = true;
}

/* Every tensor of a file but the clock's. */
static inline void assert_same_tensors(const char *a, const char *b, const char *name) {
    kith_tensors *x = NULL, *y = NULL;
    kith_error err;
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", path_of(a), name);
    assert_ok(kith_tensors_open(path, &x, &err), &err);
    snprintf(path, sizeof path, "%s/%s", path_of(b), name);
    assert_ok(kith_tensors_open(path, &y, &err), &err);
    assert_int_equal(kith_tensors_count(x), kith_tensors_count(y));
    for (int64_t i = 0; i < kith_tensors_count(x); i++) {
        const char *tensor = kith_tensors_name(x, i);
        kith_array p, q;
        assert_ok(kith_tensors_get(x, tensor, &p, &err), &err);
        assert_ok(kith_tensors_get(y, tensor, &q, &err), &err);
        if (strncmp(tensor, "run/", 4) == 0) continue; /* seconds, and bytes of the log */
        const size_t bytes = (size_t)kith_array_count(&p) * kith_dtype_bytes(p.dtype);
        if (memcmp(p.data, q.data, bytes) != 0)
            fail_msg("tensor %s of %s/%s differs from that of %s", tensor, b, name, a);
    }
    kith_tensors_free(x);
    kith_tensors_free(y);
}

/* The last checkpoint, the models, and the test embeddings. (Two recipes may differ in where the data lies: then so does
 * what checkpoints and best.safetensors say of their recipe.) */
static inline void assert_same_end(const char *a, const char *b) {
    assert_same_tensors(a, b, "checkpoints/step-00000030.safetensors");
    assert_same_tensors(a, b, "best.safetensors");
    tiny_assert_same(a, b, "model.safetensors");
    tiny_assert_same(a, b, "test/embedding.npy");
    tiny_assert_same(a, b, "split.csv");
}

/* What a line of log.jsonl says after `key`, up to a comma or a bracket; "": nothing. */
static inline const char *said(const char *line, const char *key, char *to, size_t bytes) {
    const char *at = strstr(line, key);
    if (at) at += strlen(key);
    snprintf(to, bytes, "%.*s", at ? (int)strcspn(at, ",}\"\n") : 0, at ? at : "");
    return to;
}

/* Cell `column` of a row of a table. */
static inline const char *cell(const char *row, int column, char *to, size_t bytes) {
    for (; column > 0; column--) row += strcspn(row, ",") + 1;
    snprintf(to, bytes, "%.*s", (int)strcspn(row, ",\n"), row);
    return to;
}

/* log.csv has a row for every line of log.jsonl about steps and evaluations, with the same numbers, and nothing else. */
static inline void assert_table(const char *out) {
    static const struct {
        const char *column, *key;
    } numbers[] = {{"kind", "\"kind\": \""},
                   {"step", "\"step\": "},
                   {"split", "\"split\": \""},
                   {"total", "\"total\": "},
                   {"terms.binomial", "\"terms\": {\"binomial\": "},
                   {"weights.binomial", "\"weights\": {\"binomial\": "},
                   {"lr", "\"lr\": "},
                   {"grad_norm.embedding", "\"embedding\": "},
                   {"img_per_s", "\"img_per_s\": "},
                   {"recall.1", "\"recall\": {\"1\": "},
                   {"recall.8", "\"8\": "},
                   {"map_at_r", "\"map_at_r\": "},
                   {"r_precision", "\"r_precision\": "}};
    char *log = tiny_read(out, "log.jsonl"), *table = tiny_read(out, "log.csv"), wanted[64], found[64];
    char *row = strchr(table, '\n') + 1, *header = table;
    int column[N_ROWS(numbers)], n_columns = 0, n_rows = 0;
    row[-1] = '\0';
    for (char *at = header; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL, n_columns++) {
        for (size_t i = 0; i < N_ROWS(numbers); i++) {
            const size_t n = strlen(numbers[i].column);
            if (strncmp(at, numbers[i].column, n) == 0 && strchr(",", at[n])) column[i] = n_columns;
        }
    }
    for (char *line = log; *line; line = strchr(line, '\n') + 1) {
        if (!strstr(said(line, "\"kind\": \"", found, sizeof found), "step") && strcmp(found, "eval") != 0)
            continue;
        char *end = strchr(line, '\n');
        *end = '\0';
        int n = 1;
        for (char *c = row; *c && *c != '\n'; c++) n += *c == ',';
        if (n != n_columns) fail_msg("row %d has %d cells, the header %d: %s", n_rows, n, n_columns, row);
        for (size_t i = 0; i < N_ROWS(numbers); i++) {
            said(line, numbers[i].key, wanted, sizeof wanted);
            if (strcmp(cell(row, column[i], found, sizeof found), wanted) != 0)
                fail_msg("%s, row %d: %s is '%s', wanted '%s'", out, n_rows, numbers[i].column, found,
                         wanted);
        }
        *end = '\n';
        row = strchr(row, '\n') + 1;
        n_rows++;
    }
    if (*row || n_rows < 7) fail_msg("%d rows; left over: %s", n_rows, row);
    free(log);
    free(table);
}

/* log.jsonl without what clocks say, and a table that belongs to it. */
static inline void assert_same_log(const char *a, const char *b) {
    char command[512];
    char *text[2];
    const char *const outs[] = {a, b};
    for (int i = 0; i < 2; i++) {
        text[i] = malloc(TINY_OUTPUT);
        snprintf(command, sizeof command, "sed -E 's/\"(img_per_s|seconds)\": [^,}]*//g' %s/log.jsonl",
                 path_of(outs[i]));
        assert_int_equal(0, testing_run(text[i], TINY_OUTPUT, "%s", command));
    }
    assert_table(b);
    if (strcmp(text[0], text[1]) != 0) fail_msg("logs differ:\n%s---\n%s", text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

/* The tensors of a file once more, with the recipe's hash, a step (NULL: as it was), and one more word. */
static inline void copy_tensors(const char *from, const char *to, const char *step, const char *key,
                                const char *value) {
    kith_tensors *tensors = NULL;
    kith_tensors_writer *writer = NULL;
    kith_error err;
    assert_ok(kith_tensors_open(from, &tensors, &err), &err);
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        kith_array view;
        assert_ok(kith_tensors_get(tensors, kith_tensors_name(tensors, i), &view, &err), &err);
        assert_ok(kith_tensors_writer_add(writer, kith_tensors_name(tensors, i), &view, &err), &err);
    }
    const char *const words[][2] = {
        {"kith.recipe_sha256", kith_tensors_metadata(tensors, "kith.recipe_sha256")},
        {"kith.step", step ? step : kith_tensors_metadata(tensors, "kith.step")},
        {key, value}};
    for (size_t i = 0; i < N_ROWS(words); i++)
        assert_ok(kith_tensors_writer_metadata(writer, words[i][0], words[i][1], &err), &err);
    assert_ok(kith_tensors_writer_save(writer, to, &err), &err);
    kith_tensors_writer_free(writer);
    kith_tensors_free(tensors);
}

/* A checkpoint without its checksum. */
static inline void make_unsealed(const char *out, const char *name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", path_of(out), name);
    copy_tensors(path, path, NULL, "kith.checkpoint", "5");
}

#endif
