/* kith_dataset_examine: the passes one after the other, and their findings in order. */
#include "kith/doctor.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "search/signature.h"

KI_OPTIONS_INIT(kith_doctor_options, .near = 0.97, .likeness = KI_SIGNATURE_SAME, .least_side = 32,
                .most_ratio = 5, .most_uneven = 10, .wrong = 0.3, .odd = 2.5, .blurred = 0.33,
                .shortcut_images = 2000, .shortcut = 0.75)

static const struct {
    const char *name;
    kith_severity severity;
} kinds[KITH_N_FINDING_KINDS] = {
#define X(kind, value, text, how) [value] = {text, KITH_SEVERITY_##how},
    KITH_FINDING_LIST(X)
#undef X
};

const char *kith_finding_kind_name(kith_finding_kind kind) {
    return (unsigned)kind < KITH_N_FINDING_KINDS ? kinds[kind].name : NULL;
}

const char *kith_severity_name(kith_severity severity) {
    static const char *const names[KITH_N_SEVERITIES] = {"note", "warning", "error"};
    return (unsigned)severity < KITH_N_SEVERITIES ? names[severity] : NULL;
}

kith_status ki_doctor_add(ki_doctor *d, kith_finding_kind kind, double score, int64_t label, kith_error *err,
                          const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    KI_TRY(ki_grow(&d->findings, &d->n_findings_room, d->n + 1, sizeof *d->findings, "findings", err));
    const char *copy = ki_arena_strdup(&d->arena, text);
    if (!copy) return ki_fail_memory(err, strlen(text), "a finding");
    d->findings[d->n++] = (kith_finding){.kind = kind,
                                         .severity = kinds[kind].severity,
                                         .begin = (int64_t)d->n_listed,
                                         .label = label,
                                         .score = score,
                                         .text = copy,
                                         .example = -1};
    return KITH_OK;
}

kith_status ki_doctor_item(ki_doctor *d, int64_t item, bool is_out, kith_error *err) {
    kith_finding *f = &d->findings[d->n - 1];
    KI_TRY(ki_grow(&d->items, &d->n_items_room, d->n_listed + 1, sizeof *d->items, "findings", err));
    d->items[d->n_listed++] = item;
    f->n++;
    f->n_out += is_out;
    if (is_out && d->why_out[item] < 0) d->why_out[item] = (int64_t)d->n - 1;
    return KITH_OK;
}

int64_t ki_doctor_label(const ki_doctor *d, int64_t item) {
    const int32_t label = d->set->item[item].label;
    return label >= 0 && ki_dataset_is_class(d->set, label) ? label : -1;
}

int ki_doctor_tell(void *doctor, int64_t n_done, int64_t n_all) {
    const ki_doctor *d = doctor;
    (void)n_all;
    return d->options->progress ? d->options->progress(d->options->user, d->n_done + n_done, d->n_all) : 0;
}

static kith_status check(const ki_doctor *d, kith_error *err) {
    const kith_doctor_options *o = d->options;
    if (!(o->near > 0) || !(o->likeness >= 0 && o->likeness <= 1) || o->least_side < 0 ||
        !(o->most_ratio >= 1) || !(o->most_uneven >= 1))
        return ki_fail(
            err, KITH_EINVAL,
            "near %g, likeness %g, least_side %lld, most_ratio %g, most_uneven %g; wanted above 0, 0 to "
            "1, 0 or more, 1 or more, 1 or more",
            o->near, o->likeness, (long long)o->least_side, o->most_ratio, o->most_uneven);
    if (!(o->wrong > 0) || !(o->odd >= 0) || !(o->blurred >= 0) || o->shortcut_images < 0 ||
        !(o->shortcut > 0))
        return ki_fail(
            err, KITH_EINVAL,
            "wrong %g, odd %g, blurred %g, shortcut_images %lld, shortcut %g; wanted above 0, 0 or "
            "more, 0 or more, 0 or more, above 0",
            o->wrong, o->odd, o->blurred, (long long)o->shortcut_images, o->shortcut);
    if (!o->vectors) return KITH_OK;
    if (o->vectors->n_dims != 2)
        return ki_fail(err, KITH_ESHAPE, "the vectors have %d dimensions; wanted 2", o->vectors->n_dims);
    const int64_t n = o->vectors->dim[0];
    if (!o->vector_items && n != d->n_items)
        return ki_fail(err, KITH_ESHAPE, "%lld vectors for %lld items; wanted one each, or their numbers",
                       (long long)n, (long long)d->n_items);
    for (int64_t i = 0; o->vector_items && i < n; i++) {
        if (o->vector_items[i] < 0 || o->vector_items[i] >= d->n_items)
            return ki_fail(err, KITH_EINVAL, "vector %lld is of item %lld; the data set has %lld",
                           (long long)i, (long long)o->vector_items[i], (long long)d->n_items);
    }
    return KITH_OK;
}

static int64_t first_item(const ki_doctor *d, const kith_finding *f) {
    return f->n > 0 ? d->items[f->begin] : -1;
}

/* Of these kinds the smallest score is the worst. */
static bool is_worst_small(kith_finding_kind kind) {
    return kind == KITH_FINDING_TINY || kind == KITH_FINDING_BLURRED;
}

/* Which of two findings comes first. */
static int order(const ki_doctor *d, const kith_finding *a, const kith_finding *b) {
    if (a->severity != b->severity) return a->severity > b->severity ? -1 : 1;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->score != b->score) return (a->score > b->score) != is_worst_small(a->kind) ? -1 : 1;
    const int64_t x = first_item(d, a), y = first_item(d, b);
    if (x != y) return x < y ? -1 : 1;
    return (a->label > b->label) - (a->label < b->label);
}

/* A finding's number, so that qsort, which is not stable and takes no context, can sort. */
typedef struct place {
    const ki_doctor *doctor;
    int64_t at;
} place;

static int by_order(const void *a, const void *b) {
    const place *x = a, *y = b;
    const int by_worth = order(x->doctor, &x->doctor->findings[x->at], &y->doctor->findings[y->at]);
    return by_worth ? by_worth : (x->at > y->at) - (x->at < y->at);
}

/* One block holds all texts, so that releasing needs no list. */
static kith_status copy_texts(kith_findings *out, kith_error *err) {
    size_t bytes = 0, at = 0;
    char *texts = NULL;
    for (int64_t i = 0; i < out->n; i++) bytes += strlen(out->findings[i].text) + 1;
    KI_TRY(ki_alloc_or(&texts, bytes, 1, "findings", err));
    for (int64_t i = 0; i < out->n; i++) {
        const size_t n = strlen(out->findings[i].text) + 1;
        memcpy(texts + at, out->findings[i].text, n);
        out->findings[i].text = texts + at;
        at += n;
    }
    if (out->n == 0) ki_free(texts);
    return KITH_OK;
}

static kith_status hand_out(ki_doctor *d, kith_findings *ret, kith_error *err) {
    kith_status status;
    kith_findings out = {.n = (int64_t)d->n, .n_items = d->n_items};
    place *places = NULL;
    int64_t *new_of = NULL;
    KI_CHECK(ki_alloc_or(&places, d->n, sizeof *places, "findings", err));
    KI_CHECK(ki_alloc_or(&new_of, d->n, sizeof *new_of, "findings", err));
    KI_CHECK(ki_alloc_or(&out.findings, d->n, sizeof *out.findings, "findings", err));
    for (int64_t i = 0; i < out.n; i++) places[i] = (place){d, i};
    if (d->n > 0) qsort(places, d->n, sizeof *places, by_order);
    for (int64_t i = 0; i < out.n; i++) {
        const kith_finding *f = &d->findings[places[i].at];
        out.findings[i] = *f;
        new_of[places[i].at] = i;
        out.n_of[f->kind]++;
        out.n_of_severity[f->severity]++;
    }
    for (int64_t i = 0; i < d->n_items; i++) {
        if (d->why_out[i] < 0) continue;
        d->why_out[i] = new_of[d->why_out[i]];
        out.n_out++;
    }
    KI_CHECK(copy_texts(&out, err));
    out.items = d->items;
    out.why_out = d->why_out;
    d->items = d->why_out = NULL;
    *ret = out;
    out.findings = NULL;
done:
    ki_free(places);
    ki_free(new_of);
    ki_free(out.findings);
    return status;
}

static kith_status begin(ki_doctor *d, kith_error *err) {
    KI_TRY(ki_alloc_or(&d->why_out, (size_t)d->n_items, sizeof *d->why_out, "findings", err));
    KI_TRY(ki_alloc_or(&d->group, (size_t)d->n_items, sizeof *d->group, "findings", err));
    for (int64_t i = 0; i < d->n_items; i++) d->why_out[i] = d->group[i] = -1;
    return KITH_OK;
}

static kith_status examine(ki_doctor *d, kith_error *err) {
    const kith_doctor_options *o = d->options;
    const bool embeds = !o->vectors && !o->no_vectors && !d->set->rows;
    KI_TRY(begin(d, err));
    d->n_all = (d->set->rows ? 1 : embeds ? 3 : 2) * d->n_items + ki_doctor_shortcut_room(d);
    KI_TRY(ki_doctor_look(d, err));
    d->n_done += d->n_items;
    if (!d->set->rows) {
        KI_TRY(ki_doctor_same(d, err));
        d->n_done += d->n_items;
    }
    if (!o->no_vectors) KI_TRY(ki_doctor_compare(d, err));
    return ki_doctor_count(d, err);
}

static kith_status compare(ki_doctor *d, kith_error *err) {
    d->are_pictures = true;
    KI_TRY(begin(d, err));
    return ki_doctor_compare(d, err);
}

static kith_status look(const kith_dataset *set, const kith_doctor_options *o,
                        kith_status (*passes)(ki_doctor *d, kith_error *err), kith_findings *ret,
                        kith_error *err) {
    ki_doctor d = {.set = set, .options = o, .n_items = (int64_t)set->n_items};
    kith_status status = check(&d, err);
    if (status == KITH_OK) status = passes(&d, err);
    if (status == KITH_OK) status = hand_out(&d, ret, err);
    ki_arena_release(&d.arena);
    ki_free(d.findings);
    ki_free(d.items);
    ki_free(d.why_out);
    ki_free(d.group);
    return status;
}

kith_status kith_dataset_examine(const kith_dataset *dataset, const kith_doctor_options *options,
                                 kith_findings *ret_findings, kith_error *err) {
    KI_NEED(err, dataset, ret_findings);
    KI_OPTIONS_TAKE(kith_doctor_options, o, options, err);
    return look(dataset, &o, examine, ret_findings, err);
}

kith_status ki_doctor_by_vectors(const kith_dataset *set, const kith_doctor_options *options,
                                 kith_findings *ret_findings, kith_error *err) {
    return look(set, options, compare, ret_findings, err);
}

/* The texts are one block, which begins with that of the first finding. */
void kith_findings_release(kith_findings *findings) {
    if (!findings) return;
    if (findings->n > 0) ki_free((void *)(uintptr_t)findings->findings[0].text);
    ki_free(findings->findings);
    ki_free(findings->items);
    ki_free(findings->why_out);
    *findings = (kith_findings){0};
}
