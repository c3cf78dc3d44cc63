"""kith.Loss on tensors in a device's memory: what Python and autograd add to the call in C, and torch's own operations beside it.

    PYTHONPATH=build/cuda/python python3 bench/python_cuda.py [BATCH [DIM]]     (512, 512)

Needs a CUDA device and torch; kith comes from a build with the CUDA plugin. Without cffi the package cannot be imported. C is then
called by ctypes (KITH_LIBRARY names libkith), and the function of autograd is the package's own, python/kith/_torch_device.py.

A step is a value and its backward(). Its ways take turns:

    in C      kith_objective_queue on pointers, nothing of torch
    empty     a function of autograd that evaluates nothing: two tensors made, one multiplied by backward()'s 1
    kith.Loss the package
    torch     the loss in torch's operations (bench/objective_peer.py): masks and matrix products

and are timed three ways, microseconds a step. "queued": the host's time to queue a step, nobody waiting. "in a row": 100 steps with
one wait at their end, over 100. Both are medians of 15 rounds. "waited for": every step is, the median of 300. In the rows "one
thread" backward() runs in the caller's thread (torch.autograd.grad_mode.set_multithreading_enabled(False)) instead of torch's own."""
import ctypes
import importlib.util
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import objective_peer as peer

DEVICE, ROUNDS, CALLS, WAITED = "cuda", 15, 100, 300
N_TAPS, N_TEACHERS, EMBEDDING = 8, 4, 2  # KITH_N_TAPS, KITH_MOST_TEACHERS, KITH_TAP_EMBEDDING


class Tap(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("cols", ctypes.c_int64), ("height", ctypes.c_int64),
                ("width", ctypes.c_int64)]


class DeviceBatch(ctypes.Structure):
    """kith_device_batch, as include/kith/objective.h has it."""

    _fields_ = [("size", ctypes.c_size_t), ("n", ctypes.c_int64), ("labels", ctypes.c_void_p), ("tap", Tap * N_TAPS),
                ("step", ctypes.c_uint64), ("gradient", ctypes.c_void_p * N_TAPS), ("stopped", ctypes.c_void_p),
                ("total", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("total_f32", ctypes.c_void_p)]


class Sizes(ctypes.Structure):
    """kith_objective_sizes."""

    _fields_ = [*((name, ctypes.c_int64) for name in ("n_classes", "embedding", "pooled", "map", "heads")),
                ("teacher", ctypes.c_int64 * N_TEACHERS)]


class Batch:
    """What kith._device.Batch is with cffi."""

    def __init__(self, lib):
        self.struct = DeviceBatch()
        lib.kith_device_batch_init(ctypes.byref(self.struct), ctypes.c_size_t(ctypes.sizeof(DeviceBatch)))
        self.words = memoryview(self.struct).cast("B").cast("Q")
        self.nothing = memoryview(bytes(8 * len(self.words) - 8)).cast("Q")
        self.at = {name: getattr(DeviceBatch, name).offset // 8
                   for name in ("n", "labels", "step", "stream", "stopped", "total", "total_f32")}
        first = DeviceBatch.tap.offset // 8 + EMBEDDING * ctypes.sizeof(Tap) // 8
        self.taps = {"embedding": (first, first + 1, first + 2, DeviceBatch.gradient.offset // 8 + EMBEDDING)}


class ByCtypes:
    """A loss of the embedding alone, without cffi: what kith.Loss does in a step, and no more."""

    reads = ["embedding"]

    def __init__(self, autograd, recipe, dim):
        self._autograd, self._lib, self.step = autograd, ctypes.CDLL(os.environ["KITH_LIBRARY"]), 0
        self._err = ctypes.create_string_buffer(8192)
        self._handle, sizes = ctypes.c_void_p(), Sizes(0, dim, 0, 0, 0)
        self._check(self._lib.kith_objective_new(recipe.encode(), ctypes.byref(sizes), ctypes.c_uint64(1),
                                                 ctypes.byref(self._handle), self._err))
        self._check(self._lib.kith_objective_place(self._handle, b"cuda", self._err))
        self._device_batch = Batch(self._lib)
        self._struct, self._queue = ctypes.byref(self._device_batch.struct), self._lib.kith_objective_queue

    def _check(self, status):
        if status:
            raise RuntimeError(self._err.raw.replace(b"\0", b" ").decode(errors="replace").strip())

    def _queue_batch(self, device, step):
        batch = self._device_batch
        batch.words[batch.at["step"]] = self.step
        self._check(self._queue(self._handle, self._struct, self._err))
        self.step += 1

    def __call__(self, x, y):
        names, tensors = self._autograd.gather(x, {"pooled": None, "map": None, "weight": None, "detached": None})
        return self._autograd.EvaluateOnDevice.apply(self, names, y, None, *tensors)


def losses():
    """Something that makes a loss from the objective's recipe and the size of the embedding, and how it calls C."""
    if importlib.util.find_spec("_cffi_backend"):
        import kith

        return (lambda recipe, dim: kith.Loss.from_recipe(recipe, dim=dim)), "cffi"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "kith", "_torch_device.py")
    spec = importlib.util.spec_from_file_location("kith_torch_device", path)
    autograd = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(autograd)
    return (lambda recipe, dim: ByCtypes(autograd, recipe, dim)), "ctypes"


class Empty(torch.autograd.Function):
    """What a function of autograd costs that has the same tensors and evaluates nothing."""

    @staticmethod
    def forward(ctx, names, y, x):
        ctx.gradient = torch.empty_like(x)
        return x.new_empty(())

    @staticmethod
    def backward(ctx, factor):
        return None, None, ctx.gradient * factor


def ways_of(loss, form, x, y):
    """The ways of a step, by name. The loss has been called before, so that its batch is filled: `in C` calls it again."""
    gradient, total = torch.empty_like(x), torch.empty((), device=x.device)
    batch, place = loss._device_batch, f"cuda:{x.device.index or 0}"

    def in_c():
        words, (data, _, _, to) = batch.words, batch.taps["embedding"]
        words[data], words[to], words[batch.at["total_f32"]] = x.data_ptr(), gradient.data_ptr(), total.data_ptr()
        loss._queue_batch(place, None)

    def empty():
        x.grad = None
        Empty.apply(("embedding",), y, x).backward()

    def with_kith():
        x.grad = None
        loss(x, y).backward()

    def in_torch():
        x.grad = None
        z = F.normalize(x)
        form(z @ z.T, *peer.masks(y)).backward()

    return {"in C": in_c, "empty": empty, "kith.Loss": with_kith, "torch": in_torch}


def in_a_row(one):
    """Microseconds of a step: queued, and done."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        one()
    queued = time.perf_counter()
    torch.cuda.synchronize()
    return 1e6 * (queued - begin) / CALLS, 1e6 * (time.perf_counter() - begin) / CALLS


def waited(one):
    begin = time.perf_counter()
    one()
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begin)


def measured(ways):
    """Medians for each way: queued, in a row, waited for."""
    times = {name: ([], [], []) for name in ways}
    for one in ways.values():
        in_a_row(one)
    for _ in range(ROUNDS):
        for name, one in ways.items():
            for kept, value in zip(times[name], in_a_row(one)):
                kept.append(value)
    torch.cuda.synchronize()
    for _ in range(WAITED):
        for name, one in ways.items():
            times[name][2].append(waited(one))
    return {name: [statistics.median(t) for t in kinds] for name, kinds in times.items()}


def show(name, ways, off):
    found = measured(ways)
    c, empty, loss, autograd = (found[way] for way in ("in C", "empty", "kith.Loss", "torch"))
    for i, kind in enumerate(("queued", "in a row", "waited for")):
        print(f"{name:24}{kind:12}{c[i]:8.1f}{empty[i]:8.1f}{loss[i]:11.1f}{loss[i] - c[i]:13.1f}"
              f"{loss[i] - c[i] - empty[i]:16.1f}{autograd[i]:9.1f}{autograd[i] / loss[i]:8.2f}{off:9.1e}", flush=True)


def main():
    make, caller = losses()
    threads = getattr(torch.autograd.grad_mode, "set_multithreading_enabled", None)
    n, dim = (int(a) for a in (sys.argv[1:] + ["512", "512"][len(sys.argv) - 1:]))
    torch.manual_seed(0)
    x = torch.randn(n, dim, device=DEVICE, requires_grad=True)
    y = (torch.arange(n, device=DEVICE) // 2).int()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}, C called by {caller}; "
          f"{n} x {dim}, two of a class; microseconds a step")
    print(f"{'loss':24}{'':12}{'in C':>8}{'empty':>8}{'kith.Loss':>11}{'less in C':>13}{'less empty, too':>16}{'torch':>9}"
          f"{'ratio':>8}{'off':>9}")
    rows = {"raw+vthm": ("{loss: {name: raw}, miner: {name: vthm}}", peer.raw_vthm),
            "binomial": ("{loss: {name: binomial}}", peer.binomial),
            "contrastive": ("{loss: {name: contrastive}}", peer.contrastive)}
    for name, (recipe, form) in rows.items():
        loss = make(recipe, dim)
        loss(x, y)
        ways, gradients = ways_of(loss, form, x, y), []
        for way in ("kith.Loss", "torch"):
            ways[way]()
            gradients.append(x.grad.clone())
        off = ((gradients[0] - gradients[1]).abs().max() / gradients[1].abs().max()).item()
        show(name, ways, off)
        if threads:
            with threads(False):
                show(name + ", one thread", ways, off)


if __name__ == "__main__":
    main()
