/* What a training run left in its folder, as far as it exists.
 *
 * Every part may be absent (the run was interrupted, or its files were moved away) or damaged; `note` then
 * says so in one line and the part is empty. Only a folder that contains no part of a run is an error. */
#ifndef KI_MATERIAL_H
#define KI_MATERIAL_H

#include "base/value.h"
#include "io/run_paths.h"
#include "kith/array.h"
#include "report/series.h"

/* What a note is about. */
typedef enum ki_material_part {
    KI_PART_LOG,    /* log.jsonl */
    KI_PART_RESULT, /* result.json */
    KI_PART_CARD,   /* run.json */
    KI_PART_RECIPE, /* recipe.yaml */
    KI_PART_TEST,   /* test/ */
    KI_PART_PAIRS,  /* pairs.json */
    KI_N_PARTS,
} ki_material_part;

typedef struct ki_material {
    char *folder;
    ki_arena arena;               /* of the documents */
    const char *note[KI_N_PARTS]; /* why a part is missing; NULL when it is not */
    bool is_absent[KI_N_PARTS];   /* … because there is no such file: no damage */
    ki_log_file log;
    const ki_value *result, *card, *pairs; /* maps, or NULL */
    const ki_value *recipe;                /* a map, or NULL also when the text could not be parsed */
    char *recipe_text;
    /* Test embeddings, labels [n] and the images' paths [n]. n_test is 0 when they are not there; the
     * paths alone may be missing (path NULL). */
    int64_t n_test;
    kith_array embedding, labels;
    char *path_text;
    const char **path;
    bool is_features;   /* the test items are rows of features, which have no pictures */
    ki_run_paths paths; /* what they are relative to */
    int64_t n_classes;  /* names of the labels 0, 1 …; 0: there are none, as in old runs */
    char *class_text;
    const char **class_name;
    const char **sub_run; /* folders seed-K, fold-K and fold-K/seed-L, by number; in the arena */
    size_t n_sub_runs;
} ki_material;

/* `is_whole`: also the test embeddings and the pairs, which the rows of a table do not need. */
kith_status ki_material_read(const char *folder, bool is_whole, ki_material *ret_run, kith_error *err);
void ki_material_release(ki_material *run); /* fine on a zeroed struct */

/* What to call the class of a test label: its name, or its number, printed into buf. */
enum { KI_CLASS_NUMBER = 24 };
const char *ki_material_class(const ki_material *run, int64_t label, char buf[KI_CLASS_NUMBER]);

/* A scalar of a document by path, as in "test.recall.1": its text or NULL; as a finite number. Names from
 * result cards of 0.1 are understood as today's (judge/card.h). */
const char *ki_document_text(const ki_value *document, const char *path);
bool ki_document_real(const ki_value *document, const char *path, double *ret);
const ki_value *ki_document_at(const ki_value *document, const char *path);

#endif
