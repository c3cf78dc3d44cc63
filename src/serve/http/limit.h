/* Limits per address: how many connections, how many requests per second (a bucket that fills again), and how much of what all
 * requests share.
 *
 * The table has a fixed size: an address that was not seen for long makes room for a new one. IPv6 addresses count by their
 * first 64 bits, which one client has all of. Several threads may use it at once. */
#ifndef KI_SERVE_LIMIT_H
#define KI_SERVE_LIMIT_H

#include "serve/http/address.h"

typedef struct ki_limits ki_limits;

kith_status ki_limits_new(double rate, double burst, int64_t most_connections, ki_limits **ret,
                          kith_error *err);
void ki_limits_free(ki_limits *limits); /* NULL is fine */

/* One more connection: the place to give to ki_limits_disconnect, or -1 when there are too many. */
int64_t ki_limits_connect(ki_limits *limits, const ki_address *address, double now);
void ki_limits_disconnect(ki_limits *limits, int64_t place);

/* May this address ask now (seconds)? If not, *ret_wait says after how many seconds it may. */
bool ki_limits_admit(ki_limits *limits, const ki_address *address, double now, double *ret_wait);

/* What requests hold and give back. */
typedef enum ki_limits_share {
    KI_SHARE_BODY /* bytes */,
    KI_SHARE_WORK /* requests */,
    KI_N_SHARES
} ki_limits_share;

/* n more for this address, if it then has at most `most`: *ret_place is for ki_limits_give_back. */
bool ki_limits_take(ki_limits *limits, const ki_address *address, ki_limits_share share, int64_t n,
                    int64_t most, double now, int64_t *ret_place);
void ki_limits_give_back(ki_limits *limits, int64_t place, ki_limits_share share, int64_t n);

/* The address as it is counted: what one client can choose freely is left out. */
ki_address ki_limits_counted(const ki_address *address);

#endif
