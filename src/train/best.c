/* best.safetensors: the model with the best score so far. A checkpoint contains the hash of the file. The file may be
 * newer than the checkpoint, if a process was killed between an evaluation and the next checkpoint. So the file itself
 * says which run and step it belongs to. */
#include <string.h>

#include "kith/eval.h"
#include "train/frozen.h"

static const char name[] = "best.safetensors";

kith_status ki_best_save(ki_train_state *run, kith_error *err) {
    ki_path path;
    ki_weights_origin origin = {.step = run->at.step};
    memcpy(origin.recipe_hash, run->recipe_hash, sizeof origin.recipe_hash);
    if (run->writes) {
        KI_TRY(ki_folder_at(&run->folder, &path, err, name));
        KI_TRY(ki_train_model_save(run, &origin, NULL, path.s, err));
        KI_TRY(kith_file_hash(path.s, run->at.best_hash, err));
    }
    run->at.best_step = run->at.step;
    return KITH_OK;
}

kith_status ki_best_look(const ki_train_state *run, const ki_standing *at, ki_best_found *ret_found,
                         kith_tensors **ret_tensors, kith_error *err) {
    kith_status status;
    ki_path path;
    kith_tensors *tensors = NULL;
    ki_weights_origin origin = {0};
    char hash[65];
    KI_CHECK(ki_folder_at(&run->folder, &path, err, name));
    KI_CHECK(kith_tensors_open(path.s, &tensors, err));
    KI_CHECK(kith_file_hash(path.s, hash, err));
    const bool says_origin = ki_weights_read_origin(tensors, &origin);
    *ret_found = (ki_best_found){.is_other = *at->best_hash && strcmp(hash, at->best_hash) != 0,
                                 .is_ours = says_origin && strcmp(origin.recipe_hash, run->recipe_hash) == 0,
                                 .step = origin.step};
    if (ret_tensors) {
        *ret_tensors = tensors;
        tensors = NULL;
    }
done:
    kith_tensors_free(tensors);
    return status;
}

kith_status ki_best_fail_other(const ki_train_state *run, const ki_standing *at, kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "%s/%s is not the model that was the best at step %lld",
                   run->folder.path, name, (long long)at->best_step);
}
