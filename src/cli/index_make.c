/* A new index: from images and a model, or from vectors made elsewhere. A stop (Ctrl-C) is no failure: what was embedded is committed,
 * and --sync goes on. */
#include <stdlib.h>
#include <string.h>

#include "cli/images.h"
#include "cli/index.h"
#include "kith/items.h"
#include "kith/labels.h"

static kith_status create(const index_request *r, kith_collection_options *options, kith_collection **ret,
                          kith_error *err) {
    char name[4096], hint[4200];
    kith_index *index = NULL;
    options->metric = r->metric;
    options->recall = r->recall;
    options->first = r->first;
    const kith_status status = kith_collection_create(r->index, options, ret, err);
    if (status != KITH_EINVAL || cli_is_address(r->index) ||
        kith_index_open(r->index, KITH_INDEX_READ, &index, NULL) != KITH_OK)
        return status;
    /* Who makes an index a second time wants it to hold what the folders hold now. */
    kith_index_free(index);
    const size_t n = cli_quote(r->index, name, sizeof name);
    snprintf(hint, sizeof hint, "bring it up to date with: kith index %s --sync; or give another name",
             n < sizeof name ? name : "INDEX");
    return cli_error(err, status, hint, "%.300s is an index already", r->index);
}

static kith_status make_of_images(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    kith_model *model = NULL;
    cli_progress progress;
    kith_sync_report report = {0};
    const kith_sources sources = {r->operands, r->n_operands, r->kind, r->split};
    KITH_OPTIONS(kith_collection_options, options);
    KITH_OPTIONS(kith_sync_options, sync);
    sync.progress = index_show_progress;
    sync.user = &progress;
    index_take_facts(r, &sync);
    options.model = &r->model;
    kith_status status = create(r, &options, &collection, err);
    if (status != KITH_OK) return status;
    if (kith_collection_model(collection, &model, err) == KITH_OK) {
        cli_say_model(r->model.weights, model);
        if (!r->json) cli_say_purpose(r->model.weights);
    }
    cli_progress_begin(&progress, "embedding", 0);
    status = kith_collection_sync(collection, &sources, &sync, &report, err);
    cli_progress_end(&progress);
    status = index_finish(r, collection, status, &report, err);
    if (status == KITH_OK) cli_say_rates(kith_index_calibration(kith_collection_index(collection)));
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    return status;
}

/* ---- vectors ---- */

/* Vectors and what is known of them. */
typedef struct material {
    kith_array rows;
    kith_items *items; /* of --meta; NULL: none */
    kith_labels *names;
    kith_array labels;
    kith_index_item *item; /* [rows]; strings belong to the others */
    char *numbers;         /* labels that are numbers, as text */
    char *folder;          /* where paths of the table begin; NULL: nowhere */
} material;

static void material_release(material *m) {
    kith_array_release(&m->rows);
    kith_array_release(&m->labels);
    kith_items_free(m->items);
    kith_labels_free(m->names);
    free(m->folder);
    free(m->item);
    free(m->numbers);
}

static kith_status check_count(const char *path, int64_t found, const char *what, const material *m,
                               kith_error *err) {
    if (found == m->rows.dim[0]) return KITH_OK;
    return cli_error(err, KITH_ESHAPE, "one for each row, in their order", "%s holds %lld %s for %lld rows",
                     path, (long long)found, what, (long long)m->rows.dim[0]);
}

enum { NUMBER_BYTES = 24 };

static kith_status name_labels(const char *path, material *m, kith_error *err) {
    const int64_t n = m->rows.dim[0];
    kith_status status = kith_labels_new(&m->names, err);
    if (status == KITH_OK) status = kith_labels_read(m->names, path, &m->labels, err);
    if (status == KITH_OK) status = check_count(path, m->labels.dim[0], "labels", m, err);
    if (status != KITH_OK) return status;
    m->numbers = calloc((size_t)n + 1, NUMBER_BYTES);
    if (!m->numbers) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the labels");
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = ((const int64_t *)m->labels.data)[i];
        char *number = m->numbers + i * NUMBER_BYTES;
        snprintf(number, NUMBER_BYTES, "%lld", (long long)label);
        const char *name = kith_labels_n_names(m->names) > 0 ? kith_labels_name(m->names, label) : NULL;
        m->item[i].label = name ? name : number;
    }
    return KITH_OK;
}

/* Paths of a table begin where the table lies, as those of a manifest do. */
static void find_folder(const char *table, material *m) {
    m->folder = realpath(table, NULL);
    char *slash = m->folder ? strrchr(m->folder, '/') : NULL;
    if (slash) *(slash == m->folder ? slash + 1 : slash) = '\0';
}

static kith_status read_material(const index_request *r, material *m, kith_error *err) {
    const char *path = r->operands[0];
    kith_status status = kith_npy_read(path, &m->rows, err);
    if (status == KITH_OK && m->rows.n_dims != 2)
        status = cli_error(err, KITH_ESHAPE, NULL, "%s has %d dimensions; wanted 2: [rows, dim]", path,
                           m->rows.n_dims);
    if (status == KITH_OK && r->meta) status = kith_items_read(r->meta, &m->items, err);
    if (status == KITH_OK && r->meta)
        status = check_count(r->meta, kith_items_count(m->items), "items", m, err);
    if (status != KITH_OK) return status;
    m->item = calloc((size_t)m->rows.dim[0] + 1, sizeof *m->item);
    if (!m->item) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the items");
    for (int64_t i = 0; i < m->rows.dim[0]; i++) {
        m->item[i] = m->items ? kith_items_list(m->items)[i]
                              : (kith_index_item){.id = -1, .bytes = -1, .mtime_ns = -1};
    }
    if (r->meta) find_folder(r->meta, m);
    return r->labels ? name_labels(r->labels, m, err) : KITH_OK;
}

static kith_status make_of_vectors(const index_request *r, kith_error *err) {
    material m = {0};
    kith_collection *collection = NULL;
    cli_progress progress;
    kith_sync_report report = {0};
    KITH_OPTIONS(kith_collection_options, options);
    KITH_OPTIONS(kith_work_options, work);
    work.progress = index_show_progress;
    work.user = &progress;
    kith_status status = read_material(r, &m, err);
    if (status == KITH_OK) {
        options.dim = m.rows.dim[1];
        options.columns = kith_items_columns(m.items);
        options.n_columns = kith_items_n_columns(m.items);
        options.folder = m.folder;
        options.model = r->model.weights ? &r->model : NULL;
        status = create(r, &options, &collection, err);
        const kith_error why = *err;
        if (status == KITH_ESHAPE)
            cli_error(err, status, why.hint, "%.200s: %.250s", r->operands[0], why.message);
    }
    if (status == KITH_OK) {
        cli_progress_begin(&progress, "indexing", 0);
        status = kith_collection_add_rows(collection, &m.rows, m.item, &work, &report, err);
        cli_progress_end(&progress);
    }
    if (status == KITH_OK) {
        index_print_measured(&report);
        status = index_print(r, collection, NULL, err);
    }
    kith_collection_free(collection);
    material_release(&m);
    return status;
}

/* Are the rows of the .npy what the model takes (features), not what it makes? */
static kith_status are_features(const index_request *r, bool *ret, kith_error *err) {
    kith_model *model = NULL;
    kith_model_info info;
    kith_array rows = {0};
    *ret = false;
    if (!r->model.weights) return KITH_OK;
    kith_status status = kith_npy_shape(r->operands[0], &rows, err);
    if (status == KITH_OK) status = kith_model_open(&r->model, &model, err);
    if (status != KITH_OK) return status;
    kith_model_info_get(model, &info);
    *ret = kith_model_takes_features(model) && rows.n_dims == 2 && rows.dim[1] == info.channels;
    kith_model_free(model);
    return KITH_OK;
}

kith_status index_make(const index_request *r, kith_error *err) {
    bool embeds = false;
    if (r->n_operands != 1 || !cli_ends_with(r->operands[0], ".npy")) return make_of_images(r, err);
    const kith_status status = are_features(r, &embeds, err);
    if (status != KITH_OK) return status;
    if (embeds && (r->labels || r->meta))
        return cli_error(
            err, KITH_EINVAL, "put the labels beside the features, as NAME.labels.txt of NAME.npy",
            "%s and features for the model to embed are both given", r->labels ? "--labels" : "--meta");
    return embeds ? make_of_images(r, err) : make_of_vectors(r, err);
}

kith_status index_put(const index_request *r, kith_error *err) {
    kith_index *index = NULL;
    const bool are_vectors = r->n_operands == 1 && cli_ends_with(r->operands[0], ".npy");
    const kith_status status = kith_index_open(r->index, KITH_INDEX_READ, &index, err);
    kith_index_free(index);
    if (status == KITH_OK && !are_vectors) return index_sync(r, err);
    if (status != KITH_OK && status != KITH_ENOTFOUND) return status;
    return index_make(r, err);
}
