/* The schedule: which steps an objective has, in which order, and who assigns which gradient first. */
#include "objective/cases.h"
#include "objective/state.h"

static const char *const slot_names[KI_N_SLOTS] = {
    [KI_SLOT_MAP] = "map",       [KI_SLOT_POOLED] = "pooled",         [KI_SLOT_EMBEDDING] = "embedding",
    [KI_SLOT_LOGITS] = "logits", [KI_SLOT_WEIGHT] = "weight",         [KI_SLOT_UNIT] = "unit",
    [KI_SLOT_STOPPED] = "stop",  [KI_SLOT_UNIT_STOPPED] = "unit_stop"};

/* The steps as words; "+" for a chain rule that adds, "=" for one that assigns. */
static void write_steps(const ki_objective_schedule *s, char *text, size_t bytes) {
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < s->n_steps; i++) {
        const ki_schedule_step *step = &s->step[i];
        char word[64];
        switch (step->kind) {
        case KI_DO_NORMALIZE: snprintf(word, sizeof word, "normalize"); break;
        case KI_DO_CLEAR: snprintf(word, sizeof word, "clear:%s", slot_names[step->slot]); break;
        case KI_DO_LOGITS: snprintf(word, sizeof word, "logits"); break;
        case KI_DO_LOSS: snprintf(word, sizeof word, "loss:%s", slot_names[step->slot]); break;
        case KI_DO_NESTED:
            snprintf(word, sizeof word, "nested%zu:%s", step->term, slot_names[step->slot]);
            break;
        case KI_DO_TERM: snprintf(word, sizeof word, "term%zu", step->term); break;
        case KI_DO_LOGITS_BACKWARD: snprintf(word, sizeof word, "logits_back"); break;
        case KI_DO_NORMALIZE_BACKWARD:
            snprintf(word, sizeof word, "%s%s%s", slot_names[step->to], step->adds ? "+" : "=",
                     slot_names[step->slot]);
            break;
        }
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? " " : "", word);
    }
}

static void test_steps(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *wanted;
    } rows[] = {
        {"loss: {name: binomial}", "normalize loss:unit embedding=unit"},
        {"loss: {name: binomial, normalize: false}", "normalize loss:embedding"},
        {"loss: {name: binomial, normalize: false}\nregularizers: [{name: entropy}]",
         "normalize clear:unit loss:embedding term0 embedding+unit"},
        {"loss: {name: binomial}\nregularizers: [{name: norm_l2}]",
         "normalize clear:embedding loss:unit term0 embedding+unit"},
        {"loss: {name: binomial}\nnested: [2, 8]",
         "normalize clear:unit nested0:unit nested1:unit embedding=unit"},
        {"loss: {name: binomial, normalize: false}\nnested: [2, 8]",
         "normalize clear:embedding nested0:embedding nested1:embedding"},
        /* Nothing flows below the embedding layer: its gradient is 0, not undefined. */
        {"loss: {name: none}\nregularizers: [{name: energy_confusion}]",
         "normalize clear:embedding clear:stop term0"},
        {"loss: {name: none}\nregularizers: [{name: energy_confusion, normalize: true}]",
         "normalize clear:embedding clear:stop clear:unit_stop term0 stop+unit_stop"},
        {"loss: {name: none}\nregularizers: [{name: joint_similarity, layers: [pooled]}]",
         "clear:pooled term0"},
        {"loss: {name: none}\nregularizers: [{name: row_norm_penalty}]", "term0"},
        {"loss: {name: amsoftmax}\nregularizers: [{name: joint_similarity, layers: [logits]}]",
         "normalize clear:logits logits loss:unit term0 logits_back embedding=unit"},
        {"loss: {name: binomial}\nregularizers: [{name: horde}, {name: energy_confusion}, {name: horde}]",
         "normalize clear:stop loss:unit term0 term1 term2 embedding=unit"}};
    const ki_sizes sizes = {.n_classes = 5, .embedding = 8, .pooled = 6, .map = 6};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char found[512];
        made m = made_of(rows[i].recipe, &sizes);
        write_steps(&m.objective->schedule, found, sizeof found);
        if (strcmp(found, rows[i].wanted) != 0)
            fail_msg("%s:\n  %s\nwanted\n  %s", rows[i].recipe, found, rows[i].wanted);
        made_free(&m);
    }
}

/* Of several terms that read the map, the first assigns. */
static void test_who_assigns_the_map(void **state) {
    (void)state;
    const ki_sizes sizes = {.n_classes = 5, .embedding = 8, .pooled = 6, .map = 6};
    made m = made_of("loss: {name: binomial}\nregularizers: [{name: entropy}, {name: horde}, {name: horde}]",
                     &sizes);
    const ki_objective_schedule *s = &m.objective->schedule;
    assert_false(s->term[0].assigns_map);
    assert_true(s->term[1].assigns_map);
    assert_false(s->term[2].assigns_map);
    assert_true(s->term[0].reads_unit);
    assert_int_equal(s->term[0].to[KI_TAP_EMBEDDING], KI_SLOT_UNIT);
    assert_false(s->stops);
    made_free(&m);
}

static void test_weights_grow(void **state) {
    (void)state;
    assert_true(ki_weight_at(0.5, 0, 0) == 0.5);
    assert_true(ki_weight_at(0.5, 4, 0) == 0);
    assert_true(ki_weight_at(0.5, 4, 3) == 0.375);
    assert_true(ki_weight_at(0.5, 4, 4) == 0.5);
}

/* A step that fails is the last one. */
typedef struct count {
    int n, fails_at;
} count;

static kith_status next(void *user, kith_error *err) {
    count *c = user;
    return c->n++ == c->fails_at ? ki_fail(err, KITH_EIO, "step %d", c->n) : KITH_OK;
}
static kith_status next_slot(void *user, ki_slot slot, kith_error *err) {
    (void)slot;
    return next(user, err);
}
static kith_status next_term(void *user, size_t term, kith_error *err) {
    (void)term;
    return next(user, err);
}
static kith_status next_chain(void *user, ki_slot from, ki_slot to, bool adds, kith_error *err) {
    (void)from, (void)to, (void)adds;
    return next(user, err);
}

static void test_stops_at_a_failure(void **state) {
    (void)state;
    static const ki_actions actions = {.normalize = next,
                                       .clear = next_slot,
                                       .logits = next,
                                       .loss = next_slot,
                                       .term = next_term,
                                       .logits_backward = next,
                                       .normalize_backward = next_chain};
    const ki_sizes sizes = {.n_classes = 5, .embedding = 8, .pooled = 6, .map = 6};
    made m = made_of("loss: {name: binomial}\nregularizers: [{name: norm_l2}]", &sizes);
    const int n_steps = (int)m.objective->schedule.n_steps;
    for (int fails_at = 0; fails_at <= n_steps; fails_at++) {
        count c = {.fails_at = fails_at};
        const bool fails = fails_at < n_steps;
        assert_int_equal(ki_objective_schedule_run(&m.objective->schedule, &actions, &c, NULL),
                         fails ? KITH_EIO : KITH_OK);
        assert_int_equal(c.n, fails ? fails_at + 1 : n_steps);
    }
    made_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps), cmocka_unit_test(test_who_assigns_the_map),
        cmocka_unit_test(test_weights_grow), cmocka_unit_test(test_stops_at_a_failure)};
    return cmocka_run_group_tests_name("objective/schedule", tests, NULL, NULL);
}
