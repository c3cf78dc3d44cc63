/* What the doctor finds in the photos: lines of tried.jsonl, so that a search that goes on knows them, lines for whoever watches, and
 * the list in tune.json. */
#include "tune/findings.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* Of each kind; how many there are is known beside it. Of what is left out by vectors all are kept: they are left out by these lines. */
enum { MOST_KEPT = 200 };

/* "left out: 2 photos that …", "noted: 3 times …". NULL: the kind leaves nothing out, or is not noted. */
static const struct {
    const char *one, *several, *noted;
} words[KITH_N_FINDING_KINDS] = {
    [KITH_FINDING_UNREADABLE] = {"cannot be read", "cannot be read", "a tar file that cannot be read whole"},
    [KITH_FINDING_LEAK] = {"trains and is in the test, too", "train and are in the test, too", NULL},
    [KITH_FINDING_CONFLICT] = {"is in two classes, one of which is wrong",
                               "are in two classes, one of which is wrong",
                               "the same picture in the test and in another class"},
    [KITH_FINDING_MISLABELLED] = {"is labelled wrongly, by what it looks like",
                                  "are labelled wrongly, by what they look like", "a label that looks wrong"},
    [KITH_FINDING_DUPLICATE] = {"is there twice", "are there twice", NULL},
    [KITH_FINDING_NEAR_LEAK] = {NULL, NULL, "almost the same picture in test and in training"},
    [KITH_FINDING_MISSING] = {NULL, NULL, "listed files that do not exist"},
    [KITH_FINDING_NOT_READ] = {NULL, NULL, "files that are not read"},
    [KITH_FINDING_SINGLE] = {NULL, NULL, "a class of one photo, which can train, but not judge"},
    [KITH_FINDING_EMPTY] = {NULL, NULL, "a class without photos"},
    [KITH_FINDING_UNEVEN] = {NULL, NULL, "a class with far more photos than others"},
    [KITH_FINDING_TINY] = {NULL, NULL, "a small photo"},
    [KITH_FINDING_EXTREME] = {NULL, NULL, "a very long or very wide photo"},
    [KITH_FINDING_NEAR] = {NULL, NULL, "almost the same picture twice"},
    [KITH_FINDING_ODD] = {NULL, NULL, "a photo unlike all others"},
    [KITH_FINDING_BLURRED] = {NULL, NULL, "a blurred photo"},
    [KITH_FINDING_SHORTCUT] = {NULL, NULL, "surroundings that give the classes away"},
};

/* ---- how many ---- */

static const char *key_of(kith_finding_kind kind, bool is_out, char buf[48]) {
    ki_snprintf(buf, 48, "%s: %s", is_out ? "left out" : "noted", kith_finding_kind_name(kind));
    return buf;
}

int64_t ki_tune_n_findings(const ki_tune *t, kith_finding_kind kind, bool is_out) {
    char key[48];
    double n = 0;
    ki_tune_known(t, key_of(kind, is_out, key), &n);
    return (int64_t)n;
}

static kith_status decide_count(ki_tune *t, kith_finding_kind kind, bool is_out, int64_t n, kith_error *err) {
    char key[48];
    double ignored = 0;
    return n > 0 ? ki_tune_decide(t, key_of(kind, is_out, key), (double)n, &ignored, err) : KITH_OK;
}

/* ---- as lines of tried.jsonl ---- */

static kith_status add_line(ki_tune *t, const kith_dataset *set, const kith_findings *found,
                            const kith_finding *f, bool is_out, kith_error *err) {
    kith_json *json = NULL;
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    kith_json_key(json, "finding");
    kith_json_string(json, kith_finding_kind_name(f->kind));
    kith_json_key(json, "text");
    kith_json_string(json, f->text);
    kith_json_key(json, "out");
    kith_json_array_begin(json);
    for (int64_t i = f->begin; is_out && i < f->begin + f->n; i++) {
        const int64_t item = found->items[i];
        if (found->why_out[item] == f - found->findings) kith_json_string(json, set->item[item].path);
    }
    kith_json_array_end(json);
    const kith_status status = ki_tune_add_line(t, json, err);
    kith_json_free(json);
    return status;
}

/* A search that was killed in the middle of this does it again. */
static bool is_there(const ki_tune *t, const kith_finding *f) {
    for (const ki_value *v = t->line->first; v; v = v->next) {
        const char *kind = ki_tune_text(v, "finding");
        if (strcmp(kind, kith_finding_kind_name(f->kind)) == 0 &&
            strcmp(ki_tune_text(v, "text"), f->text) == 0)
            return true;
    }
    return false;
}

static int64_t n_left_out(const kith_findings *found, const kith_finding *f) {
    int64_t n = 0;
    for (int64_t i = f->begin; i < f->begin + f->n; i++)
        n += found->why_out[found->items[i]] == f - found->findings;
    return n;
}

static bool has_test_item(const kith_dataset *set, const kith_findings *found, const kith_finding *f) {
    for (int64_t i = f->begin; i < f->begin + f->n; i++) {
        if (set->item[found->items[i]].split == KITH_SPLIT_TEST) return true;
    }
    return false;
}

kith_status ki_tune_keep_findings(ki_tune *t, const kith_dataset *set, const kith_findings *found,
                                  bool only_test, ki_tune_tally *tally, kith_error *err) {
    int64_t n_kept[KITH_N_FINDING_KINDS] = {0};
    for (int64_t i = 0; i < found->n; i++) {
        const kith_finding *f = &found->findings[i];
        const int64_t n = only_test ? 0 : n_left_out(found, f);
        if (n == 0 && !words[f->kind].noted) continue;
        if (only_test && !has_test_item(set, found, f)) continue;
        tally->n_out[f->kind] += n;
        tally->n_noted[f->kind] += n == 0;
        const bool must_be_kept = n > 0 && f->kind == KITH_FINDING_MISLABELLED;
        if (n_kept[f->kind]++ >= MOST_KEPT && !must_be_kept) continue;
        if (!is_there(t, f)) KI_TRY(add_line(t, set, found, f, n > 0, err));
    }
    return KITH_OK;
}

kith_status ki_tune_count_findings(ki_tune *t, const ki_tune_tally *tally, kith_error *err) {
    for (int k = 0; k < KITH_N_FINDING_KINDS; k++) {
        KI_TRY(decide_count(t, (kith_finding_kind)k, true, tally->n_out[k], err));
        KI_TRY(decide_count(t, (kith_finding_kind)k, false, tally->n_noted[k], err));
    }
    return KITH_OK;
}

/* ---- for whoever watches ---- */

/* The first line of the kind that leaves something out, or does not. "" if there is none. */
static const char *first_text(const ki_tune *t, kith_finding_kind kind, bool is_out) {
    for (const ki_value *v = t->line->first; v; v = v->next) {
        const ki_value *out = ki_value_get(v, "out");
        if (strcmp(ki_tune_text(v, "finding"), kith_finding_kind_name(kind)) != 0) continue;
        if (out && (out->n_items > 0) == is_out) return ki_tune_text(v, "text");
    }
    return "";
}

void ki_tune_tell_findings(ki_tune *t, unsigned kinds) {
    for (int k = 0; k < KITH_N_FINDING_KINDS; k++) {
        const kith_finding_kind kind = (kith_finding_kind)k;
        const int64_t n = ki_tune_n_findings(t, kind, true);
        if (!(kinds & 1u << k) || n == 0) continue;
        ki_tune_say(t, "left out: %lld photo%s that %s%s %s", (long long)n, n == 1 ? "" : "s",
                    n == 1 ? words[k].one : words[k].several,
                    n == 1 ? ":" : "; the first:", first_text(t, kind, true));
    }
    for (int k = 0; k < KITH_N_FINDING_KINDS; k++) {
        const kith_finding_kind kind = (kith_finding_kind)k;
        const int64_t n = ki_tune_n_findings(t, kind, false);
        if (!(kinds & 1u << k) || n == 0) continue;
        if (n == 1)
            ki_tune_say(t, "only noted: %s: %s", words[k].noted, first_text(t, kind, false));
        else
            ki_tune_say(t, "only noted: %s, %lld times; the first: %s", words[k].noted, (long long)n,
                        first_text(t, kind, false));
    }
}

/* ---- in tune.json ---- */

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

void ki_tune_put_findings(const ki_tune *t, kith_json *json) {
    put_int(json, "n_duplicates", ki_tune_n_findings(t, KITH_FINDING_DUPLICATE, true));
    put_int(json, "n_of_two_classes", ki_tune_n_findings(t, KITH_FINDING_CONFLICT, true));
    put_int(json, "n_unreadable", t->n_unread + ki_tune_n_findings(t, KITH_FINDING_UNREADABLE, true));
    put_int(json, "n_leaks", ki_tune_n_findings(t, KITH_FINDING_LEAK, true));
    put_int(json, "n_mislabelled", ki_tune_n_findings(t, KITH_FINDING_MISLABELLED, true));
    kith_json_key(json, "findings");
    kith_json_array_begin(json);
    for (const ki_value *v = t->line->first; v; v = v->next) {
        const ki_value *out = ki_value_get(v, "out");
        if (!*ki_tune_text(v, "finding") || !out) continue;
        kith_json_object_begin(json);
        kith_json_key(json, "kind");
        kith_json_string(json, ki_tune_text(v, "finding"));
        kith_json_key(json, "text");
        kith_json_string(json, ki_tune_text(v, "text"));
        kith_json_key(json, "left_out");
        kith_json_array_begin(json);
        for (const ki_value *path = out->first; path; path = path->next) kith_json_string(json, path->text);
        kith_json_array_end(json);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}
