/* Recognising a network: the graph of every backbone is built, which takes no weights, and its names are looked up. */
#include "net/recognise.h"

#include <string.h>

#include "base/text.h"
#include "net/net.h"

enum { MOST_NAME = 160 };

/* How many tensors of a network there are, and are missing. */
typedef struct match {
    const ki_backbone *backbone;
    int n, n_missing;
    char missing[MOST_NAME]; /* the first */
} match;

static kith_status compare(const ki_backbone *backbone, const ki_named *tensors, match *ret_match,
                           kith_error *err) {
    ki_net net = {0};
    match m = {.backbone = backbone};
    const ki_net_options options = {.backbone = backbone->name};
    KI_TRY(ki_net_init(&options, &net, err));
    for (int i = 0; i < ki_graph_count(net.graph); i++) {
        const ki_node *node = ki_graph_node(net.graph, i);
        for (int k = 0; k < node->n_params; k++) {
            kith_array shape;
            m.n++;
            if (ki_named_get(tensors, node->param[k].name, &shape)) continue;
            if (m.n_missing++ == 0) ki_snprintf(m.missing, sizeof m.missing, "%s", node->param[k].name);
        }
    }
    ki_net_release(&net);
    *ret_match = m;
    return KITH_OK;
}

static kith_status fail(const ki_named *tensors, const match *best, kith_error *err) {
    const int n = ki_named_count(tensors);
    ki_fail(err, KITH_EINVAL,
            "the file does not say which network its weights are for, and its %d tensors (%.60s%s) are not "
            "those of a known one",
            n, n ? ki_named_theirs(tensors, 0) : "none", n > 1 ? " …" : "");
    if (!best->backbone || best->n_missing == best->n)
        return ki_hint(err, KITH_EINVAL,
                       "kith list backbones shows the known ones; docs/model-files.md has their names, kith "
                       "import renames PyTorch's");
    if (best->n_missing == 0)
        return ki_hint(
            err, KITH_EINVAL,
            "their names are those of %s, their shapes of no size that kith knows: name it, with its "
            "settings (kith list backbones)",
            best->backbone->name);
    return ki_hint(
        err, KITH_EINVAL,
        "of %s, the most similar, %d of %d tensors are missing (%.60s%s); kith list backbones shows "
        "the known ones",
        best->backbone->name, best->n_missing, best->n, best->missing, best->n_missing > 1 ? " …" : "");
}

/* What the record's function says of it; without one, or if it does not know the tensors, by names. */
static kith_status try_one(const ki_backbone *backbone, const ki_named *tensors, const ki_contract *config,
                           match *ret_match, ki_recognised *ret, kith_error *err) {
    static const ki_contract nothing = {0};
    *ret = (ki_recognised){.pool = backbone->pool};
    KI_TRY(compare(backbone, tensors, ret_match, err));
    const bool knows =
        backbone->recognise && backbone->recognise(backbone, tensors, config ? config : &nothing, ret);
    /* One network's names may be a part of another's, as ResNet-18's are of ResNet-34's: the one with the most is meant. */
    if (!backbone->recognise && ret_match->n_missing == 0)
        ret->sureness = (double)ret_match->n / (double)ki_named_count(tensors);
    if (!knows && backbone->recognise) ret->sureness = 0;
    return KITH_OK;
}

kith_status ki_backbone_recognise(const ki_named *tensors, const ki_contract *config,
                                  const ki_backbone **ret_backbone, ki_recognised *ret_recognised,
                                  kith_error *err) {
    match best = {0}, m;
    ki_recognised found = {.sureness = 0}, r;
    const ki_backbone *b = NULL;
    for (int i = 0; (b = ki_backbone_at(i)); i++) {
        if (b->vector > 0) continue; /* those have few names, which say little */
        KI_TRY(try_one(b, tensors, config, &m, &r, err));
        if (!best.backbone || m.n - m.n_missing > best.n - best.n_missing) best = m;
        if (!(r.sureness > found.sureness)) continue;
        found = r;
        *ret_backbone = b;
    }
    if (!(found.sureness > 0)) return fail(tensors, &best, err);
    *ret_recognised = found;
    return KITH_OK;
}
