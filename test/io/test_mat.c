/* MATLAB files by themselves: numbers and text of every kind and both byte orders, variables one after another, packed or
 * not, fields by name. */
#include "data/mat_file.h"
#include "io/mat.h"
#include "kith/log.h"

static mat_file f;

static void begin(bool is_big) {
    f.is_big = is_big;
    mat_begin(&f);
}

static ki_mat *parsed(void) {
    ki_mat *mat = NULL;
    kith_error err = {0};
    assert_ok(ki_mat_parse(f.bytes, f.n, "file", &mat, &err), &err);
    return mat;
}

static ki_mat_array found(ki_mat *mat, const char *name) {
    ki_mat_array array;
    bool is_there = false;
    kith_error err = {0};
    memset(&array, 0x55, sizeof array);
    assert_ok(ki_mat_find(mat, name, &array, &is_there, &err), &err);
    if (!is_there) fail_msg("there is no %s", name);
    return array;
}

/* A variable of one number, stored as `type`. */
static void put_number(const char *name, uint32_t type, const void *value, size_t bytes) {
    const size_t at = mat_open(&f, MAT_DOUBLE_CLASS, 1, name);
    mat_element(&f, type, value, 1, bytes);
    mat_close(&f, at);
}

static void test_numbers(void **state) {
    (void)state;
    enum { INT16 = 3, SINGLE = 7 };
    for (int big = 0; big <= 1; big++) {
        begin(big);
        put_number("a", MAT_INT8, &(int8_t){-3}, 1);
        put_number("b", MAT_UINT8, &(uint8_t){200}, 1);
        put_number("c", INT16, &(int16_t){-300}, 2);
        put_number("d", MAT_UINT16, &(uint16_t){60000}, 2);
        put_number("e", MAT_INT32, &(int32_t){-70000}, 4);
        put_number("f", MAT_UINT32, &(uint32_t){4000000000u}, 4);
        put_number("g", SINGLE, &(float){1.5f}, 4);
        put_number("h", MAT_DOUBLE, &(double){-2.25}, 8);
        const size_t at = mat_open(&f, MAT_DOUBLE_CLASS, 0, "empty");
        mat_element(&f, MAT_DOUBLE, NULL, 0, 8);
        mat_close(&f, at);
        static const double wanted[] = {-3, 200, -300, 60000, -70000, 4000000000, 1.5, -2.25};
        ki_mat *mat = parsed();
        double value = 0;
        char text[8];
        for (size_t i = 0; i < N_ROWS(wanted); i++) {
            const ki_mat_array array = found(mat, (const char[]){(char)('a' + i), '\0'});
            assert_int_equal(array.kind, KI_MAT_NUMBER);
            assert_int_equal(array.n_elements, 1);
            assert_true(ki_mat_number(&array, &value));
            if (value != wanted[i]) fail_msg("number %zu is %g, wanted %g", i, value, wanted[i]);
            assert_false(ki_mat_text(&array, text, sizeof text));
        }
        const ki_mat_array empty = found(mat, "empty");
        assert_false(ki_mat_number(&empty, &value));
        ki_mat_free(mat);
    }
}

static void put_units(const char *name, uint32_t type, const void *units, size_t n, size_t bytes) {
    const size_t at = mat_open(&f, MAT_CHAR_CLASS, (uint32_t)n, name);
    mat_element(&f, type, units, n, bytes);
    mat_close(&f, at);
}

static void test_text(void **state) {
    (void)state;
    enum { UTF8 = 16 };
    static const uint16_t wide[] = {'n', 0xe9, 0x3c9, 0x7ff, 'z'}, ends[] = {'a', 'b', 0, 'c'},
                          far[] = {'a', 0x800};
    static const char utf8[] = "n\xc3\xa9\xcf\x89\xdf\xbfz";
    for (int big = 0; big <= 1; big++) {
        begin(big);
        put_units("wide", MAT_UINT16, wide, N_ROWS(wide), 2);
        put_units("ends", MAT_UINT16, ends, N_ROWS(ends), 2);
        put_units("far", MAT_UINT16, far, N_ROWS(far), 2);
        put_units("utf8", UTF8, utf8, sizeof utf8 - 1, 1);
        put_units("none", MAT_UINT16, NULL, 0, 2);
        ki_mat *mat = parsed();
        static const struct {
            const char *name, *text; /* NULL: refused */
            size_t room;
        } rows[] = {{"wide", utf8, 64},
                    {"wide", utf8, sizeof utf8 + 1},
                    {"wide", NULL, sizeof utf8 - 1},
                    {"ends", "ab", 64},
                    {"far", NULL, 64},
                    {"utf8", utf8, 64},
                    {"none", NULL, 64}};
        for (size_t i = 0; i < N_ROWS(rows); i++) {
            char text[64];
            memset(text, '?', sizeof text);
            const ki_mat_array array = found(mat, rows[i].name);
            assert_int_equal(array.kind, KI_MAT_TEXT);
            assert_int_equal(ki_mat_text(&array, text, rows[i].room), rows[i].text != NULL);
            if (rows[i].text) assert_string_equal(text, rows[i].text);
            if (rows[i].text)
                assert_int_equal(text[strlen(rows[i].text) + 1], '?'); /* nothing behind the NUL */
            for (size_t k = rows[i].room; k < sizeof text; k++) assert_int_equal(text[k], '?');
        }
        ki_mat_free(mat);
    }
}

/* Two structs of three fields; a name that begins another is not that other. */
static void put_structs(const char *name) {
    enum { NAME_BYTES = 8 };
    static const char names[3][NAME_BYTES] = {"path", "path_1", "exactly"};
    const size_t at = mat_open(&f, MAT_STRUCT_CLASS, 2, name);
    mat_element(&f, MAT_INT32, (int32_t[]){NAME_BYTES}, 1, 4);
    mat_element(&f, MAT_INT8, names, sizeof names, 1);
    for (int i = 0; i < 2; i++) {
        mat_text(&f, i ? "second" : "first");
        mat_number(&f, 10 + i, MAT_DOUBLE_CLASS);
        mat_put32(&f, MAT_MATRIX), mat_put32(&f, 0); /* nothing but its tag */
    }
    mat_close(&f, at);
}

static void test_structs(void **state) {
    (void)state;
    for (int packed = 0; packed <= 1; packed++) {
        begin(false);
        size_t at = f.n;
        put_number("before", MAT_DOUBLE, &(double){1}, 8);
        if (packed) mat_pack(&f, at);
        at = f.n;
        put_structs("cars");
        if (packed) mat_pack(&f, at);
        ki_mat *mat = parsed();
        ki_mat_array cars = found(mat, "cars"), part;
        assert_int_equal(cars.kind, KI_MAT_STRUCT);
        assert_int_equal(cars.n_elements, 2);
        assert_int_equal(cars.n_fields, 3);
        assert_int_equal(cars.n_parts, 6);
        assert_int_equal(ki_mat_field(&cars, "path"), 0);
        assert_int_equal(ki_mat_field(&cars, "path_1"), 1);
        assert_int_equal(ki_mat_field(&cars, "exactly"), 2);
        assert_int_equal(ki_mat_field(&cars, "pat"), 3);
        assert_int_equal(ki_mat_field(&cars, "exactly_so"), 3);
        for (int i = 0; i < 2; i++) {
            kith_error err = {0};
            char text[16];
            double number = 0;
            assert_ok(ki_mat_next(&cars, &part, &err), &err);
            assert_true(ki_mat_text(&part, text, sizeof text));
            assert_string_equal(text, i ? "second" : "first");
            assert_ok(ki_mat_next(&cars, &part, &err), &err);
            assert_true(ki_mat_number(&part, &number) && number == 10 + i);
            assert_ok(ki_mat_next(&cars, &part, &err), &err);
            assert_int_equal(part.kind, KI_MAT_OTHER);
            assert_int_equal(part.n_elements, 0);
        }
        ki_mat_array array;
        bool is_there = true;
        kith_error err = {0};
        assert_ok(ki_mat_find(mat, "car", &array, &is_there, &err), &err);
        assert_false(is_there);
        ki_mat_free(mat);
    }
}

static void test_cells(void **state) {
    (void)state;
    begin(false);
    mat_names(&f, 3);
    ki_mat *mat = parsed();
    ki_mat_array names = found(mat, "class_names"), part;
    kith_error err = {0};
    assert_int_equal(names.kind, KI_MAT_CELL);
    assert_int_equal(names.n_elements, 3);
    assert_int_equal(names.n_parts, 3);
    for (int i = 1; i <= 3; i++) {
        char text[16], wanted[16];
        snprintf(wanted, sizeof wanted, "Car %d", i);
        assert_ok(ki_mat_next(&names, &part, &err), &err);
        assert_true(ki_mat_text(&part, text, sizeof text));
        assert_string_equal(text, wanted);
    }
    assert_int_equal(ki_mat_next(&names, &part, &err), KITH_EFORMAT);
    ki_mat_free(mat);
    begin(false);
    mat_close(&f, mat_open(&f, MAT_CELL_CLASS, 1, "many")); /* no bytes for its one part */
    mat = parsed();
    bool is_there = false;
    assert_int_equal(ki_mat_find(mat, "many", &part, &is_there, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "an array has more parts than bytes for them"));
    ki_mat_free(mat);
}

/* Cut anywhere: refused or found whole, and nothing is kept. */
static void test_cut_off(void **state) {
    (void)state;
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    for (int packed = 0; packed <= 1; packed++) {
        begin(false);
        const size_t at = f.n;
        put_structs("cars");
        if (packed) mat_pack(&f, at);
        for (size_t n = 0; n < f.n; n++) {
            ki_mat *mat = NULL;
            kith_error err = {0};
            uint8_t *part = malloc(n + 1); /* so that reading past it shows under a sanitizer */
            memcpy(part, f.bytes, n);
            kith_status status = ki_mat_parse(part, n, "file", &mat, &err);
            ki_mat_array array;
            bool is_there = false;
            if (status == KITH_OK) status = ki_mat_find(mat, "cars", &array, &is_there, &err);
            if (n < 128) {
                assert_int_equal(status, KITH_EFORMAT);
                assert_non_null(strstr(err.message, "file is not a MATLAB file"));
            } else if (n > 128) {
                assert_int_equal(status, KITH_EFORMAT);
                assert_true(strstr(err.message, "file is damaged") || strstr(err.message, "file is cut off"));
            }
            assert_false(is_there);
            ki_mat_free(mat);
            free(part);
        }
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_structs), cmocka_unit_test(test_cells),
                                       cmocka_unit_test(test_cut_off)};
    return cmocka_run_group_tests_name("io/mat", tests, NULL, NULL);
}
