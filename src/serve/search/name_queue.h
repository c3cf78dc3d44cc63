/* What is to be named next: photos without a name, those that belong together first, each with what its nearest named neighbours say.
 *
 * It is found for a part of the photos at a time, the first ones by id: as they get names, others take their place. */
#ifndef KI_SERVE_NAME_QUEUE_H
#define KI_SERVE_NAME_QUEUE_H

#include "base/arena.h"
#include "serve/search/catalog.h"

enum {
    KI_NAME_QUEUE_PART = 512, /* photos that are looked at for one answer */
    KI_NAME_GROUP_MOST = 24,  /* of a group: as many as a page can show */
    KI_NAME_EVIDENCE = 3,
};

/* One question: photos of the same thing, as far as the model can tell, or a single one. */
typedef struct ki_name_question {
    int64_t *ids, n;
    const char *proposal; /* NULL: no neighbour has a name */
    double score;         /* of the nearest one that has it */
    /* The chance that it is wrong, and its 95 % interval (kith/reliability.h); of a group, of its surest photo. NaN: not known */
    double error_rate, error_rate_low, error_rate_high;
    int64_t evidence[KI_NAME_EVIDENCE], n_evidence;
} ki_name_question;

/* Zero-initialise; ki_name_queue_release. */
typedef struct ki_name_queue {
    ki_arena arena;
    int64_t n_unnamed; /* photos without a name, of all */
    ki_name_question *questions;
    int64_t n;
} ki_name_queue;

/* unnamed: photos with this label have no name, too; NULL: none. Any thread. */
kith_status ki_name_queue_find(const ki_catalog *catalog, const char *unnamed, ki_name_queue *queue,
                               kith_error *err);
void ki_name_queue_release(ki_name_queue *queue);

#endif
