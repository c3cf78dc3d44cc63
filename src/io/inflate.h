/* Unpacks what deflate packed (zlib and gzip streams, gzip members one after another), piece by piece from memory, so
 * that a header can be looked at before the rest is unpacked.
 *
 * A few bytes can unpack to a thousand times as many. A caller that knows from a header how many bytes to expect calls
 * ki_inflate_can_make first. If the packed bytes cannot give that size, the header is wrong and no memory is taken. */
#ifndef KI_INFLATE_H
#define KI_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_inflate ki_inflate;

/* The packed bytes are borrowed and must outlive *ret. `name` is what errors call them (borrowed too). */
kith_status ki_inflate_new(const void *packed, size_t n_packed, const char *name, ki_inflate **ret,
                           kith_error *err);
void ki_inflate_free(ki_inflate *in); /* NULL is fine */

/* The next n bytes; *ret_n is smaller only when the stream ends there. KITH_EFORMAT: damaged or cut off. */
kith_status ki_inflate_read(ki_inflate *in, void *dst, size_t n, size_t *ret_n, kith_error *err);

/* Does the stream begin like a gzip stream? */
bool ki_inflate_is_gzip(const void *bytes, size_t n);
/* Can n_packed bytes unpack to n_unpacked? Deflate makes at most 258 bytes from two bits, a ratio of 1032. */
bool ki_inflate_can_make(size_t n_packed, uint64_t n_unpacked);

#endif
