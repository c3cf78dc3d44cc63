/* Addresses, networks, Host and Origin. */
#include "serve/http/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void take_v4(const void *four, ki_address *ret) {
    memcpy(ret->byte, mapped, sizeof mapped);
    memcpy(ret->byte + 12, four, 4);
}

bool ki_address_of(const struct sockaddr *from, ki_address *ret) {
    if (!from) return false;
    if (from->sa_family == AF_INET) {
        take_v4(&((const struct sockaddr_in *)(const void *)from)->sin_addr, ret);
        return true;
    }
    if (from->sa_family != AF_INET6) return false;
    memcpy(ret->byte, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, sizeof ret->byte);
    return true;
}

bool ki_address_parse(const char *text, size_t n, ki_address *ret) {
    char word[INET6_ADDRSTRLEN + 1];
    uint8_t four[4];
    if (n > 2 && text[0] == '[' && text[n - 1] == ']') text++, n -= 2;
    if (n == 0 || n >= sizeof word) return false;
    memcpy(word, text, n);
    word[n] = '\0';
    if (inet_pton(AF_INET, word, four) == 1) {
        take_v4(four, ret);
        return true;
    }
    ki_address six;
    if (inet_pton(AF_INET6, word, six.byte) != 1) return false;
    *ret = six;
    return true;
}

static bool is_v4(const ki_address *a) { return memcmp(a->byte, mapped, sizeof mapped) == 0; }

const char *ki_address_text(const ki_address *address, char buf[KI_ADDRESS_TEXT]) {
    const char *text = is_v4(address) ? inet_ntop(AF_INET, address->byte + 12, buf, KI_ADDRESS_TEXT)
                                      : inet_ntop(AF_INET6, address->byte, buf, KI_ADDRESS_TEXT);
    return text ? text : "";
}

bool ki_address_is_loopback(const ki_address *a) {
    static const uint8_t one[16] = {[15] = 1};
    return (is_v4(a) && a->byte[12] == 127) || memcmp(a->byte, one, sizeof one) == 0;
}

/* ---- networks ---- */

kith_status ki_network_parse(const char *text, ki_network *ret, kith_error *err) {
    const size_t n = strcspn(text, "/");
    int64_t bits = -1;
    ki_network network;
    const bool is_address = ki_address_parse(text, n, &network.address);
    const int most = is_address && is_v4(&network.address) ? 32 : 128;
    const bool is_whole = text[n] == '\0';
    if (is_whole) bits = most;
    if (!is_address || (!is_whole && !ki_parse_int64(text + n + 1, &bits)) || bits < 0 || bits > most)
        return ki_fail(err, KITH_EINVAL, "'%.60s' is no address and no network such as 10.0.0.0/8", text);
    network.bits = (int)bits + 128 - most;
    *ret = network;
    return KITH_OK;
}

bool ki_network_has(const ki_network *networks, int64_t n, const ki_address *address) {
    for (int64_t i = 0; i < n; i++) {
        const ki_network *w = &networks[i];
        const int whole = w->bits / 8, rest = w->bits % 8;
        if (memcmp(w->address.byte, address->byte, (size_t)whole) != 0) continue;
        if (rest == 0 || (w->address.byte[whole] ^ address->byte[whole]) >> (8 - rest) == 0) return true;
    }
    return false;
}

ki_address ki_address_of_client(const ki_address *peer, const char *forwarded_for, const ki_network *proxies,
                                int64_t n_proxies) {
    ki_address client = *peer;
    if (!forwarded_for) return client;
    const char *end = forwarded_for + strlen(forwarded_for);
    /* From the last address on: each was written by the one that it was sent to. */
    while (ki_network_has(proxies, n_proxies, &client) && end > forwarded_for) {
        const char *begin = end;
        while (begin > forwarded_for && begin[-1] != ',') begin--;
        const char *first = begin, *last = end;
        while (first < last && (*first == ' ' || *first == '\t')) first++;
        while (last > first && (last[-1] == ' ' || last[-1] == '\t')) last--;
        if (!ki_address_parse(first, (size_t)(last - first), &client)) break;
        end = begin > forwarded_for ? begin - 1 : begin;
    }
    return client;
}

/* ---- Host and Origin ---- */

/* The length of "name", "1.2.3.4" or "[::1]" without ":port"; 0 when there is something else behind it. */
static size_t host_length(const char *host) {
    size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
    if (host[0] == '[' && host[n] == ']') n++;
    const char *port = host + n;
    if (*port == '\0') return n;
    if (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1)) return 0;
    return n;
}

bool ki_host_is_ours(const char *host, const char *const *names, int64_t n_names) {
    ki_address address;
    const size_t n = host ? host_length(host) : 0;
    if (n == 0) return false;
    if (ki_address_parse(host, n, &address)) return true;
    if (n == strlen("localhost") && strncasecmp(host, "localhost", n) == 0) return true;
    for (int64_t i = 0; i < n_names; i++) {
        if (strlen(names[i]) == n && strncasecmp(host, names[i], n) == 0) return true;
    }
    return false;
}

bool ki_origin_is_ours(const char *origin, const char *host) {
    static const char *const schemes[] = {"http://", "https://"};
    if (!origin) return true;
    for (int i = 0; host && i < 2; i++) {
        const size_t n = strlen(schemes[i]);
        if (strncasecmp(origin, schemes[i], n) == 0) return strcasecmp(origin + n, host) == 0;
    }
    return false;
}
