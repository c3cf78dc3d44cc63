/* Settings of the ranked list loss, as a recipe gives them; read by ranked_list.c and ranked_list.cu. */
#ifndef KI_OBJECTIVE_RANKED_LIST_H
#define KI_OBJECTIVE_RANKED_LIST_H

typedef struct ki_ranked_list_settings {
    double alpha, margin, temperature, lambda;
} ki_ranked_list_settings;

#endif
