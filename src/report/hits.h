/* The page of what a search found: a section for each query, a picture for each hit. */
#ifndef KI_HITS_H
#define KI_HITS_H

#include "base/buffer.h"
#include "kith/report.h"

/* One HTML page that loads nothing from elsewhere. An image that cannot be read is named in its place. */
kith_status ki_hits_make(const kith_hits_page *page, ki_buffer *to, kith_error *err);

#endif
