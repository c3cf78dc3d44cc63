/* By vectors: labels that look wrong, and pictures that are almost the same (two of a burst, a crop). What earlier passes leave
 * out is not compared: a copy in another class would be the nearest neighbour of its twin. */
#include "base/alloc.h"
#include "doctor/doctor.h"
#include "kith/knn.h"
#include "kith/suspects.h"
#include "kith/vectors.h"

/* What is said of an image whose neighbours have another class: nothing, unless enough were asked and the other class has far more of
 * them than its own. On a quarter of CUB's classes with one label in twenty changed, half of what is said is a changed label, and nine of
 * ten of what is left out (docs/data.md). */
enum { LEAST_ASKED_TO_SAY = 3, LEAST_ASKED_TO_DROP = 5 };
#define LEAST_TO_SAY 0.5
#define LEAST_TO_DROP 0.9

enum { NEAREST = 4 }; /* neighbours that are looked at for pictures that are almost the same */

typedef struct comparison {
    ki_doctor *doctor;
    kith_model *model;
    kith_vectors *made;
    kith_array rows;      /* of the items below; borrowed */
    kith_array own;       /* rows that were read here */
    const int64_t *items; /* [n]; NULL: all in order */
    int64_t n;
} comparison;

static int64_t item_of(const comparison *c, int64_t row) { return c->items ? c->items[row] : row; }

static kith_status embed(comparison *c, kith_error *err) {
    kith_status status;
    ki_doctor *d = c->doctor;
    int64_t *items = NULL, n = 0;
    KITH_OPTIONS(kith_model_options, general);
    KITH_OPTIONS(kith_embed_options, how);
    how.most_bad = -1;
    how.progress = ki_doctor_tell;
    how.user = d;
    general.weights = "general";
    KI_CHECK(ki_alloc_or(&items, (size_t)d->n_items, sizeof *items, "items", err));
    for (int64_t i = 0; i < d->n_items; i++) {
        if (d->why_out[i] < 0) items[n++] = i;
    }
    if (n == 0) goto done;
    KI_CHECK(kith_model_open(d->options->model ? d->options->model : &general, &c->model, err));
    KI_CHECK(kith_model_embed_items(c->model, d->set, items, n, &how, &c->made, err));
    KI_CHECK(kith_vectors_array(c->made, &c->rows, err));
    c->n = kith_vectors_count(c->made);
    c->items = kith_vectors_items(c->made);
done:
    ki_free(items);
    return status;
}

/* The vectors of features are the features. */
static kith_status read_rows(comparison *c, kith_error *err) {
    const ki_doctor *d = c->doctor;
    const int64_t dim = ki_npy_rows_dim(d->set->rows);
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){d->n_items, dim}, &c->own, err));
    for (int64_t i = 0; i < d->n_items; i++) {
        float *row = (float *)c->own.data + i * dim;
        if (d->why_out[i] < 0) KI_TRY(ki_dataset_row(d->set, i, row, err));
    }
    c->rows = c->own;
    c->n = d->n_items;
    return KITH_OK;
}

static kith_status say_suspect(const comparison *c, const kith_suspect *s, int64_t n_asked, kith_error *err) {
    ki_doctor *d = c->doctor;
    const int64_t item = item_of(c, s->row);
    const bool is_sure =
        s->agreement == 0 && s->other_agreement >= LEAST_TO_DROP && n_asked >= LEAST_ASKED_TO_DROP;
    KI_TRY(ki_doctor_add(d, KITH_FINDING_MISLABELLED, s->other_agreement - s->agreement, s->other, err,
                         "%s is in %s; %.0f %% of its neighbours are %s, %.0f %% are %s",
                         ki_dataset_item_name(d->set, (size_t)item), d->set->class_[s->label].name,
                         100 * s->other_agreement, d->set->class_[s->other].name, 100 * s->agreement,
                         d->set->class_[s->label].name));
    return ki_doctor_item(d, item, is_sure && !ki_doctor_is_test(d, item), err);
}

/* count: images of each class among the rows. */
static kith_status say_suspects(const comparison *c, const kith_suspects *found, const int64_t *count,
                                int64_t k, kith_error *err) {
    for (int64_t i = 0; i < found->n; i++) {
        const kith_suspect *s = &found->suspects[i];
        const int64_t n_others = count[s->label] - 1, n_asked = n_others < k ? n_others : k;
        if (n_asked >= LEAST_ASKED_TO_SAY && s->other_agreement - s->agreement >= LEAST_TO_SAY)
            KI_TRY(say_suspect(c, s, n_asked, err));
    }
    return KITH_OK;
}

static kith_status find_suspects(const comparison *c, kith_error *err) {
    kith_status status;
    const ki_doctor *d = c->doctor;
    kith_suspects found = {0};
    int64_t *labels = NULL, *count = NULL, n_labelled = 0;
    KITH_OPTIONS(kith_suspects_options, options);
    options.most = 0;
    if (d->options->model) options.device = d->options->model->device;
    KI_CHECK(ki_alloc_or(&labels, (size_t)c->n, sizeof *labels, "labels", err));
    KI_CHECK(ki_zalloc_or(&count, d->set->n_classes, sizeof *count, "class counts", err));
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t item = item_of(c, i);
        labels[i] = d->why_out[item] < 0 ? ki_doctor_label(d, item) : -1;
        if (labels[i] < 0) continue;
        n_labelled++;
        count[labels[i]]++;
    }
    if (n_labelled < 2) goto done;
    KI_CHECK(kith_suspects_find(&c->rows, labels, &options, &found, err));
    status = say_suspects(c, &found, count, options.k, err);
done:
    kith_suspects_release(&found);
    ki_free(labels);
    ki_free(count);
    return status;
}

static kith_status say_near(ki_doctor *d, int64_t a, int64_t b, double score, kith_error *err) {
    const bool leaks = ki_doctor_is_test(d, a) != ki_doctor_is_test(d, b);
    const kith_dataset *set = d->set;
    const char *x = ki_dataset_item_name(set, (size_t)a), *y = ki_dataset_item_name(set, (size_t)b);
    const char *one = kith_split_name((kith_split)set->item[a].split),
               *other = kith_split_name((kith_split)set->item[b].split);
    KI_TRY(leaks ? ki_doctor_add(d, KITH_FINDING_NEAR_LEAK, score, -1, err,
                                 "%s (%s) and %s (%s) look almost the same (cosine %.3f)", x, one, y, other,
                                 score)
                 : ki_doctor_add(d, KITH_FINDING_NEAR, score, -1, err,
                                 "%s and %s look almost the same (cosine %.3f)", x, y, score));
    KI_TRY(ki_doctor_item(d, a, false, err));
    return ki_doctor_item(d, b, false, err);
}

/* The nearest neighbours of a row that are near: one on its own side, one on the other. */
static kith_status ask_row(const comparison *c, const kith_neighbor *all, int64_t row, kith_error *err) {
    ki_doctor *d = c->doctor;
    const int64_t item = item_of(c, row);
    bool is_done[2] = {false, false};
    if (d->why_out[item] >= 0) return KITH_OK;
    for (int h = 0; h < NEAREST; h++) {
        const kith_neighbor *near = &all[row * NEAREST + h];
        if (near->index < 0 || !(near->score >= d->options->near)) return KITH_OK;
        const int64_t other = item_of(c, near->index);
        const bool leaks = ki_doctor_is_test(d, item) != ki_doctor_is_test(d, other);
        if (is_done[leaks] || d->why_out[other] >= 0) continue;
        if (d->group[item] >= 0 && d->group[item] == d->group[other]) continue;
        is_done[leaks] = true;
        /* Of two rows that are each other's nearest, the first speaks. */
        bool is_mutual = false;
        for (int k = 0; k < NEAREST && near->index < row; k++) {
            const kith_neighbor *back = &all[near->index * NEAREST + k];
            is_mutual |= back->index == row;
            if (back->index < 0 || back->index == row) break;
            const int64_t third = item_of(c, back->index);
            if ((ki_doctor_is_test(d, third) != ki_doctor_is_test(d, other)) == leaks &&
                d->why_out[third] < 0)
                break;
        }
        if (!is_mutual) KI_TRY(say_near(d, item, other, near->score, err));
    }
    return KITH_OK;
}

static kith_status find_near(const comparison *c, kith_error *err) {
    kith_status status;
    kith_gallery *gallery = NULL;
    kith_neighbor *near = NULL;
    KITH_OPTIONS(kith_knn_options, how);
    const kith_doctor_options *o = c->doctor->options;
    if (o->model) how.device = o->model->device;
    KI_CHECK(ki_alloc_or(&near, (size_t)c->n, NEAREST * sizeof *near, "neighbours", err));
    KI_CHECK(kith_gallery_new(&c->rows, &how, &gallery, err));
    KI_CHECK(kith_gallery_self(gallery, NEAREST, near, err));
    for (int64_t i = 0; i < c->n; i++) KI_CHECK(ask_row(c, near, i, err));
done:
    kith_gallery_free(gallery);
    ki_free(near);
    return status;
}

kith_status ki_doctor_compare(ki_doctor *d, kith_error *err) {
    kith_status status = KITH_OK;
    const kith_doctor_options *o = d->options;
    comparison c = {.doctor = d};
    if (o->vectors) {
        c.rows = *o->vectors;
        c.items = o->vector_items;
        c.n = o->vectors->dim[0];
    } else {
        KI_CHECK(d->set->rows ? read_rows(&c, err) : embed(&c, err));
    }
    if (c.n < 2) goto done;
    KI_CHECK(find_suspects(&c, err));
    if (o->near <= 1 && (d->are_pictures || !d->set->rows)) status = find_near(&c, err);
done:
    kith_vectors_free(c.made);
    kith_model_free(c.model);
    kith_array_release(&c.own);
    return status;
}
