/* `layers` and `kernels` of a recipe. */
#include "objective/reg/layers.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "objective/reg/kernels.h"

static const char *const kinds[] = {"gaussian", "laplace", "poly", "mgf", "exp", NULL};
static const ki_tap layer_taps[] = {KI_TAP_POOLED, KI_TAP_EMBEDDING, KI_TAP_LOGITS};

static const ki_option kernel_options[] = {
    KI_OPTION_CHOICE(ki_layer_kernel, kind, 0, kinds, "shape of the kernel", "JRD, kernel choice"),
    KI_OPTION_INT(ki_layer_kernel, n, 3, 1, 64, "bandwidths mixed, each twice the last",
                  "JRD, kernel design"),
    KI_OPTION_REAL(ki_layer_kernel, bandwidth, 0, 0, 1e30,
                   "middle bandwidth; 0 = mean distance of the batch; poly and mgf: of products, 0 = 1",
                   "JRD code"),
    KI_OPTION_INT(ki_layer_kernel, degree, 2, 1, 32, "of poly", "JRD, kernel choice"), KI_OPTION_END};

static kith_status read_layer(const ki_value *v, const char *method, ki_tap *ret_tap, kith_error *err) {
    const char *names[KI_MOST_LAYERS];
    char found[80], what[64];
    for (int i = 0; i < KI_MOST_LAYERS; i++) names[i] = ki_tap_name(layer_taps[i]);
    if (v->kind != KI_VALUE_SCALAR)
        return ki_fail(err, KITH_EINVAL, "%s: a layer is %s; wanted pooled, embedding or logits", method,
                       ki_value_describe(v, found, sizeof found));
    for (int i = 0; i < KI_MOST_LAYERS; i++) {
        if (strcmp(v->text, names[i]) == 0) return *ret_tap = layer_taps[i], KITH_OK;
    }
    ki_snprintf(what, sizeof what, "layer of %s", method);
    return ki_fail_unknown(err, what, v->text, names, KI_MOST_LAYERS);
}

static kith_status read_kernel(const ki_value *v, const char *method, ki_layer_kernel *ret, kith_error *err) {
    char where[96], found[80];
    ki_snprintf(where, sizeof where, "kernels of %s", method);
    ki_options_default(kernel_options, ret);
    if (v->kind == KI_VALUE_MAP) {
        KI_TRY(ki_options_parse(kernel_options, v, NULL, where, ret, err));
    } else if (v->kind == KI_VALUE_SCALAR) { /* only the kind */
        size_t n = 0;
        while (kinds[n] && strcmp(kinds[n], v->text) != 0) n++;
        if (!kinds[n]) return ki_fail_unknown(err, "kernel", v->text, kinds, n);
        ret->kind = (int)n;
    } else if (v->kind != KI_VALUE_NULL) {
        return ki_fail(err, KITH_EINVAL, "%s: one is %s; wanted a map", where,
                       ki_value_describe(v, found, sizeof found));
    }
    if (ret->kind > KI_LAYER_MGF) ret->kind = KI_LAYER_MGF; /* exp is another name for it */
    if (ret->kind >= KI_LAYER_POLY && ret->bandwidth == 0) ret->bandwidth = 1;
    return KITH_OK;
}

static bool is_there(const ki_value *v) { return v && v->kind != KI_VALUE_NULL; }

kith_status ki_layers_read(const ki_layers_options *o, const char *method, ki_layers *ret, kith_error *err) {
    char found[80];
    static const int64_t mixtures[KI_MOST_LAYERS] = {3, 3, 1};
    *ret = (ki_layers){.n = KI_MOST_LAYERS};
    memcpy(ret->tap, layer_taps, sizeof ret->tap);
    if (is_there(o->layers)) {
        if (o->layers->kind != KI_VALUE_LIST || o->layers->n_items < 1 || o->layers->n_items > KI_MOST_LAYERS)
            return ki_fail(err, KITH_EINVAL,
                           "%s: layers is %s of %zu; wanted a list of one to %d of pooled, embedding, logits",
                           method, ki_value_describe(o->layers, found, sizeof found), o->layers->n_items,
                           KI_MOST_LAYERS);
        ret->n = 0;
        for (const ki_value *v = o->layers->first; v; v = v->next) {
            KI_TRY(read_layer(v, method, &ret->tap[ret->n], err));
            for (int i = 0; i < ret->n; i++) {
                if (ret->tap[i] == ret->tap[ret->n])
                    return ki_fail(err, KITH_EINVAL, "%s: layer %s stands there twice", method, v->text);
            }
            ret->n++;
        }
    }
    for (int i = 0; i < ret->n; i++) {
        ki_options_default(kernel_options, &ret->kernel[i]);
        ret->kernel[i].n = mixtures[i];
    }
    if (!is_there(o->kernels)) return KITH_OK;
    if (o->kernels->kind != KI_VALUE_LIST) { /* one for all */
        for (int i = 0; i < ret->n; i++) KI_TRY(read_kernel(o->kernels, method, &ret->kernel[i], err));
        return KITH_OK;
    }
    if (o->kernels->n_items != (size_t)ret->n) {
        ki_fail(err, KITH_EINVAL, "%s has %d layers and %zu kernels", method, ret->n, o->kernels->n_items);
        return ki_hint(err, KITH_EINVAL, "give one kernel for each layer, or a single one for all");
    }
    int i = 0;
    for (const ki_value *v = o->kernels->first; v; v = v->next)
        KI_TRY(read_kernel(v, method, &ret->kernel[i++], err));
    return KITH_OK;
}

kith_status ki_layers_taps(const void *settings, const char *method, unsigned *ret_taps, kith_error *err) {
    ki_layers layers;
    KI_TRY(ki_layers_read(settings, method, &layers, err));
    *ret_taps = 0;
    for (int i = 0; i < layers.n; i++) *ret_taps |= KI_TAP_BIT(layers.tap[i]);
    return KITH_OK;
}
