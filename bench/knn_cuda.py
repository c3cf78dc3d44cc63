"""kith bench knn --device cuda beside PyTorch on the same device: python3 bench/knn_cuda.py [KITH] [N] [DIM]

The peer multiplies blocks of 4096 rows with all of them in float32 (no TF32) and takes torch.topk, everything on the
device; kith's time includes the lists' way to the host and, with --exact, the float64 look. Three times each, in turn,
medians; the first of each warms up. Then `kith eval` on the CPU and on the device, whose metrics must be the same.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

kith = sys.argv[1] if len(sys.argv) > 1 else 'build/cuda/kith'
n = int(sys.argv[2]) if len(sys.argv) > 2 else 60502
dim = int(sys.argv[3]) if len(sys.argv) > 3 else 512
rng = np.random.RandomState(0)
labels = rng.randint(0, max(1, n // 5), n).astype(np.int64)
x = (rng.randn(max(1, n // 5), dim)[labels] + 0.8 * rng.randn(n, dim)).astype(np.float32)
x /= np.linalg.norm(x, axis=1, keepdims=True)


def run(*arguments):
    done = subprocess.run([kith, *arguments, '--json'], check=True, capture_output=True)
    return json.loads(done.stdout)


def torch_seconds(k):
    rows = torch.from_numpy(x).cuda()
    took = []
    for _ in range(4):
        torch.cuda.synchronize()
        began = time.time()
        for at in range(0, n, 4096):
            score = rows[at:at + 4096] @ rows.T
            score[torch.arange(len(score)), torch.arange(at, at + len(score))] = -2
            score.topk(k, dim=1)
        torch.cuda.synchronize()
        took.append(time.time() - began)
    return statistics.median(took[1:])


torch.backends.cuda.matmul.allow_tf32 = False
with tempfile.TemporaryDirectory() as folder:
    rows, classes = os.path.join(folder, 'x.npy'), os.path.join(folder, 'y.npy')
    np.save(rows, x)
    np.save(classes, labels)
    for k in (10, 1000):
        theirs = torch_seconds(k)
        for exact in ([], ['--exact']):
            ours = run('bench', 'knn', '-e', rows, '-k', str(k), '--device', 'cuda', '--repeats', '4', *exact)
            print(f'n {n} dim {dim} k {k}{" exact" if exact else ""}: kith {ours["seconds"]:.3f} s '
                  f'(fastest {ours["fastest_seconds"]:.3f}, {ours["gflops"]:.0f} GFLOP/s), torch {theirs:.3f} s, '
                  f'ratio {theirs / ours["seconds"]:.2f}', flush=True)
    torch.cuda.empty_cache()
    for metrics in ('retrieval', 'clustering'):
        found = {}
        for device in ('cpu', 'cuda'):
            began = time.time()
            found[device] = run('eval', '-e', rows, '-y', classes, '--metrics', metrics, '--bootstrap', '0',
                                '--iterations', '5', '--device', device)
            print(f'eval {metrics} on {device}: {time.time() - began:.2f} s, of it {found[device].get("seconds", 0):.2f} '
                  f'judging', flush=True)
        for key in ('recall', 'map', 'map_at_r', 'r_precision', 'mrr', 'nmi', 'f1'):
            if key in found['cpu']:
                same = found['cpu'][key] == found['cuda'][key]
                print(f'  {key}: {"the same" if same else (found["cpu"][key], found["cuda"][key])}')
