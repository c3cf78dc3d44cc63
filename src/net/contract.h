/* How images get into a network whose file does not say so: what lies beside the weights.
 *
 * timm writes config.json beside model.safetensors; its pretrained_cfg has the size of the input, mean and std, and how images
 * are resized. transformers writes the same into preprocessor_config.json, and what a network's shapes do not say into config.json. Of weights in the hub's cache that have none, kith's own table may know it (hub/table.def). */
#ifndef KI_CONTRACT_H
#define KI_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/value.h"
#include "kith/model.h"

typedef struct ki_contract {
    bool is_there;
    const char *source; /* for log lines: "config.json" */
    int64_t side;       /* of the input; 0: unknown */
    bool has_pixels;    /* mean and std are known, of RGB pixels from 0 to 1 */
    double mean[3], std[3];
    char resize[16], filter[16]; /* as in kith_preprocess; empty: unknown */
    char note
        [160]; /* "config.json: crop_pct is 0": what is said and cannot be followed, so that the network's own holds; empty: nothing */
    /* config.json as it is, for what a network's own settings are (ki_config_number); NULL: none. */
    const ki_value *config;
    ki_arena arena; /* holds it */
} ki_contract;

void ki_contract_release(ki_contract *contract); /* fine on a zeroed struct */

/* A value, a number or a word of config.json, in its root or in one of the parts where libraries put the network of images
 * (vision_config, backbone_config, model_args). Beside a vision_config the root is of both towers, and only words are taken from it. False, NULL:
 * none, or of another kind. */
const ki_value *ki_config_get(const ki_contract *contract, const char *key);
bool ki_config_number(const ki_contract *contract, const char *key, double *ret);
const char *ki_config_word(const ki_contract *contract, const char *key);
/* What is there in a line, for errors. */
const char *ki_config_text(const ki_value *value);

/* Is a number or a word of config.json another one than what the tensors have? Then a line about it is in `fault`, unless there was one. */
void ki_config_check_number(const ki_contract *contract, const char *key, int64_t wanted, char *fault,
                            size_t bytes);
void ki_config_check_word(const ki_contract *contract, const char *key, const char *wanted, char *fault,
                          size_t bytes);

/* Look beside the weights. Release it. Nothing there is an empty contract: the network's own defaults hold, as they do for what
 * cannot be followed (`note`). KITH_EFORMAT: a file that is not JSON, or is too large, of which nobody knows what it says; KITH_EIO. */
kith_status ki_contract_find(const char *weights, ki_contract *ret_contract, kith_error *err);

/* The same from the text of a config.json. Release it. */
kith_status ki_contract_parse(const char *json, size_t n, ki_contract *ret_contract, kith_error *err);

/* What the text of a preprocessor_config.json says besides. */
kith_status ki_contract_add_processor(const char *json, size_t n, ki_contract *contract, kith_error *err);

#endif
