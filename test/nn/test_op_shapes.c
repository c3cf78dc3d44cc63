/* Shape rules: sizes, parameters, flops, and the line each mistake gives. */
#include <string.h>

#include "nn/graph.h"
#include "support/op_case.h"
#include "support/testing.h"

static kith_status infer(const char *line, ki_arena *arena, ki_node *ret_node, kith_error *err) {
    op_case c;
    op_case_parse(line, &c);
    *ret_node = (ki_node){.kind = c.kind, .name = "block.conv", .attr = c.attr, .n_src = c.n_src};
    return ki_op_at(c.kind)->infer(arena, ret_node, c.src, err);
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *line, *shape;
    } rows[] = {
        {"conv2d mb1 ic3 ih227 oc64 kh7 sh2 ph3", "[1, 64, 114, 114]"},
        {"conv2d mb1 ic3 ih224 iw225 oc64 kh7 sh2 ph3", "[1, 64, 112, 113]"},
        {"conv2d mb1 ic3 ih5 oc1 kh5", "[1, 1, 1, 1]"},
        {"pool mb1 ic64 ih114 max k3 s2", "[1, 64, 56, 56]"},
        {"pool mb1 ic64 ih114 max k3 s2 ceil", "[1, 64, 57, 57]"},
        {"pool mb1 ic64 ih113 max k3 s2 ceil", "[1, 64, 56, 56]"},
        {"pool mb1 ic64 ih112 max k3 s2 p1", "[1, 64, 56, 56]"},
        /* By ceil alone the third window would begin in the right padding. */
        {"pool mb1 ic1 ih5 max k2 s3 p1 ceil", "[1, 1, 2, 2]"},
        {"pool mb1 ic1 ih6 max k2 s3 p1 ceil", "[1, 1, 3, 3]"},
        {"pool mb1 ic1 ih4 max k1 s3 ceil", "[1, 1, 2, 2]"},
        {"concat mb1 ih7 ca384 cb384 cc128 cd128", "[1, 1024, 7, 7]"},
        {"add mb1 ic4 ih2 iw3", "[1, 4, 2, 3]"},
        {"global_pool mb1 ic1024 ih7 avg", "[1, 1024]"},
        {"linear mb1 ic1024 oc512 bias", "[1, 512]"},
        {"dropout mb1 ic4 ih2 p0.5", "[1, 4, 2, 2]"},
        {"attend mb1 ic480 ih14 heads8", "[8, 480, 14, 14]"},
        {"unfold mb1 ic1024 ih7 heads8", "[1, 8192, 7, 7]"},
        {"unfold mb1 ic64 heads8", "[1, 512]"},
        /* An image of several rows stays one. */
        {"conv2d mb8 ic3 ih5 oc4 kh3", "[8, 4, 3, 3]"},
        {"pool mb8 ic3 ih6 max k2 s2", "[8, 3, 3, 3]"},
        {"concat mb8 ih7 ca3 cb4", "[8, 7, 7, 7]"},
        {"global_pool mb8 ic3 ih7 avg", "[8, 3]"},
        {"linear mb8 ic3 oc4", "[8, 4]"},
        /* Tokens. */
        {"linear mb2 nt197 ic384 oc1536", "[2, 197, 1536]"},
        {"conv2d mb1 ic96 ih56 oc96 kh7 ph3 groups96", "[1, 96, 56, 56]"},
        {"glu mb2 nt5 ic12", "[2, 5, 6]"},
        {"tokens mb1 ic384 ih14", "[1, 196, 384]"},
        {"tokens mb1 ic384 ih16 class classpos registers4 gh37", "[1, 261, 384]"},
        {"grid mb1 ic384 ih14 iw13 skip5", "[1, 384, 14, 13]"},
        {"token mb2 nt5 ic8 at4", "[2, 8]"},
        {"probe mb2 nt5 ic8 n3", "[2, 3, 8]"},
        {"attention mb2 nt197 ic384 heads6", "[2, 197, 384]"},
        {"attention mb2 nt196 ns1 ic384 heads6", "[2, 1, 384]"},
        {"attention mb1 ic96 heads3 window7 h8 shift3", "[64, 49, 96]"},
        {"windows mb1 ic96 ih56 side7", "[64, 49, 96]"},
        {"windows mb1 ic96 ih15 iw8 side7 shift3", "[6, 49, 96]"},
        {"windows mb1 ic96 ih15 iw8 side7 shift3 back", "[1, 120, 96]"},
        {"merge mb1 ic96 ih56", "[1, 784, 384]"},
        {"merge mb1 ic96 ih5 iw8", "[1, 12, 384]"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_arena arena = {0};
        ki_node node;
        kith_error err;
        char text[96];
        assert_ok(infer(rows[i].line, &arena, &node, &err), &err);
        ki_shape_text(&node.shape, text, sizeof text);
        if (strcmp(text, rows[i].shape) != 0)
            fail_msg("%s gives %s, wanted %s", rows[i].line, text, rows[i].shape);
        ki_arena_release(&arena);
    }
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *line;
        kith_status status;
        const char *message;
    } rows[] = {
        {"conv2d mb1 ic3 ih5 oc4 kh7", KITH_ESHAPE,
         "kernel 7x7 does not fit a source of 5x5 with padding 0x0"},
        {"conv2d mb1 ic3 ih5 oc0 kh3", KITH_EINVAL,
         "the number of output channels is 0, wanted 1 to 1048576"},
        {"conv2d mb1 ic3 ih5 oc4 kh3 sh0", KITH_EINVAL, "the stride down is 0, wanted 1 to 1048576"},
        {"conv2d mb1 ic1048576 ih3 oc1048576 kh3", KITH_ESHAPE,
         "weight of [1048576, 1048576, 3, 3] has too many elements, at most 2^40 can be planned"},
        {"batch_norm mb1 ic3 ih5 eps0", KITH_EINVAL, "eps is 0, wanted above 0"},
        {"batch_norm mb1 ic3 ih5 momentum2", KITH_EINVAL, "momentum is 2, wanted 0 to 1"},
        {"pool mb1 ic3 ih5 max k7 s1", KITH_ESHAPE, "window 7x7 does not fit a source of 5x5 with padding 0"},
        {"pool mb1 ic3 ih5 max k2 s1 p2", KITH_EINVAL, "padding 2 is not smaller than the window 2"},
        {"pool mb1 ic3 ih5 max k2 s0", KITH_EINVAL, "the stride is 0, wanted 1 to 1048576"},
        {"lrn mb1 ic3 ih5 size4", KITH_EINVAL, "size is 4, wanted an odd number of channels"},
        {"lrn mb1 ic3 ih5 k0", KITH_EINVAL, "k is 0, wanted above 0"},
        {"linear mb1 ic3 ih5 oc4", KITH_ESHAPE,
         "the source is [1, 3, 5, 5], wanted vectors [mb, c] or tokens [mb, t, c]"},
        {"linear mb1 ic3 oc0", KITH_EINVAL, "the number of outputs is 0, wanted 1 to 1048576"},
        {"dropout mb1 ic3 p1", KITH_EINVAL, "p is 1, wanted at least 0 and below 1"},
        {"layer_norm mb1 ic3 eps0", KITH_EINVAL, "eps is 0, wanted above 0"},
        {"l2_norm mb1 ic3 eps0", KITH_EINVAL, "eps is 0, wanted above 0"},
        {"l2_norm mb1 ic3 ih2", KITH_ESHAPE, "the source is [1, 3, 2, 2], wanted vectors [mb, c]"},
        {"attend mb1 ic3 ih2 heads0", KITH_ESHAPE,
         "the logits are [1, 0, 2, 2], wanted as many pixels as the map [1, 3, 2, 2] and a multiple of its "
         "channels"},
        {"conv2d mb1 ic6 ih5 oc4 kh3 groups3", KITH_ESHAPE,
         "3 groups of 6 to 4 channels; wanted a divisor of both"},
        {"glu mb1 nt2 ic3", KITH_ESHAPE, "the tokens have 3 numbers, wanted an even number"},
        {"glu mb1 ic4", KITH_ESHAPE, "the source is [1, 4], wanted tokens [mb, t, c]"},
        {"drop_path mb1 ic3 p1", KITH_EINVAL, "p is 1, wanted at least 0 and below 1"},
        {"grn mb1 ic3 ih2 eps0", KITH_EINVAL, "eps is 0, wanted above 0"},
        {"tokens mb1 ic3 ih2 classpos gh2", KITH_EINVAL,
         "a position for the class token; wanted a class token and positions"},
        {"tokens mb1 ic3 ih2 gh2 gw0", KITH_EINVAL,
         "the grid of positions is 2x0; wanted two sides, or 0x0 for none"},
        {"tokens mb1 ic3 ih2 gh2 offset1", KITH_EINVAL, "offset is 1, wanted at least 0 and below 1"},
        {"token mb1 nt5 ic3 at5", KITH_EINVAL, "token 5, wanted one of 0 to 4"},
        {"probe mb1 nt5 ic3 n0", KITH_EINVAL, "the number of learned tokens is 0, wanted 1 to 1048576"},
        {"attention mb1 nt5 ic8 heads3", KITH_ESHAPE, "8 numbers for 3 heads; wanted a multiple"},
        {"attention mb1 ic8 heads2 window3 shift3", KITH_EINVAL, "shift is 3, wanted 0 to 2"},
        {"windows mb1 ic8 ih5 side3 shift3", KITH_EINVAL, "shift is 3, wanted 0 to 2"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_arena arena = {0};
        ki_node node;
        kith_error err = {0};
        const kith_status status = infer(rows[i].line, &arena, &node, &err);
        if (status != rows[i].status || strcmp(err.message, rows[i].message) != 0)
            fail_msg("%s gives %s '%s', wanted %s '%s'", rows[i].line, kith_status_name(status), err.message,
                     kith_status_name(rows[i].status), rows[i].message);
        ki_arena_release(&arena);
    }
}

/* Sources of different shapes, which a case line cannot say. */
static void test_sources_that_differ(void **state) {
    (void)state;
    ki_arena arena = {0};
    kith_error err = {0};
    const ki_shape src[] = {KI_SHAPE4(1, 8, 7, 7), KI_SHAPE4(1, 8, 7, 6)};
    ki_node node = {.kind = KI_OP_CONCAT, .name = "cat", .n_src = 2};
    assert_int_equal(ki_op_at(KI_OP_CONCAT)->infer(&arena, &node, src, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "source 1 is 7x6, wanted 7x7 as source 0");
    assert_int_equal(ki_op_at(KI_OP_ADD)->infer(&arena, &node, src, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "source 1 is [1, 8, 7, 6], wanted [1, 8, 7, 7] as source 0");
    assert_int_equal(ki_op_at(KI_OP_ATTEND)->infer(&arena, &node, src, &err), KITH_ESHAPE);
    assert_string_equal(err.message,
                        "the logits are [1, 8, 7, 6], wanted as many pixels as the map [1, 8, 7, 7] "
                        "and a multiple of its channels");
    const ki_shape folded[] = {KI_SHAPE4(1, 8, 7, 7), KI_SHAPE4(3, 8, 7, 7)};
    assert_int_equal(ki_op_at(KI_OP_CONCAT)->infer(&arena, &node, folded, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "source 1 has 3 rows for an image, wanted 1 as source 0");
    assert_int_equal(ki_op_at(KI_OP_GATE)->infer(&arena, &node, src, &err), KITH_ESHAPE);
    assert_string_equal(err.message,
                        "the factors are [1, 8, 7, 6], wanted one for each channel of the map [1, 8, 7, 7]");
    const ki_shape tokens[] = {KI_SHAPE3(1, 10, 8), KI_SHAPE3(1, 10, 8)};
    node.attr.grid = (ki_grid_attr){.skip = 2, .h = 3, .w = 3};
    assert_int_equal(ki_op_at(KI_OP_GRID)->infer(&arena, &node, tokens, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "the source is [1, 10, 8], wanted 2 + 3x3 tokens");
    node.attr.merge = (ki_merge_attr){.h = 3, .w = 3};
    assert_int_equal(ki_op_at(KI_OP_MERGE)->infer(&arena, &node, tokens, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "the source is [1, 10, 8], wanted 3x3 tokens");
    node.attr.windows = (ki_windows_attr){.side = 2, .h = 3, .w = 3};
    assert_int_equal(ki_op_at(KI_OP_WINDOWS)->infer(&arena, &node, tokens, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "the source is [1, 10, 8], wanted [1, 9, 8]");
    node.attr.attention = (ki_attention_attr){.heads = 2};
    assert_int_equal(ki_op_at(KI_OP_ATTENTION)->infer(&arena, &node, tokens, &err), KITH_ESHAPE);
    assert_string_equal(
        err.message,
        "source 1 is [1, 10, 8], wanted k and v side by side for the rows of q, which is [1, 10, 8]");
    node.n_src = 1;
    assert_int_equal(ki_op_at(KI_OP_ATTENTION)->infer(&arena, &node, tokens, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "the source is [1, 10, 8], wanted q, k and v side by side");
    const ki_shape windows = KI_SHAPE3(3, 4, 24);
    node.attr.attention = (ki_attention_attr){.heads = 2, .window = 2, .h = 2, .w = 2};
    assert_int_equal(ki_op_at(KI_OP_ATTENTION)->infer(&arena, &node, &windows, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "3 rows of 4 tokens; wanted 2x2 windows of 2x2");
    const ki_shape vector = KI_SHAPE2(1, 8);
    node.attr.pool = (ki_pool_attr){.k = 2, .s = 2};
    assert_int_equal(ki_op_at(KI_OP_POOL)->infer(&arena, &node, &vector, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "the source is [1, 8], wanted a map [mb, c, h, w]");
    ki_arena_release(&arena);
}

static void test_parameters(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_node node;
    kith_error err;
    assert_ok(infer("conv2d mb1 ic3 ih8 oc4 kh3 kw5 ph1 pw2 bias", &arena, &node, &err), &err);
    assert_int_equal(node.n_params, 2);
    assert_string_equal(node.param[0].name, "block.conv.weight");
    assert_int_equal(node.param[0].slot, KI_W);
    assert_int_equal(node.param[0].fan_in, 3 * 3 * 5);
    assert_int_equal(ki_shape_count(&node.param[0].shape), 4 * 3 * 3 * 5);
    assert_string_equal(node.param[1].name, "block.conv.bias");
    assert_true(node.param[1].trained && node.param[1].fan_in == 0 && node.param[1].fill == 0);
    assert_true(ki_op_at(KI_OP_CONV2D)->flops(&node, &KI_SHAPE4(1, 3, 8, 8)) == 2.0 * 3 * 15 * 4 * 64);

    assert_ok(infer("batch_norm mb1 ic3 ih8", &arena, &node, &err), &err);
    static const struct {
        const char *name;
        int slot;
        bool trained;
        double fill;
    } rows[] = {
        {"block.conv.weight", KI_W, true, 1},
        {"block.conv.bias", KI_B, true, 0},
        {"block.conv.running_mean", KI_MEAN, false, 0},
        {"block.conv.running_var", KI_VAR, false, 1},
    };
    assert_int_equal(node.n_params, N_ROWS(rows));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_string_equal(node.param[i].name, rows[i].name);
        assert_int_equal(node.param[i].slot, rows[i].slot);
        assert_int_equal(node.param[i].trained, rows[i].trained);
        assert_true(node.param[i].fill == rows[i].fill);
    }
    assert_ok(infer("linear mb1 ic30 oc4", &arena, &node, &err), &err);
    assert_int_equal(node.n_params, 1);
    assert_int_equal(node.param[0].fan_in, 30);
    assert_true(ki_op_at(KI_OP_LINEAR)->flops(&node, &KI_SHAPE2(1, 30)) == 240);
    assert_ok(infer("linear mb3 ic30 oc4", &arena, &node, &err), &err);
    assert_true(ki_op_at(KI_OP_LINEAR)->flops(&node, &KI_SHAPE2(3, 30)) == 720);
    ki_arena_release(&arena);
}

static void test_every_op_has_rules(void **state) {
    (void)state;
    for (int i = 0; i < KI_N_OPS; i++) {
        const ki_op *op = ki_op_at((ki_op_kind)i);
        if (!op || !op->infer) fail_msg("%s has no rules", ki_op_name((ki_op_kind)i));
    }
    assert_null(ki_op_at(KI_N_OPS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_sources_that_differ),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_every_op_has_rules),
    };
    return cmocka_run_group_tests_name("nn/op shapes", tests, NULL, NULL);
}
