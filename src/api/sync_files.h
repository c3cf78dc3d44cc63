/* The files of a data set that an index is to hold, as they are on the disk now. */
#ifndef KI_API_SYNC_FILES_H
#define KI_API_SYNC_FILES_H

#include "kith/sync.h"

/* The items that the options choose, each file once, and the size and date of each. Give both back with ki_free, also after a
 * failure. */
kith_status ki_sync_files(const kith_dataset *dataset, const kith_sync_options *options, int64_t **ret_items,
                          kith_file_stamp **ret_stamps, int64_t *ret_n, kith_error *err);

#endif
