/* A model's preprocessing as a transform, and as words. */
#include "embed/preprocess.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "data/input.h"

kith_status ki_preprocess_check(const ki_net *net, const kith_dataset *set, kith_error *err) {
    const int64_t found = kith_dataset_n_features(set);
    const char *what = set ? set->root : "what was given";
    if (!ki_net_takes_vectors(net)) {
        if (found == 0) return KITH_OK;
        ki_fail(err, KITH_EINVAL, "the model takes images; %s holds features of %lld numbers", what,
                (long long)found);
        return ki_hint(err, KITH_EINVAL, "backbones none and mlp take features");
    }
    if (found == net->c) return KITH_OK;
    if (found == 0)
        ki_fail(err, KITH_EINVAL, "the model takes features of %lld numbers; %s holds images",
                (long long)net->c, what);
    else
        ki_fail(err, KITH_ESHAPE, "the model takes features of %lld numbers; %s has %lld in a row",
                (long long)net->c, what, (long long)found);
    return ki_hint(err, found ? KITH_ESHAPE : KITH_EINVAL,
                   "give it a .npy [rows, %lld] of the features it was trained on", (long long)net->c);
}

void ki_preprocess_take(const ki_net *net, kith_transform *t) {
    if (ki_net_takes_vectors(net)) return;
    t->bgr = net->preprocess.bgr;
    t->pixel_scale = net->preprocess.scale;
    for (int64_t c = 0; c < net->c && c < 3; c++) {
        t->mean[c] = net->preprocess.mean[c];
        t->std[c] = net->preprocess.std[c];
    }
}

void ki_preprocess_tell(const kith_transform *t, ki_net *net) {
    if (ki_net_takes_vectors(net)) return;
    kith_preprocess *p = &net->preprocess;
    ki_resize_text(t, p->resize, sizeof p->resize);
    ki_snprintf(p->filter, sizeof p->filter, "%s",
                t->filter == KITH_FILTER_BILINEAR ? "" : ki_filter_name(t->filter));
    memcpy(p->background, t->background, sizeof p->background);
}

const char *ki_preprocess_resize(const ki_net *net, const char *given) {
    if (ki_net_takes_vectors(net)) return "none";
    if (given) return given;
    return *net->preprocess.resize ? net->preprocess.resize : "squash256";
}

kith_status ki_preprocess_transform(const ki_net *net, const char *resize, kith_transform *ret,
                                    kith_error *err) {
    KITH_OPTIONS(kith_transform, t);
    KI_TRY(ki_preprocess_check(net, NULL, err));
    if (net->h != net->w || (net->c != 1 && net->c != 3))
        return ki_fail(err, KITH_EUNSUPPORTED,
                       "the model takes %lld x %lld images of %lld channels; wanted square ones of 1 or 3",
                       (long long)net->h, (long long)net->w, (long long)net->c);
    t.crop_to = (int)net->h;
    t.channels = (int)net->c;
    ki_preprocess_take(net, &t);
    memcpy(t.background, net->preprocess.background, sizeof t.background);
    if (*net->preprocess.filter) KI_TRY(ki_filter_parse(net->preprocess.filter, &t.filter, err));
    KI_TRY(ki_resize_parse(ki_preprocess_resize(net, resize), &t.resize, &t.resize_to, err));
    KI_TRY(kith_transform_check(&t, err));
    *ret = t;
    return KITH_OK;
}

const char *ki_preprocess_text(const ki_net *net, char *buf, size_t buf_bytes) {
    const kith_preprocess *p = &net->preprocess;
    char ground[40] = "";
    if (ki_net_takes_vectors(net)) {
        ki_snprintf(buf, buf_bytes, "features of %lld numbers", (long long)net->c);
        return buf;
    }
    if (p->background[0] || p->background[1] || p->background[2])
        ki_snprintf(ground, sizeof ground, ", background (%d, %d, %d)", p->background[0], p->background[1],
                    p->background[2]);
    ki_snprintf(buf, buf_bytes, "%s, (pixel * %.6g - (%g, %g, %g)) / (%g, %g, %g)%s%s%s",
                p->bgr ? "bgr" : "rgb", p->scale, p->mean[0], p->mean[1], p->mean[2], p->std[0], p->std[1],
                p->std[2], *p->filter ? ", " : "", p->filter, ground);
    return buf;
}

const char *ki_preprocess_tap(const ki_net *net, const char *given) {
    if (given) return given;
    return net->embedding > 0 ? "embedding" : "pooled";
}
