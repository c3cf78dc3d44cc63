/* Opening teachers, and their plans. */
#include "train/teacher.h"

#include <limits.h>

#include "embed/preprocess.h"
#include "hub/name.h"
#include "kith/eval.h"
#include "net/model_file.h"
#include "train/recipe.h"

static kith_status open_net(const ki_recipe_teacher *t, int64_t c, int64_t side, uint64_t seed,
                            ki_backend *backend, ki_teacher *ret, kith_error *err) {
    char settings[512], file[PATH_MAX];
    KI_TRY(ki_recipe_settings_text(t->settings, settings, sizeof settings, err));
    const kith_model_options options = {.size = sizeof(kith_model_options),
                                        .backbone = *t->backbone ? t->backbone : NULL,
                                        .weights = t->weights,
                                        .seed = seed,
                                        .settings = settings,
                                        .channels = c,
                                        .height = side,
                                        .width = side,
                                        .pool = ki_recipe_teacher_pool(t),
                                        .classes = KITH_NONE};
    if (ki_hub_is_name(t->weights))
        return ki_model_file_find(t->weights, file, sizeof file, err); /* says why not */
    KI_TRY(kith_file_hash(t->weights, ret->hash, err));
    KI_TRY(ki_model_file_open(&options, backend, &ret->net, &ret->params, NULL, err));
    if (ret->net.c == c && ret->net.h == side && ret->net.w == side) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE, "%s takes %lldx%lldx%lld, and the batches are %lldx%lldx%lld",
                   ret->net.backbone->name, (long long)ret->net.c, (long long)ret->net.h,
                   (long long)ret->net.w, (long long)c, (long long)side, (long long)side);
}

kith_status ki_teacher_open(const ki_recipe *recipe, int t, int64_t c, int64_t side, ki_backend *backend,
                            ki_teacher *ret_teacher, kith_error *err) {
    const kith_status status =
        open_net(&recipe->teacher[t], c, side, (uint64_t)recipe->seed, backend, ret_teacher, err);
    return status == KITH_OK ? KITH_OK : ki_prefix(err, status, "teachers.%d", t);
}

void ki_teacher_release(ki_teacher *teacher) {
    ki_params_free(teacher->params);
    ki_net_release(&teacher->net);
    *teacher = (ki_teacher){0};
}

static const char *tap_of(const ki_teacher *teacher) { return ki_preprocess_tap(&teacher->net, NULL); }

int64_t ki_teacher_width(const ki_teacher *teacher) {
    int node = 0;
    kith_error ignored;
    if (ki_graph_find_tap(teacher->net.graph, tap_of(teacher), &node, &ignored) != KITH_OK) return 0;
    return ki_graph_node(teacher->net.graph, node)->shape.dim[1];
}

kith_status ki_teacher_plan(const ki_teacher *teacher, ki_backend *backend, int64_t mb, ki_plan **ret_plan,
                            ki_edge *ret_edge, void **ret_rows, kith_error *err) {
    const ki_plan_options options = {.mb = mb, .mode = KI_INFER, .taps = {tap_of(teacher)}};
    KI_TRY(ki_plan_new(teacher->net.graph, teacher->params, backend, &options, ret_plan, err));
    return ki_plan_tap_memory(*ret_plan, tap_of(teacher), ret_edge, ret_rows, err);
}
