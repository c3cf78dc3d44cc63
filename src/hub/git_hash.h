/* SHA-1 as git uses it to name a file's contents: of "blob SIZE\0" and the bytes. It says whether a download arrived as the hub
 * holds it. It is no protection from somebody who can make colliding files; weights are checked by SHA-256 (kith_hash). */
#ifndef KI_HUB_GIT_HASH_H
#define KI_HUB_GIT_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct ki_git_hash {
    uint32_t state[5];
    uint64_t n_bytes;
    uint8_t block[64];
} ki_git_hash;

/* Begin the hash of a file of that size; SHA-1 of nothing but what is added is what ki_git_hash_plain begins. */
void ki_git_hash_begin(ki_git_hash *hash, int64_t file_bytes);
void ki_git_hash_plain(ki_git_hash *hash);
void ki_git_hash_add(ki_git_hash *hash, const void *bytes, size_t n);
void ki_git_hash_finish(ki_git_hash *hash, char ret_hex[41]);

#endif
