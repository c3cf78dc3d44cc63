#!/usr/bin/env python3
"""Write optim.safetensors: twenty steps of every optimizer by PyTorch, in float64.

The file holds, once, the gradients (diffs [steps, n]) and starting values (value [n]) of four parameters
that lie one behind the other, and for each case NAME: its recipe section (metadata NAME), the learning
rate of every step (NAME/lr), values after the last step (NAME/value), gradient norms by parameter of the
last step (NAME/norm), and the sum of all m (NAME/m) and v (NAME/v) as PyTorch holds them, where it does.
Run: python3 make_optim.py   (PyTorch 1.13)"""
import os
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../net"))
import safetensors  # noqa: E402

STEPS = 20
PARAMS = [("conv1.weight", 37), ("conv1.bias", 5), ("embedding.weight", 11), ("proxies", 8)]
N = sum(n for _, n in PARAMS)
NO_RULES = [1, 1, 1, 1]


def adam(lr, wd, **k):
    return lambda groups: torch.optim.Adam(groups, lr=lr, weight_decay=wd, **k)


def adamw(lr, wd, **k):
    return lambda groups: torch.optim.AdamW(groups, lr=lr, weight_decay=wd, **k)


def sgd(lr, wd, **k):
    return lambda groups: torch.optim.SGD(groups, lr=lr, weight_decay=wd, **k)


def rmsprop(lr, wd, **k):
    return lambda groups: torch.optim.RMSprop(groups, lr=lr, weight_decay=wd, **k)


def constant(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1)


def step_schedule(at, factor):
    return lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, at, factor)


def cosine(final, lr):
    """Annealed to its end at the last step."""
    def make(optimizer):
        # eta_min is one number for all groups, so this serves cases without multipliers.
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS - 1, eta_min=final * lr)
    return make


def warm(n, then):
    def make(optimizer):
        first = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / n, 1, n - 1)
        return torch.optim.lr_scheduler.SequentialLR(optimizer, [first, then(optimizer)], [n])
    return make


CASES = {
    "adam": ("{name: adam, lr: 1e-2}", adam(1e-2, 0), {}),
    "adam_decay": ("{name: adam, lr: 1e-2, weight_decay: 0.1, beta1: 0.8, beta2: 0.99, eps: 0.01}",
                   adam(1e-2, 0.1, betas=(0.8, 0.99), eps=0.01), {}),
    "adamw": ("{name: adamw, lr: 1e-2, weight_decay: 0.1}", adamw(1e-2, 0.1), {}),
    "sgd": ("{name: sgd, lr: 1e-2, momentum: 0}", sgd(1e-2, 0), {}),
    "sgd_momentum": ("{name: sgd, lr: 1e-2, momentum: 0.9, weight_decay: 0.1}", sgd(1e-2, 0.1, momentum=0.9), {}),
    "sgd_nesterov": ("{name: sgd, lr: 1e-2, momentum: 0.9, nesterov: true, weight_decay: 0.1}",
                     sgd(1e-2, 0.1, momentum=0.9, nesterov=True), {}),
    "rmsprop": ("{name: rmsprop, lr: 1e-2, weight_decay: 0.1}", rmsprop(1e-2, 0.1), {}),
    "rmsprop_momentum": ("{name: rmsprop, lr: 1e-3, momentum: 0.9, alpha: 0.9}",
                         rmsprop(1e-3, 0, momentum=0.9, alpha=0.9), {}),
    "groups": ("{lr: 1e-2, weight_decay: 0.1, multipliers: {embedding: 10, bias: 2, proxies: 100, conv1: 0.5},"
               " decay_multipliers: {bias: 0, embedding: 3}}",
               adam(1e-2, 0.1), dict(lr=[0.5, 1, 10, 100], decay=[1, 0, 3, 1])),
    "groups_adamw": ("{name: adamw, lr: 1e-2, weight_decay: 0.1, multipliers: {backbone: 0.1},"
                     " decay_multipliers: {proxies: 0}}",
                     adamw(1e-2, 0.1), dict(lr=[0.1, 0.1, 1, 1], decay=[1, 1, 1, 0])),
    "frozen": ("{lr: 1e-2, multipliers: {conv1: 0}}", adam(1e-2, 0), dict(lr=[0, 0, 1, 1])),
    "clip": ("{lr: 1e-2, eps: 0.01, clip: 0.5}", adam(1e-2, 0, eps=0.01), dict(clip=0.5)),
    "clip_loose": ("{name: sgd, lr: 1e-2, clip: 1e3}", sgd(1e-2, 0, momentum=0.9), dict(clip=1e3)),
    "clip_decay": ("{name: sgd, lr: 1e-2, clip: 1, weight_decay: 0.1, multipliers: {embedding: 10}}",
                   sgd(1e-2, 0.1, momentum=0.9), dict(clip=1.0, lr=[1, 1, 10, 1])),
    "accumulate": ("{name: sgd, lr: 1e-2, accumulate: 4, clip: 0.8, weight_decay: 0.1}",
                   sgd(1e-2, 0.1, momentum=0.9), dict(clip=0.8, scale=0.25)),
    "head_only": ("{lr: 1e-2, head_only: 7, clip: 2, weight_decay: 0.1}", adam(1e-2, 0.1),
                  dict(clip=2.0, head_only=7)),
    "step": ("{name: sgd, lr: 1e-2, schedule: {name: step, at: [5, 12], factor: 0.3}}",
             sgd(1e-2, 0, momentum=0.9), dict(schedule=step_schedule([5, 12], 0.3))),
    "step_epochs": ("{name: sgd, lr: 1e-2, epochs: 4, schedule: {name: step, at: [1, 3]}}",
                    sgd(1e-2, 0, momentum=0.9), dict(schedule=step_schedule([5, 15], 0.1))),
    "cosine": ("{name: sgd, lr: 1e-2, schedule: {name: cosine, final: 0.1}}",
               sgd(1e-2, 0, momentum=0.9), dict(schedule=cosine(0.1, 1e-2))),
    "cosine_zero": ("{lr: 1e-2, schedule: cosine}", adam(1e-2, 0), dict(schedule=cosine(0, 1e-2))),
    "warmup": ("{lr: 1e-2, warmup: 6}", adam(1e-2, 0), dict(schedule=warm(6, constant))),
}


def run(make, value, diffs, lr=NO_RULES, decay=NO_RULES, clip=0, scale=1, head_only=0, schedule=constant):
    parts = np.split(value, np.cumsum([n for _, n in PARAMS])[:-1])
    params = [torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in parts]
    optimizer = make([{"params": [p]} for p in params])
    for group, by, decay_by in zip(optimizer.param_groups, lr, decay):
        group["lr"] *= by
        group["weight_decay"] *= decay_by
    scheduler = schedule(optimizer)
    rates = []
    for t in range(STEPS):
        rates.append(optimizer.param_groups[3]["lr"] / lr[3])
        grads = np.split(diffs[t], np.cumsum([n for _, n in PARAMS])[:-1])
        for i, (p, grad) in enumerate(zip(params, grads)):
            asleep = i < 2 and t < head_only or lr[i] == 0
            p.grad = None if asleep else torch.tensor(grad, dtype=torch.float64) * scale
        norms = [0 if p.grad is None else p.grad.norm().item() for p in params]
        if clip:
            torch.nn.utils.clip_grad_norm_(params, clip)
        optimizer.step()
        scheduler.step()
    out = {"lr": np.array(rates), "norm": np.array(norms), "value": np.concatenate([p.detach().numpy() for p in params])}
    states = [optimizer.state[p] for p in params if p in optimizer.state]
    for name, keys in (("m", ("exp_avg", "momentum_buffer")), ("v", ("exp_avg_sq", "square_avg"))):
        found = [s[k].sum().item() for s in states for k in keys if k in s and s[k] is not None]
        if found:
            out[name] = np.array([sum(found)])
    return out


def main():
    rng = np.random.default_rng(7)
    diffs = rng.standard_normal((STEPS, N)).astype(np.float32)
    diffs[3, :] = 0
    value = rng.uniform(-1, 1, N).astype(np.float32)
    tensors, metadata = {"diffs": diffs, "value": value}, {}
    for name, (recipe, make, options) in CASES.items():
        metadata[name] = recipe
        for key, array in run(make, value, diffs, **options).items():
            tensors[name + "/" + key] = array.astype(np.float64)
    safetensors.write(os.path.join(HERE, "optim.safetensors"), tensors, metadata)


main()
