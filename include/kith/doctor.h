/* Doctor: what is wrong with a data set before a network is trained on it, what of it matters, and what to leave out.
 *
 *     KITH_OPTIONS(kith_doctor_options, options);
 *     kith_findings found = {0};
 *     if (kith_dataset_examine(set, &options, &found, &err) != KITH_OK) …
 *     for (int64_t i = 0; i < found.n; i++) puts(found.findings[i].text);
 *     kith_findings_write(&found, set, "clean.csv", &err); // a data set without what should be left out
 *     kith_findings_release(&found);
 */
#ifndef KITH_DOCTOR_H
#define KITH_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/data.h"
#include "kith/model.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kith_severity {
    KITH_SEVERITY_NOTE,    /* good to know */
    KITH_SEVERITY_WARNING, /* look at it: it may cost accuracy */
    KITH_SEVERITY_ERROR    /* results are wrong as long as it is there */
} kith_severity;
#define KITH_N_SEVERITIES 3

/* What can be found: enum value, name and severity. Values are never renumbered.
 *
 *   unreadable   a file that cannot be decoded, or a tar file that is damaged or missing (without items)
 *   leak         the same picture in test, and in training or validation
 *   conflict     the same picture in several classes
 *   mislabelled  an image with far more neighbours of another class than of its own: at least half of ten (of fewer in a small class)
 *   duplicate    the same picture more than once in a class, on one side of the test
 *   near_leak    almost the same picture in test, and in training or validation
 *   missing      listed files that do not exist
 *   not_read     files that may be meant and are not read (kith_dataset_unread)
 *   single       a class with one image
 *   empty        a class without images
 *   uneven       a class with many times the images of the median class
 *   tiny         an image with few pixels
 *   extreme      an image that is very long or very wide
 *   near         almost the same picture, both on one side of the test */
#define KITH_FINDING_LIST(X)                  \
    X(UNREADABLE, 0, "unreadable", ERROR)     \
    X(LEAK, 1, "leak", ERROR)                 \
    X(CONFLICT, 2, "conflict", ERROR)         \
    X(MISLABELLED, 3, "mislabelled", WARNING) \
    X(DUPLICATE, 4, "duplicate", WARNING)     \
    X(NEAR_LEAK, 5, "near_leak", WARNING)     \
    X(MISSING, 6, "missing", WARNING)         \
    X(NOT_READ, 7, "not_read", WARNING)       \
    X(SINGLE, 8, "single", NOTE)              \
    X(EMPTY, 9, "empty", NOTE)                \
    X(UNEVEN, 10, "uneven", NOTE)             \
    X(TINY, 11, "tiny", NOTE)                 \
    X(EXTREME, 12, "extreme", NOTE)           \
    X(NEAR, 13, "near", NOTE)

typedef enum kith_finding_kind {
#define KITH_FINDING_ENUM(name, value, text, severity) KITH_FINDING_##name = (value),
    KITH_FINDING_LIST(KITH_FINDING_ENUM)
#undef KITH_FINDING_ENUM
} kith_finding_kind;
#define KITH_N_FINDING_KINDS 14

/* "near_leak"; NULL for a value that is no kind. "note", "warning", "error"; NULL for another value. */
KITH_API const char *kith_finding_kind_name(kith_finding_kind kind);
KITH_API const char *kith_severity_name(kith_severity severity);

typedef struct kith_doctor_options {
    size_t size; /* of the struct: set by kith_doctor_options_init */
    /* The vectors [n, dim] of images that were embedded already; NULL: the model makes them. They are those of the n items whose
     * numbers vector_items has; NULL: of all items, in order. Items without a vector are not compared by vectors. */
    const kith_array *vectors;
    const int64_t *vector_items;
    const kith_model_options
        *model;         /* that makes vectors; NULL: "general". Not opened when it is not needed */
    bool no_vectors;    /* leave out what needs vectors: mislabelled, near_leak, near */
    double near;        /* cosine from which two pictures are almost the same: 0.97; above 1: none are */
    double likeness;    /* how alike the same pictures are (kith_duplicates_options): 0.95 */
    int64_t least_side; /* an image with a shorter side is tiny: 32 pixels */
    double most_ratio;  /* of the longer side to the shorter; beyond it an image is extreme: 5 */
    double most_uneven; /* times the images of the median class; beyond it a class is uneven: 10 */
    kith_progress_fn progress; /* may be NULL; there are several passes: n_all is more than the images */
    void *user;
} kith_doctor_options;

/* The numbers above. */
KITH_API void kith_doctor_options_init(kith_doctor_options *options, size_t size);

/* One finding. Its score is
 *   leak, conflict, duplicate   how alike the least alike of the pictures are, 0 to 1
 *   near_leak, near             their cosine
 *   mislabelled                 the part of the neighbours that have the class `label`, less that of its own class
 *   tiny, extreme, uneven       the shorter side; the ratio; the times
 *   missing, not_read           how many files
 * and 0 for the others. */
typedef struct kith_finding {
    kith_finding_kind kind;
    kith_severity severity;
    int64_t begin,
        n; /* its items are items[begin] … items[begin + n - 1] of the findings; there may be none */
    int64_t n_out; /* how many of these it leaves out */
    int64_t label; /* single, empty, uneven: the class; mislabelled: that of the neighbours; else -1 */
    double score;
    const char *text; /* a line: which, and what is wrong */
} kith_finding;

/* Owned: kith_findings_release. */
typedef struct kith_findings {
    kith_finding *findings; /* [n]: errors first; then by kind; the worst of a kind first */
    int64_t n;
    int64_t *items;         /* those of all findings */
    int64_t *why_out;       /* [n_items]: the finding for which an item should be left out; -1: keep it */
    int64_t n_items, n_out; /* of the data set; of these to leave out */
    int64_t n_of[KITH_N_FINDING_KINDS], n_of_severity[KITH_N_SEVERITIES]; /* findings */
} kith_findings;

/* Look at every image of a data set: decode it, and compare it with the others. What should be left out by default:
 *
 *   unreadable   the file;
 *   conflict     every copy, because nobody knows which class is right; those in the test split only if two of them disagree;
 *   leak         the copies that are not in the test split, so that a test set stays what it is;
 *   duplicate    every copy but the first of a class in a split;
 *   mislabelled  an image of training or validation, if none of its neighbours has its class and nine of ten have one other
 *                class. Nothing is left out of the test split by what a model says.
 *
 * Everything else is only said. single and empty classes are counted after what is left out. A set without classes has only
 * unreadable, duplicate, near, tiny, extreme, missing and not_read; of features (kith_dataset_n_features) nothing is decoded
 * or compared as pictures, and their rows are the vectors if there are no others. The result does not depend on the number
 * of threads. KITH_ECANCELED: stopped by progress. */
KITH_API kith_status kith_dataset_examine(const kith_dataset *dataset, const kith_doctor_options *options,
                                          kith_findings *ret_findings, kith_error *err);
KITH_API void kith_findings_release(kith_findings *findings); /* NULL, and a zeroed one, are fine */

/* Write the data set without what should be left out, as a manifest (path,label,split and, where items have them, role and box) that
 * kith_dataset_open reads. Paths are relative to the folder of `path` where the images lie below it, else absolute. The file is
 * written whole or not at all. KITH_EUNSUPPORTED: the set has no classes, or its images are not files of their own. */
KITH_API kith_status kith_findings_write(const kith_findings *findings, const kith_dataset *dataset,
                                         const char *path, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
