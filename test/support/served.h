/* A search server inside the test: an index of drawn images, and a server on a free port. */
#ifndef KITH_TESTING_SERVED_H
#define KITH_TESTING_SERVED_H

#include <stddef.h>
#include <sys/types.h>

#include "serve/serve.h"

enum { SERVED_CLASSES = 4, SERVED_EACH = 4 };

/* Make photos, m.safetensors and p.kith in the test's folder. */
void served_make(void);
/* Options for that index, on a free port; what a test needs is changed before served_start. */
ki_serve_options served_options(void);
ki_server *served_start(const ki_serve_options *options, int *ret_port);

/* A file with a token for all and a read-only one, for ki_serve_options; the path lives until the next call. Requests send them as these
 * headers. */
const char *served_tokens(void);
#define SERVED_TOKEN "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa"
#define SERVED_READ_ONLY "Authorization: Bearer bbbbbbbbbbbbbbbbbbbbbbbb"

/* The file of a photo, "glyph00001/00002.png", as bytes to be freed. */
char *served_photo(const char *name, size_t *ret_n);

/* The server's decoding processes, oldest first; returns how many. */
int served_decoders(pid_t *ret_pids, int most);

#endif
