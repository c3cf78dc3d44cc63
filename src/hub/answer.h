/* The head of an answer over HTTP, read line by line: what a pull needs of it. */
#ifndef KI_HUB_ANSWER_H
#define KI_HUB_ANSWER_H

#include <stdint.h>

#include "base/error.h"
#include "hub/url.h"

enum { KI_HUB_ETAG = 129 };

/* Numbers are -1 and texts empty where the answer says nothing. */
typedef struct ki_hub_answer {
    int status;                                       /* 200, 302, …; 0: no answer yet */
    size_t n_head_bytes;                              /* of all lines so far, those of earlier answers too */
    int64_t length;                                   /* Content-Length */
    int64_t linked_size;                              /* X-Linked-Size: of the file behind a redirect */
    int64_t range_first, range_all;                   /* Content-Range */
    int64_t retry_after;                              /* seconds */
    char commit[41];                                  /* X-Repo-Commit, 40 hexadecimal digits */
    char etag[KI_HUB_ETAG], linked_etag[KI_HUB_ETAG]; /* without quotes and W/ */
    char error_code[40];                              /* X-Error-Code: "EntryNotFound" */
    char location[KI_HUB_URL];
} ki_hub_answer;

void ki_hub_answer_init(ki_hub_answer *answer);

/* Take one line, with or without its line end. A status line begins a new answer. A value that is too long or not of its kind
 * is as good as none. KITH_EFORMAT: the head has more than 256 KiB. */
kith_status ki_hub_answer_line(ki_hub_answer *answer, const char *line, size_t n, kith_error *err);

#endif
