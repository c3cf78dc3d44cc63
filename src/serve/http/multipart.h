/* multipart/form-data (RFC 7578) of a body that was read whole. Nothing is copied: parts point into the body. */
#ifndef KI_SERVE_MULTIPART_H
#define KI_SERVE_MULTIPART_H

#include <stddef.h>

#include "base/error.h"

enum { KI_MOST_FORM_PARTS = 64 };

typedef struct ki_form_part {
    const char *name; /* not ended by a 0 */
    size_t n_name;
    const char *bytes;
    size_t n_bytes;
} ki_form_part;

typedef struct ki_form {
    ki_form_part part[KI_MOST_FORM_PARTS];
    int n;
} ki_form;

/* content_type: the request's header, which names the boundary. KITH_EFORMAT for anything that is not a complete body of at most
 * KI_MOST_FORM_PARTS parts, each with a name of its own. */
kith_status ki_form_read(const char *content_type, const char *body, size_t n_body, ki_form *ret_parts,
                         kith_error *err);

/* NULL when there is none of that name. */
const ki_form_part *ki_form_find(const ki_form *parts, const char *name);

#endif
