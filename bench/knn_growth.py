"""Search time as the gallery grows: python3 bench/knn_growth.py [KITH] [QUERIES] [DIM]: a table of n = 10 k to 1 M."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

kith = sys.argv[1] if len(sys.argv) > 1 else 'build/kith'
n_query = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
dim = int(sys.argv[3]) if len(sys.argv) > 3 else 128
rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    query, gallery = os.path.join(folder, 'q.npy'), os.path.join(folder, 'g.npy')
    np.save(query, rng.standard_normal((n_query, dim), dtype=np.float32))
    print(f'{n_query} queries of {dim} values, k = 100')
    print('         n   seconds   seconds per 10 k   peak MiB')
    for n in (10000, 30000, 100000, 300000, 1000000):
        np.save(gallery, rng.standard_normal((n, dim), dtype=np.float32))
        out = subprocess.run([kith, 'bench', 'knn', '--embedding', gallery, '--query', query, '-k', '100',
                              '--repeats', '1', '--json'], check=True, capture_output=True)
        r = json.loads(out.stdout)
        print(f"{n:10d}   {r['seconds']:7.2f}   {r['seconds'] / n * 10000:16.4f}   {r['peak_bytes'] / 2**20:8.0f}")
