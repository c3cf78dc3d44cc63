/* A filter as a tree: made by filter_parse.c, read by the stores. */
#ifndef KI_SEARCH_FILTER_TREE_H
#define KI_SEARCH_FILTER_TREE_H

#include "base/arena.h"
#include "search/files/segment.h"
#include "search/filter.h"

typedef enum ki_where_kind { KI_WHERE_AND, KI_WHERE_OR, KI_WHERE_NOT, KI_WHERE_COMPARE } ki_where_kind;
typedef enum ki_where_op {
    KI_OP_EQ,
    KI_OP_NE,
    KI_OP_LT,
    KI_OP_LE,
    KI_OP_GT,
    KI_OP_GE,
    KI_OP_IN,
    KI_OP_LIKE,
} ki_where_op;

typedef struct ki_where_node ki_where_node;
struct ki_where_node {
    ki_where_kind kind;
    ki_where_node *left, *right; /* right: and, or */
    int64_t column;              /* segment.h */
    kith_value_type type;        /* of the column */
    ki_where_op op;
    bool is_negated;    /* not in, not like */
    kith_value *values; /* of the column's type; but a number compared with integers may be real */
    int64_t n_values;
};

struct ki_where {
    ki_arena arena;
    ki_where_node *root;
    const ki_roots *shown; /* what of a path is compared; NULL: all of it */
};

/* Does a comparison hold for a value of its column? Never for none. A path is compared as it is given. */
bool ki_where_holds(const ki_where_node *comparison, const kith_value *value);

#endif
