/* The page of what the doctor found: a section for each kind of finding, with small pictures. */
#ifndef KI_REPORT_FINDINGS_H
#define KI_REPORT_FINDINGS_H

#include "base/buffer.h"
#include "data/dataset/dataset.h"
#include "kith/doctor.h"

/* How the images of a finding are shown. */
typedef enum ki_finding_look {
    KI_LOOK_LINE,   /* its text alone */
    KI_LOOK_EACH,   /* one picture */
    KI_LOOK_GROUP,  /* several, side by side */
    KI_LOOK_TURNED, /* one, and beside it the example of the class it looks like */
    KI_LOOK_OWN,    /* one, and beside it the example of its own class */
    KI_LOOK_BORDER, /* several, with their middle painted over */
} ki_finding_look;

/* What a reader should know of a kind of finding. */
typedef struct ki_finding_words {
    const char *title, *what, *why, *advice;
    const char
        *sure; /* how sure it is, where that needs no measuring; NULL: it was measured, or nobody knows */
    ki_finding_look look;
} ki_finding_words;

const ki_finding_words *ki_finding_words_of(kith_finding_kind kind);

/* One HTML page that loads nothing from elsewhere. */
kith_status ki_findings_make(const kith_findings *findings, const kith_dataset *set,
                             const kith_findings_page *page, ki_buffer *to, kith_error *err);

#endif
