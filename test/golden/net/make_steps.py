"""Make NET.step.txt and NET.frozen.txt: one training step of each backbone, as PyTorch computes it in
double, with batch statistics and with frozen ones.

    /usr/bin/python3 make_steps.py

Input, parameters and the gradient at the taps come from a hash of their names (test/net/hashed.h
makes the same numbers). A line holds the kind (tap, grad, stat), the name, the tensor's L2 norm and
eight projections: its inner products with vectors of +1 and -1, also hashed. The mean square of the
differences in the projections is an unbiased estimate of the squared L2 distance, so 200 KB of text
stand for 170 MB of gradients.

Batch norms get gamma around 0.45 and beta around 1: with gamma 1 and beta 0 a random deep network
with batch statistics is so badly conditioned that PyTorch in float differs from PyTorch in double
by 1e-2 (2e-7 in the input flips enough ReLUs)."""
import os

import numpy as np
import torch

import torch_nets

HERE = os.path.dirname(os.path.abspath(__file__))
N_PROJECTIONS = 8
# name, batch, channels, size, frozen batch norm
CASES = [("googlenet", 2, 3, 64, False), ("bn_inception", 4, 3, 64, False), ("bn_inception", 2, 3, 64, True),
         ("resnet50", 4, 3, 64, False), ("resnet50", 2, 3, 64, True), ("convnet4", 4, 1, 28, False)]


def words(name, n):
    """n 64-bit words: splitmix64 of a counter that starts at FNV-1a of the name."""
    with np.errstate(over="ignore"):
        h = np.uint64(0xCBF29CE484222325)
        for byte in name.encode():
            h = (h ^ np.uint64(byte)) * np.uint64(0x100000001B3)
        z = h + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hashed(name, shape, low, high):
    """float32 values uniform in [low, high)."""
    n = int(np.prod(shape))
    unit = (words(name, n) >> np.uint64(40)).astype(np.float64) / 2.0**24
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def parameter(name, shape, has_stats):
    if len(shape) > 1:
        bound = np.sqrt(6.0 / np.prod(shape[1:]))
        return hashed(name, shape, -bound, bound)
    role = name.rsplit(".", 1)[1]
    ranges = {"weight": (0.4, 0.5), "bias": (0.9, 1.1), "running_var": (0.8, 1.2)} if has_stats else {}
    low, high = ranges.get(role, (-0.1, 0.1))
    return hashed(name, shape, low, high)


def line(kind, name, value):
    flat = value.detach().numpy().astype(np.float64).ravel()
    out = ["%.9g" % np.sqrt((flat**2).sum())]
    for k in range(N_PROJECTIONS):
        signs = np.where(words("%s#%d" % (name, k), flat.size) >> np.uint64(63), 1.0, -1.0)
        out.append("%.9g" % (flat * signs).sum())
    return " ".join([kind, name] + out) + "\n"


def main():
    for name, batch, channels, size, frozen in CASES:
        extra = {"channels": channels} if name == "convnet4" else {}
        net = torch_nets.NETS[name](embedding=32, classes=10, **extra).double().train()
        for module in net.modules():
            if frozen and isinstance(module, torch.nn.BatchNorm2d):
                module.eval()
        state = net.state_dict()
        new = {k: torch.from_numpy(parameter(k, tuple(v.shape), k.rsplit(".", 1)[0] + ".running_var" in state))
               for k, v in state.items() if v.ndim > 0}
        net.load_state_dict(new, strict=False)
        x = torch.from_numpy(hashed("input", (batch, channels, size, size), -1, 1)).double()
        taps = net(x)
        loss = 0
        for tap in ("embedding", "logits"):
            r = hashed("diff." + tap, tuple(taps[tap].shape), -1, 1)
            loss = loss + (taps[tap] * torch.from_numpy(r).double()).sum()
        loss.backward()
        with open(os.path.join(HERE, name + (".frozen.txt" if frozen else ".step.txt")), "w") as out:
            out.write("%d %d %d\n" % (batch, channels, size))
            for tap in ("map", "pooled", "embedding", "logits"):
                out.write(line("tap", tap, taps[tap]))
            for key, value in net.named_parameters():
                out.write(line("grad", key, value.grad))
            for key, value in net.named_buffers():
                if value.ndim > 0:
                    out.write(line("stat", key, value))
        print(name, sum(p.numel() for p in net.parameters()))


main()
