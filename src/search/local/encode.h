/* Codes for a commit: made when there are more rows than are searched exactly, kept while they serve. */
#ifndef KI_SEARCH_ENCODE_H
#define KI_SEARCH_ENCODE_H

#include "search/files/writer.h"

/* The encode of a ki_writer_hook. A coder is learned from all rows when there is none, when they have become
 * four times as many since, and on demand (`anew`); rows that come between get codes of the coder there is. Then, and when the rows
 * have become half as many again, the effort that the wanted recall takes is measured. */
kith_status ki_encode(ki_tally *tally, const ki_snapshot *to_be, ki_manifest *manifest, bool anew,
                      kith_error *err);
/* The rows of a ki_writer_hook. If codes turn out to need more bits, all rows come again, and tally->n_all grows. */
int64_t ki_encode_rows(const ki_manifest *manifest, int64_t n_rows, int64_t n_live, int64_t n_new, bool anew);

#endif
