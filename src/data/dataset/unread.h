/* Files in the folders of a data set that are not its items, and why: counted by kind, the first ones named. */
#ifndef KI_DATASET_UNREAD_H
#define KI_DATASET_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { KI_MOST_UNREAD_NAMED = 100 };

/* Kinds; what they are called is in unread.c. */
typedef enum ki_unread_kind {
    KI_UNREAD_NONE, /* no picture at all: nothing to say */
    KI_UNREAD_GIF,
    KI_UNREAD_BMP,
    KI_UNREAD_TIFF,
    KI_UNREAD_RAW,
    KI_UNREAD_VIDEO,
    KI_UNREAD_HEIF,    /* where libheif or its plugin is missing */
    KI_UNREAD_PICTURE, /* of another format */
    KI_UNREAD_OUTSIDE, /* an image in no class folder */
    KI_UNREAD_BESIDE,  /* a folder beside train and test */
    KI_UNREAD_NAME,    /* a control character in its name, or too long */
    KI_UNREAD_LINK,    /* in a circle, or to nowhere */
    KI_UNREAD_DEPTH,   /* folders nested too deep */
    KI_UNREAD_TAR,     /* beside folders */
    KI_UNREAD_MEMBER,  /* an image of a tar file that is a link, a device or a sparse file */
    KI_UNREAD_LABEL,   /* an image of a tar file without a label */
    KI_UNREAD_SHARD,   /* a tar file that is damaged, or is not there */
    KI_N_UNREAD,
} ki_unread_kind;

typedef struct ki_unread_shard {
    const char *path, *why; /* why: "PATH: why", in one line */
} ki_unread_shard;

/* Zero-initialise. */
typedef struct ki_unread {
    int64_t n, n_of[KI_N_UNREAD];
    const char *name[KI_MOST_UNREAD_NAMED];      /* "PATH: why", in one line */
    ki_unread_shard shard[KI_MOST_UNREAD_NAMED]; /* the first tar files of these: they are errors */
    const char *absent; /* the first tar file that was named and is not there; NULL: none */
    const char *kinds;  /* "3 raw files, 1 video"; "" before ki_unread_finish */
} ki_unread;

/* Is the name's ending, in any case, one of the words? */
bool ki_name_ends(const char *name, const char *endings);
/* Does the name end as an image that can be read here? */
bool ki_is_image_name(const char *name);
/* By the name's ending, of a file that is not such an image. */
ki_unread_kind ki_unread_kind_of(const char *name);
kith_status ki_unread_add(ki_unread *unread, ki_arena *arena, ki_unread_kind kind, const char *path,
                          kith_error *err);
/* The same with a reason of its own, which may be NULL. */
kith_status ki_unread_add_why(ki_unread *unread, ki_arena *arena, ki_unread_kind kind, const char *path,
                              const char *why, kith_error *err);
/* How many of `shard` are there? */
int64_t ki_unread_n_shards(const ki_unread *unread);
/* Are there files of formats that kith never reads? Then it helps to know which are read. */
bool ki_unread_has_formats(const ki_unread *unread);
/* All are there: makes `kinds`. */
kith_status ki_unread_finish(ki_unread *unread, ki_arena *arena, kith_error *err);

#endif
