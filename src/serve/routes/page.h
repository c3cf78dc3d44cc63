/* The page's files, compiled into the program (src/serve/page, cmake/page.cmake). */
#ifndef KI_SERVE_PAGE_H
#define KI_SERVE_PAGE_H

#include <stddef.h>

typedef struct ki_page_file {
    const char *path; /* "/page/page.css"; index.html is "/" */
    const char *type;
    const char *etag; /* with its quotes */
    const unsigned char *bytes;
    size_t n_bytes;
} ki_page_file;

extern const ki_page_file ki_page_files[];
extern const int ki_n_page_files;

/* NULL when there is no such file. */
const ki_page_file *ki_page_find(const char *path);

#endif
