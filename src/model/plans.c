/* The plans of a model, found by what they were made for; the one that was used longest ago makes room. */
#include "model/plans.h"

#include "embed/preprocess.h"
#include "model/handle.h"

static void drop(ki_model_plan *p) {
    ki_embedder_free(p->embedder);
    *p = (ki_model_plan){0};
}

void ki_plans_release(ki_plans *plans) {
    for (int i = 0; i < KI_MOST_PLANS; i++) drop(&plans->plan[i]);
}

/* A place for one more plan of `batch` images. */
static ki_model_plan *make_place(kith_model *model, int64_t batch) {
    ki_plans *plans = &model->plans;
    for (;;) {
        ki_model_plan *oldest = NULL, *empty = NULL;
        int64_t n_images = batch;
        for (int i = 0; i < KI_MOST_PLANS; i++) {
            ki_model_plan *p = &plans->plan[i];
            if (!p->embedder)
                empty = p;
            else if (!oldest || p->used < oldest->used)
                oldest = p;
            n_images += p->batch;
        }
        if (empty && (!oldest || n_images <= 2 * model->most_batch)) return empty;
        drop(oldest);
    }
}

/* Only where a device turns bytes into floats does a plan hold the transform. */
static bool fits(const ki_model_plan *p, const ki_model_plan *wanted) {
    if (!p->embedder || p->tap != wanted->tap || p->format != wanted->format || p->batch != wanted->batch)
        return false;
    return p->format == KI_BATCH_FLOAT || (p->resize == wanted->resize && p->resize_to == wanted->resize_to);
}

static kith_status find_transform(const kith_model *model, const kith_embed_options *o, kith_transform *ret,
                                  kith_error *err) {
    kith_transform_init(ret, sizeof *ret);
    if (!o) return KITH_OK;
    if (o->n_workers < 0 || o->most_pixels < 0)
        return ki_fail(err, KITH_EINVAL, "n_workers is %lld and most_pixels %lld; wanted 0 or more of each",
                       (long long)o->n_workers, (long long)o->most_pixels);
    if (ki_net_takes_vectors(&model->net)) return KITH_OK;
    return ki_preprocess_transform(&model->net, ki_model_resize(model, o), ret, err);
}

kith_status ki_model_plan_get(kith_model *model, ki_plan_source source, const char *tap, int64_t batch,
                              const kith_embed_options *o, ki_embedder **ret_embedder, kith_error *err) {
    ki_embedder_settings settings = {.backend = model->backend,
                                     .net = &model->net,
                                     .params = model->params,
                                     .batch = batch,
                                     .n_workers = o ? o->n_workers : 0};
    ki_model_plan wanted = {.batch = batch, .format = KI_BATCH_FLOAT, .used = ++model->plans.n_uses};
    int node = 0;
    KI_TRY(find_transform(model, o, &settings.transform, err));
    KI_TRY(ki_graph_find_tap(model->net.graph, tap, &node, err));
    wanted.tap = ki_graph_node(model->net.graph, node)->tap;
    if (source == KI_PLAN_ITEMS)
        wanted.format = ki_feed_format(model->backend, &model->net, &settings.transform);
    wanted.resize = settings.transform.resize;
    wanted.resize_to = settings.transform.resize_to;
    ki_model_plan *found = NULL;
    for (int i = 0; i < KI_MOST_PLANS && !found; i++) {
        if (fits(&model->plans.plan[i], &wanted)) found = &model->plans.plan[i];
    }
    if (!found) {
        found = make_place(model, batch);
        KI_TRY(ki_embedder_new(&settings, &wanted.embedder, err));
        *found = wanted;
    } else if (o) {
        ki_embedder_set_loading(found->embedder, &settings.transform, settings.n_workers);
        found->resize = wanted.resize;
        found->resize_to = wanted.resize_to;
    }
    found->used = wanted.used;
    *ret_embedder = found->embedder;
    return KITH_OK;
}
