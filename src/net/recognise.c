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

/* kith_tensors_get would look for the most similar name of each that is missing, which takes a while. */
static bool has_tensor(const kith_tensors *tensors, const char *prefix, const char *name) {
    const size_t n = strlen(prefix);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        const char *found = kith_tensors_name(tensors, i);
        if (strncmp(found, prefix, n) == 0 && strcmp(found + n, name) == 0) return true;
    }
    return false;
}

static kith_status compare(const ki_backbone *backbone, const kith_tensors *tensors, const char *prefix,
                           match *ret_match, kith_error *err) {
    ki_net net = {0};
    match m = {.backbone = backbone};
    const ki_net_options options = {.backbone = backbone->name};
    KI_TRY(ki_net_init(&options, &net, err));
    for (int i = 0; i < ki_graph_count(net.graph); i++) {
        const ki_node *node = ki_graph_node(net.graph, i);
        for (int k = 0; k < node->n_params; k++) {
            m.n++;
            if (has_tensor(tensors, prefix, node->param[k].name)) continue;
            if (m.n_missing++ == 0) ki_snprintf(m.missing, sizeof m.missing, "%s", node->param[k].name);
        }
    }
    ki_net_release(&net);
    *ret_match = m;
    return KITH_OK;
}

static kith_status fail(const kith_tensors *tensors, const match *best, kith_error *err) {
    char known[200] = "";
    size_t used = 0;
    const ki_backbone *b = NULL;
    for (int i = 0; (b = ki_backbone_at(i)) && used < sizeof known; i++) {
        if (b->vector == 0)
            used += (size_t)ki_snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", b->name);
    }
    const int64_t n = kith_tensors_count(tensors);
    ki_fail(err, KITH_EINVAL,
            "the file does not say which network its weights are for, and its %lld tensors (%.60s%s) are not "
            "those of a known one",
            (long long)n, n ? kith_tensors_name(tensors, 0) : "none", n > 1 ? " …" : "");
    if (!best->backbone || best->n_missing == best->n)
        return ki_hint(err, KITH_EINVAL,
                       "known are %s; docs/model-files.md has their names, kith import renames PyTorch's",
                       known);
    return ki_hint(err, KITH_EINVAL,
                   "known are %s; of %s, the most similar, %d of %d tensors are missing (%.60s%s)", known,
                   best->backbone->name, best->n_missing, best->n, best->missing,
                   best->n_missing > 1 ? " …" : "");
}

kith_status ki_backbone_recognise(const kith_tensors *tensors, const char *prefix,
                                  const ki_backbone **ret_backbone, kith_error *err) {
    match best = {0}, m;
    const ki_backbone *b = NULL;
    for (int i = 0; (b = ki_backbone_at(i)); i++) {
        if (b->vector > 0) continue; /* those have few names, which say little */
        KI_TRY(compare(b, tensors, prefix, &m, err));
        if (!best.backbone || m.n - m.n_missing > best.n - best.n_missing) best = m;
    }
    if (!best.backbone || best.n_missing > 0) return fail(tensors, &best, err);
    *ret_backbone = best.backbone;
    return KITH_OK;
}
