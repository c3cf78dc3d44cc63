/* Where the paths in a run folder's files lead, wherever the folder is now and from wherever it is read.
 *
 * A recipe names files from the folder that the command was started in. A run keeps that folder, and its own, in
 * RUN/paths.json: {"folder": "/srv/me/runs/x", "relative_to": "/srv/me"}. Readers of the run find a file
 *
 *   1. at the same place relative to the run folder, if the folder was moved together with its data;
 *   2. where it was.
 *
 * For an absolute path the order is reversed. */
#ifndef KI_RUN_PATHS_H
#define KI_RUN_PATHS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/value.h"

#define KI_RUN_PATHS_FILE "paths.json"

/* All zero: of no run; paths are then relative to the working folder. */
typedef struct ki_run_paths {
    bool is_there;
    bool is_here;     /* nothing has moved, and the working folder is `from`: paths are used as they are */
    ki_path now, was; /* the run folder, absolute */
    ki_path from;     /* what relative paths are relative to */
} ki_run_paths;

/* Record for a run in `folder`, which exists, that its paths are relative to the same folder as those of `origin`, or
 * to the working folder when `origin` is NULL or belongs to no run. */
kith_status ki_run_paths_write(const char *folder, const ki_run_paths *origin, kith_error *err);

/* For the folder of the file at `path`. A folder without a paths.json gives an empty result, not an error. */
kith_status ki_run_paths_beside(const char *path, ki_run_paths *ret_paths, kith_error *err);

/* The path to open. "FILE#17" is an image inside FILE. A path that is found nowhere is returned as it was, for
 * an error message. */
kith_status ki_run_paths_find(const ki_run_paths *paths, const char *path, ki_path *ret_path,
                              kith_error *err);

/* The same for the text at `key` of a map, in place: for each of its names, if there are several with "::" between them. Does nothing
 * if there is no text or it is empty. */
kith_status ki_run_paths_resolve(const ki_run_paths *paths, ki_arena *arena, const ki_value *map,
                                 const char *key, kith_error *err);

/* Where `path` lies if it moved together with a folder from `was` to `now`: the relative path between the two stays the
 * same. All three are absolute; only their text is looked at. */
kith_status ki_path_moved(const char *was, const char *now, const char *path, ki_path *ret_path,
                          kith_error *err);

/* `path` as an absolute path; a relative one begins in the working folder. */
kith_status ki_path_absolute(const char *path, ki_path *ret_path, kith_error *err);
/* The same for each of the names in a text, which may be several with "::" between them. */
kith_status ki_paths_absolute(const char *text, ki_path *ret_text, kith_error *err);

#endif
