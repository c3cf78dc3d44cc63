/* Lists in text files, one entry to a line. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdint.h>

#include "kith/status.h"

/* The lines of a text file that are not empty. They point into *ret_text; free both, also after a failure of
 * cli_read_paths. */
kith_status cli_read_lines(const char *path, char **ret_text, const char ***ret_lines, int64_t *ret_n,
                           kith_error *err);

/* One path for each of n rows; another number is KITH_ESHAPE. */
kith_status cli_read_paths(const char *path, int64_t n, char **ret_text, const char ***ret_paths,
                           kith_error *err);

#endif
