/* The access log: a JSON line for each request. */
#ifndef KI_SERVE_ACCESS_LOG_H
#define KI_SERVE_ACCESS_LOG_H

#include "serve/http/request.h"

/* A line for a request that is over, into fd; -1: none. */
void ki_access_log(int fd, const ki_request *request, double seconds);

#endif
