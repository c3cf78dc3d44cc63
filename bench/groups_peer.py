"""HDBSCAN of scikit-learn (1.3 or later) beside bench/groups: groups_peer.py E.npy LABELS.txt

The rows are made as long as each other, so that Euclidean distances order pairs as cosines do. One row for each least size of a cluster; what is
noise is alone. Precision and recall of pairs, the last column is seconds. Debian 13 has it: apt-get install python3-sklearn
"""

import sys
import time

import numpy as np
from sklearn.cluster import HDBSCAN


def pairs(counts: np.ndarray) -> int:
    return int((counts.astype(np.int64) * (counts.astype(np.int64) - 1) // 2).sum())


def main(rows: str, labels: str) -> None:
    x = np.load(rows)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    with open(labels, encoding="utf-8") as file:
        label = np.unique(file.read().split("\n")[:len(x)], return_inverse=True)[1]
    for method in ("eom", "leaf"):
        for least in (2, 5):
            began = time.time()
            found = HDBSCAN(min_cluster_size=least, cluster_selection_method=method).fit_predict(x)
            seconds = time.time() - began
            group = np.where(found < 0, -1 - np.arange(len(x)), found)
            together = pairs(np.unique(group, return_counts=True)[1])
            right = pairs(np.unique(np.stack([group, label]), axis=1, return_counts=True)[1])
            same = pairs(np.bincount(label))
            precision, recall = right / max(together, 1), right / same
            f1 = 2 * precision * recall / max(precision + recall, 1e-12)
            what = f"HDBSCAN, {method}, {least} and more, {found.max() + 1} clusters"
            print(f"{what:44}  {precision:9.4f}  {recall:6.4f}  {f1:6.4f}  {'':6}  {seconds:5.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
