"""kith.Loss on tensors in a device's memory: what Python adds to the call in C, and autograd code in torch beside it.

    PYTHONPATH=build/cuda/python python3 bench/python_cuda.py [BATCH [DIM]]     (512, 512)

Needs a CUDA device, torch and cffi; kith comes from a build with the CUDA plugin. The torch code is that of bench/objective_peer.py:
masks and matrix operations, as libraries of losses have it. Everything that is timed is queued first; a time is that of a round
of calls with one wait at its end, divided by the calls, and printed as the median of 15 rounds. The three take turns."""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import objective_peer as peer

ROUNDS, CALLS = 15, 100


def timed(one):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        one()
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begin) / CALLS


def in_torch(form, x, y):
    """Value and gradient by autograd: masks, similarities, loss, backward."""
    def one():
        x.grad = None
        z = F.normalize(x)
        form(z @ z.T, *peer.masks(y)).backward()

    return one


def with_kith(loss, x, y):
    def one():
        x.grad = None
        loss(x, y).backward()

    return one


def in_c(kith, loss, x, y):
    """The bare call: the batch is filled once."""
    from kith import _device
    from kith._library import ffi, lib
    from kith._loss import _TAPS

    gradient, total = torch.zeros_like(x), torch.empty((), dtype=torch.float64, device=x.device)
    kept = x.detach()
    batch = _device.fill({"embedding": kept}, y, {"embedding": gradient}, None, total, torch.cuda.current_stream().cuda_stream, 0,
                         _TAPS)
    err = ffi.new("kith_error *")

    def one():
        if lib.kith_objective_queue(loss._handle, batch, err):
            raise RuntimeError(ffi.string(err.message))

    return one


def main():
    import kith

    n, dim = (int(a) for a in (sys.argv[1:] + ["512", "512"][len(sys.argv) - 1:]))
    torch.manual_seed(0)
    x = torch.randn(n, dim, device="cuda", requires_grad=True)
    y = (torch.arange(n, device="cuda") // 2).int()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {n} x {dim}, two of a class; microseconds a step")
    print(f"{'loss':18}{'in C':>9}{'kith.Loss':>11}{'Python adds':>13}{'torch':>9}{'torch / kith.Loss':>19}{'off':>9}")
    rows = {"raw+vthm": (dict(name="raw", miner="vthm"), peer.raw_vthm), "binomial": (dict(name="binomial"), peer.binomial),
            "contrastive": (dict(name="contrastive"), peer.contrastive)}
    for name, (options, form) in rows.items():
        loss = kith.Loss(**options)
        ways = [with_kith(loss, x, y), in_torch(form, x, y)]
        grads = []
        for way in ways:
            way()
            grads.append(x.grad.clone())
        off = ((grads[0] - grads[1]).abs().max() / grads[1].abs().max()).item()
        ways.append(in_c(kith, loss, x, y))
        times = [[], [], []]
        for way in ways:
            timed(way)
        for _ in range(ROUNDS):
            for kept, way in zip(times, ways):
                kept.append(timed(way))
        python, autograd, c = (statistics.median(t) for t in times)
        print(f"{name:18}{c:9.1f}{python:11.1f}{python - c:13.1f}{autograd:9.1f}{autograd / python:19.2f}{off:9.1e}", flush=True)


if __name__ == "__main__":
    main()
