/* Pieces of a file, copied by the kernel from a mapping. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/gather.h"
#include "support/testing.h"

enum { BYTES = 40000, EACH = 96, MANY = 300 };

static unsigned char byte_at(size_t i) { return (unsigned char)(i * 31 + i / 251); }

static int fd;

/* A file of BYTES bytes, mapped. */
static const char *begin(ki_gather *gather) {
    static char path[512];
    unsigned char data[BYTES];
    for (size_t i = 0; i < BYTES; i++) data[i] = byte_at(i);
    snprintf(path, sizeof path, "%s/pieces", testing_folder());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, BYTES), BYTES);
    ki_gather_init(gather, fd, BYTES);
    return path;
}

static void end(ki_gather *gather) {
    ki_gather_release(gather);
    close(fd);
}

static void test_pieces(void **state) {
    (void)state;
    ki_gather gather;
    size_t at[MANY];
    unsigned char found[MANY * EACH + 1];
    begin(&gather);
    if (!gather.map) skip(); /* a system without room for a mapping */
    for (size_t i = 0; i < MANY; i++) at[i] = (i * 7919) % (BYTES - EACH + 1);
    at[MANY - 1] = BYTES - EACH;
    found[MANY * EACH] = 77;
    if (!ki_gather_copy(&gather, at, MANY, EACH, found)) skip(); /* a sandbox that forbids the call */
    for (size_t i = 0; i < MANY * EACH; i++) {
        const unsigned char wanted = byte_at(at[i / EACH] + i % EACH);
        if (found[i] != wanted) fail_msg("piece %zu: %d, wanted %d", i / EACH, found[i], wanted);
    }
    assert_int_equal(found[MANY * EACH], 77);
    at[5] = BYTES - EACH + 1;
    assert_false(ki_gather_copy(&gather, at, MANY, EACH, found));
    assert_false(ki_gather_copy(&gather, at, 1, BYTES + 1, found));
    assert_true(ki_gather_copy(&gather, at, 0, EACH, found));
    end(&gather);
    assert_false(ki_gather_copy(&gather, at, 1, EACH, found));
}

/* Whoever reads such a mapping is killed; this must not be. */
static void test_a_file_that_shrinks(void **state) {
    (void)state;
    ki_gather gather;
    unsigned char found[2 * EACH];
    const char *path = begin(&gather);
    if (!gather.map) skip();
    assert_int_equal(truncate(path, 4096), 0);
    assert_false(ki_gather_copy(&gather, (const size_t[]){100, 20000}, 2, EACH, found));
    assert_int_equal(truncate(path, 4000), 0); /* the rest of its page is there, as zeros */
    assert_false(ki_gather_copy(&gather, (const size_t[]){4000 - EACH / 2}, 1, EACH, found));
    end(&gather);
}

/* More than the memory could hold, and nothing at all. */
static void test_what_is_not_mapped(void **state) {
    (void)state;
    ki_gather gather;
    const int null = open("/dev/null", O_RDONLY);
    ki_gather_init(&gather, null, (size_t)1 << 60);
    assert_null(gather.map);
    ki_gather_init(&gather, null, 0);
    assert_null(gather.map);
    ki_gather_init(&gather, -1, BYTES);
    assert_null(gather.map);
    close(null);
    ki_gather_release(&gather);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_a_file_that_shrinks),
        cmocka_unit_test(test_what_is_not_mapped),
    };
    return cmocka_run_group_tests_name("io/gather", tests, NULL, testing_tear_down);
}
