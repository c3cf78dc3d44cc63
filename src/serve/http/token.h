/* Tokens: who may ask for what.
 *
 * The file has a line for each token, "token SECRET", "read-only SECRET" or "write NAME SECRET", empty lines and comments (#). NAME says who
 * has decided what is written. Only its owner and the server may be able to read or write the file. */
#ifndef KI_SERVE_TOKEN_H
#define KI_SERVE_TOKEN_H

#include <pthread.h>
#include <stdint.h>

#include "base/error.h"

/* What a request may do, least first. */
typedef enum ki_access {
    KI_ACCESS_OPEN,  /* the page, and whether the server lives */
    KI_ACCESS_READ,  /* search, items, pictures */
    KI_ACCESS_ALL,   /* also what costs or tells much: duplicates, metrics */
    KI_ACCESS_WRITE, /* also decisions about names, where the server was told to take some */
} ki_access;

enum { KI_MOST_TOKENS = 64, KI_LEAST_TOKEN = 16, KI_MOST_WHO = 100 };

typedef struct ki_token {
    ki_access access;
    char digest[65];           /* SHA-256: all comparisons have one length, and memory holds no secret */
    char who[KI_MOST_WHO + 1]; /* of a write token */
} ki_token;

typedef struct ki_tokens {
    ki_token token[KI_MOST_TOKENS];
    int n;
} ki_tokens;

/* Read tokens from text. KITH_EFORMAT says which line is wrong. */
kith_status ki_tokens_parse(const char *text, const char *name_for_errors, ki_tokens *ret_tokens,
                            kith_error *err);
kith_status ki_tokens_read(const char *path, ki_tokens *ret_tokens, kith_error *err);

/* The access that an Authorization header (NULL: none) gives. The time it takes says nothing about the tokens. */
ki_access ki_tokens_check(const ki_tokens *tokens, const char *authorization);
/* The same, and whose token it is; "": nobody's. */
ki_access ki_tokens_find(const ki_tokens *tokens, const char *authorization, char ret_who[KI_MOST_WHO + 1]);

#endif
