/* A new index: from images and a model, or from vectors made elsewhere.
 *
 * The index is made under its own name and removed again when the work fails, so that nothing half-made is left. A stop
 * (Ctrl-C) is no failure: what was embedded is committed, and --sync goes on. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/images.h"
#include "cli/index.h"
#include "kith/items.h"
#include "kith/labels.h"

/* Remove the files of an index that was not finished, and its folder. */
static void discard(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        const int n = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (n > 0 && (size_t)n < sizeof name && entry->d_name[0] != '.') unlink(name);
    }
    closedir(folder);
    rmdir(path);
}

/* ---- images ---- */

/* A recipe may name its data from the folder that the user is in. */
static kith_status remember_here(const kith_dataset *set, kith_index *index, kith_error *err) {
    char here[4096];
    const char *first = kith_dataset_item(set, 0).path;
    if (!first || first[0] == '/' || !getcwd(here, sizeof here)) return KITH_OK;
    return kith_index_note_set(index, "folder", here, err);
}

static kith_status fill(const index_request *r, const index_source *source, const kith_dataset *set,
                        kith_embedder *embedder, kith_index **at, bool *ret_is_made, kith_error *err) {
    kith_index *index = *at;
    cli_progress progress;
    kith_sync_report report = {0};
    KITH_OPTIONS(kith_sync_options, sync);
    sync.split = source->split;
    sync.progress = index_show_progress;
    sync.user = &progress;
    kith_status status = kith_embedder_remember(embedder, index, err);
    if (status == KITH_OK) status = index_source_remember(source, index, err);
    if (status == KITH_OK) status = remember_here(set, index, err);
    if (status != KITH_OK) return status;
    cli_progress_begin(&progress, "embedding", 0);
    status = kith_index_sync(index, embedder, set, &sync, &report, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && report.n_added == 0)
        status = cli_error(err, KITH_EFORMAT, NULL, "no image of %lld could be read; the first: %.300s",
                           (long long)report.n_bad, report.n_named ? report.bad[0] : "");
    *ret_is_made = status == KITH_OK;
    if (status == KITH_OK) status = index_measure(r, at, embedder, err);
    kith_error why = {0};
    if (status == KITH_OK || status == KITH_ECANCELED) {
        const kith_status printed = index_print(r, *at, &report, &why);
        if (printed != KITH_OK) *err = why, status = printed;
    }
    kith_sync_report_release(&report);
    return status;
}

static kith_status make_of_images(const index_request *r, kith_error *err) {
    kith_index *index = NULL;
    kith_embedder *embedder = NULL;
    kith_dataset *set = NULL;
    index_source source = {0};
    kith_status status = index_source_take(r, NULL, &source, err);
    if (status == KITH_OK) status = index_source_open(&source, &set, err);
    if (status == KITH_OK) status = kith_embedder_open(&r->embedder, &embedder, err);
    if (status == KITH_OK) {
        KITH_OPTIONS(kith_index_options, options);
        options.dim = kith_embedder_dim(embedder);
        options.metric = r->metric;
        options.recall = r->recall;
        options.model = kith_embedder_hash(embedder);
        options.preprocess = kith_embedder_preprocess(embedder);
        status = kith_index_create(r->index, &options, &index, err);
    }
    if (status == KITH_OK) {
        bool is_made = false;
        status = fill(r, &source, set, embedder, &index, &is_made, err);
        kith_index_free(index);
        if (!is_made && status != KITH_ECANCELED) discard(r->index);
    }
    kith_embedder_free(embedder);
    kith_dataset_free(set);
    index_source_release(&source);
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
    kith_embedder *embedder;
} material;

static void material_release(material *m) {
    kith_array_release(&m->rows);
    kith_array_release(&m->labels);
    kith_items_free(m->items);
    kith_labels_free(m->names);
    kith_embedder_free(m->embedder);
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
    if (r->labels) status = name_labels(r->labels, m, err);
    if (status == KITH_OK && r->embedder.model) {
        status = kith_embedder_open(&r->embedder, &m->embedder, err);
        if (status == KITH_OK && kith_embedder_dim(m->embedder) != m->rows.dim[1])
            status = cli_error(err, KITH_ESHAPE, "name the model that made the vectors",
                               "%s has rows of %lld values, the model makes %lld", path,
                               (long long)m->rows.dim[1], (long long)kith_embedder_dim(m->embedder));
    }
    return status;
}

/* Paths of a table begin where the table lies, as those of a manifest do. */
static kith_status remember_folder(const char *table, kith_index *index, kith_error *err) {
    char *whole = realpath(table, NULL), *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash) *(slash == whole ? slash + 1 : slash) = '\0';
    const kith_status status = whole ? kith_index_note_set(index, "folder", whole, err) : KITH_OK;
    free(whole);
    return status;
}

static kith_status add_material(const index_request *r, const material *m, kith_index **at, bool *ret_is_made,
                                kith_error *err) {
    kith_index *index = *at;
    kith_status status = m->embedder ? kith_embedder_remember(m->embedder, index, err) : KITH_OK;
    if (status == KITH_OK && r->meta) status = remember_folder(r->meta, index, err);
    if (status == KITH_OK && m->rows.dim[0] > 0) status = kith_index_add(index, &m->rows, m->item, NULL, err);
    cli_progress progress;
    KITH_OPTIONS(kith_work_options, work);
    work.progress = index_show_progress;
    work.user = &progress;
    cli_progress_begin(&progress, "indexing", 0);
    if (status == KITH_OK) status = kith_index_commit(index, &work, err);
    cli_progress_end(&progress);
    *ret_is_made = status == KITH_OK;
    if (status == KITH_OK) status = index_measure(r, at, m->embedder, err);
    return status == KITH_OK ? index_print(r, *at, NULL, err) : status;
}

static kith_status make_of_vectors(const index_request *r, kith_error *err) {
    material m = {0};
    kith_index *index = NULL;
    kith_status status = read_material(r, &m, err);
    if (status == KITH_OK) {
        KITH_OPTIONS(kith_index_options, options);
        options.dim = m.rows.dim[1];
        options.metric = r->metric;
        options.recall = r->recall;
        options.model = kith_embedder_hash(m.embedder);
        options.preprocess = kith_embedder_preprocess(m.embedder);
        options.columns = kith_items_columns(m.items);
        options.n_columns = kith_items_n_columns(m.items);
        status = kith_index_create(r->index, &options, &index, err);
    }
    if (status == KITH_OK) {
        bool is_made = false;
        status = add_material(r, &m, &index, &is_made, err);
        kith_index_free(index);
        if (!is_made) discard(r->index);
    }
    material_release(&m);
    return status;
}

/* Are the rows of the .npy what the model takes (features), not what it makes? */
static kith_status are_features(const index_request *r, bool *ret, kith_error *err) {
    kith_embedder *embedder = NULL;
    kith_model_info info;
    kith_array rows = {0};
    *ret = false;
    if (!r->embedder.model) return KITH_OK;
    kith_status status = kith_npy_shape(r->operands[0], &rows, err);
    if (status == KITH_OK) status = kith_embedder_open(&r->embedder, &embedder, err);
    if (status != KITH_OK) return status;
    const kith_model *model = kith_embedder_model(embedder);
    kith_model_info_get(model, &info);
    *ret = kith_model_takes_features(model) && rows.n_dims == 2 && rows.dim[1] == info.channels;
    kith_embedder_free(embedder);
    return KITH_OK;
}

/* Who makes an index a second time wants it to hold what the folders hold now. */
static kith_status check_new(const index_request *r, kith_error *err) {
    char name[4096], hint[4200];
    kith_index *index = NULL;
    kith_error why;
    if (cli_is_address(r->index) || kith_index_open(r->index, KITH_INDEX_READ, &index, &why) != KITH_OK)
        return KITH_OK;
    kith_index_free(index);
    const size_t n = cli_quote(r->index, name, sizeof name);
    snprintf(hint, sizeof hint, "bring it up to date with: kith index %s --sync; or give another name",
             n < sizeof name ? name : "INDEX");
    return cli_error(err, KITH_EINVAL, hint, "%.300s is an index already", r->index);
}

kith_status index_make(const index_request *r, kith_error *err) {
    bool embeds = false;
    const kith_status is_new = check_new(r, err);
    if (is_new != KITH_OK) return is_new;
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
    if (!are_vectors && !r->embedder.model)
        return cli_error(err, KITH_EINVAL, "name it: --model RUN or --model MODEL.safetensors",
                         "there is no index at the server yet, and no model for a new one");
    return index_make(r, err);
}
