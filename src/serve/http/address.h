/* Addresses of clients, networks of trusted proxies, and which Host and Origin headers are ours. */
#ifndef KI_SERVE_ADDRESS_H
#define KI_SERVE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

/* An IPv6 address; those of IPv4 are mapped (::ffff:1.2.3.4). */
typedef struct ki_address {
    uint8_t byte[16];
} ki_address;

enum { KI_ADDRESS_TEXT = 48 };

bool ki_address_of(const struct sockaddr *socket_address, ki_address *ret);
/* "1.2.3.4", "::1" or "[::1]", the first n bytes of text. */
bool ki_address_parse(const char *text, size_t n, ki_address *ret);
const char *ki_address_text(const ki_address *address, char buf[KI_ADDRESS_TEXT]);
bool ki_address_is_loopback(const ki_address *address);

/* The addresses that share their first bits. */
typedef struct ki_network {
    ki_address address;
    int bits; /* of 128 */
} ki_network;

/* "10.0.0.0/8", "fd00::/8" or one address. */
kith_status ki_network_parse(const char *text, ki_network *ret, kith_error *err);
bool ki_network_has(const ki_network *networks, int64_t n, const ki_address *address);

/* Who is asking: the peer; if that is a trusted proxy, the last address of X-Forwarded-For (NULL: none) that is not one. */
ki_address ki_address_of_client(const ki_address *peer, const char *forwarded_for, const ki_network *proxies,
                                int64_t n_proxies);

/* Is this Host header ours? Addresses, localhost and the names given are. A page of a stranger whose name was pointed at this
 * address (DNS rebinding) comes with the stranger's name. */
bool ki_host_is_ours(const char *host, const char *const *names, int64_t n_names);
/* Does this Origin header (NULL: none was sent) name the host that was asked? */
bool ki_origin_is_ours(const char *origin, const char *host);

#endif
