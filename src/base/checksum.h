/* A checksum of bytes: has anything in them changed? For damage, not for identity: kith_hash (SHA-256) is
 * for that, and takes much longer. */
#ifndef KI_CHECKSUM_H
#define KI_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* 64 bits. `before` is the checksum of what came before these bytes, 0 when nothing did. A change inside one
 * aligned group of 8 bytes, or of `before` alone, always changes the result; any other change goes unnoticed
 * with a probability of 1 in 2^64. The same on every machine. */
uint64_t ki_checksum(const void *bytes, size_t n, uint64_t before);

#endif
