/* The curve of false-match rates of an index, measured on a data set or taken from the model. */
#include "api/embedder_handle.h"
#include "core/alloc.h"
#include "core/argument.h"
#include "core/text.h"

kith_status kith_embedder_calibrate(kith_embedder *embedder, const kith_dataset *dataset, kith_split split,
                                    kith_index *index, kith_progress_fn progress, void *user,
                                    kith_calibration *ret_calibration, kith_error *err) {
    KI_NEED(err, embedder, dataset, index, ret_calibration);
    kith_status status;
    kith_vectors *vectors = NULL;
    kith_array rows = {0};
    kith_index_info info;
    kith_verification *found = NULL;
    kith_embed_options how = ki_embedder_handle_options(embedder);
    KITH_OPTIONS(kith_verification_options, options);
    kith_index_info_get(index, &info);
    how.progress = progress;
    how.user = user;
    options.metric = info.metric;
    options.has_intervals = false;
    KI_TRY(kith_index_expect(index, embedder->hash, embedder->preprocess, err));
    KI_CHECK(ki_zalloc_or(&found, 1, sizeof *found, "a curve", err));
    KI_CHECK(kith_model_embed_dataset(embedder->model, dataset, split, &how, &vectors, err));
    KI_CHECK(kith_vectors_array(vectors, &rows, err));
    rows.n_dims = 2;
    rows.dim[1] = embedder->dim;
    const kith_retrieval_input input = {
        .embedding = &rows, .labels = kith_vectors_labels(vectors), .n_labels = kith_vectors_count(vectors)};
    KI_CHECK(kith_verification_run(&input, &options, found, err));
    ki_snprintf(found->curve.source, sizeof found->curve.source, "data");
    KI_CHECK(kith_index_calibrate(index, &found->curve, err));
    *ret_calibration = found->curve;
done:
    kith_vectors_free(vectors);
    ki_free(found);
    return status;
}
