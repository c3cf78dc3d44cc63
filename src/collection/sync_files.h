/* The files of a data set that an index is to hold, as they are on the disk now. */
#ifndef KI_COLLECTION_SYNC_FILES_H
#define KI_COLLECTION_SYNC_FILES_H

#include "collection/sync.h"

/* The items that the task chooses, each file once, and the size and date of each. Give both back with ki_free, also after a
 * failure. */
kith_status ki_sync_files(const ki_sync_task *task, int64_t **ret_items, kith_file_stamp **ret_stamps,
                          int64_t *ret_n, kith_error *err);

#endif
