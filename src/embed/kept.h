/* Features that are kept: what a network says of the images of a set, on the disk, made once.
 *
 *     KI_TRY(ki_kept_open(&settings, &keep, err));
 *     for (view …) KI_TRY(ki_kept_view(keep, view, err));    // nothing to do where the file is there
 *     KI_TRY(ki_kept_lone(keep, err));                       // only where test items are wanted
 *     KI_TRY(ki_kept_give(keep, n_views, true, set, err));   // the set's items are these features now
 *     ki_kept_free(keep);
 *
 * View 0 of an image is how it is judged; the others are drawn as a training would draw them, by the seed alone. Test items have
 * view 0 only. The files lie in FOLDER/HASH, and HASH is of everything that decides them: the network, how it gets its images, and
 * the list of images with their sizes and dates. A file is whole or not there. While one is made, parts of it are kept, so that a
 * process that was killed loses a thousand images at most. Beside a file lies its checksum (NAME.npy.sum): one that was damaged since is
 * set aside (NAME.npy.damaged) and made again. An image that cannot be read is a row of NaN, which readers of features
 * leave out. */
#ifndef KI_KEPT_H
#define KI_KEPT_H

#include "data/dataset/dataset.h"
#include "net/net.h"
#include "nn/params.h"

typedef struct ki_kept ki_kept;

/* Pointers are borrowed and must outlive the keep. */
typedef struct ki_kept_settings {
    const char *folder;
    const kith_dataset *set; /* of images */
    ki_backend *backend;
    const ki_net *net, *test_net; /* for the sizes of the two transforms; the same parameters */
    ki_params *params;
    kith_transform train, test;
    const char *identity; /* what decides network and transforms, as text: hashes, settings */
    int64_t batch;        /* images per pass */
    int64_t n_workers;    /* threads that decode; 0: one per core */
    int64_t most_bad;     /* unreadable images tolerated; negative: any number */
    uint64_t seed;
    kith_progress_fn progress; /* in images of the file that is made; non-zero: KITH_ECANCELED. May be NULL */
    void *user;
} ki_kept_settings;

/* Makes FOLDER/HASH. KITH_EIO: another process makes features there. */
kith_status ki_kept_open(const ki_kept_settings *settings, ki_kept **ret_keep, kith_error *err);
void ki_kept_free(ki_kept *keep); /* NULL is fine; the files stay */
const char *ki_kept_folder(const ki_kept *keep);

/* Is the file of a view there? */
bool ki_kept_has(const ki_kept *keep, int64_t view);
/* Make it unless it is there: of all items but test items; and view 0 of these. */
kith_status ki_kept_view(ki_kept *keep, int64_t view, kith_error *err);
kith_status ki_kept_lone(ki_kept *keep, kith_error *err);

/* Of a keep whose items are some of another's: view 0 and that of test items are taken from there, where they were made. from_item:
 * the number of each item in the other's set; in the same order in both. */
kith_status ki_kept_take(ki_kept *keep, const ki_kept *from, const int64_t *from_item, kith_error *err);

/* Items of `set`, which has the same items as the settings' set, are from now on rows of these files. */
kith_status ki_kept_give(const ki_kept *keep, int64_t n_views, bool with_lone, kith_dataset *set,
                         kith_error *err);

#endif
