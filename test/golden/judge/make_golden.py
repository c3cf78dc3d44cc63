"""Golden values for the evaluation tests: python3 make_golden.py METHODS.py

METHODS.py is the reference definition of the metrics (float64, PyTorch). What it does not define (MAP, MRR,
AMI, separate query and gallery) comes from its ranking, from scikit-learn, or from numpy below. Writes
NAME_embedding.npy, NAME_labels.npy, NAME_cluster.npy and NAME_expected.npy beside this file:
[R@1 R@2 R@4 R@8 R@1000, P@1, R-precision, MAP@R, MAP, MRR, NMI, geometric NMI, AMI, F1, lone queries].
"""
import importlib.util
import os
import sys

import numpy as np
import torch
from sklearn import metrics

spec = importlib.util.spec_from_file_location('methods', sys.argv[1])
methods = importlib.util.module_from_spec(spec)
spec.loader.exec_module(methods)
here = os.path.dirname(os.path.abspath(__file__))
KS = (1, 2, 4, 8, 1000)


def from_ranking(order, gallery_y, query_y):
    """order: one array of gallery rows per query, nearest first, itself left out."""
    rows, lone = [], 0
    for idx, label in zip(order, query_y):
        rel = (gallery_y[idx] == label).astype(np.float64)
        R = int(rel.sum())
        if R == 0:
            lone += 1
            continue
        prec = rel.cumsum() / np.arange(1, len(rel) + 1)
        first = np.flatnonzero(rel)[0]
        rows.append([float(first < k) for k in KS] + [rel[0], rel[:R].mean(), (prec * rel)[:R].sum() / R,
                                                     (prec * rel).sum() / R, 1 / (first + 1)])
    return np.mean(rows, axis=0).tolist(), lone


def clustering(c, y):
    nmi, f1 = methods.nmi_f1(torch.tensor(c), torch.tensor(y))
    assert abs(nmi - metrics.normalized_mutual_info_score(y, c)) < 1e-9
    return [nmi, metrics.normalized_mutual_info_score(y, c, average_method='geometric'),
            metrics.adjusted_mutual_info_score(y, c), f1]


def case(name, x, y, cluster, split=None):
    y = y.astype(np.int64)
    xt = torch.tensor(x.astype(np.float64))
    if split is None:
        order = methods.ranking(xt, torch.tensor(y)).numpy()
        values, lone = from_ranking(order, y, y)
        if lone == 0:  # the reference's own averages, and an independent average precision
            want = methods.recall_at(xt, torch.tensor(y), KS)
            assert all(abs(want[k] - v) < 1e-12 for k, v in zip(KS, values))
            map_at_r, r_precision = methods.map_at_r(xt, torch.tensor(y))
            assert abs(map_at_r - values[7]) < 1e-12 and abs(r_precision - values[6]) < 1e-12
            if not name.startswith('tie'):
                S = methods.gram(methods.l2_normalize(xt)).numpy()
                ap = [metrics.average_precision_score(np.delete(y == y[i], i), np.delete(S[i], i)) for i in range(len(y))]
                assert abs(np.mean(ap) - values[8]) < 1e-9
    else:
        query, gallery = split
        unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
        order = []
        for q in query:
            s = unit[gallery] @ unit[q]
            o = np.argsort(-s, kind='stable')
            order.append(np.array([j for j in o if gallery[j] != q]))
        values, lone = from_ranking(order, y[gallery], y[query])
        np.save(f'{here}/{name}_query.npy', query.astype(np.int64))
        np.save(f'{here}/{name}_gallery.npy', gallery.astype(np.int64))
    np.save(f'{here}/{name}_embedding.npy', x)
    np.save(f'{here}/{name}_labels.npy', y)
    np.save(f'{here}/{name}_cluster.npy', cluster.astype(np.int64))
    np.save(f'{here}/{name}_expected.npy', np.array(values + clustering(cluster, y) + [lone], dtype=np.float64))


rng = np.random.RandomState(5)


def blobs(n, dim, n_classes, spread, dtype):
    centre = rng.randn(n_classes, dim)
    y = rng.randint(0, n_classes, n)
    return (centre[y] + spread * rng.randn(n, dim)).astype(dtype), y


def some_clusters(y, wrong, n_clusters):
    return np.where(rng.rand(len(y)) < wrong, rng.randint(0, n_clusters, len(y)), y * 3 + 11)


x, y = blobs(450, 24, 20, 2.0, np.float32)
case('blobs', x, y, some_clusters(y, 0.4, 20))
x, y = blobs(1000, 6, 10, 1.5, np.float64)      # many relevant items, close scores
case('double', x, y, some_clusters(y, 0.8, 40))
x, y = blobs(300, 8, 120, 1.0, np.float32)      # small classes, some of one
case('lone', x, y, some_clusters(y, 0.2, 5))
x, y = blobs(200, 10, 8, 2.0, np.float32)       # every row four times, under any label
x = x[np.arange(200) % 50]
case('tied', x, y, np.zeros(200, int))
x, y = blobs(400, 16, 25, 2.0, np.float32)      # queries partly in the gallery, some with nothing to find
order = rng.permutation(400)
case('split', x, y, some_clusters(y, 0.5, 25), (order[:150], order[100:320]))
