/* Where the files that an index names lie now, if its folder was moved or copied together with them.
 *
 * An index names files by absolute paths, and notes where its own folder lay then ("place"). In another place each of its sources
 * is looked for at the same position relative to the index. If the files there are those of the index, its paths lead
 * there: items and notes are read as they are now, and written as they were. Otherwise the old paths hold: an index can be
 * moved alone. A store that lies in no folder has no place. */
#ifndef KI_SEARCH_PLACE_H
#define KI_SEARCH_PLACE_H

#include "base/path.h"
#include "kith/index.h"

typedef struct ki_index_place ki_index_place;

/* *ret_place NULL: nothing has moved, or the store lies in no folder. */
kith_status ki_index_place_find(const kith_index *index, ki_index_place **ret_place, kith_error *err);
void ki_index_place_free(ki_index_place *place); /* NULL is fine */

/* A path of the index as it is now, and back; in `buf` where it differs. */
const char *ki_index_place_now(const ki_index_place *place, const char *path, ki_path *buf);
const char *ki_index_place_was(const ki_index_place *place, const char *path, ki_path *buf);

/* The text of a note that names files, as it is now; NULL: the note is none of these. Lives as long as the place. */
const char *ki_index_place_note(const ki_index_place *place, const char *name);
/* Such a note is set: *ret_was is its text as the index keeps it, given back with ki_free; NULL: the note is none of these. */
kith_status ki_index_place_note_take(ki_index_place *place, const char *name, const char *text,
                                     char **ret_was, kith_error *err);

/* Note in what is pending where the folder lies, unless that is noted. */
kith_status ki_index_place_remember(kith_index *index, kith_error *err);

#endif
