/* Options tables: one row per setting of a method, a backbone, a data set, an optimizer.
 *
 * From the row come the recipe key, its check, its default, `kith list` and the documentation. A
 * method declares a plain struct of settings and a table whose rows point into it:
 *
 *     typedef struct settings { double margin; int distance; } settings;
 *     static const char *const distances[] = {"sqeuclidean", "euclidean", "cosine", NULL};
 *     static const ki_option options[] = {
 *         KI_OPTION_REAL(settings, margin, 0.1, 0, 4, "how far negatives must be", "ECAML Eq. 8"),
 *         KI_OPTION_CHOICE(settings, distance, 0, distances, "what is compared", "DML-DA Eq. 3"),
 *         KI_OPTION_END};
 *
 * Field types: REAL double, INT int64_t, BOOL bool, CHOICE int (index into choices), TEXT const
 * char *, TREE const ki_value * (for what is richer than a scalar: read by the method itself). */
#ifndef KI_OPTION_H
#define KI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/value.h"

typedef enum ki_option_type {
    KI_OPTION_T_END,
    KI_OPTION_T_REAL,
    KI_OPTION_T_INT,
    KI_OPTION_T_BOOL,
    KI_OPTION_T_CHOICE,
    KI_OPTION_T_TEXT,
    KI_OPTION_T_TREE,
} ki_option_type;

typedef struct ki_option {
    const char *name;
    ki_option_type type;
    size_t offset;
    double def;                 /* REAL, INT, BOOL (0/1), CHOICE (index) */
    const char *def_text;       /* TEXT: the default; TREE: what `kith list` prints as the default */
    double least, most;         /* REAL, INT: allowed range, both ends included */
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *help;
    const char *source; /* the paper, equation or code the default comes from */
    /* At its default it is as if it were not there, so that runs begun before it existed can be resumed. */
    bool is_later;
} ki_option;

/* The fields of a row of each type. */
#define KI_OPTION_REAL_ROW(type_, field, def_, least_, most_, help_, source_)                  \
    .name = #field, .type = KI_OPTION_T_REAL, .offset = offsetof(type_, field), .def = (def_), \
    .least = (least_), .most = (most_), .help = (help_), .source = (source_)
#define KI_OPTION_INT_ROW(type_, field, def_, least_, most_, help_, source_)                  \
    .name = #field, .type = KI_OPTION_T_INT, .offset = offsetof(type_, field), .def = (def_), \
    .least = (least_), .most = (most_), .help = (help_), .source = (source_)
#define KI_OPTION_BOOL_ROW(type_, field, def_, help_, source_)                                 \
    .name = #field, .type = KI_OPTION_T_BOOL, .offset = offsetof(type_, field), .def = (def_), \
    .help = (help_), .source = (source_)
#define KI_OPTION_CHOICE_ROW(type_, field, def_, choices_, help_, source_)                       \
    .name = #field, .type = KI_OPTION_T_CHOICE, .offset = offsetof(type_, field), .def = (def_), \
    .choices = (choices_), .help = (help_), .source = (source_)
#define KI_OPTION_TEXT_ROW(type_, field, def_, help_, source_)                                      \
    .name = #field, .type = KI_OPTION_T_TEXT, .offset = offsetof(type_, field), .def_text = (def_), \
    .help = (help_), .source = (source_)
#define KI_OPTION_TREE_ROW(type_, field, shown_, help_, source_)                                      \
    .name = #field, .type = KI_OPTION_T_TREE, .offset = offsetof(type_, field), .def_text = (shown_), \
    .help = (help_), .source = (source_)

#define KI_OPTION_REAL(...) \
    { KI_OPTION_REAL_ROW(__VA_ARGS__) }
#define KI_OPTION_INT(...) \
    { KI_OPTION_INT_ROW(__VA_ARGS__) }
#define KI_OPTION_BOOL(...) \
    { KI_OPTION_BOOL_ROW(__VA_ARGS__) }
#define KI_OPTION_CHOICE(...) \
    { KI_OPTION_CHOICE_ROW(__VA_ARGS__) }
#define KI_OPTION_TEXT(...) \
    { KI_OPTION_TEXT_ROW(__VA_ARGS__) }
#define KI_OPTION_TREE(...) \
    { KI_OPTION_TREE_ROW(__VA_ARGS__) }
/* The same for an option that a released version did not have: KI_OPTION_LATER(REAL, settings, margin, …). */
#define KI_OPTION_LATER(TYPE, ...) \
    { KI_OPTION_##TYPE##_ROW(__VA_ARGS__), .is_later = true }
#define KI_OPTION_END \
    { .type = KI_OPTION_T_END }

/* Write every default into settings. TREE fields become NULL. */
void ki_options_default(const ki_option *table, void *settings);

/* Defaults, then the entries of `map` (NULL or empty: defaults alone). Keys in `also` (NULL-ended,
 * may be NULL) are read by others and are skipped here. `where` names the section in errors,
 * as in "objective.loss (triplet)". TEXT and TREE fields point into the document. */
kith_status ki_options_parse(const ki_option *table, const ki_value *map, const char *const *also,
                             const char *where, void *settings, kith_error *err);

/* The value of the REAL option of that name; `without` where the table has none. */
double ki_options_real(const ki_option *table, const void *settings, const char *name, double without);

/* The default or the range as text: "0.1", "sqeuclidean", "true"; "0 … 4", "sum|mean|nonzero". */
const char *ki_option_default_text(const ki_option *option, char *buf, size_t buf_bytes);
const char *ki_option_range_text(const ki_option *option, char *buf, size_t buf_bytes);

/* An error for an unknown name that suggests the nearest of the names: "unknown WHAT 'tripelt'",
 * hint "did you mean 'triplet'?". */
kith_status ki_fail_unknown(kith_error *err, const char *what, const char *found, const char *const *names,
                            size_t n_names);

#endif
