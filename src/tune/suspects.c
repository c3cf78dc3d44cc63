/* Photos whose label looks wrong, and pictures that are almost the same, by what the pretrained model says of them: the doctor's rules,
 * with features that are computed anyway. Photos that train are compared among themselves, so that the test leaves nothing out and
 * chooses nothing; what is said across the two is only noted.
 *
 * What is left out is a line of tried.jsonl before photos.csv is written anew without it. Whoever was killed in between does that first. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "tune/findings.h"
#include "tune/tune.h"

/* ---- comparing ---- */

typedef struct side {
    kith_array rows;
    int64_t *item;
    ki_vectors v;
} side;

static void release(side *s) {
    ki_vectors_release(&s->v);
    ki_free(s->item);
}

static kith_status embed(ki_tune *t, bool with_test, side *ret, kith_error *err) {
    const ki_item *item = t->set->item;
    const float *rows = NULL;
    ki_items items = {0};
    KI_TRY(ki_alloc_or(&items.item, t->set->n_items + 1, sizeof *items.item, "items", err));
    for (size_t i = 0; i < t->set->n_items; i++) {
        if (t->is_sound[i] && (with_test || item[i].split != KITH_SPLIT_TEST))
            items.item[items.n++] = (int64_t)i;
    }
    kith_status status = ki_tune_pretrained(t, &items, &ret->v, err);
    ki_free(items.item);
    KI_TRY(status);
    KI_TRY(ki_vectors_host(&ret->v, &rows, err));
    KI_TRY(ki_alloc_or(&ret->item, (size_t)ret->v.n + 1, sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < ret->v.n; i++) ret->item[i] = ret->v.item[i];
    ret->rows = (kith_array){KITH_F32, 2, {ret->v.n, ret->v.dim}, ret->v.host};
    return KITH_OK;
}

static kith_status compare(ki_tune *t, bool with_test, kith_findings *ret, kith_error *err) {
    side s = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    kith_status status = embed(t, with_test, &s, err);
    options.vectors = &s.rows;
    options.vector_items = s.item;
    if (status == KITH_OK) status = ki_doctor_by_vectors(t->set, &options, ret, err);
    release(&s);
    return status;
}

kith_status ki_tune_suspect(ki_tune *t, kith_error *err) {
    kith_status status;
    kith_findings learn = {0}, all = {0};
    ki_tune_tally tally = {0};
    double ignored = 0;
    ki_snprintf(t->busy, sizeof t->busy, "comparing the photos");
    KI_CHECK(compare(t, false, &learn, err));
    KI_CHECK(ki_tune_keep_findings(t, t->set, &learn, false, &tally, err));
    if (t->n_test_classes > 0) {
        KI_CHECK(compare(t, true, &all, err));
        KI_CHECK(ki_tune_keep_findings(t, t->set, &all, true, &tally, err));
    }
    KI_CHECK(ki_tune_count_findings(t, &tally, err));
    KI_CHECK(ki_tune_decide(t, "photos compared", 1, &ignored, err));
done:
    kith_findings_release(&learn);
    kith_findings_release(&all);
    return status;
}

/* ---- leaving out ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths that lines of this kind leave out, sorted. */
static kith_status list_out(const ki_tune *t, const char ***ret, size_t *ret_n, kith_error *err) {
    const char **path = NULL;
    size_t room = 0, n = 0;
    for (const ki_value *v = t->line->first; v; v = v->next) {
        const ki_value *out = ki_value_get(v, "out");
        if (!out || strcmp(ki_tune_text(v, "finding"), kith_finding_kind_name(KITH_FINDING_MISLABELLED)) != 0)
            continue;
        for (const ki_value *p = out->first; p; p = p->next) {
            const kith_status status = ki_grow(&path, &room, n + 1, sizeof *path, "paths", err);
            if (status != KITH_OK) return ki_free(path), status;
            path[n++] = p->text;
        }
    }
    if (n > 0) qsort(path, n, sizeof *path, by_text);
    *ret = path;
    *ret_n = n;
    return KITH_OK;
}

/* The number of items that stay; their numbers in *ret_item. */
static kith_status list_staying(const ki_tune *t, const kith_dataset *set, int64_t **ret_item, int64_t *ret_n,
                                kith_error *err) {
    const char **out = NULL;
    size_t n_out = 0;
    *ret_n = 0;
    KI_TRY(ki_alloc_or(ret_item, set->n_items + 1, sizeof **ret_item, "items", err));
    KI_TRY(list_out(t, &out, &n_out, err));
    for (size_t i = 0; i < set->n_items; i++) {
        const char *path = set->item[i].path;
        const bool is_out = n_out > 0 && set->item[i].split != KITH_SPLIT_TEST &&
                            bsearch(&path, out, n_out, sizeof *out, by_text);
        if (!is_out) (*ret_item)[(*ret_n)++] = (int64_t)i;
    }
    ki_free(out);
    return KITH_OK;
}

static kith_status write_list(const kith_dataset *set, const int64_t *item, int64_t n, const char *path,
                              kith_error *err) {
    ki_buffer text = {.err = err};
    const ki_list_rows m = ki_list_rows_of(set);
    ki_list_rows_head(&m, &text);
    for (int64_t i = 0; i < n; i++) {
        const ki_item *from = &set->item[item[i]];
        ki_list_rows_row(&m, set, from, from->path, (kith_split)from->split, &text);
    }
    kith_status status = text.status;
    if (status == KITH_OK) status = ki_file_write(path, text.data, text.n, err);
    ki_buffer_release(&text);
    return status;
}

kith_status ki_tune_leave_out(ki_tune *t, kith_error *err) {
    kith_status status;
    kith_dataset *set = NULL, *less = NULL;
    ki_path list, shorter;
    int64_t *item = NULL, n = 0;
    if (ki_tune_n_findings(t, KITH_FINDING_MISLABELLED, true) == 0) return KITH_OK;
    KI_CHECK(ki_path_print(&list, err, "%s/photos.csv", t->folder));
    KI_CHECK(kith_dataset_open("csv", list.s, &set, err));
    KI_CHECK(list_staying(t, set, &item, &n, err));
    if (n == (int64_t)set->n_items) goto done;
    KI_CHECK(ki_path_print(&shorter, err, "%s/photos.csv.shorter", t->folder));
    KI_CHECK(write_list(set, item, n, shorter.s, err));
    KI_CHECK(kith_dataset_open("csv", shorter.s, &less, err));
    KI_CHECK(ki_tune_carry(t, set, less, item, err));
    KI_CHECK(write_list(set, item, n, list.s, err));
    ki_tune_remove(shorter.s);
done:
    kith_dataset_free(less);
    kith_dataset_free(set);
    ki_free(item);
    return status;
}
