/* A collection of photos: made from a folder, brought up to date, and searched.
 *
 *     photos COLLECTION MODEL FOLDER [PHOTO]
 *
 * The first call makes COLLECTION from FOLDER; later ones embed what is new in it and remove what is gone. Then the items that
 * are most similar to PHOTO are printed: score, class and file. */
#include <stdio.h>
#include <unistd.h>

#include "kith/collection.h"

/* Open it, or make it where there is none. */
static kith_status open_or_make(const char *path, const char *model, kith_collection **ret_photos,
                                kith_error *err) {
    KITH_OPTIONS(kith_model_options, how);
    how.weights = model;
    if (access(path, F_OK) == 0) {
        KITH_OPTIONS(kith_collection_open_options, options);
        options.mode = KITH_INDEX_WRITE;
        options.model = &how;
        return kith_collection_open(path, &options, ret_photos, err);
    }
    KITH_OPTIONS(kith_collection_options, options);
    options.model = &how;
    return kith_collection_create(path, &options, ret_photos, err);
}

static kith_status bring_up_to_date(kith_collection *photos, const char *folder, kith_error *err) {
    const kith_sources sources = {.paths = &folder, .n = 1, .split = KITH_SPLIT_ALL};
    kith_sync_report report;
    const kith_status status = kith_collection_sync(photos, &sources, NULL, &report, err);
    if (status == KITH_OK)
        printf("%lld added, %lld changed, %lld moved, %lld removed, %lld as before\n",
               (long long)report.n_added, (long long)report.n_changed, (long long)report.n_moved,
               (long long)report.n_removed, (long long)(report.n_same + report.n_touched));
    kith_sync_report_release(&report);
    return status;
}

static kith_status search(kith_collection *photos, const char *photo, kith_error *err) {
    const kith_query_part part = {.id = -1, .image = {.path = photo}, .weight = 1};
    KITH_OPTIONS(kith_search_request, request);
    request.parts = &part;
    request.n_parts = 1;
    kith_found found;
    const kith_status status = kith_collection_search(photos, &request, 1, NULL, &found, err);
    for (int64_t i = 0; i < found.n_hits; i++)
        printf("%.4f %s %s\n", found.hits[i].score, found.hits[i].item.label ? found.hits[i].item.label : "-",
               found.hits[i].picture ? found.hits[i].picture : "-");
    kith_found_release(&found);
    return status;
}

int main(int argc, char **argv) {
    kith_error err = {0};
    kith_collection *photos = NULL;
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: photos COLLECTION MODEL FOLDER [PHOTO]\n");
        return 2;
    }
    kith_status status = open_or_make(argv[1], argv[2], &photos, &err);
    if (status == KITH_OK) status = bring_up_to_date(photos, argv[3], &err);
    if (status == KITH_OK && argc > 4) status = search(photos, argv[4], &err);
    if (status != KITH_OK)
        fprintf(stderr, "photos: %s%s%s\n", err.message, err.hint[0] ? "; " : "", err.hint);
    kith_collection_free(photos);
    return status != KITH_OK;
}
