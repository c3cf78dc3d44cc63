/* The head of a request: the lines before its body, as they were sent. */
#ifndef KI_SERVE_HEAD_H
#define KI_SERVE_HEAD_H

#include "serve/http/request.h"

/* The value of a header. Lines with one name are one list, as RFC 9110 has it: a value that a proxy or a stranger added on a line of its own
 * counts like one behind a comma. NULL when it was not sent. Lives as long as the request. */
const char *ki_head_value(ki_request *request, const char *name);

/* What is wrong with the head, in words for the client; NULL: nothing. Two programs must not be able to read it in two ways: how long
 * the body is, where a line ends and what it is called, or a value that ends earlier for one of them because of a NUL inside.
 *
 *   method, version   as libmicrohttpd gives them with the request's first call
 *   url_end           behind the last byte of the address, as it gives it with the first line */
const char *ki_head_fault(const ki_request *request, const char *method, const char *version,
                          const char *url_end);

#endif
