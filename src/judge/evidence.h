/* What the nearest photos say of a name: which one, and how strongly. */
#ifndef KI_EVIDENCE_H
#define KI_EVIDENCE_H

#include "kith/knn.h"

enum {
    KI_EVIDENCE_HITS = 32, /* of a list that are read; a list is to have as many, where there are as many */
    KI_EVIDENCE_BEST = 3   /* photos of a name that count */
};

typedef struct ki_name_hit {
    double score; /* as a search shows it */
    int64_t label;
} ki_name_hit;

typedef struct ki_evidence {
    double value;  /* larger is stronger; it has no unit */
    int64_t label; /* -1: there is no hit */
} ki_evidence;

/* Of hits, nearest first. A name counts as half its nearest photo and half the mean of its best three, where a photo that is not in
 * the list counts as the last that is; the evidence of the best name is that, and twice its margin over the next name's. Where all have one
 * name, the last hit stands for the next. Only the first KI_EVIDENCE_HITS are read. */
ki_evidence ki_evidence_find(kith_metric metric, const ki_name_hit *hits, int64_t n);

#endif
