/* What the parts of `kith data` share. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "cli/cli.h"
#include "kith/data.h"
#include "kith/experimental/json.h"
#include "kith/model.h"
#include "kith/suspects.h"

typedef struct data_duplicates_request {
    const char *source; /* as the user named the data */
    bool json;
    kith_model_options model; /* without a model: no suspects */
    int64_t n_suspects;       /* shown */
} data_duplicates_request;

/* --duplicates: groups of the same picture, and which of them lie in several classes, or in training and test. */
kith_status data_duplicates(const kith_dataset *set, const data_duplicates_request *request, kith_error *err);

typedef struct data_doctor_request {
    const char *source, *out;        /* out: a list without what should be left out; NULL: none */
    const kith_model_options *model; /* without weights: the one in the box */
    int64_t n_shown;                 /* of each kind */
    bool json, no_vectors, no_shortcut;
    const char *html; /* a page of pictures; NULL: none */
} data_doctor_request;

/* --doctor: what is wrong with the data set. */
kith_status data_doctor(const kith_dataset *set, const data_doctor_request *request, bool *ret_has_errors,
                        kith_error *err);

/* Images whose neighbours agree on another class. Owned; data_suspects_release. */
typedef struct data_suspects {
    kith_model *model;
    kith_vectors *vectors; /* NULL: nothing was looked for */
    kith_suspects found;
} data_suspects;

kith_status data_suspects_find(const kith_dataset *set, const data_duplicates_request *request,
                               data_suspects *ret, kith_error *err);
void data_suspects_release(data_suspects *suspects);
/* As a table, and as a key of a JSON object. */
void data_suspects_print(const data_suspects *suspects, const kith_dataset *set);
void data_suspects_put(const data_suspects *suspects, const kith_dataset *set, kith_json *json);

#endif
