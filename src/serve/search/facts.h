/* What the columns of an index hold, for the filters of the page: a few different texts, or numbers from … to … */
#ifndef KI_SERVE_FACTS_H
#define KI_SERVE_FACTS_H

#include "serve/search/catalog.h"

/* Every item is looked at, in an index of up to KI_MOST_FACT_ITEMS. */
enum { KI_MOST_FACT_ITEMS = 1000000 };

kith_status ki_facts_find(const kith_index *index, ki_column_facts **ret_facts, int64_t *ret_n,
                          kith_error *err);
void ki_facts_free(ki_column_facts *facts, int64_t n);

#endif
