"""Golden values for k-reciprocal re-ranking: python3 make_rerank.py (numpy)

The method of Zhong et al. 2017 on whole matrices, with 1 - cosine for the distance. Reads lone_embedding.npy beside this file
and writes lone_rerank.npy: lambda cos + (1 - lambda) J of rows 0 … 9 with all rows, k1 = 20, k2 = 6, lambda = 0.3.
"""
import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
K1, K2, LAMBDA = 20, 6, 0.3

x = np.load(os.path.join(here, 'lone_embedding.npy')).astype(np.float64)
x /= np.linalg.norm(x, axis=1, keepdims=True)
dist = 1 - x @ x.T
np.fill_diagonal(dist, -1)  # a row is its own nearest
n, order = len(x), np.argsort(dist, axis=1, kind='stable')
np.fill_diagonal(dist, 0)


def mutual(k):
    near = np.zeros((n, n), bool)
    np.put_along_axis(near, order[:, :k + 1], True, axis=1)
    return near & near.T


full, half = mutual(K1), mutual(K1 // 2)
share = (half.astype(int) @ full.T.astype(int)).T  # [i, c]: rows of c's small set in i's set
takes = full & (share > 2 / 3 * half.sum(1))
sets = full | (takes.astype(int) @ half.astype(int) > 0)
v = np.where(sets, np.exp(-dist), 0)
v /= v.sum(1, keepdims=True)
v = v[order[:, :K2]].mean(1)
common = np.array([np.minimum(v[i], v).sum(1) for i in range(10)])
out = LAMBDA * (1 - dist[:10]) + (1 - LAMBDA) * common / (2 - common)
np.save(os.path.join(here, 'lone_rerank.npy'), out)
print(out.shape, out[0, :5])
