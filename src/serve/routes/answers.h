/* What the answers of the routes hold, for the description of the API. test_serve_openapi holds real answers against it. */
#ifndef KI_SERVE_ANSWERS_H
#define KI_SERVE_ANSWERS_H

#include "serve/http/schema.h"

typedef struct ki_answer_schema {
    const char *name;
    const ki_schema_field *fields;
} ki_answer_schema;

extern const ki_answer_schema ki_answer_schemas[];
extern const int ki_n_answer_schemas;

#endif
