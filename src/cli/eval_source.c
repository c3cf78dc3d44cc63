/* Embeddings to judge: from files, or from a model and a data set. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/eval.h"
#include "cli/images.h"
#include "kith/labels.h"

void eval_set_release(eval_set *set) {
    kith_array_release(&set->embedding);
    free(set->labels);
    kith_labels_free(set->names);
    free(set->query);
    free(set->gallery);
    kith_vectors_free(set->vectors);
    kith_model_free(set->model);
    kith_dataset_free(set->dataset);
    memset(set, 0, sizeof *set);
}

kith_retrieval_input eval_set_input(const eval_set *set) {
    return (kith_retrieval_input){.embedding = &set->embedding,
                                  .labels = set->labels,
                                  .n_labels = set->n_labels,
                                  .query = set->query,
                                  .n_query = set->n_query,
                                  .gallery = set->gallery,
                                  .n_gallery = set->n_gallery};
}

static kith_status no_memory(kith_error *err) {
    return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the labels");
}

static bool is_integer(kith_dtype dtype) {
    return dtype == KITH_I32 || dtype == KITH_I64 || dtype == KITH_U8;
}

/* Memory for n numbers, at least for one; NULL also when the number of bytes overflows. */
static int64_t *make_numbers(int64_t n) {
    if (n < 0 || n > PTRDIFF_MAX / (int64_t)sizeof(int64_t) - 1) return NULL;
    return malloc(((size_t)n + 1) * sizeof(int64_t));
}

/* first, first + 1, … */
static int64_t *make_range(int64_t first, int64_t n) {
    int64_t *values = make_numbers(n);
    for (int64_t i = 0; values && i < n; i++) values[i] = first + i;
    return values;
}

/* An int64 array's values in memory of malloc. */
static kith_status take_values(const kith_array *from, int64_t **ret_values, int64_t *ret_n,
                               kith_error *err) {
    *ret_values = make_numbers(from->dim[0]);
    if (!*ret_values) return no_memory(err);
    memcpy(*ret_values, from->data, (size_t)from->dim[0] * sizeof **ret_values);
    *ret_n = from->dim[0];
    return KITH_OK;
}

static kith_status read_labels(kith_labels *names, const char *path, int64_t **ret_labels, int64_t *ret_n,
                               kith_error *err) {
    kith_array ids = {0};
    kith_status status = kith_labels_read(names, path, &ids, err);
    if (status == KITH_OK) status = take_values(&ids, ret_labels, ret_n, err);
    kith_array_release(&ids);
    return status;
}

static const char no_queries[] = "there are no queries", no_gallery[] = "the gallery is empty";

/* Row numbers; a list of bool or uint8 as long as the embedding is a mask. */
static kith_status read_all_rows(const char *path, int64_t n, int64_t **ret_rows, int64_t *ret_n,
                                 kith_error *err) {
    kith_array file = {0}, wide = {0};
    kith_status status = kith_npy_read(path, &file, err);
    if (status == KITH_OK && (!is_integer(file.dtype) || file.n_dims != 1))
        status = cli_error(err, KITH_ESHAPE, "row numbers from 0, or a mask of bool as long as the embedding",
                           "%s holds %s with %d dimensions; wanted integers with 1", path,
                           kith_dtype_name(file.dtype), file.n_dims);
    if (status == KITH_OK) status = kith_array_convert(&file, KITH_I64, &wide, err);
    if (status == KITH_OK) status = take_values(&wide, ret_rows, ret_n, err);
    const bool is_mask = status == KITH_OK && file.dtype == KITH_U8 && *ret_n == n;
    kith_array_release(&file);
    kith_array_release(&wide);
    if (!is_mask) return status;
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((*ret_rows)[i]) (*ret_rows)[n_kept++] = i;
    }
    *ret_n = n_kept;
    return KITH_OK;
}

static kith_status fail_empty(const char *path, const char *why, const char *advice, kith_error *err) {
    return cli_error(err, KITH_EINVAL, advice, "%s holds no rows: %s", path, why);
}

/* why: what it means that there are none. */
static kith_status read_rows(const char *path, int64_t n, const char *why, int64_t **ret_rows, int64_t *ret_n,
                             kith_error *err) {
    const kith_status status = read_all_rows(path, n, ret_rows, ret_n, err);
    if (status != KITH_OK || *ret_n > 0) return status;
    return fail_empty(path, why,
                      "wanted row numbers, or a mask with some true; without the option it is all rows", err);
}

/* NULL: a pipe has no hash. */
static const char *hash_file(const char *path, char hex[65]) {
    kith_error ignored;
    return kith_file_hash(path, hex, &ignored) == KITH_OK ? hex : NULL;
}

static void note_embedding(const char *path, eval_set *set) {
    set->facts.embedding = path;
    set->facts.embedding_sha256 = hash_file(path, set->embedding_hash);
}

/* Queries and gallery in two matrices become one matrix, queries first. */
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
    if (nq < 1) return fail_empty(f->query, no_queries, "wanted embeddings of at least one item", err);
    if (ng < 1) return fail_empty(f->gallery, no_gallery, "wanted embeddings of at least one item", err);
    kith_status status =
        kith_array_init(query->dtype, 2, (int64_t[]){nq + ng, query->dim[1]}, &set->embedding, err);
    if (status != KITH_OK) return status;
    const size_t row = (size_t)query->dim[1] * kith_dtype_bytes(query->dtype);
    memcpy(set->embedding.data, query->data, (size_t)nq * row);
    memcpy((char *)set->embedding.data + (size_t)nq * row, gallery->data, (size_t)ng * row);
    int64_t *more = NULL, n_more = 0, n_first = 0;
    status = kith_labels_new(&set->names, err); /* one map for both files: a name is the same class in each */
    if (status == KITH_OK) status = read_labels(set->names, f->query_labels, &set->labels, &n_first, err);
    if (status == KITH_OK) status = read_labels(set->names, f->gallery_labels, &more, &n_more, err);
    if (status == KITH_OK && (n_first != nq || n_more != ng))
        status =
            cli_error(err, KITH_ESHAPE, NULL, "%lld query labels for %lld rows, %lld gallery labels for %lld",
                      (long long)n_first, (long long)nq, (long long)n_more, (long long)ng);
    int64_t *all = status == KITH_OK ? make_numbers(nq + ng) : NULL;
    if (all) {
        memcpy(all, set->labels, (size_t)nq * sizeof *all);
        memcpy(all + nq, more, (size_t)ng * sizeof *all);
        free(set->labels);
        set->labels = all;
        set->query = make_range(0, nq);
        set->gallery = make_range(nq, ng);
        set->n_query = nq, set->n_gallery = ng, set->n_labels = nq + ng;
        note_embedding(f->query, set);
    }
    if (status == KITH_OK && (!all || !set->query || !set->gallery)) status = no_memory(err);
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
    kith_card_facts_init(&set->facts, sizeof set->facts);
    if (!f->embedding) {
        status = read_apart(f, set, err);
    } else {
        status = kith_npy_read(f->embedding, &set->embedding, err);
        if (status == KITH_OK && set->embedding.n_dims != 2)
            status = cli_error(err, KITH_ESHAPE, NULL, "%s has %d dimensions; wanted 2: [rows, dim]",
                               f->embedding, set->embedding.n_dims);
        if (status == KITH_OK) status = kith_labels_new(&set->names, err);
        if (status == KITH_OK) status = read_labels(set->names, f->labels, &set->labels, &set->n_labels, err);
        const int64_t n = set->embedding.dim[0];
        if (status == KITH_OK && set->n_labels != n)
            status = cli_error(err, KITH_ESHAPE, "rows and labels must go together one to one",
                               "%lld labels in %s for %lld rows in %s", (long long)set->n_labels, f->labels,
                               (long long)n, f->embedding);
        if (status == KITH_OK && f->query)
            status = read_rows(f->query, n, no_queries, &set->query, &set->n_query, err);
        if (status == KITH_OK && f->gallery)
            status = read_rows(f->gallery, n, no_gallery, &set->gallery, &set->n_gallery, err);
        if (status == KITH_OK) {
            note_embedding(f->embedding, set);
            set->facts.labels_sha256 = hash_file(f->labels, set->labels_hash);
        }
    }
    if (status == KITH_OK) set->facts.embedding_size = set->embedding.dim[1];
    if (status != KITH_OK) eval_set_release(set);
    return status;
}

/* ---- a model and a data set ---- */

static kith_status save(const eval_model *m, const eval_set *set, kith_error *err) {
    kith_status status = KITH_OK;
    kith_array values = {0};
    if (m->save_embedding) status = kith_vectors_array(set->vectors, &values, err);
    if (status == KITH_OK && m->save_embedding) status = kith_npy_write(m->save_embedding, &values, err);
    if (status == KITH_OK && m->save_labels) {
        const kith_array labels = {KITH_I64,
                                   1,
                                   {kith_vectors_count(set->vectors)},
                                   (void *)(uintptr_t)kith_vectors_labels(set->vectors)};
        status = kith_npy_write(m->save_labels, &labels, err);
    }
    return status;
}

/* Before anything is embedded: somebody must look for somebody. */
static kith_status check_roles(const kith_dataset *set, kith_split split, kith_error *err) {
    int64_t n = 0, n_query = 0, n_gallery = 0;
    for (int64_t i = 0; i < kith_dataset_count(set); i++) {
        const kith_item item = kith_dataset_item(set, i);
        if (split != KITH_SPLIT_ALL && item.split != split) continue;
        n++;
        n_query += item.role != KITH_ROLE_GALLERY;
        n_gallery += item.role != KITH_ROLE_QUERY;
    }
    if (n == 0 || (n_query > 0 && n_gallery > 0)) return KITH_OK;
    return cli_error(
        err, KITH_EINVAL,
        n_query ? "wanted images whose role is gallery or both" : "wanted images whose role is query or both",
        "%s: every image is of the role %s: %s", kith_dataset_root(set), n_query ? "query" : "gallery",
        n_query ? no_gallery : no_queries);
}

kith_status eval_set_embed(const eval_model *m, eval_set *set, kith_error *err) {
    cli_progress progress;
    const kith_model_options options = {.size = sizeof(kith_model_options),
                                        .backbone = m->backbone,
                                        .weights = m->named,
                                        .settings = m->settings,
                                        .height = m->crop,
                                        .width = m->crop,
                                        .side = m->side,
                                        .views = m->views,
                                        .pool = m->pool,
                                        .device = m->device,
                                        .precision = m->precision,
                                        .tf32 = m->tf32,
                                        .batch = m->batch};
    const kith_embed_options embed = {.size = sizeof(kith_embed_options),
                                      .tap = m->tap,
                                      .resize = m->resize,
                                      .most_bad = -1,
                                      .progress = cli_show_progress,
                                      .user = &progress};
    memset(set, 0, sizeof *set);
    kith_card_facts_init(&set->facts, sizeof set->facts);
    kith_status status = m->recipe   ? kith_dataset_open_recipe(m->recipe, &set->dataset, err)
                         : m->labels ? kith_dataset_open_features(m->data, m->labels, &set->dataset, err)
                                     : kith_dataset_open(m->kind, m->data, &set->dataset, err);
    if (status == KITH_OK) status = check_roles(set->dataset, m->split, err);
    if (status == KITH_OK) status = kith_model_open(&options, &set->model, err);
    if (status == KITH_OK && m->model) {
        cli_say_model(m->named, set->model);
        if (!m->quiet) cli_say_purpose(m->named);
    }
    cli_progress_begin(&progress, "embedding", 0);
    if (status == KITH_OK)
        status = kith_model_embed_dataset(set->model, set->dataset, m->split, &embed, &set->vectors, err);
    cli_progress_end(&progress);
    if (status == KITH_OK) {
        cli_report_bad(kith_vectors_n_bad(set->vectors), kith_vectors_bad(set->vectors, 0));
        kith_vectors_facts(set->vectors, &set->facts);
        if (m->model) {
            set->facts.model = m->model;
            set->facts.model_sha256 = hash_file(m->model, set->model_hash);
        }
        if (m->recipe) {
            set->facts.recipe = m->recipe;
            set->facts.recipe_sha256 = hash_file(m->recipe, set->recipe_hash);
        }
        status = save(m, set, err);
    }
    if (status != KITH_OK) eval_set_release(set);
    return status;
}
