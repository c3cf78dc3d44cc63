/* libFuzzer target: a request's body. The first line is its Content-Type (empty: a form with the boundary b), the rest the body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http/address.h"
#include "serve/http/token.h"
#include "serve/search/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    const size_t n_type = end ? (size_t)(end - data) : 0;
    const size_t n_body = end ? size - n_type - 1 : size;
    char *type = calloc(n_type + 1, 1), *body = malloc(n_body ? n_body : 1);
    kith_error err;
    ki_query query;
    if (type && body) {
        if (n_type) memcpy(type, data, n_type);
        if (n_body) memcpy(body, end ? end + 1 : data, n_body);
        if (ki_query_read(*type ? type : "multipart/form-data; boundary=b", body, n_body, 1000, &query,
                          &err) == KITH_OK)
            ki_query_release(&query);
        /* Headers are short texts of strangers, too. */
        static const ki_network proxies[1] = {{.bits = 0}};
        const ki_address peer = {{0}};
        ki_network network;
        ki_tokens tokens;
        ki_address_of_client(&peer, type, proxies, 1);
        ki_network_parse(type, &network, NULL);
        ki_host_is_ours(type, NULL, 0);
        ki_origin_is_ours(type, "localhost");
        ki_tokens_parse(type, "tokens", &tokens, &err);
    }
    free(type);
    free(body);
    return 0;
}
