/* Who is served when: clients take turns. */
#include <stdio.h>

#include "serve/http/turns.h"
#include "support/testing.h"

static ki_turn make(int client, int64_t cost) {
    ki_turn turn = {.cost = cost};
    turn.client.byte[0] = (uint8_t)client;
    return turn;
}

static bool is_not_of(const ki_turn *turn, void *context) { return turn->client.byte[0] != *(int *)context; }

/* Serve all, and compare the clients. */
static void assert_order(ki_turns *t, const char *clients) {
    for (; *clients; clients++) {
        ki_turn *turn = ki_turns_next(t, NULL, NULL);
        if (!turn) fail_msg("nobody is left; wanted client %c", *clients);
        if (turn->client.byte[0] != *clients) fail_msg("client %c; wanted %s", turn->client.byte[0], clients);
        ki_turns_serve(t, turn);
    }
}

static void test_newcomers_do_not_wait_for_a_queue(void **state) {
    (void)state;
    ki_turns t = {0};
    ki_turn turn[8];
    static const char client[] = "aaaabbc";
    for (int i = 0; client[i]; i++) {
        turn[i] = make(client[i], 1);
        ki_turns_add(&t, &turn[i]);
    }
    assert_order(&t, "abcab");
    turn[7] = make('d', 1); /* after all others have begun */
    ki_turns_add(&t, &turn[7]);
    assert_order(&t, "daa");
    assert_null(ki_turns_next(&t, NULL, NULL));
}

/* Whose last one was just served does not count as new. */
static void test_what_was_served_counts(void **state) {
    (void)state;
    ki_turns t = {0};
    ki_turn first = make('a', 1), second = make('a', 1), other = make('b', 1);
    ki_turns_add(&t, &first);
    assert_order(&t, "a");
    ki_turns_add(&t, &second);
    ki_turns_add(&t, &other);
    assert_order(&t, "ba");
}

/* Thirty-two pictures in one query are as much as thirty-two queries. */
static void test_what_costs_more_waits_longer(void **state) {
    (void)state;
    ki_turns t = {0};
    ki_turn large[3], small[12];
    for (int i = 0; i < 3; i++) {
        large[i] = make('L', 4);
        ki_turns_add(&t, &large[i]);
    }
    for (int i = 0; i < 12; i++) {
        small[i] = make('s', 1);
        ki_turns_add(&t, &small[i]);
    }
    assert_order(&t, "LssssLssssLssss");
}

static void test_those_that_may_not(void **state) {
    (void)state;
    ki_turns t = {0};
    ki_turn a = make('a', 1), b = make('b', 1), c = make('a', 1);
    int barred = 'a';
    ki_turns_add(&t, &a);
    ki_turns_add(&t, &b);
    ki_turns_add(&t, &c);
    assert_ptr_equal(ki_turns_next(&t, is_not_of, &barred), &b);
    assert_ptr_equal(ki_turns_next(&t, NULL, NULL), &a);
    ki_turns_serve(&t, &a);
    ki_turns_put_back(&t, &a);
    assert_ptr_equal(ki_turns_next(&t, NULL, NULL), &a);
    ki_turns_remove(&t, &b);
    barred = 'b';
    assert_ptr_equal(ki_turns_next(&t, is_not_of, &barred), &a);
    ki_turns_serve(&t, &a);
    assert_ptr_equal(ki_turns_next(&t, NULL, NULL), &c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newcomers_do_not_wait_for_a_queue),
        cmocka_unit_test(test_what_was_served_counts),
        cmocka_unit_test(test_what_costs_more_waits_longer),
        cmocka_unit_test(test_those_that_may_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
