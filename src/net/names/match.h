/* Patterns of tensors' names, as names.h describes them. */
#ifndef KI_NAMES_MATCH_H
#define KI_NAMES_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KI_NAMES_NUMBERS = 4 };

/* What the signs of a pattern stood for. */
typedef struct ki_names_match {
    int n;
    int64_t number[KI_NAMES_NUMBERS];
    const char *rest; /* of `*`, rest_n bytes of the name */
    size_t rest_n;
} ki_names_match;

bool ki_names_matches(const char *pattern, const char *name, ki_names_match *ret_match);

/* The name that a pattern makes of a match; false: it does not fit. */
bool ki_names_fill(const char *pattern, const ki_names_match *match, char *ret, size_t ret_bytes);

#endif
