"""The parts of bench/python.sh: arrays, kith.evaluate, the program, kith.Loss."""

import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

MIB = 1024  # ru_maxrss is in KiB


def make(folder: str, rows: str) -> None:
    n, n_classes, dim = int(rows), 11316, 512
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    centres = rng.standard_normal((n_classes, dim), dtype=np.float32)
    np.save(f"{folder}/x.npy", centres[y] + 2 * rng.standard_normal((n, dim), dtype=np.float32))
    np.save(f"{folder}/y.npy", y)


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def evaluate(folder: str) -> None:
    import kith

    x, y = np.load(f"{folder}/x.npy"), np.load(f"{folder}/y.npy")
    before, cpu_before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, cpu(resource.RUSAGE_SELF), time.perf_counter()
    found = kith.evaluate(x, y, clustering=False)
    print(f"kith.evaluate: {time.perf_counter() - begin:.1f} s, {cpu(resource.RUSAGE_SELF) - cpu_before:.1f} s of processors, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB:.0f} MiB at most ({before / MIB:.0f} before, of which the "
          f"array has {x.nbytes / MIB / MIB:.0f}); R@1 {found.recall[1]:.6f}")


def program(folder: str, *command: str) -> None:
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = json.loads(out)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"kith eval:     {found['seconds']:.1f} s, {cpu(resource.RUSAGE_CHILDREN):.1f} s of processors with reading the files, "
          f"{used.ru_maxrss / MIB:.0f} MiB at most; R@1 {found['recall']['1']:.6f}")


def loss() -> None:
    import kith
    from kith._library import ffi, lib

    kith.threads(1)
    for n, dim in ((16, 8), (512, 512)):
        x = np.random.default_rng(0).standard_normal((n, dim), dtype=np.float32)
        y = np.arange(n) // 4
        one = kith.Loss("binomial")
        one.value_and_gradient(x, y)
        batch, kept = one._fill({"embedding": x}, y, 0)
        times = {"python": [], "c": []}
        for _ in range(200 if n < 100 else 30):
            begin = time.perf_counter()
            one.value_and_gradient(x, y)
            middle = time.perf_counter()
            lib.kith_objective_evaluate(one._handle, batch, one._result, ffi.NULL)
            times["python"].append(middle - begin)
            times["c"].append(time.perf_counter() - middle)
        python, c = (1e6 * statistics.median(times[name]) for name in ("python", "c"))
        print(f"kith.Loss, {n} x {dim}, one thread: value and gradient {python:.1f} µs, the call in C {c:.1f} µs")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
