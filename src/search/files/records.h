/* A short list of items with texts, by id: files that were moved since their segment was written, and files that were removed by
 * hand. Kept as a segment without vectors (segment.h, dim 0), written once as every file of an index is (docs/adr/0055). */
#ifndef KI_SEARCH_RECORDS_H
#define KI_SEARCH_RECORDS_H

#include "base/arena.h"
#include "search/files/segment.h"

/* Texts are NULL where there is none. A moved item has path and label, one removed by hand path and hash. */
typedef struct ki_file_record {
    int64_t id;
    const char *path, *label, *hash;
} ki_file_record;

/* Zero-initialise. */
typedef struct ki_records {
    ki_arena arena; /* of the texts that are its own */
    ki_file_record *record;
    int64_t n;
    size_t capacity;
} ki_records;

void ki_records_release(ki_records *records);
/* Behind the others, with copies of the texts; `borrow`: the texts live long enough by themselves. */
kith_status ki_records_add(ki_records *records, const ki_file_record *record, bool borrow, kith_error *err);
/* By id, and of several with one id the last that was added. */
kith_status ki_records_order(ki_records *records, kith_error *err);
/* Of ordered records: the one with the id, or NULL. */
const ki_file_record *ki_records_find(const ki_records *records, int64_t id);

/* Ordered records. */
kith_status ki_records_write(const ki_records *records, const char *path, ki_blocks_seal *ret_seal,
                             kith_error *err);
/* KITH_EFORMAT for ids that do not ascend or are not below next_id. */
kith_status ki_records_read(const char *path, ki_blocks_seal seal, int64_t next_id, ki_records *ret_records,
                            kith_error *err);

/* The values of a segment's column, whose rows have these ids [cells->n], as they are after the moves. `moves` are ordered. */
kith_status ki_records_apply(const ki_records *moves, int64_t column, const int64_t *ids, ki_cells *cells,
                             kith_error *err);

#endif
