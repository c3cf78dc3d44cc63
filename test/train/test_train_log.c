/* What a run says of its numbers in other formats: log.csv, and TensorBoard's event file, read here byte by byte. */
#include <glob.h>
#include <stdint.h>

#include "train/whole.h"

static char output[TINY_OUTPUT];

/* ---- an event file ---- */

static uint32_t masked_crc(const unsigned char *p, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) * 0x82f63b78u);
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint64_t fixed(const unsigned char *p, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static uint64_t varint(const unsigned char **p) {
    uint64_t value = 0;
    int shift = 0;
    for (;; shift += 7) {
        const unsigned char byte = *(*p)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

typedef struct field {
    int number;
    uint64_t value;             /* of a varint */
    const unsigned char *bytes; /* of the others */
    size_t n;
} field;

static bool next_field(const unsigned char **p, const unsigned char *end, field *ret) {
    if (*p >= end) return false;
    const uint64_t key = varint(p);
    *ret = (field){.number = (int)(key >> 3)};
    switch (key & 7) {
    case 0: ret->value = varint(p); return true;
    case 1: ret->n = 8; break;
    case 5: ret->n = 4; break;
    default: ret->n = (size_t)varint(p);
    }
    ret->bytes = *p;
    *p += ret->n;
    assert_true(*p <= end);
    return true;
}

typedef struct events {
    int n_records, n_scalars, n_texts;
    int64_t first_step, last_step, session; /* steps of scalars; session: where it began, 0: nowhere */
    double last_total;
    char text[4096];
} events;

static void read_value(const unsigned char *p, const unsigned char *end, int64_t step, events *ret) {
    char tag[128] = "";
    field f;
    while (next_field(&p, end, &f)) {
        if (f.number == 1) snprintf(tag, sizeof tag, "%.*s", (int)f.n, (const char *)f.bytes);
        if (f.number == 2) {
            float value;
            memcpy(&value, f.bytes, sizeof value);
            if (ret->n_scalars++ == 0) ret->first_step = step;
            ret->last_step = step;
            if (strcmp(tag, "loss/total") == 0) ret->last_total = (double)value;
        }
        if (f.number != 8) continue;
        const unsigned char *q = f.bytes;
        field inner;
        while (next_field(&q, f.bytes + f.n, &inner)) {
            if (inner.number == 8)
                snprintf(ret->text, sizeof ret->text, "%.*s", (int)inner.n, (const char *)inner.bytes);
        }
        assert_string_equal(tag, "recipe");
        ret->n_texts++;
    }
}

static void read_event(const unsigned char *p, const unsigned char *end, events *ret) {
    int64_t step = 0;
    field f, value;
    while (next_field(&p, end, &f)) {
        if (f.number == 2) step = (int64_t)f.value;
        if (f.number == 7) ret->session = step;
        if (f.number != 5) continue;
        const unsigned char *q = f.bytes;
        while (next_field(&q, f.bytes + f.n, &value)) {
            assert_int_equal(value.number, 1);
            read_value(value.bytes, value.bytes + value.n, step, ret);
        }
    }
}

static void read_events(const char *path, events *ret) {
    FILE *file = fopen(path, "rb");
    static unsigned char bytes[1 << 20];
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(n > 0 && n < sizeof bytes);
    *ret = (events){0};
    for (size_t at = 0; at < n;) {
        const size_t length = (size_t)fixed(bytes + at, 8);
        assert_true(at + 16 + length <= n);
        assert_int_equal(fixed(bytes + at + 8, 4), masked_crc(bytes + at, 8));
        assert_int_equal(fixed(bytes + at + 12 + length, 4), masked_crc(bytes + at + 12, length));
        read_event(bytes + at + 12, bytes + at + 12 + length, ret);
        ret->n_records++;
        at += 16 + length;
    }
}

/* The i-th event file of a run, by name. */
static int find_events(const char *out, int i, char *path, size_t bytes) {
    glob_t found;
    char pattern[4200];
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", path_of(out));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    const int n = (int)found.gl_pathc;
    if (i < n) snprintf(path, bytes, "%s", found.gl_pathv[i]);
    globfree(&found);
    return n;
}

static void test_event_files(void **state) {
    (void)state;
    kith_error err;
    char path[4200], wanted[64];
    events e;
    make_whole();
    assert_int_equal(find_events("whole", 0, path, sizeof path), 1);
    read_events(path, &e);
    assert_int_equal(e.n_texts, 1);
    assert_non_null(strstr(e.text, "\n    model:\n"));
    assert_non_null(strstr(e.text, "binomial"));
    assert_int_equal(e.session, 0);
    assert_int_equal(e.first_step, 0);
    assert_int_equal(e.last_step, 30);
    char *log = tiny_read("whole", "log.jsonl");
    char *line = strstr(log, "\"step\", \"step\": 30");
    assert_non_null(line);
    snprintf(wanted, sizeof wanted, "%.9g", (double)(float)strtod(strstr(line, "\"total\": ") + 9, NULL));
    snprintf(output, sizeof output, "%.9g", e.last_total);
    assert_string_equal(output, wanted);
    free(log);
    /* A run that was resumed has a second file, which tells readers where it goes on. */
    assert_int_equal(train("again", false, (stopper){.stop_at = 20}, NULL, &err), KITH_ECANCELED);
    assert_ok(train("again", true, never, NULL, &err), &err);
    assert_int_equal(find_events("again", 1, path, sizeof path), 2);
    read_events(path, &e);
    assert_int_equal(e.session, 20);
    assert_int_equal(e.n_texts, 0);
    assert_true(e.first_step >= 20);
    assert_int_equal(e.last_step, 30);
}

static void test_table(void **state) {
    (void)state;
    make_whole();
    assert_table("whole");
    char *table = tiny_read("whole", "log.csv");
    assert_true(strncmp(table,
                        "kind,step,split,epoch,side,total,terms.binomial,weights.binomial,lr,"
                        "grad_norm.backbone,grad_norm.embedding,grad_norm.objective,n_pos,n_neg,"
                        "img_per_s,seconds,recall.1,recall.2,recall.4,recall.8,map_at_r,r_precision\n"
                        "eval,0,seen,,,,",
                        220) == 0);
    free(table);
}

/* A table that was deleted, or has lines of its own, is made again from the log. */
static void test_table_is_made_again(void **state) {
    (void)state;
    kith_error err;
    char path[4200];
    assert_int_equal(train("lost", false, (stopper){.stop_at = 13}, NULL, &err), KITH_ECANCELED);
    snprintf(path, sizeof path, "%s/log.csv", path_of("lost"));
    testing_write(path, "kind,step\nstep,99\n");
    assert_ok(train("lost", true, never, NULL, &err), &err);
    make_whole();
    assert_same_log("whole", "lost");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_event_files), cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_table_is_made_again)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
