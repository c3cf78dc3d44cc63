/* POST /api/v1/decide and /undo: a decision about names, handed to the thread that writes. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/json.h"
#include "serve/routes/naming.h"
#include "serve/routes/route.h"
#include "serve/server.h"

enum { MOST_BODY_BYTES = 1 << 20, MOST_IDS = 10000 };

/* ---- tables ---- */

typedef struct settings {
    int act;
    const ki_value *ids, *was;
    const char *name, *from, *proposed, *who;
    int64_t number;
} settings;

/* In the order of kith_name_act, without undo. */
static const char *const acts[] = {"give", "confirm", "reject", "take", "apart", "rename", "merge", NULL};

const ki_option ki_decision_options[] = {
    KI_OPTION_CHOICE(settings, act, 0, acts, "what is decided", ""),
    KI_OPTION_TREE(settings, ids, "", "the items; two for apart, none for rename and merge", ""),
    KI_OPTION_TREE(settings, was, "",
                   "the name of each when it was looked at, or null; another one now is 409", ""),
    KI_OPTION_TEXT(settings, name, NULL, "the name; for reject the one that is not theirs", ""),
    KI_OPTION_TEXT(settings, from, NULL, "of rename and merge: the old name", ""),
    KI_OPTION_TEXT(settings, proposed, NULL, "of give: the name that was proposed, if one was", ""),
    KI_OPTION_TEXT(settings, who, NULL, "who decides; where there are tokens, it is whose the token is", ""),
    KI_OPTION_END};

const ki_option ki_undo_options[] = {
    KI_OPTION_INT(settings, number, 0, 0, 9e15, "of the decision; 0: the last one of whoever asks", ""),
    KI_OPTION_TEXT(settings, who, NULL, "as in a decision", ""), KI_OPTION_END};

/* ---- reading it ---- */

typedef struct decide_state {
    ki_arena arena;
    ki_name_job job;
} decide_state;

static void state_free(void *state) {
    decide_state *s = state;
    if (!s) return;
    ki_arena_release(&s->arena);
    ki_free(s);
}

static kith_status read_ids(decide_state *s, const ki_value *list, kith_error *err) {
    kith_name_request *w = &s->job.wanted;
    if (!list) return KITH_OK;
    if (list->kind != KI_VALUE_LIST) return ki_fail(err, KITH_EINVAL, "decision: ids is not a list");
    if (list->n_items > MOST_IDS)
        return ki_fail(err, KITH_EINVAL, "decision: %zu ids; at most %d are read", list->n_items,
                       (int)MOST_IDS);
    int64_t *ids = ki_arena_alloc(&s->arena, list->n_items + 1, sizeof *ids);
    if (!ids) return ki_fail_memory(err, list->n_items * sizeof *ids, "ids");
    for (const ki_value *v = list->first; v; v = v->next) {
        if (v->kind != KI_VALUE_SCALAR || v->is_quoted || !ki_parse_int64(v->text, &ids[w->n_ids]) ||
            ids[w->n_ids] < 0)
            return ki_fail(err, KITH_EINVAL, "decision: ids is not a list of whole numbers from 0");
        w->n_ids++;
    }
    w->ids = ids;
    return KITH_OK;
}

static kith_status read_was(decide_state *s, const ki_value *list, kith_error *err) {
    kith_name_request *w = &s->job.wanted;
    int64_t n = 0;
    if (!list) return KITH_OK;
    if (list->kind != KI_VALUE_LIST || (int64_t)list->n_items != w->n_ids)
        return ki_fail(err, KITH_EINVAL, "decision: was is not a list with a name or null for each of ids");
    const char **was = ki_arena_alloc(&s->arena, list->n_items + 1, sizeof *was);
    if (!was) return ki_fail_memory(err, list->n_items * sizeof *was, "names");
    for (const ki_value *v = list->first; v; v = v->next) {
        if (v->kind != KI_VALUE_NULL && (v->kind != KI_VALUE_SCALAR || !v->is_quoted))
            return ki_fail(err, KITH_EINVAL, "decision: was is not a list of names and nulls");
        was[n++] = v->kind == KI_VALUE_NULL ? NULL : v->text;
    }
    w->was = was;
    return KITH_OK;
}

/* Whose token it is, or who says so where there are none. */
static kith_status find_who(const ki_request *r, const char *given, const char **ret, kith_error *err) {
    if (*r->who && given && strcmp(r->who, given) != 0)
        return ki_fail(err, KITH_EINVAL, "decision: who is '%.80s', and the token is that of '%.80s'", given,
                       r->who);
    *ret = *r->who ? r->who : given ? given : "person";
    return KITH_OK;
}

static kith_status read_decision(decide_state *s, ki_request *r, bool is_undo, kith_error *err) {
    ki_value *root = NULL;
    settings o = {0};
    kith_name_request *w = &s->job.wanted;
    const ki_option *table = is_undo ? ki_undo_options : ki_decision_options;
    KI_TRY(ki_json_parse(r->body.data ? r->body.data : "", r->body.n, "decision", &s->arena, &root, err));
    if (root->kind != KI_VALUE_MAP) return ki_fail(err, KITH_EINVAL, "decision: this is not an object");
    KI_TRY(ki_options_parse(table, root, NULL, "decision", &o, err));
    kith_name_request_init(w, sizeof *w);
    KI_TRY(find_who(r, o.who, &w->who, err));
    w->act = is_undo ? KITH_NAME_UNDO : (kith_name_act)o.act;
    w->name = o.name;
    w->from = o.from;
    w->proposed = o.proposed;
    w->number = o.number;
    KI_TRY(read_ids(s, o.ids, err));
    return read_was(s, o.was, err);
}

/* ---- the answer ---- */

static ki_handling answer(ki_request *r) {
    const ki_name_job *job = &((decide_state *)r->state)->job;
    kith_json *json = NULL;
    kith_error err;
    if (job->status == KITH_ECANCELED) return ki_answer_later(r, 503, 2, job->err.message);
    if (job->result.conflict >= 0) return ki_answer_problem(r, 409, job->err.hint, "%s", job->err.message);
    if (job->status == KITH_ENOTFOUND || job->status == KITH_EINVAL)
        return ki_answer_error(r, job->status, &job->err);
    if (job->status != KITH_OK) return ki_answer_index_error(r, job->status, &job->err);
    const kith_status status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_json_key(json, "number");
    kith_json_int(json, job->result.number);
    kith_json_key(json, "items");
    kith_json_int(json, job->result.n_items);
    kith_json_key(json, "generation");
    kith_json_int(json, job->generation);
    ki_naming_put(json, "before", &job->before);
    ki_naming_put(json, "after", &job->after);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}

static ki_handling take(ki_request *r, bool is_undo) {
    kith_error err = {0};
    decide_state *s = NULL;
    if (r->body.n > MOST_BODY_BYTES)
        return ki_answer_problem(r, 413, NULL, "the decision has %zu bytes; at most %d are read", r->body.n,
                                 (int)MOST_BODY_BYTES);
    kith_status status = ki_zalloc_or(&s, 1, sizeof *s, "a decision", &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    r->state = s;
    r->state_free = state_free;
    status = read_decision(s, r, is_undo, &err);
    /* An unknown key is a bad request, not a missing resource. */
    if (status == KITH_ENOTFOUND) status = KITH_EINVAL;
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    s->job.request = r;
    r->then = answer;
    ki_namer_add(r->server->namer, &s->job);
    return KI_HANDED_ON;
}

ki_handling ki_route_decide(ki_request *r) { return take(r, false); }
ki_handling ki_route_undo(ki_request *r) { return take(r, true); }
