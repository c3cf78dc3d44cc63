/* What a run came to, as one small JSON file: its result card without the machine's paths, the curves thinned, and
 * which recipe it was. Tables are made from these files alone.
 *
 *     {"row": "triplet", "recipe": "triplet", "seed": 0, "set": […], "experiment_sha256": …, "recipe_sha256": …,
 *      "result": {…}, "curves": {"seen": [[0, 0.61], …], "test": …, "variants": {"test": {NAME: …}}}} */
#ifndef KI_REPRODUCE_OUTCOME_H
#define KI_REPRODUCE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/value.h"
#include "base/variant.h"
#include "judge/card.h"

/* Which run it is. */
typedef struct ki_origin {
    const char *row, *recipe; /* recipe: its name in the list's folder */
    int64_t seed;
    const char *const *sets; /* that change numbers */
    size_t n_sets;
    char experiment[65];  /* hash of all that decides numbers but the seed and where files lie */
    char recipe_hash[65]; /* of the recipe's file */
} ki_origin;

/* From a finished run's folder to the file. */
kith_status ki_outcome_write(const char *path, const ki_origin *origin, const char *run, kith_error *err);
/* A run that failed: which one, and why. */
kith_status ki_outcome_write_failure(const char *path, const ki_origin *origin, const kith_error *why,
                                     kith_error *err);

typedef struct ki_outcome {
    const char *row, *recipe, *experiment, *recipe_hash;
    int64_t seed;
    const char *error;                     /* NULL: it did not fail */
    const char *data;                      /* hash of all that the run read; "": not known */
    bool is_other_data;                    /* of the row's results, those of the data that count are others */
    const ki_value *set, *result, *curves; /* may be NULL when it failed; set always may */
} ki_outcome;

/* KITH_EFORMAT, with the path, for anything that is no such file. Lives in the arena. */
kith_status ki_outcome_read(const char *path, ki_arena *arena, ki_outcome *ret_outcome, kith_error *err);

/* All of a folder, by name; a folder that is not there has none. A row's results are of one data set: that of most results
 * in the folder, of those that the row has. Its others are marked (is_other_data) and count in no mean. */
typedef struct ki_outcomes {
    ki_arena arena;
    ki_outcome *item;
    size_t n, capacity;
} ki_outcomes;

/* The hash of the data that most results are of; "": none says it. */
const char *ki_outcomes_data(const ki_outcomes *outcomes);
/* Does the result count for the row of that name? */
bool ki_outcome_is_of(const ki_outcome *outcome, const char *row);
kith_status ki_outcomes_read(const char *folder, ki_outcomes *ret_outcomes, kith_error *err);
void ki_outcomes_release(ki_outcomes *outcomes); /* fine on a zeroed struct */

/* The number at BLOCK.PATH of the result; NaN when there is none. */
double ki_outcome_real(const ki_outcome *outcome, const char *block, const char *path);
/* R@1 of the test classes or, where those were not looked at, of the validation classes. */
double ki_outcome_recall(const ki_outcome *outcome);
/* Points of R@1 over the steps: pairs of a step and a value, or a list of each; all NULL: none. */
typedef struct ki_outcome_curve {
    const ki_value *pairs, *steps, *values;
} ki_outcome_curve;

/* Of a variant, or "" for the embedding; and the name of the i-th variant with a curve, false past the end. */
ki_outcome_curve ki_outcome_curve_of(const ki_outcome *outcome, const char *split, const char *variant);
bool ki_outcome_curve_name(const ki_outcome *outcome, size_t i, char ret_name[KI_VARIANT_NAME]);
/* The i-th variant of its card; false past the end. */
bool ki_outcome_variant(const ki_outcome *outcome, size_t i, ki_card_variant *ret_variant);
/* A text of the result, or "". */
const char *ki_outcome_text(const ki_outcome *outcome, const char *path);

#endif
