/* Vectors of a model, judged, and what a card says of them. */
#include <string.h>

#include "base/argument.h"
#include "judge/worst.h"
#include "model/vectors.h"

kith_status kith_vectors_judge(kith_vectors *v, const kith_judge_options *options,
                               kith_judgement *ret_judgement, kith_error *err) {
    KI_NEED(err, v, ret_judgement);
    ki_judge_options o;
    KI_TRY(ki_judge_options_take(options, &o, err));
    return ki_judge_vectors(&v->core, &o, NULL, ret_judgement, err);
}

kith_status kith_vectors_worst(kith_vectors *v, const kith_worst_options *options, kith_worst *ret_worst,
                               kith_error *err) {
    KI_NEED(err, v, ret_worst);
    KI_OPTIONS_TAKE(kith_worst_options, o, options, err);
    return ki_judge_worst(&v->core, &o, ret_worst, err);
}

void kith_vectors_facts(const kith_vectors *v, kith_card_facts *facts) {
    if (!v || !facts) return;
    KITH_OPTIONS(kith_card_facts, all);
    if (ki_options_take(facts, &all, sizeof all, "kith_card_facts", NULL) != KITH_OK) return;
    const size_t size = facts->size;
    all.size = size;
    all.backbone = v->backbone;
    all.pool = v->pool;
    all.tap = v->tap;
    all.preprocessing = v->preprocessing;
    all.resize = *v->resize ? v->resize : NULL;
    all.crop = v->crop;
    all.embedding_size = v->core.dim;
    all.dataset = v->set->kind->name;
    all.data = v->set->root;
    if (*v->data_hash) all.data_sha256 = v->data_hash;
    all.split = kith_split_name(v->split);
    all.embed_seconds = v->seconds;
    memcpy(facts, &all, size < sizeof all ? size : sizeof all);
}
