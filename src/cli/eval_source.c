/* Embeddings to judge: from files, or from a model and a data set. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/eval.h"
#include "cli/images.h"
#include "kith/data.h"
#include "kith/model.h"

void eval_set_release(eval_set *set) {
    kith_array_release(&set->embedding);
    free(set->labels);
    free(set->query);
    free(set->gallery);
    memset(set, 0, sizeof *set);
}

static kith_status no_memory(kith_error *err) {
    return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the labels");
}

static bool is_integer(kith_dtype dtype) {
    return dtype == KITH_I32 || dtype == KITH_I64 || dtype == KITH_U8;
}

/* A list of whole numbers; *ret_is_mask when it is uint8. */
static kith_status read_integers(const char *path, int64_t **ret_values, int64_t *ret_n, bool *ret_is_u8,
                                 kith_error *err) {
    kith_array file = {0}, wide = {0};
    kith_status status = kith_npy_read(path, &file, err);
    if (status == KITH_OK && (!is_integer(file.dtype) || file.n_dims != 1))
        status = cli_error(err, KITH_ESHAPE, NULL, "%s holds %s with %d dimensions; wanted integers with 1",
                           path, kith_dtype_name(file.dtype), file.n_dims);
    if (status == KITH_OK) status = kith_array_convert(&file, KITH_I64, &wide, err);
    if (status == KITH_OK) {
        const size_t n = (size_t)wide.dim[0];
        *ret_values = malloc(n ? n * sizeof **ret_values : 1);
        if (*ret_values) {
            memcpy(*ret_values, wide.data, n * sizeof **ret_values);
            *ret_n = wide.dim[0];
            if (ret_is_u8) *ret_is_u8 = file.dtype == KITH_U8;
        } else {
            status = no_memory(err);
        }
    }
    kith_array_release(&file);
    kith_array_release(&wide);
    return status;
}

/* Row numbers; a uint8 list as long as the embedding is a mask. */
static kith_status read_rows(const char *path, int64_t n, int64_t **ret_rows, int64_t *ret_n,
                             kith_error *err) {
    bool is_u8 = false;
    const kith_status status = read_integers(path, ret_rows, ret_n, &is_u8, err);
    if (status != KITH_OK || !is_u8 || *ret_n != n) return status;
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((*ret_rows)[i]) (*ret_rows)[n_kept++] = i;
    }
    *ret_n = n_kept;
    return KITH_OK;
}

static void note_file(const char *path, char *name, size_t name_bytes, char hex[65]) {
    kith_error ignored;
    snprintf(name, name_bytes, "%s", path);
    if (kith_file_hash(path, hex, &ignored) != KITH_OK) hex[0] = '\0'; /* a pipe has no hash */
}

/* Queries and gallery as matrices of their own become one matrix, queries first. */
static kith_status join(const eval_files *f, const kith_array *query, const kith_array *gallery,
                        eval_set *set, kith_error *err) {
    if (!f->query_labels || !f->gallery_labels)
        return cli_error(
            err, KITH_EINVAL, NULL,
            "--query and --gallery are embeddings; wanted --query-labels and --gallery-labels too");
    if (gallery->n_dims != 2 || gallery->dtype != query->dtype || gallery->dim[1] != query->dim[1])
        return cli_error(err, KITH_ESHAPE, NULL,
                         "query is %s [%lld, %lld], gallery %s with %d dimensions of %lld values",
                         kith_dtype_name(query->dtype), (long long)query->dim[0], (long long)query->dim[1],
                         kith_dtype_name(gallery->dtype), gallery->n_dims, (long long)gallery->dim[1]);
    const int64_t nq = query->dim[0], ng = gallery->dim[0];
    kith_status status =
        kith_array_init(query->dtype, 2, (int64_t[]){nq + ng, query->dim[1]}, &set->embedding, err);
    if (status != KITH_OK) return status;
    const size_t row = (size_t)query->dim[1] * kith_dtype_bytes(query->dtype);
    memcpy(set->embedding.data, query->data, (size_t)nq * row);
    memcpy((char *)set->embedding.data + (size_t)nq * row, gallery->data, (size_t)ng * row);
    int64_t *more = NULL, n_more = 0, n_first = 0;
    status = read_integers(f->query_labels, &set->labels, &n_first, NULL, err);
    if (status == KITH_OK) status = read_integers(f->gallery_labels, &more, &n_more, NULL, err);
    if (status == KITH_OK && (n_first != nq || n_more != ng))
        status =
            cli_error(err, KITH_ESHAPE, NULL, "%lld query labels for %lld rows, %lld gallery labels for %lld",
                      (long long)n_first, (long long)nq, (long long)n_more, (long long)ng);
    if (status == KITH_OK) {
        int64_t *all = realloc(set->labels, (size_t)(nq + ng) * sizeof *all + 1);
        set->query = malloc((size_t)nq * sizeof *set->query + 1);
        set->gallery = malloc((size_t)ng * sizeof *set->gallery + 1);
        if (all) set->labels = all;
        if (!all || !set->query || !set->gallery) status = no_memory(err);
    }
    if (status == KITH_OK) {
        memcpy(set->labels + nq, more, (size_t)ng * sizeof *more);
        for (int64_t i = 0; i < nq; i++) set->query[i] = i;
        for (int64_t i = 0; i < ng; i++) set->gallery[i] = nq + i;
        set->n_query = nq, set->n_gallery = ng, set->n_labels = nq + ng;
        note_file(f->query, set->card.embedding, sizeof set->card.embedding, set->card.embedding_hash);
    }
    free(more);
    return status;
}

static kith_status read_apart(const eval_files *f, eval_set *set, kith_error *err) {
    kith_array query = {0}, gallery = {0};
    kith_status status = kith_npy_read(f->query, &query, err);
    if (status == KITH_OK) status = kith_npy_read(f->gallery, &gallery, err);
    if (status == KITH_OK && query.n_dims != 2)
        status = cli_error(err, KITH_EINVAL, "give --embedding E.npy, or two-dimensional embeddings for both",
                           "without --embedding, --query must hold embeddings; %s has %d dimensions",
                           f->query, query.n_dims);
    if (status == KITH_OK) status = join(f, &query, &gallery, set, err);
    kith_array_release(&query);
    kith_array_release(&gallery);
    return status;
}

kith_status eval_set_read(const eval_files *f, eval_set *set, kith_error *err) {
    kith_status status;
    memset(set, 0, sizeof *set);
    if (!f->embedding) {
        status = read_apart(f, set, err);
    } else {
        status = kith_npy_read(f->embedding, &set->embedding, err);
        if (status == KITH_OK && set->embedding.n_dims != 2)
            status = cli_error(err, KITH_ESHAPE, NULL, "%s has %d dimensions; wanted 2: [rows, dim]",
                               f->embedding, set->embedding.n_dims);
        if (status == KITH_OK) status = read_integers(f->labels, &set->labels, &set->n_labels, NULL, err);
        const int64_t n = set->embedding.dim[0];
        if (status == KITH_OK && set->n_labels != n)
            status = cli_error(err, KITH_ESHAPE, "rows and labels must go together one to one",
                               "%lld labels in %s for %lld rows in %s", (long long)set->n_labels, f->labels,
                               (long long)n, f->embedding);
        if (status == KITH_OK && f->query) status = read_rows(f->query, n, &set->query, &set->n_query, err);
        if (status == KITH_OK && f->gallery)
            status = read_rows(f->gallery, n, &set->gallery, &set->n_gallery, err);
        if (status == KITH_OK) {
            char unused[512];
            note_file(f->embedding, set->card.embedding, sizeof set->card.embedding,
                      set->card.embedding_hash);
            note_file(f->labels, unused, sizeof unused, set->card.labels_hash);
        }
    }
    if (status == KITH_OK) set->card.dim = set->embedding.dim[1];
    if (status != KITH_OK) eval_set_release(set);
    return status;
}

/* ---- a model and a data set ---- */

/* The card's facts about the model and its input. */
static void note_model(const eval_model *m, const kith_model_info *info, const char *tap, eval_card *card) {
    const kith_preprocess *p = &info->preprocess;
    if (m->model) note_file(m->model, card->model, sizeof card->model, card->weights_hash);
    snprintf(card->backbone, sizeof card->backbone, "%s", info->backbone);
    snprintf(card->pool, sizeof card->pool, "%s", info->pool);
    snprintf(card->tap, sizeof card->tap, "%s", tap);
    snprintf(card->resize, sizeof card->resize, "%s", cli_resize(info, m->resize));
    snprintf(card->split, sizeof card->split, "%s", kith_split_name((kith_split)m->split));
    snprintf(card->preprocessing, sizeof card->preprocessing,
             "%s, (pixel * %.6g - (%g, %g, %g)) / (%g, %g, %g)", p->bgr ? "bgr" : "rgb", p->scale, p->mean[0],
             p->mean[1], p->mean[2], p->std[0], p->std[1], p->std[2]);
    card->crop = info->height;
}

/* Which items and labels, not which pixels: enough to see that two results used other data. */
static void note_data(const kith_dataset *dataset, kith_split split, eval_card *card) {
    kith_dataset_hash(dataset, (int)split, card->data_hash);
    snprintf(card->data, sizeof card->data, "%s %s", kith_dataset_kind(dataset), kith_dataset_root(dataset));
}

typedef struct embedding_run {
    kith_model *model;
    const kith_dataset *dataset;
    kith_image_reader *reader;
    const char *tap;
    kith_split split;
    int64_t dim;
} embedding_run;

/* Read, embed, and keep label and role; unreadable images are left out. */
static kith_status embed_all(const embedding_run *run, eval_set *set, kith_error *err) {
    const int64_t n_all = kith_image_reader_count(run->reader);
    kith_status status = kith_array_init(KITH_F32, 2, (int64_t[]){n_all, run->dim}, &set->embedding, err);
    if (status != KITH_OK) return status;
    set->labels = malloc((size_t)n_all * sizeof *set->labels + 1);
    set->query = malloc((size_t)n_all * sizeof *set->query + 1);
    set->gallery = malloc((size_t)n_all * sizeof *set->gallery + 1);
    if (!set->labels || !set->query || !set->gallery) return no_memory(err);
    cli_progress progress;
    cli_progress_begin(&progress, "embedding", n_all);
    int64_t n = 0, at = 0;
    bool has_roles = false;
    for (;;) {
        kith_image_batch batch;
        status = kith_image_reader_next(run->reader, &batch, err);
        if (status != KITH_OK || batch.n == 0) break;
        status = kith_model_embed(run->model, batch.data, batch.n, run->tap,
                                  (float *)set->embedding.data + n * run->dim, err);
        if (status != KITH_OK) break;
        for (int64_t i = 0; i < batch.n; i++, n++) {
            kith_item item = kith_dataset_item(run->dataset, at);
            while (item.split != run->split || strcmp(item.path, batch.path[i]) != 0)
                item = kith_dataset_item(run->dataset, ++at);
            at++;
            set->labels[n] = kith_image_reader_label(run->reader, i);
            if (item.role != KITH_ROLE_GALLERY) set->query[set->n_query++] = n;
            if (item.role != KITH_ROLE_QUERY) set->gallery[set->n_gallery++] = n;
            has_roles |= item.role != KITH_ROLE_BOTH;
        }
        cli_progress_update(&progress, batch.n_tried, NULL);
    }
    cli_progress_end(&progress);
    if (status != KITH_OK) return status;
    set->embedding.dim[0] = set->n_labels = n;
    if (!has_roles) {
        free(set->query);
        free(set->gallery);
        set->query = set->gallery = NULL;
        set->n_query = set->n_gallery = 0;
    }
    const int64_t n_bad = kith_image_reader_n_bad(run->reader);
    if (n_bad > 0)
        fprintf(stderr, "kith: %lld images could not be read and are left out; the first: %s\n",
                (long long)n_bad, kith_image_reader_bad(run->reader, 0));
    return KITH_OK;
}

static kith_status save(const eval_model *m, const eval_set *set, kith_error *err) {
    kith_status status = KITH_OK;
    if (m->save_embedding) status = kith_npy_write(m->save_embedding, &set->embedding, err);
    if (status == KITH_OK && m->save_labels) {
        const kith_array labels = {KITH_I64, 1, {set->n_labels}, set->labels};
        status = kith_npy_write(m->save_labels, &labels, err);
    }
    return status;
}

kith_status eval_set_embed(const eval_model *m, eval_set *set, kith_error *err) {
    embedding_run run = {.split = (kith_split)m->split};
    kith_dataset *dataset = NULL;
    kith_model_info info;
    kith_transform transform;
    const kith_model_options options = {.backbone = m->backbone,
                                        .weights = m->model,
                                        .settings = m->settings,
                                        .height = m->crop,
                                        .width = m->crop,
                                        .pool = m->pool,
                                        .device = m->device,
                                        .precision = m->precision,
                                        .tf32 = m->tf32,
                                        .batch = m->batch};
    memset(set, 0, sizeof *set);
    kith_status status = m->recipe ? kith_dataset_open_recipe(m->recipe, &dataset, err)
                                   : kith_dataset_open(m->kind, m->data, &dataset, err);
    run.dataset = dataset;
    if (status == KITH_OK) status = kith_model_open(&options, &run.model, err);
    if (status == KITH_OK) {
        kith_model_info_get(run.model, &info);
        run.tap = m->tap ? m->tap : cli_default_tap(&info);
        status = cli_tap_count(run.model, run.tap, &run.dim, err);
    }
    if (status == KITH_OK) status = cli_transform(&info, m->resize, &transform, err);
    const kith_image_reader_settings reading = {.batch = m->batch, .most_bad = -1};
    if (status == KITH_OK)
        status = kith_image_reader_dataset(dataset, run.split, &transform, &reading, &run.reader, err);
    if (status == KITH_OK) status = embed_all(&run, set, err);
    if (status == KITH_OK) {
        note_model(m, &info, run.tap, &set->card);
        note_data(dataset, run.split, &set->card);
        if (m->recipe) note_file(m->recipe, set->card.recipe, sizeof set->card.recipe, set->card.recipe_hash);
        set->card.dim = run.dim;
        status = save(m, set, err);
    }
    kith_image_reader_free(run.reader);
    kith_model_free(run.model);
    kith_dataset_free(dataset);
    if (status != KITH_OK) eval_set_release(set);
    return status;
}
