/* The elements of a .npy file of text, one after the other. */
#ifndef KI_NPY_TEXT_H
#define KI_NPY_TEXT_H

#include "io/npy_header.h"

/* Called for each element, as UTF-8 (U) or with its bytes as they are (S), without the padding. */
typedef kith_status (*ki_npy_text_fn)(void *user, const char *text, size_t n, kith_error *err);

/* `bytes` is the whole file of the header, which must be one of text. Elements come in the file's order. */
kith_status ki_npy_text_each(const void *bytes, const ki_npy_header *header, const char *name,
                             ki_npy_text_fn fn, void *user, kith_error *err);

#endif
