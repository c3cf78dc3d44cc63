/* Tar files as folders: "shards/a.tar/rook/1.jpg" is the member rook/1.jpg of the file shards/a.tar.
 *
 * The members of a tar file are listed once, 24 bytes for each, as long as somebody holds it; files that nobody holds are listed when
 * they are asked for, and the last of them are remembered. Of a name that a file has twice the later one counts, as when it is unpacked.
 * All functions may be called from several threads. */
#ifndef KI_TAR_FILE_H
#define KI_TAR_FILE_H

#include "io/tar.h"

typedef struct ki_tar ki_tar;

/* Called for every member, in order; the walk reads its contents (ki_tar_read). */
typedef kith_status (*ki_tar_visit_fn)(void *context, ki_tar_walk *walk, const ki_tar_entry *entry,
                                       kith_error *err);

/* List the members. visit may be NULL. KITH_EIO: it cannot be read at all; KITH_EUNSUPPORTED: it is packed (gzip …). An archive that is
 * damaged is listed up to there. */
kith_status ki_tar_hold(const char *path, ki_tar_visit_fn visit, void *context, ki_tar **ret_tar,
                        kith_error *err);
void ki_tar_let_go(ki_tar *tar); /* NULL is fine */
/* Hold the file that has the member, for somebody who will read many of its members; NULL: it is no member of a tar file. */
ki_tar *ki_tar_hold_of(const char *member_path);
/* "damaged at byte N: why"; NULL: it is whole. */
const char *ki_tar_damage(const ki_tar *tar);

/* ---- a file, or a member ---- */

typedef struct ki_member {
    int fd;
    int64_t at, bytes; /* from there in fd; 0: the whole file */
    ki_tar *tar;       /* whose descriptor it is; NULL: its own */
} ki_member;

/* Open a file for reading, or a member of a tar file; the errors of ki_file_open. */
kith_status ki_member_open(const char *path, ki_member *ret_part, kith_error *err);
/* Up to n of its bytes from `from`; fewer, *ret_n, at the end of the file, also if that came nearer meanwhile. */
kith_status ki_member_read(const ki_member *part, const char *path, void *dst, size_t n, int64_t from,
                           size_t *ret_n, kith_error *err);
void ki_member_close(ki_member *part);
/* What stat(2) says of a file, or of a member: its bytes, and the date of its tar file. False: there is none. Either may be NULL. */
bool ki_member_look(const char *path, int64_t *ret_bytes, int64_t *ret_mtime_ns);

#endif
