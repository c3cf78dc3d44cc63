/* The transport of hub/transport.h over libcurl. */
#ifndef KI_HUB_CURL_H
#define KI_HUB_CURL_H

#include "hub/transport.h"

kith_status ki_hub_curl_ask(const ki_hub_request *request, bool *ret_may_pass, kith_error *err);

#endif
