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
 *   mislabelled  an image that another class explains better than its own (see score below)
 *   duplicate    the same picture more than once in a class, on one side of the test
 *   near_leak    almost the same picture in test, and in training or validation
 *   missing      listed files that do not exist
 *   not_read     files that may be meant and are not read (kith_dataset_unread)
 *   single       a class with one image
 *   empty        a class without images
 *   uneven       a class with many times the images of the median class
 *   tiny         an image with few pixels
 *   extreme      an image that is very long or very wide
 *   near         almost the same picture, both on one side of the test
 *   odd          an image unlike every other of its class, and unlike everything else that is not odd itself
 *   blurred      an image without fine detail, out of focus, moved or enlarged
 *   shortcut     of the set: the border of the pictures alone, without what is in the middle, gives the classes away */
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
    X(NEAR, 13, "near", NOTE)                 \
    X(ODD, 14, "odd", WARNING)                \
    X(BLURRED, 15, "blurred", NOTE)           \
    X(SHORTCUT, 16, "shortcut", WARNING)

typedef enum kith_finding_kind {
#define KITH_FINDING_ENUM(name, value, text, severity) KITH_FINDING_##name = (value),
    KITH_FINDING_LIST(KITH_FINDING_ENUM)
#undef KITH_FINDING_ENUM
} kith_finding_kind;
#define KITH_N_FINDING_KINDS 17

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
    bool no_vectors;    /* leave out what needs vectors: mislabelled, odd, near_leak, near, shortcut */
    double near;        /* cosine from which two pictures are almost the same: 0.97; above 1: none are */
    double likeness;    /* how alike the same pictures are (kith_duplicates_options): 0.95 */
    int64_t least_side; /* an image with a shorter side is tiny: 32 pixels */
    double most_ratio;  /* of the longer side to the shorter; beyond it an image is extreme: 5 */
    double most_uneven; /* times the images of the median class; beyond it a class is uneven: 10 */
    kith_progress_fn progress; /* may be NULL; there are several passes: n_all is more than the images */
    void *user;
    /* From which probability (the score below) a label looks wrong: 0.3; above 1: none does. In a set of fewer than 1000 images one also
     * does, whatever its score, if nine of its ten nearest images have one other label and none has its own. */
    double wrong;
    /* An image is odd if its distance to the nearest images is beyond what nine of ten images have by so many times the difference
     * between that and what three of four have: 2.5; 0: none is. */
    double odd;
    /* An image is blurred if its sharpness is less than this, and less than half of the set's median: 0.33; 0: none is. Sharpness is the
     * variance of the second derivative of the grey picture at 128 pixels (its longer side), as a part of the same at 64 pixels; along
     * rows or along columns, whichever is less. It is about 0.8 for a sharp photo. Images under 64 pixels are not judged. */
    double blurred;
    /* Leave out `shortcut`, which embeds some of the images a second time. It is also left out where vectors are given without a model. */
    bool no_shortcut;
    int64_t shortcut_images; /* that are looked at for it, at most: 2000, of a class 20 */
    /* The border tells at least this part of what whole pictures tell, above chance: 0.75. */
    double shortcut;
} kith_doctor_options;

/* The numbers above. */
KITH_API void kith_doctor_options_init(kith_doctor_options *options, size_t size);

/* One finding. Its score is
 *   leak, conflict, duplicate   how alike the least alike of the pictures are, 0 to 1
 *   near_leak, near             their cosine
 *   mislabelled                 how probable it is that the class `label` is the right one and its own is not, 0 to 1: by the distances
 *                               to the means of all classes, each made without the image, with a rate of wrong labels that is
 *                               estimated along with it
 *   tiny, extreme, uneven       the shorter side; the ratio; the times
 *   missing, not_read           how many files
 *   odd                         these times: how far it is beyond the others
 *   blurred                     its sharpness
 *   shortcut                    for how many of the borders the nearest other border is of the same class, 0 to 1
 * and 0 for the others. */
typedef struct kith_finding {
    kith_finding_kind kind;
    kith_severity severity;
    int64_t begin,
        n; /* its items are items[begin] … items[begin + n - 1] of the findings; there may be none */
    int64_t n_out; /* how many of these it leaves out */
    int64_t label; /* single, empty, uneven: the class; mislabelled: the one it looks like; else -1 */
    double score;
    const char *text; /* a line: which, and what is wrong */
    /* mislabelled: the item of the class `label` that is most like it; odd: the item of its own class that is; else -1 */
    int64_t example;
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
 *   mislabelled  an image of training or validation whose score is 0.7 or more, of a class of at least six. Nothing is left
 *                out of the test split by what a model says.
 *
 * Everything else is only said. single and empty classes are counted after what is left out. A set without classes has only
 * unreadable, duplicate, near, tiny, extreme, blurred, missing and not_read; of features (kith_dataset_n_features) nothing is decoded
 * or compared as pictures, and their rows are the vectors if there are no others. The result does not depend on the number
 * of threads. KITH_ECANCELED: stopped by progress. */
KITH_API kith_status kith_dataset_examine(const kith_dataset *dataset, const kith_doctor_options *options,
                                          kith_findings *ret_findings, kith_error *err);
KITH_API void kith_findings_release(kith_findings *findings); /* NULL, and a zeroed one, are fine */

/* How often a kind of finding was right where errors had been planted (docs/data.md). */
typedef struct kith_finding_measured {
    const char *set;   /* "CUB-200-2011, classes 1 to 100": a constant */
    int64_t n_images;  /* of the set */
    int64_t n_planted; /* errors of this kind */
    int64_t n_named;   /* images of the findings */
    int64_t n_right;   /* of these planted */
} kith_finding_measured;
/* The i-th measurement of a kind, from 0. False when there is no such one. */
KITH_API bool kith_finding_measured_at(kith_finding_kind kind, int64_t i,
                                       kith_finding_measured *ret_measured);

typedef struct kith_findings_page {
    size_t size;        /* of the struct: set by kith_findings_page_init */
    const char *title;  /* NULL: the name of the data set's root */
    int64_t most_shown; /* findings of a kind with pictures: 60; the page says how many more there are */
    const char *
        options; /* what else a reader should know of how it was looked for: a line below the title; NULL: none */
} kith_findings_page;

/* The numbers above. */
KITH_API void kith_findings_page_init(kith_findings_page *page, size_t size);

/* Write the findings as one HTML page that loads nothing from elsewhere: a section for each kind, with what it means, what to do,
 * how often such findings were right, and small pictures. An image that cannot be read is named in its place. The file is written
 * whole or not at all. */
KITH_API kith_status kith_findings_page_write(const kith_findings *findings, const kith_dataset *dataset,
                                              const kith_findings_page *page, const char *out,
                                              kith_error *err);

/* Write the data set without what should be left out, as a manifest (path,label,split and, where items have them, role and box) that
 * kith_dataset_open reads. Paths are relative to the folder of `path` where the images lie below it, else absolute. The file is
 * written whole or not at all. KITH_EUNSUPPORTED: the set has no classes, or its images are not files of their own. */
KITH_API kith_status kith_findings_write(const kith_findings *findings, const kith_dataset *dataset,
                                         const char *path, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
