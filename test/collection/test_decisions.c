/* Decisions about names: what they make of items, undoing them, who wins, and that they stay through syncs, renewals and crashes. */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "collection/decisions.h"
#include "collection/made_collection.h"

/* Photos of 3 classes in folders a, b and loose: the last have no label. */
static int set_up(void **state) {
    (void)state;
    made_shell("rm -rf *");
    made_photos("made", 3, 4);
    made_shell(
        "mkdir photos && i=0 && for f in made/*/*.png; do i=$((i+1)); case $i in [1-4]) d=photos/a;; [5-8]) "
        "d=photos/b;; *) d=photos;; esac; mkdir -p $d; cp $f $d/$(printf %02d $i).png; done");
    made_model("m.safetensors", 9);
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(c);
    return 0;
}

static kith_status decide(kith_collection *c, kith_name_act act, const char *who, const int64_t *ids,
                          int64_t n, const char *name, kith_name_result *ret, kith_error *err) {
    KITH_OPTIONS(kith_name_request, o);
    o.act = act;
    o.who = who;
    o.ids = ids;
    o.n_ids = n;
    o.name = name;
    return kith_collection_name(c, &o, ret, err);
}

static int64_t must(kith_collection *c, kith_name_act act, const char *who, int64_t id, const char *name) {
    kith_error err;
    kith_name_result r;
    assert_ok(decide(c, act, who, &id, 1, name, &r, &err), &err);
    assert_true(r.number > 0);
    return r.number;
}

static kith_status undo(kith_collection *c, const char *who, int64_t number, kith_name_result *ret,
                        kith_error *err) {
    KITH_OPTIONS(kith_name_request, o);
    o.act = KITH_NAME_UNDO;
    o.who = who;
    o.number = number;
    return kith_collection_name(c, &o, ret, err);
}

/* The label of an item and who decided it, as "label/by/kind". */
static const char *state_of(kith_collection *c, int64_t id) {
    static char text[4][256];
    static int at;
    kith_error err;
    kith_index_item item;
    at = (at + 1) % 4;
    kith_index *index = kith_collection_index(c);
    assert_ok(kith_index_item_get(index, id, &item, &err), &err);
    const char *by = "-", *kind = "-";
    kith_column column;
    for (int64_t i = 0; item.values && (column = kith_index_column(index, i)).name; i++) {
        if (item.values[i].type != KITH_VALUE_TEXT) continue;
        if (strcmp(column.name, "named_by") == 0) by = item.values[i].text;
        if (strcmp(column.name, "named_kind") == 0) kind = item.values[i].text;
    }
    snprintf(text[at], sizeof text[at], "%s/%s/%s", item.label ? item.label : "-", by, kind);
    kith_index_item_release(&item);
    return text[at];
}

/* The item whose path ends so. */
static int64_t item_at(kith_collection *c, const char *end) {
    kith_error err;
    int64_t *ids = NULL, n = 0, found = -1;
    assert_ok(kith_index_ids(kith_collection_index(c), NULL, &ids, &n, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        kith_index_item item;
        assert_ok(kith_index_item_get(kith_collection_index(c), ids[i], &item, &err), &err);
        const size_t n_path = strlen(item.path), n_end = strlen(end);
        if (n_path >= n_end && strcmp(item.path + n_path - n_end, end) == 0) found = ids[i];
        kith_index_item_release(&item);
    }
    kith_ids_free(ids);
    return found;
}

static kith_names names_of(kith_collection *c) {
    kith_error err;
    kith_names names;
    assert_ok(kith_collection_names(c, &names, &err), &err);
    return names;
}

static void test_given_and_undone(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t loose = item_at(c, "/09.png"), in_a = item_at(c, "/a/01.png");
    assert_string_equal(state_of(c, loose), "-/-/-");
    assert_int_equal(must(c, KITH_NAME_GIVE, "anna", loose, "Otto"), 1);
    assert_string_equal(state_of(c, loose), "Otto/anna/person");
    must(c, KITH_NAME_GIVE, "bert", in_a, "Otto");
    must(c, KITH_NAME_TAKE, "bert", loose, NULL);
    assert_string_equal(state_of(c, loose), "-/bert/person");
    /* The first decision is not what is there: its undo is refused and says so. */
    assert_int_equal(undo(c, "anna", 1, &r, &err), KITH_EINVAL);
    assert_int_equal(r.conflict, loose);
    /* The last of one's own. */
    assert_ok(undo(c, "bert", 0, &r, &err), &err);
    assert_string_equal(state_of(c, loose), "Otto/anna/person");
    assert_ok(undo(c, "bert", 0, &r, &err), &err);
    assert_string_equal(state_of(c, in_a), "a/-/-");
    assert_int_equal(undo(c, "bert", 0, &r, &err), KITH_ENOTFOUND);
    /* Now it may be undone, once; and the undo, too. */
    assert_ok(undo(c, "anna", 1, &r, &err), &err);
    const int64_t undone = r.number;
    assert_string_equal(state_of(c, loose), "-/-/-");
    assert_int_equal(undo(c, "anna", 1, &r, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "undone already"));
    assert_ok(undo(c, "anna", undone, &r, &err), &err);
    assert_string_equal(state_of(c, loose), "Otto/anna/person");
    assert_int_equal(undo(c, "anna", 99, &r, &err), KITH_ENOTFOUND);
    kith_names names = names_of(c);
    assert_int_equal(names.n_decisions, 7);
    assert_int_equal(names.decisions[6].number, 1);
    assert_int_equal(names.decisions[6].undone_by, 0);
    assert_string_equal(names.decisions[6].after[0], "Otto");
    assert_int_equal(names.decisions[5].undone_by, 5);
    kith_names_release(&names);
    kith_collection_free(c);
}

static void test_who_is_first(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t ids[] = {item_at(c, "/09.png"), item_at(c, "/10.png")};
    const char *const was[] = {NULL, NULL};
    KITH_OPTIONS(kith_name_request, o);
    o.who = "anna";
    o.ids = ids;
    o.n_ids = 2;
    o.was = was;
    o.name = "Otto";
    must(c, KITH_NAME_GIVE, "bert", ids[1], "Emil");
    assert_int_equal(kith_collection_name(c, &o, &r, &err), KITH_EINVAL);
    assert_int_equal(r.conflict, ids[1]);
    assert_int_equal(r.number, 0);
    assert_non_null(strstr(err.message, "'Emil'"));
    assert_string_equal(state_of(c, ids[0]), "-/-/-");
    assert_string_equal(state_of(c, ids[1]), "Emil/bert/person");
    kith_collection_free(c);
}

static void test_merge_and_rename(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    KITH_OPTIONS(kith_name_request, o);
    o.act = KITH_NAME_RENAME;
    o.who = "anna";
    o.from = "a";
    o.name = "b";
    assert_int_equal(kith_collection_name(c, &o, &r, &err), KITH_EINVAL);
    assert_non_null(strstr(err.hint, "merge"));
    o.act = KITH_NAME_MERGE;
    o.name = "nobody";
    assert_int_equal(kith_collection_name(c, &o, &r, &err), KITH_ENOTFOUND);
    o.name = "b";
    assert_ok(kith_collection_name(c, &o, &r, &err), &err);
    assert_int_equal(r.n_items, 4);
    kith_names names = names_of(c);
    assert_int_equal(names.n_names, 1);
    assert_int_equal(names.counts[0], 8);
    assert_int_equal(names.n_decided, 4);
    kith_names_release(&names);
    o.act = KITH_NAME_RENAME;
    o.from = "b";
    o.name = "it's \"b\"";
    assert_ok(kith_collection_name(c, &o, &r, &err), &err);
    assert_int_equal(r.n_items, 8);
    /* Back through both. */
    assert_ok(undo(c, "anna", 0, &r, &err), &err);
    assert_ok(undo(c, "anna", 0, &r, &err), &err);
    assert_string_equal(state_of(c, item_at(c, "/a/01.png")), "a/-/-");
    assert_string_equal(state_of(c, item_at(c, "/b/05.png")), "b/-/-");
    kith_collection_free(c);
}

/* Checked proposals give the rate of wrong ones, with Wilson's interval. */
static void test_proposals(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    kith_names names = names_of(c);
    assert_true(isnan(names.rate) && isnan(names.high));
    kith_names_release(&names);
    const int64_t ids[] = {item_at(c, "/09.png"), item_at(c, "/10.png"), item_at(c, "/11.png")};
    assert_ok(decide(c, KITH_NAME_CONFIRM, "anna", ids, 3, "a", &r, &err), &err);
    must(c, KITH_NAME_REJECT, "anna", item_at(c, "/12.png"), "a");
    names = names_of(c);
    assert_int_equal(names.n_checked, 4);
    assert_int_equal(names.n_wrong, 1);
    /* By hand: p 0.25, n 4, z 1.95996: (0.25 + 0.4802 ± 1.95996 sqrt(0.0469 + 0.06)) / 1.9604. */
    assert_true(fabs(names.rate - 0.25) < 1e-12);
    assert_true(fabs(names.low - 0.0456) < 2e-4 && fabs(names.high - 0.6994) < 2e-4);
    kith_names_release(&names);
    assert_ok(undo(c, "anna", 0, &r, &err), &err);
    names = names_of(c);
    assert_int_equal(names.n_wrong, 0);
    assert_int_equal(names.n_checked, 3);
    kith_names_release(&names);
    assert_int_equal(decide(c, KITH_NAME_APART, "anna", ids, 3, NULL, &r, &err), KITH_EINVAL);
    assert_ok(decide(c, KITH_NAME_APART, "anna", ids, 2, NULL, &r, &err), &err);
    kith_collection_free(c);
}

static void test_refused(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    char longest[500];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t id = 0, twice[] = {1, 1};
    static const struct {
        const char *who, *name;
    } bad[] = {{NULL, "x"},     {"", "x"},        {"a\nb", "x"},   {"anna", NULL},
               {"anna", "   "}, {"anna", "a\tb"}, {"anna", "\xff"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(decide(c, KITH_NAME_GIVE, bad[i].who, &id, 1, bad[i].name, &r, &err), KITH_EINVAL);
    assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", &id, 1, longest, &r, &err), KITH_EINVAL);
    assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", twice, 2, "x", &r, &err), KITH_EINVAL);
    assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", &id, 0, "x", &r, &err), KITH_EINVAL);
    const int64_t none = 4711;
    assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", &none, 1, "x", &r, &err), KITH_ENOTFOUND);
    assert_int_equal(decide(c, (kith_name_act)77, "anna", &id, 1, "x", &r, &err), KITH_EINVAL);
    assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", NULL, 1, "x", &r, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "ids is NULL"));
    assert_int_equal(undo(c, "anna", -5, &r, &err), KITH_EINVAL);
    kith_names names = names_of(c);
    assert_int_equal(names.n_decisions, 0);
    kith_names_release(&names);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_READ);
    assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", &id, 1, "x", &r, &err), KITH_EINVAL);
    kith_collection_free(c);
}

/* A name that was decided stays when its photo is moved, touched or changed; the others follow their folders. */
static void test_a_sync_keeps_names(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t moved = item_at(c, "/a/01.png"), touched = item_at(c, "/a/02.png"),
                  changed = item_at(c, "/a/03.png");
    must(c, KITH_NAME_GIVE, "anna", moved, "Otto");
    must(c, KITH_NAME_GIVE, "anna", touched, "Emil");
    must(c, KITH_NAME_GIVE, "anna", changed, "Ida");
    must(c, KITH_NAME_REJECT, "anna", changed, "Emil");
    made_shell(
        "mv photos/a/01.png photos/b/01.png; touch -d 2001-01-01 photos/a/02.png; cp "
        "made/glyph00002/00001.png "
        "photos/a/03.png; printf x >> photos/a/03.png; mv photos/a/04.png photos/b/04.png");
    kith_sync_report report = made_sync(c, NULL);
    assert_int_equal(report.n_moved, 2);
    assert_int_equal(report.n_touched, 1);
    assert_int_equal(report.n_changed, 1);
    assert_int_equal(report.n_names_kept, 2);
    kith_sync_report_release(&report);
    assert_string_equal(state_of(c, moved), "Otto/anna/person");
    assert_string_equal(state_of(c, touched), "Emil/anna/person");
    const int64_t now = item_at(c, "/a/03.png");
    assert_true(now != changed);
    assert_string_equal(state_of(c, now), "Ida/anna/person");
    assert_string_equal(state_of(c, item_at(c, "/b/04.png")), "b/-/-");
    /* And its decisions are those of the new item. */
    assert_ok(undo(c, "anna", 4, &r, &err), &err);
    assert_ok(undo(c, "anna", 3, &r, &err), &err);
    assert_string_equal(state_of(c, now), "a/-/-");
    kith_collection_free(c);
}

/* A data set of another layout may relabel what nobody decided. */
static void test_folders_do_not_overrule(void **state) {
    (void)state;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t id = item_at(c, "/a/01.png");
    must(c, KITH_NAME_GIVE, "anna", id, "Otto");
    for (int i = 0; i < 2; i++) {
        kith_sync_report report = made_sync(c, i == 0 ? "photos" : NULL);
        assert_int_equal(report.n_relabelled, 0);
        kith_sync_report_release(&report);
        assert_string_equal(state_of(c, id), "Otto/anna/person");
    }
    kith_collection_free(c);
}

static void test_renewed(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    must(c, KITH_NAME_GIVE, "anna", item_at(c, "/09.png"), "Otto");
    must(c, KITH_NAME_TAKE, "bert", item_at(c, "/a/01.png"), NULL);
    kith_collection_free(c);
    made_model("m2.safetensors", 10);
    KITH_OPTIONS(kith_model_options, model);
    model.weights = made_path("m2.safetensors");
    assert_ok(kith_collection_renew(made_path("p.kith"), &model, NULL, NULL, &err), &err);
    c = made_open("p.kith", KITH_INDEX_WRITE);
    assert_string_equal(state_of(c, item_at(c, "/09.png")), "Otto/anna/person");
    assert_string_equal(state_of(c, item_at(c, "/a/01.png")), "-/bert/person");
    assert_string_equal(state_of(c, item_at(c, "/a/02.png")), "a/-/-");
    assert_ok(undo(c, "bert", 0, &r, &err), &err);
    assert_string_equal(state_of(c, item_at(c, "/a/01.png")), "a/-/-");
    kith_collection_free(c);
}

/* Memory ends at any moment: the decision is there as a whole or not at all, and the next one works. */
static void test_memory(void **state) {
    (void)state;
    made_shell("cp -r p.kith saved.kith");
    for (int64_t n = 0;; n = n + 1 + n / 8) {
        kith_error err = {0};
        kith_name_result r;
        made_shell("rm -rf c.kith && cp -r saved.kith c.kith");
        kith_collection *c = made_open("c.kith", KITH_INDEX_WRITE);
        const int64_t ids[] = {item_at(c, "/09.png"), item_at(c, "/10.png")};
        ki_alloc_fail_after(n);
        const kith_status status = decide(c, KITH_NAME_GIVE, "anna", ids, 2, "Otto", &r, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("allocation %lld: %s", (long long)n, err.message);
        /* Memory may end behind the commit, when it is opened again. */
        const bool is_made = strcmp(state_of(c, ids[0]), "Otto/anna/person") == 0;
        assert_true(is_made || status != KITH_OK);
        assert_string_equal(state_of(c, ids[0]), is_made ? "Otto/anna/person" : "-/-/-");
        assert_string_equal(state_of(c, ids[1]), is_made ? "Otto/anna/person" : "-/-/-");
        kith_names names = names_of(c);
        assert_int_equal(names.n_decisions, is_made);
        kith_names_release(&names);
        must(c, KITH_NAME_GIVE, "bert", ids[1], "Emil");
        assert_string_equal(state_of(c, ids[1]), "Emil/bert/person");
        kith_collection_free(c);
        if (!has_failed) {
            assert_true(n > 20);
            return;
        }
    }
}

/* A process that is killed at any moment loses nothing that it was answered. */
static void test_killed(void **state) {
    (void)state;
    for (int round = 0; round < 5; round++) {
        int answered[2];
        assert_int_equal(pipe(answered), 0);
        const pid_t child = fork();
        if (child == 0) {
            kith_error err;
            kith_name_result r;
            kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
            const int64_t id = item_at(c, "/09.png");
            for (int i = 0;; i++) {
                char name[32];
                snprintf(name, sizeof name, "name %d.%d", round, i);
                if (decide(c, KITH_NAME_GIVE, "anna", &id, 1, name, &r, &err) != KITH_OK) _exit(1);
                if (write(answered[1], name, sizeof name) != sizeof name) _exit(1);
            }
        }
        char last[32] = "", next[32];
        close(answered[1]);
        for (int i = 0; i < 3 + 4 * round; i++) {
            assert_int_equal(read(answered[0], next, sizeof next), sizeof next);
            memcpy(last, next, sizeof last);
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(answered[0], next, sizeof next) == sizeof next) memcpy(last, next, sizeof last);
        close(answered[0]);
        kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
        kith_names names = names_of(c);
        /* The last answered one, or the one behind it, which was committed and not answered any more. */
        const char *now = names.decisions[0].name, *before = names.decisions[1].name;
        if (strcmp(now, last) != 0 && strcmp(before, last) != 0)
            fail_msg("answered '%s', found '%s' behind '%s'", last, now, before);
        assert_true(strncmp(state_of(c, item_at(c, "/09.png")), now, strlen(now)) == 0);
        kith_names_release(&names);
        kith_collection_free(c);
    }
}

/* A note of so many decisions as are kept, made of copies of the one there is. */
static void multiply(kith_collection *c) {
    kith_error err;
    kith_index *index = kith_collection_index(c);
    const char *line = strstr(strchr(kith_index_note(index, "decisions"), '\n'), ", \"at\"");
    const size_t n_line = strcspn(line, "\n");
    char *text = malloc((n_line + 32) * KITH_NAMES_KEPT + 128);
    int at = sprintf(text, "{\"made\":%d,\"checked\":%d,\"wrong\":0}\n", KITH_NAMES_KEPT, KITH_NAMES_KEPT);
    for (int i = 0; i < KITH_NAMES_KEPT; i++)
        at += sprintf(text + at, "{\"n\":%d%.*s\n", i + 1, (int)n_line, line);
    assert_ok(kith_index_note_set(index, "decisions", text, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    free(text);
}

/* Very many names are turned down, in an order that suits nobody: no list is made anew for each. */
static void test_many_rejected(void **state) {
    (void)state;
    enum { MANY = 20000 };
    kith_error err;
    ki_decisions noted = {0};
    ki_alloc_fail_after(200);
    for (int64_t i = 0; i < MANY; i++) {
        const int64_t id = i * 7919 % MANY;
        assert_ok(ki_decisions_reject(&noted, id, "x", false, &err), &err);
        assert_ok(ki_decisions_tell_apart(&noted, id + 1, id, false, &err), &err);
    }
    ki_alloc_fail_after(-1);
    assert_int_equal(noted.n_rejected, MANY);
    for (int64_t i = 1; i < MANY; i++)
        assert_true(noted.rejected[i].id == i && noted.apart[i].a == i && noted.apart[i].b == i + 1);
    assert_ok(ki_decisions_reject(&noted, 5, "x", true, &err), &err);
    assert_ok(ki_decisions_tell_apart(&noted, 5, 6, true, &err), &err);
    assert_true(!ki_decisions_is_rejected(&noted, 5, "x") && ki_decisions_is_rejected(&noted, 6, "x"));
    assert_true(!ki_decisions_are_apart(&noted, 6, 5) && ki_decisions_are_apart(&noted, 7, 6));
    assert_int_equal(noted.n_apart, MANY - 1);
    ki_decisions_drop(&noted);
}

/* A thousand decisions are remembered, and the counts of all. */
static void test_many(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t id = item_at(c, "/09.png");
    must(c, KITH_NAME_CONFIRM, "anna", id, "a");
    multiply(c);
    for (int i = 0; i < 5; i++) must(c, KITH_NAME_CONFIRM, "anna", id, i % 2 ? "a" : "b");
    kith_names names = names_of(c);
    assert_int_equal(names.n_decisions, KITH_NAMES_KEPT);
    assert_int_equal(names.decisions[0].number, KITH_NAMES_KEPT + 5);
    assert_int_equal(names.n_checked, KITH_NAMES_KEPT + 5);
    kith_names_release(&names);
    assert_int_equal(undo(c, "anna", 3, &r, &err), KITH_ENOTFOUND);
    kith_collection_free(c);
}

/* Undoing an undo of an undo …: each turn is the other one's. */
static void test_there_and_back(void **state) {
    (void)state;
    kith_error err;
    kith_name_result r;
    kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
    const int64_t id = item_at(c, "/09.png");
    int64_t number = must(c, KITH_NAME_GIVE, "anna", id, "Otto");
    for (int i = 0; i < 20; i++) {
        assert_ok(undo(c, "anna", number, &r, &err), &err);
        number = r.number;
        assert_string_equal(state_of(c, id), i % 2 ? "Otto/anna/person" : "-/-/-");
    }
    kith_names names = names_of(c);
    for (int64_t i = 0; i < names.n_decisions; i++)
        assert_int_equal(names.decisions[i].undone_by, i % 2 ? 22 - i : 0);
    kith_names_release(&names);
    kith_collection_free(c);
}

/* A note that was damaged is an error, and nothing is written. */
static void test_damaged(void **state) {
    (void)state;
#define HEAD "{\"made\":9,\"checked\":0,\"wrong\":0}\n"
#define ENTRY(n, root, of, checked)                                                             \
    "{\"n\":" n ",\"at\":0,\"who\":\"a\",\"kind\":\"person\",\"act\":\"undo\",\"root\":\"" root \
    "\",\"of\":" of ",\"back\":0,\"checked\":" checked ",\"wrong\":0,\"ids\":[1]}\n"
    static const char *const notes[] = {
        "[",
        "{\"made\":1}",
        "{\"made\":1,\"checked\":0,\"wrong\":0}\n{\"n\":1}",
        "{\"made\":9223372036854775807,\"checked\":0,\"wrong\":0}\n",
        HEAD ENTRY("3", "give", "1", "0") ENTRY("3", "give", "1", "0"), /* the number is there twice */
        HEAD ENTRY("3", "give", "1", "0") ENTRY("2", "give", "1", "0"),
        HEAD ENTRY("10", "give", "1", "0"),
        HEAD ENTRY("3", "give", "3", "0"),
        HEAD ENTRY("3", "give", "1", "-9223372036854775808"),
        HEAD ENTRY("3", "reject", "1", "0") /* of no name */
    };
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        kith_error err;
        kith_name_result r;
        kith_names names;
        const int64_t id = 0;
        kith_collection *c = made_open("p.kith", KITH_INDEX_WRITE);
        assert_ok(kith_index_note_set(kith_collection_index(c), "decisions", notes[i], &err), &err);
        assert_ok(kith_index_commit(kith_collection_index(c), NULL, &err), &err);
        assert_int_equal(decide(c, KITH_NAME_GIVE, "anna", &id, 1, "x", &r, &err), KITH_EFORMAT);
        assert_int_equal(kith_collection_names(c, &names, &err), KITH_EFORMAT);
        kith_collection_free(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_given_and_undone, set_up),
        cmocka_unit_test_setup(test_who_is_first, set_up),
        cmocka_unit_test_setup(test_merge_and_rename, set_up),
        cmocka_unit_test_setup(test_proposals, set_up),
        cmocka_unit_test_setup(test_refused, set_up),
        cmocka_unit_test_setup(test_a_sync_keeps_names, set_up),
        cmocka_unit_test_setup(test_folders_do_not_overrule, set_up),
        cmocka_unit_test_setup(test_renewed, set_up),
        cmocka_unit_test_setup(test_memory, set_up),
        cmocka_unit_test_setup(test_killed, set_up),
        cmocka_unit_test_setup(test_many, set_up),
        cmocka_unit_test_setup(test_there_and_back, set_up),
        cmocka_unit_test(test_many_rejected),
        cmocka_unit_test_setup(test_damaged, set_up),
    };
    return cmocka_run_group_tests_name("decisions", tests, NULL, testing_tear_down);
}
