/* What is looked for: images through the model that made the index, or vectors from a file. */
#include <stdlib.h>
#include <string.h>

#include "cli/images.h"
#include "cli/search.h"

void search_queries_release(search_queries *q) {
    kith_array_release(&q->rows);
    for (int64_t i = 0; q->name && i < q->n; i++) free(q->name[i]);
    free(q->name);
    kith_embedder_free(q->embedder);
    *q = (search_queries){0};
}

static kith_status no_memory(kith_error *err) {
    return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the queries");
}

static kith_status make_room(int64_t n, int64_t dim, search_queries *q, kith_error *err) {
    const kith_status status = kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &q->rows, err);
    if (status != KITH_OK) return status;
    q->name = calloc((size_t)n + 1, sizeof *q->name);
    return q->name ? KITH_OK : no_memory(err);
}

static kith_status name(search_queries *q, const char *path, kith_error *err) {
    q->name[q->n] = strdup(path);
    return q->name[q->n++] ? KITH_OK : no_memory(err);
}

/* ---- vectors ---- */

static kith_status read_rows(const char *path, const kith_index *index, search_queries *q, kith_error *err) {
    kith_index_info info;
    kith_index_info_get(index, &info);
    const kith_status status = kith_npy_read(path, &q->rows, err);
    if (status != KITH_OK) return status;
    if (q->rows.n_dims == 1) { /* one vector */
        q->rows.dim[1] = q->rows.dim[0];
        q->rows.dim[0] = 1;
        q->rows.n_dims = 2;
    }
    if (q->rows.n_dims != 2 || q->rows.dim[1] != info.dim)
        return cli_error(err, KITH_ESHAPE, "embed the queries with the model that made the index",
                         "%s holds %d dimensions, the last of %lld; wanted 2, the last of %lld", path,
                         q->rows.n_dims, (long long)q->rows.dim[q->rows.n_dims - 1], (long long)info.dim);
    q->n = q->rows.dim[0];
    return KITH_OK;
}

/* ---- images ---- */

/* Images as they are: decoded by several threads while the network works. */
static kith_status embed_plain(const kith_dataset *set, kith_embedder *embedder, search_queries *q,
                               kith_error *err) {
    const int64_t n = kith_dataset_count(set);
    int64_t *items = calloc((size_t)n + 1, sizeof *items);
    kith_vectors *vectors = NULL;
    cli_progress progress;
    kith_array rows;
    if (!items) return no_memory(err);
    for (int64_t i = 0; i < n; i++) items[i] = i;
    cli_progress_begin(&progress, "embedding", n);
    kith_status status =
        kith_embedder_items(embedder, set, items, n, cli_show_progress, &progress, &vectors, err);
    cli_progress_end(&progress);
    const int64_t n_read = status == KITH_OK ? kith_vectors_count(vectors) : 0;
    if (status == KITH_OK && n_read == 0)
        status = cli_error(err, KITH_EFORMAT, NULL, "%s", kith_vectors_bad(vectors, 0));
    if (status == KITH_OK) status = make_room(n_read, kith_embedder_dim(embedder), q, err);
    if (status == KITH_OK) status = kith_vectors_array(vectors, &rows, err);
    if (status == KITH_OK) {
        cli_report_bad(kith_vectors_n_bad(vectors), kith_vectors_bad(vectors, 0));
        memcpy(q->rows.data, rows.data, (size_t)kith_array_count(&q->rows) * sizeof(float));
    }
    for (int64_t i = 0; status == KITH_OK && i < n_read; i++)
        status = name(q, kith_dataset_item(set, kith_vectors_items(vectors)[i]).path, err);
    kith_vectors_free(vectors);
    free(items);
    return status;
}

int64_t search_query_images(const search_request *r, const char *path,
                            kith_query_image image[SEARCH_MOST_IMAGES]) {
    int64_t n = 0;
    image[n] = (kith_query_image){.path = path, .has_box = r->has_crop, .weight = 1};
    memcpy(image[n++].box, r->crop, sizeof image[0].box);
    for (int i = 0; i < r->also.n_items; i++)
        image[n++] = (kith_query_image){.path = r->also.item[i], .weight = 1};
    for (int i = 0; i < r->unlike.n_items; i++)
        image[n++] = (kith_query_image){.path = r->unlike.item[i], .weight = -1};
    return n;
}

/* Each image together with those of --and and --not, or cut, or with its mirror image. */
static kith_status embed_combined(const search_request *r, const kith_dataset *set, kith_embedder *embedder,
                                  search_queries *q, kith_error *err) {
    const int64_t n = kith_dataset_count(set), dim = kith_embedder_dim(embedder);
    kith_query_image image[SEARCH_MOST_IMAGES];
    KITH_OPTIONS(kith_query_options, options);
    options.flips = r->flips;
    kith_status status = make_room(n, dim, q, err);
    for (int64_t i = 0; status == KITH_OK && i < n; i++) {
        const int64_t n_images = search_query_images(r, kith_dataset_item(set, i).path, image);
        status =
            kith_embedder_query(embedder, image, n_images, &options, (float *)q->rows.data + i * dim, err);
        if (status == KITH_OK) status = name(q, image[0].path, err);
    }
    return status;
}

static kith_status embed_images(const search_request *r, const kith_index *index, search_queries *q,
                                kith_error *err) {
    kith_dataset *set = NULL;
    const bool is_plain = !r->has_crop && !r->flips && r->also.n_items + r->unlike.n_items == 0;
    kith_status status = kith_dataset_open_files(r->operands, r->n_operands, &set, err);
    if (status == KITH_OK) status = kith_embedder_open_index(index, &r->embedder, &q->embedder, err);
    if (status == KITH_OK)
        status =
            is_plain ? embed_plain(set, q->embedder, q, err) : embed_combined(r, set, q->embedder, q, err);
    kith_dataset_free(set);
    return status;
}

kith_status search_queries_make(const search_request *r, const kith_index *index, search_queries *ret,
                                kith_error *err) {
    const char *dot = strrchr(r->operands[0], '.');
    *ret = (search_queries){0};
    const kith_status status = r->n_operands == 1 && dot && strcmp(dot, ".npy") == 0
                                   ? read_rows(r->operands[0], index, ret, err)
                                   : embed_images(r, index, ret, err);
    if (status != KITH_OK) search_queries_release(ret);
    return status;
}
