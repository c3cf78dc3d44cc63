"""kith bench knn beside FAISS IndexFlatIP on the same rows: python3 bench/knn.py [KITH] [N] [DIM]

Alternates the two, three times each, and prints medians and their ratio for k = 10 and k = 1000. FAISS is asked for
one more neighbour because it returns every row to itself. Set OMP_NUM_THREADS for both.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import faiss
import numpy as np

kith = sys.argv[1] if len(sys.argv) > 1 else 'build/kith'
n = int(sys.argv[2]) if len(sys.argv) > 2 else 60502
dim = int(sys.argv[3]) if len(sys.argv) > 3 else 512
rng = np.random.RandomState(0)
x = (rng.randn(max(1, n // 5), dim)[rng.randint(0, max(1, n // 5), n)] + 0.8 * rng.randn(n, dim)).astype(np.float32)
x /= np.linalg.norm(x, axis=1, keepdims=True)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'x.npy')
    np.save(path, x)
    index = faiss.IndexFlatIP(dim)
    index.add(x)
    for k in (10, 1000):
        ours, theirs, peak = [], [], 0
        for _ in range(3):
            out = subprocess.run([kith, 'bench', 'knn', '--embedding', path, '-k', str(k), '--metric', 'inner',
                                  '--repeats', '1', '--json'], check=True, capture_output=True)
            result = json.loads(out.stdout)
            ours.append(result['seconds'])
            peak = max(peak, result['peak_bytes'])
            began = time.time()
            index.search(x, k + 1)
            theirs.append(time.time() - began)
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f'n {n} dim {dim} k {k}: kith {a:.2f} s ({2e-9 * n * n * dim / a:.0f} GFLOP/s, {peak / 2**20:.0f} MiB), '
              f'faiss {b:.2f} s ({2e-9 * n * n * dim / b:.0f} GFLOP/s), ratio {b / a:.2f}')
