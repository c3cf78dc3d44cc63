"""Golden values for verification: python3 make_verification.py (scikit-learn 1.2, numpy)

Reads NAME_embedding.npy, NAME_labels.npy (and NAME_query.npy, NAME_gallery.npy) beside this file and writes
NAME_verification.npy, rows cosine and squared distance of
[AUC, EER, TAR at FAR 1e-1 1e-2 1e-3 1e-4, thresholds of these, pairs of one class, pairs of two].
The rates are those of roc_curve: TAR at FAR x is the largest tpr whose fpr is at most x, the EER lies where the curve, linear
between its points, meets tpr = 1 - fpr.
"""
import os

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

here = os.path.dirname(os.path.abspath(__file__))


def load(name, part):
    path = os.path.join(here, f'{name}_{part}.npy')
    return np.load(path) if os.path.exists(path) else None


def pairs(n, query, gallery):
    if query is None:
        return np.triu_indices(n, 1)
    i, j = np.repeat(query, len(gallery)), np.tile(gallery, len(query))
    return i[i != j], j[i != j]


def score(x, i, j, metric):
    if metric == 'cosine':
        norm = np.sqrt((x * x).sum(1))
        return np.array([(x[a] * x[b]).sum() for a, b in zip(i, j)]) / (norm[i] * norm[j])
    return -((x[i] - x[j]) ** 2).sum(1)


def values(x, y, i, j, metric):
    s, same = score(x, i, j, metric), y[i] == y[j]
    fpr, tpr, thresholds = roc_curve(same, s, drop_intermediate=False)
    at = [np.flatnonzero(fpr <= far)[-1] for far in (1e-1, 1e-2, 1e-3, 1e-4)]
    k = np.flatnonzero(fpr + tpr >= 1)[0]
    part = (1 - fpr[k - 1] - tpr[k - 1]) / (fpr[k] - fpr[k - 1] + tpr[k] - tpr[k - 1])
    eer = fpr[k - 1] + part * (fpr[k] - fpr[k - 1])
    sign = 1 if metric == 'cosine' else -1
    return [roc_auc_score(same, s), eer, *tpr[at], *[sign * thresholds[a] if a else np.inf * sign for a in at],
            same.sum(), (~same).sum()]


for name in ('blobs', 'double', 'lone', 'split'):
    x, y = load(name, 'embedding').astype(np.float64), load(name, 'labels')
    i, j = pairs(len(x), load(name, 'query'), load(name, 'gallery'))
    out = np.array([values(x, y, i, j, metric) for metric in ('cosine', 'sqeuclidean')])
    print(name, len(i), out.round(4).tolist())
    np.save(os.path.join(here, f'{name}_verification.npy'), out)
