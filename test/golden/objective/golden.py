"""What the scripts that make golden files share: the batches, and a writer of safetensors.

A golden file holds, for a case NAME (its recipe is in the metadata under NAME) on a batch SHAPE:
  SHAPE/x [m, d], SHAPE/y [m], SHAPE/pooled [m, c], SHAPE/map [m, c, h, w], SHAPE/teacher [m, w]
  NAME@SHAPE/value [1], NAME@SHAPE/grad [m, d], and where they matter /grad_pooled, /grad_map,
  NAME@SHAPE/state/PARAM and NAME@SHAPE/grad_state/PARAM
test/objective/test_objective_golden.c reads every *.safetensors beside this file and needs no list.
"""
import importlib.util
import json
import struct
import sys

import numpy as np
import torch

DT = torch.float64
N_CLASSES = 70
DIM, CHANNELS, SIDE = 8, 6, 3
TEACHER = 10


def load_methods():
    """methods.py, the executable definition: its path is the script's first argument."""
    spec = importlib.util.spec_from_file_location('methods', sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _clustered(rng, y, spread=0.6):
    centre = rng.standard_normal((N_CLASSES, DIM))
    return centre[y] + spread * rng.standard_normal((len(y), DIM))


def shapes():
    """name -> (x float32 [m, DIM], y int64 [m])."""
    # The seed is one of those for which no anchor has a positive and a negative at distances that float32
    # could not tell apart (2e-4 at least): which triplets count is then no matter of rounding.
    rng = np.random.default_rng(20240641)
    out = {}
    for name, classes, images in (('64x2', 64, 2), ('10x10', 10, 10), ('5x8', 5, 8)):
        y = np.repeat(np.arange(classes), images)
        out[name] = (_clustered(rng, y), y)
    y = np.arange(24)
    out['distinct'] = (_clustered(rng, y), y)
    y = np.full(12, 3)
    out['oneclass'] = (_clustered(rng, y), y)
    y = rng.permutation(np.repeat(np.arange(6), 4))
    out['shuffled'] = (_clustered(rng, y), y)
    x, y = _clustered(rng, np.repeat(np.arange(4), 5)), np.repeat(np.arange(4), 5)
    x[1], x[6], x[12] = x[0], x[5], x[2]                        # the same image twice; once in another class
    out['duplicates'] = (x, y)
    y = np.repeat(np.arange(5), 8)
    for name, norm in (('small', 0.01), ('large', 100.0)):
        x = _clustered(rng, y)
        out[name] = (x / np.linalg.norm(x, axis=1, keepdims=True) * norm * rng.uniform(0.8, 1.2, (40, 1)), y)
    y = np.repeat(np.arange(3), 4)
    out['coincide'] = (np.tile(rng.standard_normal((1, DIM)), (12, 1)), y)
    out['pair'] = (_clustered(rng, np.array([7, 7])), np.array([7, 7]))
    out['single'] = (_clustered(rng, np.array([5])), np.array([5]))
    return {k: (x.astype(np.float32), y.astype(np.int64)) for k, (x, y) in out.items()}


def taps(name, m):
    """pooled [m, CHANNELS] and map [m, CHANNELS, SIDE, SIDE] for a shape, always the same."""
    rng = np.random.default_rng(sum(map(ord, name)))
    fmap = np.maximum(rng.standard_normal((m, CHANNELS, SIDE, SIDE)), 0).astype(np.float32)
    return fmap.mean((2, 3)).astype(np.float32), fmap


def teacher(name, x):
    """What a teacher says of a shape [m, TEACHER]: it depends on x as another network's features would."""
    rng = np.random.default_rng(sum(map(ord, name)) + 1)
    out = np.tanh(x @ rng.standard_normal((DIM, TEACHER))) + 0.5 * rng.standard_normal((len(x), TEACHER)) + 0.3
    return out.astype(np.float32)


_CODES = {'float32': 'F32', 'float64': 'F64', 'int64': 'I64'}


def save(path, tensors, metadata):
    header, at, chunks = {'__metadata__': metadata}, 0, []
    for name, a in tensors.items():
        a = np.ascontiguousarray(a)
        header[name] = {'dtype': _CODES[str(a.dtype)], 'shape': list(a.shape), 'data_offsets': [at, at + a.nbytes]}
        at += a.nbytes
        chunks.append(a.tobytes())
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(chunks))


class Golden:
    """Collects cases: add(name, recipe, fn) calls fn(x, y, **extra) on every shape in float64."""

    def __init__(self, path, with_taps=False, with_teacher=False):
        self.path, self.tensors, self.metadata = path, {}, {}
        self.with_taps, self.with_teacher = with_taps, with_teacher
        self.shapes = shapes()
        for k, (x, y) in self.shapes.items():
            self.tensors[k + '/x'], self.tensors[k + '/y'] = x, y
            if with_taps:
                self.tensors[k + '/pooled'], self.tensors[k + '/map'] = taps(k, len(y))
            if with_teacher:
                self.tensors[k + '/teacher'] = teacher(k, x)

    def add(self, name, recipe, fn, state=None, only=None):
        """state: {parameter: float32 array}, given to fn as keywords with dots turned into underscores."""
        self.metadata[name] = recipe
        for k, (x, y) in self.shapes.items():
            if only is not None and k not in only:
                continue
            tx = torch.tensor(x, dtype=DT, requires_grad=True)
            ty = torch.tensor(y)
            extra = {n: torch.tensor(v, dtype=DT, requires_grad=True) for n, v in (state or {}).items()}
            kw = {n.replace('.', '_'): v for n, v in extra.items()}
            inputs = {'grad': tx}
            if self.with_taps:
                pooled, fmap = (torch.tensor(t, dtype=DT, requires_grad=True) for t in taps(k, len(y)))
                kw.update(pooled=pooled, fmap=fmap)
                inputs.update(grad_pooled=pooled, grad_map=fmap)
            if self.with_teacher:
                kw['teacher'] = torch.tensor(teacher(k, x), dtype=DT)
            value = fn(tx, ty, **kw)
            key = '%s@%s/' % (name, k)
            self.tensors[key + 'value'] = np.array([float(value)])
            if value.requires_grad:
                value.backward()
            for n, t in inputs.items():
                if t.grad is not None or n == 'grad':
                    g = torch.zeros_like(t) if t.grad is None else t.grad
                    self.tensors[key + n] = g.numpy().astype(np.float32)
            for n, t in extra.items():
                self.tensors[key + 'state/' + n] = state[n]
                if t.grad is not None:
                    self.tensors[key + 'grad_state/' + n] = t.grad.numpy().astype(np.float32)

    def save(self):
        save(self.path, self.tensors, self.metadata)
        print('%s: %d cases, %d tensors' % (self.path, len(self.metadata), len(self.tensors)))
