/* Re-ranking inside the library: what kith/rerank.h's functions share, and their part of a judgement. */
#ifndef KI_RERANK_H
#define KI_RERANK_H

#include "judge/judge.h"
#include "kith/rerank.h"

/* Both matrices, checked, with rows of the same length. */
kith_status ki_rerank_rows(const kith_array *query, const kith_array *gallery, ki_rows *ret_query,
                           ki_rows *ret_gallery, kith_error *err);
/* Every index is a row of the gallery, or -1. */
kith_status ki_rerank_check_lists(const kith_neighbor *lists, int64_t n, int64_t list_size, int64_t n_gallery,
                                  kith_error *err);

/* fn for every i below n, in any order; slot is below ki_threads() and nobody else's at the time. */
typedef void (*ki_rerank_fn)(void *context, int slot, int64_t i);
void ki_rerank_each(int64_t n, ki_rerank_fn fn, void *context);

/* Scores of the input before (as they are given) and after re-ranking. */
kith_status ki_rerank_judge(const ki_judge_input *input, const kith_retrieval_options *retrieval,
                            const kith_rerank_options *options, const kith_scores *before,
                            kith_reranking *ret_reranking, kith_error *err);

#endif
