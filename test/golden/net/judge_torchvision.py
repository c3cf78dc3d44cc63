"""One training step of torchvision's networks at full size, all parameter gradients.

    cmake --build build --target dump_step && /usr/bin/python3 test/golden/net/judge_torchvision.py [NAME …]

torchvision makes a network with random weights; kith reads them as they are (build/test/dump_step), adds an embedding layer and computes
one step for a batch of noise; PyTorch computes the same in double and, several times, in float: as it is, and with noise of 1e-7 in the
input. A ReLU that rounding switches, in any of them, moves gradients of a network with batch norms by 1e-4 to 1e-2, so one run in float
says little about what the network allows. Hence also gentle batch norms, which keep ReLUs away from 0 (as make_steps.py has them).

Printed are the distances to double of kith and of PyTorch's runs in float. Exit status 1 if kith's is above 1e-4 and above all of PyTorch's.
Networks with batch norms take a step with frozen statistics and one with the batch's."""
import argparse
import copy
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision.models as models

import safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "../../../build/test/dump_step")
RUNS = 3 # in float
# torchvision's name: kith's, and what of the head kith's pooled features have behind the average
NETS = {"vit_b_16": ("vit_b", "heads", 0), "convnext_tiny": ("convnext_t", "classifier", 2), "swin_t": ("swin_t", "head", 0),
        "mobilenet_v3_large": ("mobilenet_v3_large", "classifier", 2), "efficientnet_b0": ("efficientnet_b0", "classifier", 0),
        "resnet18": ("resnet18", "fc", 0), "resnet34": ("resnet34", "fc", 0), "resnet101": ("resnet101", "fc", 0)}


class Features(torch.nn.Module):
    """A network up to its pooled features, and an embedding layer."""

    def __init__(self, net, head, kept, weight, bias):
        super().__init__()
        setattr(net, head, torch.nn.Sequential(*list(getattr(net, head))[:kept]) if kept else torch.nn.Identity())
        self.net, self.embedding = net, torch.nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            self.embedding.weight.copy_(weight)
            self.embedding.bias.copy_(bias)

    def forward(self, x):
        pooled = self.net(x).flatten(1)
        return pooled, self.embedding(pooled)


def make(name, gentle):
    """Random weights, every vector a little off its start, so that a forgotten bias or scale shows; nothing is left out at random."""
    torch.manual_seed(5)
    net = getattr(models, name)(weights=None)
    with torch.no_grad():
        for p in net.parameters():
            if p.numel() == max(p.shape):
                p.add_(0.05 * torch.randn_like(p))
        for key, value in net.named_buffers():
            if key.endswith("running_mean"):
                value.normal_(0, 0.05)
            elif key.endswith("running_var"):
                value.uniform_(0.8, 1.2)
        for module in net.modules():
            if gentle and isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.4, 0.5)
                module.bias.uniform_(0.9, 1.1)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    return net


def step(net, x, diff, dtype, frozen):
    net = copy.deepcopy(net).to(dtype).train()
    for module in net.modules():
        if frozen and isinstance(module, torch.nn.BatchNorm2d):
            module.eval()
    pooled, embedding = net(torch.tensor(x).to(dtype))
    (embedding * torch.tensor(diff).to(dtype)).sum().backward()
    grads = {k: p.grad.double().flatten() for k, p in net.named_parameters() if p.grad is not None}
    return pooled.detach().double(), grads


def distances(a, b):
    """Relative L2 of all together and the worst tensor; tensors whose gradient is nothing but rounding (a bias under a batch norm, a
    bias of attention's keys) are left out of the second."""
    total = sum(float((b[k] ** 2).sum()) for k in b)
    error = sum(float(((a[k] - b[k]) ** 2).sum()) for k in b)
    worst = max((float((a[k] - b[k]).norm() / b[k].norm()), k) for k in b if float(b[k].norm()) > 1e-6 * total**0.5)
    return (error / total) ** 0.5, worst[0], worst[1]


def names(net, params):
    """{kith's name: torch's}. The weights are random, so each tensor is known by its numbers."""
    known = {}
    for key, value in net.named_parameters():
        flat = value.detach().numpy().ravel()
        known[(flat.size, float(flat.astype(np.float64).sum()))] = (key, flat)
    found = {}
    for key, value in params.items():
        flat = value.ravel()
        other = known.get((flat.size, float(flat.astype(np.float64).sum())))
        if other and np.array_equal(flat, other[1]):
            found[key] = other[0]
    return found


def judge(name, batch, size, frozen, gentle):
    backbone, head, kept = NETS[name]
    plain = make(name, gentle)
    x = np.random.default_rng(0).standard_normal((batch, 3, size, size)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        weights, path = os.path.join(folder, "w.safetensors"), os.path.join(folder, "step.safetensors")
        safetensors.write(weights, {k: v.numpy() for k, v in plain.state_dict().items() if v.dim() > 0})
        np.save(os.path.join(folder, "x.npy"), x)
        subprocess.run([TOOL, backbone, weights, "-", os.path.join(folder, "x.npy"), "frozen" if frozen else "batch", path] +
                       (["class"] if name.startswith("vit") else []), check=True)
        data = {k: v.copy() for k, v in safetensors.read(path).items()}
    params = {k[6:]: v for k, v in data.items() if k.startswith("param/")}
    added = [k for k in params if k.startswith("embedding.")]
    net = Features(plain, head, kept, *(torch.tensor(params[k]) for k in sorted(added, reverse=True)))
    exact, double = step(net, x, data["diff.embedding"], torch.float64, frozen)
    rng = np.random.default_rng(1)
    moved = [x] + [(x * (1 + 1e-7 * rng.standard_normal(x.shape))).astype(np.float32) for _ in range(RUNS - 1)]
    single = [distances(step(net, m, data["diff.embedding"], torch.float32, frozen)[1], double)[0] for m in moved]
    known = names(net, params)
    ours = {known[k[5:]]: torch.tensor(v).double().flatten() for k, v in data.items() if k.startswith("grad/") and k[5:] in known}
    # What is left has no gradient: the head, which is not part of either.
    missing = set(double) - set(ours)
    assert not missing, missing
    found = torch.tensor(data["tap/pooled"]).double().reshape(exact.shape)
    total, worst, tensor = distances(ours, double)
    bad = total > 1e-4 and total > max(single)
    kind = "" if frozen is None else (", frozen" if frozen else ", batch") + (", gentle" if gentle else "")
    print("%s%s: %d x %d px, pooled %.1e, %d gradients: kith %.1e (worst tensor %.1e, %s), PyTorch %s%s" %
          (name, kind, batch, size, float((found - exact).norm() / exact.norm()), len(ours), total, worst, tensor,
           " ".join("%.1e" % s for s in sorted(single)), "  TOO FAR" if bad else ""), flush=True)
    return not bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", default="frozen,batch,frozen-gentle,batch-gentle", help="of networks with batch norms")
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    good = True
    for name in args.nets:
        has_norms = any(isinstance(m, torch.nn.BatchNorm2d) for m in getattr(models, name)(weights=None).modules())
        for case in args.cases.split(",") if has_norms else [""]:
            frozen, gentle = case.startswith("frozen") if case else None, case.endswith("gentle")
            good = judge(name, args.batch, args.size, frozen, gentle) and good
    sys.exit(0 if good else 1)


main()
