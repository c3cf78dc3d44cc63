/* What is looked for: images, items of the index, or vectors from a file; and the asking. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/images.h"
#include "cli/search.h"
#include "kith/text.h"

/* Queries of one call: enough for a search that is fast, so few that their vectors and hits take little memory besides those that
 * are kept for printing. */
enum { QUERIES_AT_A_TIME = 4096 };

void search_queries_release(search_queries *q) {
    kith_array_release(&q->rows);
    for (int64_t i = 0; i < q->n; i++) {
        if (q->name) free(q->name[i]);
        if (q->found) kith_found_release(&q->found[i]);
    }
    free(q->name);
    free(q->id);
    free(q->parts);
    free(q->found);
    *q = (search_queries){0};
}

static kith_status no_memory(kith_error *err) {
    return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the queries");
}

const char *search_title(const search_queries *q, int64_t i, char *buf, size_t buf_bytes) {
    if (q->name) return q->name[i];
    if (q->id)
        snprintf(buf, buf_bytes, "item %lld", (long long)q->id[i]);
    else
        snprintf(buf, buf_bytes, "row %lld", (long long)i);
    return buf;
}

/* ---- kinds of queries ---- */

static kith_status read_rows(const char *path, kith_collection *collection, search_queries *q,
                             kith_error *err) {
    kith_index_info info;
    kith_array array = {0};
    kith_index_info_get(kith_collection_index(collection), &info);
    kith_status status = kith_npy_read(path, &array, err);
    if (status != KITH_OK) return status;
    if (array.n_dims == 1) { /* one vector */
        array.dim[1] = array.dim[0];
        array.dim[0] = 1;
        array.n_dims = 2;
    }
    if (array.n_dims != 2 || array.dim[1] != info.dim)
        status = cli_error(err, KITH_ESHAPE, "embed the queries with the model that made the index",
                           "%s holds %d dimensions, the last of %lld; wanted 2, the last of %lld", path,
                           array.n_dims, (long long)array.dim[array.n_dims - 1], (long long)info.dim);
    if (status == KITH_OK) status = kith_array_convert(&array, KITH_F32, &q->rows, err);
    if (status == KITH_OK) q->n = q->rows.dim[0];
    kith_array_release(&array);
    return status;
}

static kith_status read_ids(const search_command *c, search_queries *q, kith_error *err) {
    q->id = calloc((size_t)c->ids.n_items, sizeof *q->id);
    if (!q->id) return no_memory(err);
    for (q->n = 0; q->n < c->ids.n_items; q->n++) {
        const char *text = c->ids.item[q->n];
        if (!kith_parse_int(text, &q->id[q->n]) || q->id[q->n] < 0)
            return cli_error(err, KITH_EINVAL, NULL, "--id is '%.60s'; wanted the id of an item", text);
    }
    return KITH_OK;
}

static kith_status list_images(const search_command *c, search_queries *q, kith_error *err) {
    kith_dataset *set = NULL;
    kith_status status = kith_dataset_open_files(c->operands, c->n_operands, &set, err);
    const int64_t n = status == KITH_OK ? kith_dataset_count(set) : 0;
    if (status == KITH_OK && !(q->name = calloc((size_t)n + 1, sizeof *q->name))) status = no_memory(err);
    for (; status == KITH_OK && q->n < n; q->n++) {
        q->name[q->n] = strdup(kith_dataset_item(set, q->n).path);
        if (!q->name[q->n]) status = no_memory(err);
    }
    kith_dataset_free(set);
    return status;
}

static bool are_rows(const search_command *c) {
    const char *dot = c->n_operands == 1 ? strrchr(c->operands[0], '.') : NULL;
    return dot && strcmp(dot, ".npy") == 0;
}

/* What query i is made of: its image, item or vector, and the images of --and and --not. */
static void fill_parts(const search_command *c, const search_queries *q, int64_t i, kith_query_part *part) {
    *part = (kith_query_part){.id = q->id ? q->id[i] : -1, .weight = 1};
    if (q->rows.data) part->row = (const float *)q->rows.data + i * q->rows.dim[1];
    if (q->name) {
        part->image = (kith_query_image){.path = q->name[i], .has_box = c->has_crop};
        memcpy(part->image.box, c->crop, sizeof c->crop);
    }
    part++;
    for (int j = 0; j < c->also.n_items; j++)
        *part++ = (kith_query_part){.id = -1, .image = {.path = c->also.item[j]}, .weight = 1};
    for (int j = 0; j < c->unlike.n_items; j++)
        *part++ = (kith_query_part){.id = -1, .image = {.path = c->unlike.item[j]}, .weight = -1};
}

/* ---- answers ---- */

/* Images are embedded first, and then vectors compared: the count begins anew. */
typedef struct shown_progress {
    cli_progress shown;
    int64_t done;
} shown_progress;

static int show_progress(void *user, int64_t done, int64_t all) {
    shown_progress *p = user;
    if (done < p->done) {
        cli_progress_end(&p->shown);
        cli_progress_begin(&p->shown, "searching", all);
    }
    p->done = done;
    return cli_show_progress(&p->shown, done, all);
}

static kith_status ask_some(const search_command *c, kith_collection *collection, search_queries *q,
                            int64_t first, int64_t n, const kith_ask_options *how, kith_error *err) {
    kith_search_request *requests = calloc((size_t)n + 1, sizeof *requests);
    if (!requests) return no_memory(err);
    for (int64_t i = 0; i < n; i++) {
        requests[i] = c->search;
        requests[i].parts = q->parts + (first + i) * q->n_parts;
        requests[i].n_parts = q->n_parts;
    }
    const kith_status status = kith_collection_search(collection, requests, n, how, q->found + first, err);
    free(requests);
    /* Failures of single queries are looked at when all have been asked. */
    return status != KITH_ECANCELED && n > 0 && q->found[first].status != KITH_OK ? KITH_OK : status;
}

static kith_status ask_all(const search_command *c, kith_collection *collection, search_queries *q,
                           kith_error *err) {
    shown_progress progress = {0};
    KITH_OPTIONS(kith_ask_options, how);
    how.device = c->model.device;
    how.progress = show_progress;
    how.user = &progress;
    how.ids_only = c->out && !c->json && !c->csv && !c->html && !c->explain;
    q->n_parts = 1 + c->also.n_items + c->unlike.n_items;
    q->parts = calloc((size_t)(q->n * q->n_parts) + 1, sizeof *q->parts);
    q->found = calloc((size_t)q->n + 1, sizeof *q->found);
    if (!q->parts || !q->found) return no_memory(err);
    for (int64_t i = 0; i < q->n; i++) fill_parts(c, q, i, q->parts + i * q->n_parts);
    cli_progress_begin(&progress.shown, q->name ? "embedding" : "searching", 0);
    kith_status status = KITH_OK;
    for (int64_t i = 0; status == KITH_OK && i < q->n; i += QUERIES_AT_A_TIME) {
        const int64_t left = q->n - i;
        status =
            ask_some(c, collection, q, i, left < QUERIES_AT_A_TIME ? left : QUERIES_AT_A_TIME, &how, err);
    }
    cli_progress_end(&progress.shown);
    return status;
}

static kith_status first_error(const search_queries *q, int64_t i, kith_error *err) {
    *err = q->found[i].error;
    return q->found[i].status;
}

/* Of images as they are, those that cannot be read are left out. Any other failure is the command's. */
static kith_status drop_failed(const search_command *c, search_queries *q, kith_error *err) {
    const bool is_plain = q->name && q->n_parts == 1 && !c->has_crop && !c->search.flips;
    int64_t n = 0, n_bad = 0;
    char first[sizeof err->message];
    for (int64_t i = 0; i < q->n; i++) {
        const bool is_unread = is_plain && !q->found[i].row;
        if (q->found[i].status == KITH_OK) n++;
        if (q->found[i].status != KITH_OK && !is_unread) return first_error(q, i, err);
    }
    if (q->n > 0 && n == 0) return first_error(q, 0, err);
    n = 0;
    for (int64_t i = 0; i < q->n; i++) {
        if (q->found[i].status == KITH_OK) {
            if (n < i) { /* what is freed stays behind */
                const kith_found found = q->found[n];
                char *name = q->name[n];
                q->found[n] = q->found[i], q->found[i] = found;
                q->name[n] = q->name[i], q->name[i] = name;
                memcpy(q->parts + n * q->n_parts, q->parts + i * q->n_parts, sizeof *q->parts);
            }
            n++;
        } else if (n_bad++ == 0) {
            snprintf(first, sizeof first, "%s", q->found[i].error.message);
        }
    }
    for (int64_t i = n; i < q->n; i++) {
        free(q->name[i]);
        kith_found_release(&q->found[i]);
    }
    q->n = n;
    cli_report_bad(n_bad, first);
    return KITH_OK;
}

kith_status search_queries_ask(const search_command *c, kith_collection *collection, search_queries *ret,
                               kith_error *err) {
    *ret = (search_queries){0};
    ret->has_rates = kith_index_calibration(kith_collection_index(collection)) != NULL;
    kith_status status = c->ids.n_items > 0 ? read_ids(c, ret, err)
                         : are_rows(c)      ? read_rows(c->operands[0], collection, ret, err)
                                            : list_images(c, ret, err);
    if (status == KITH_OK) status = ask_all(c, collection, ret, err);
    if (status == KITH_OK) status = drop_failed(c, ret, err);
    if (status != KITH_OK) search_queries_release(ret);
    return status;
}
