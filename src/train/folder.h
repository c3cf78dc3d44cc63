/* The run folder: its lock, and the places of its files. README.md lists them. */
#ifndef KI_FOLDER_H
#define KI_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/dataset/dataset.h"

typedef struct ki_folder {
    char *path;
    int lock;    /* file descriptor; -1: none */
    bool is_new; /* ki_folder_open made it */
} ki_folder;

/* Make the folder (and those above it) if necessary, take its lock and remove files that a killed process
 * left half-written. KITH_EIO: another process works in it, or it cannot be written. */
kith_status ki_folder_open(const char *path, ki_folder *ret_folder, kith_error *err);
/* The same folder for a process beside the one that opened it: it looks, and changes nothing. */
kith_status ki_folder_watch(const char *path, ki_folder *ret_folder, kith_error *err);
void ki_folder_release(ki_folder *folder); /* fine on a zeroed struct whose lock is -1 */

/* Remove what ki_folder_open made, if nothing has been put in it since. */
void ki_folder_undo(const ki_folder *folder);

/* FOLDER/… as a path. */
kith_status ki_folder_at(const ki_folder *folder, ki_path *ret_path, kith_error *err, const char *fmt, ...)
    KITH_PRINTF(4, 5);
bool ki_folder_has(const ki_folder *folder, const char *name);

/* mkdir -p */
kith_status ki_make_folders(const char *path, kith_error *err);

/* Checkpoints by their step: the newest below `before`, -1 when there is none; all but the newest `keep` removed. */
kith_status ki_folder_checkpoint_before(const ki_folder *folder, int64_t before, int64_t *ret_step,
                                        kith_error *err);
void ki_folder_drop_checkpoints(const ki_folder *folder, int64_t keep);
#define KI_CHECKPOINT_NAME "checkpoints/step-%08lld.safetensors"
/* The images the run began with (ki_dataset_list_write). */
#define KI_DATA_LIST "data.csv"

#endif
