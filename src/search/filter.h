/* Which items an expression holds for.
 *
 *     label = tern and year >= 2020
 *     (path like '2021/%' or score_by_hand > 0.5) and not label in (tern, "black tern")
 *
 *   expression   comparisons joined by `and`, `or`, `not` and parentheses; `and` binds tighter than `or`
 *   comparison   COLUMN = != < <= > >= VALUE, COLUMN [not] in (VALUE, …), COLUMN [not] like PATTERN
 *   COLUMN       id, path, label or a column of the index
 *   VALUE        a number or a word, or anything in single or double quotes (the quote itself is doubled inside)
 *   PATTERN      % stands for any text, _ for one character, \ before either for itself; the whole text must match
 *
 * Text is compared byte by byte, upper and lower case apart; words of the language may have either. An item without a value
 * in a column is not found by any comparison with it, also not by !=, `not in` and `not like`. */
#ifndef KI_SEARCH_FILTER_H
#define KI_SEARCH_FILTER_H

#include "kith/index.h"
#include "search/roots.h"

typedef struct ki_where ki_where;

/* KITH_EINVAL says at which character (from 1) the text is wrong, and what was wanted; a column that is not there is
 * KITH_EINVAL, too, with the nearest one suggested. A column whose name is NULL is not there. */
kith_status ki_where_parse(const char *text, const kith_column *columns, int64_t n_columns,
                           ki_where **ret_filter, kith_error *err);
void ki_where_free(ki_where *filter); /* NULL is fine */
/* Compare paths as the roots show them; they live as long as the filter. NULL: as they are. */
void ki_where_show(ki_where *filter, const ki_roots *roots);

/* Is a column compared (KI_COLUMN_LABEL, …)? */
bool ki_where_asks(const ki_where *filter, int64_t column);

/* Does the whole text match the pattern? */
bool ki_like(const char *text, const char *pattern);

#endif
