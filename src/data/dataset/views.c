/* Features that a network made of the images of a set: of some items several views, one file of rows for each; of others view 0
 * alone, in a file of their own. The files hold no more rows than there are, so that an item's place has to be looked up. */
#include "base/alloc.h"
#include "data/dataset/dataset.h"

struct ki_item_views {
    int64_t n;           /* files of views; the first is the set's `rows` */
    ki_npy_rows **other; /* [n] file of view k; the first is NULL */
    ki_npy_rows *lone;
    int64_t *row;  /* [items of the set] in the file, -1: there is none */
    bool *is_lone; /* [items of the set] the row is in the lone file */
};

void ki_item_views_free(struct ki_item_views *v) {
    if (!v) return;
    for (int64_t k = 0; v->other && k < v->n; k++) ki_npy_rows_free(v->other[k]);
    ki_npy_rows_free(v->lone);
    ki_free(v->other);
    ki_free(v->row);
    ki_free(v->is_lone);
    ki_free(v);
}

static kith_status open_file(const char *path, int64_t n, int64_t dim, ki_npy_rows **ret, kith_error *err) {
    KI_TRY(ki_npy_rows_open(path, ret, err));
    const int64_t n_found = ki_npy_rows_count(*ret), dim_found = ki_npy_rows_dim(*ret);
    if (n_found == n && (dim == 0 || dim_found == dim)) return KITH_OK;
    ki_fail(err, KITH_ESHAPE, "%s holds %lld rows of %lld numbers; wanted %lld of %lld", path,
            (long long)n_found, (long long)dim_found, (long long)n, (long long)(dim ? dim : dim_found));
    return ki_hint(err, KITH_ESHAPE, "remove the file, and it is made again");
}

static kith_status open_files(kith_dataset *set, struct ki_item_views *v, const ki_view_files *files,
                              kith_error *err) {
    KI_TRY(ki_zalloc_or(&v->other, (size_t)files->n_views, sizeof *v->other, "views", err));
    v->n = files->n_views;
    KI_TRY(open_file(files->view[0], files->n, 0, &set->rows, err));
    const int64_t dim = ki_npy_rows_dim(set->rows);
    for (int64_t k = 1; k < v->n; k++) KI_TRY(open_file(files->view[k], files->n, dim, &v->other[k], err));
    return files->lone ? open_file(files->lone, files->n_lone, dim, &v->lone, err) : KITH_OK;
}

static kith_status place(const kith_dataset *set, struct ki_item_views *v, const ki_view_files *files,
                         kith_error *err) {
    KI_TRY(ki_alloc_or(&v->row, set->n_items, sizeof *v->row, "places of rows", err));
    KI_TRY(ki_zalloc_or(&v->is_lone, set->n_items, sizeof *v->is_lone, "places of rows", err));
    for (size_t i = 0; i < set->n_items; i++) v->row[i] = -1;
    for (int64_t i = 0; i < files->n; i++) v->row[files->items[i]] = i;
    for (int64_t i = 0; files->lone && i < files->n_lone; i++) {
        v->row[files->lone_items[i]] = i;
        v->is_lone[files->lone_items[i]] = true;
    }
    return KITH_OK;
}

kith_status ki_dataset_take_views(kith_dataset *set, const ki_view_files *files, kith_error *err) {
    KI_TRY(ki_zalloc_or(&set->views, 1, sizeof *set->views, "views", err));
    KI_TRY(open_files(set, set->views, files, err));
    return place(set, set->views, files, err);
}

int64_t ki_dataset_n_views(const kith_dataset *set) { return set->views ? set->views->n : 1; }

static const ki_npy_rows *find(const kith_dataset *set, int64_t item, int64_t view, int64_t *ret_row) {
    const struct ki_item_views *v = set->views;
    *ret_row = v->row[item];
    if (v->is_lone[item]) return view == 0 ? v->lone : NULL;
    return view == 0 ? set->rows : v->other[view];
}

kith_status ki_dataset_view_row(const kith_dataset *set, int64_t item, int64_t view, float *ret_values,
                                kith_error *err) {
    int64_t row = -1;
    const ki_npy_rows *rows = find(set, item, view, &row);
    if (!rows || row < 0)
        return ki_fail(err, KITH_EINTERNAL, "%s: there are no features of view %lld", set->item[item].path,
                       (long long)view);
    KI_TRY(ki_npy_rows_read(rows, row, ret_values, err));
    return ki_dataset_check_row(set, item, ret_values, err);
}

bool ki_dataset_view_rows(const kith_dataset *set, const int64_t *items, const int64_t *views, int64_t n,
                          float *ret_values) {
    const int64_t dim = ki_npy_rows_dim(set->rows);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = -1;
        const ki_npy_rows *rows = find(set, items[i], views ? views[i] : 0, &row);
        if (!rows || !ki_npy_rows_gather(rows, &row, 1, ret_values + i * dim)) return false;
    }
    return ki_are_finite(ret_values, n * dim);
}
