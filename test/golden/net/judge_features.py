"""Features and logits of `kith embed` against PyTorch, at full size.

    /usr/bin/python3 test/golden/net/judge_features.py [--weights NET=FILE …] [--settings NET:K=V,…]

resnet50's ImageNet weights are not at hand in the repository: make them, then
--weights resnet50=FILE --settings resnet50:stride=1x1,preprocess=caffe
Nets without a file get random weights, written with the names that files in the wild have (and, for
bn_inception, with the leading axis of 1 that some tensors have there)."""
import argparse
import os
import subprocess
import tempfile

import numpy as np
import torch

import safetensors
import torch_nets

HERE = os.path.dirname(os.path.abspath(__file__))
KITH = os.path.join(HERE, "../../../build/kith")


def random_weights(name, path):
    torch.manual_seed(1)
    net = torch_nets.NETS[name](classes=1000).eval()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 2)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.2, 0.2)
    tensors = {}
    for key, value in net.state_dict().items():
        value = value.numpy()
        if name == "bn_inception" and value.ndim == 1 and "_bn." in key:
            value = value[None]
        tensors[key] = value if value.ndim else value.reshape(1)
    safetensors.write(path, tensors)


def judge(name, weights, settings, batch, size):
    with tempfile.TemporaryDirectory() as folder:
        if not weights:
            weights = os.path.join(folder, "w.safetensors")
            random_weights(name, weights)
        rng = np.random.default_rng(0)
        scale = 60 if name != "resnet50" or "caffe" in (settings or "") else 1
        x = (scale * rng.standard_normal((batch, 3, size, size))).astype(np.float32)
        np.save(os.path.join(folder, "x.npy"), x)
        state = {k: torch.tensor(v) for k, v in safetensors.read(weights).items()}
        extra = {"stride": "1x1"} if settings and "stride=1x1" in settings else {}
        net = torch_nets.NETS[name](classes=1000, **extra).eval()
        shapes = {k: v.shape for k, v in net.state_dict().items()}
        net.load_state_dict({k: v.reshape(shapes[k]) for k, v in state.items()}, strict=False)
        with torch.no_grad():
            taps = net(torch.tensor(x))
        for tap in ("map", "pooled", "logits"):
            out = os.path.join(folder, "y.npy")
            command = [KITH, "embed", "--backbone", name, "--weights", weights, os.path.join(folder, "x.npy"),
                       "--tap", tap, "-o", out] + (["--settings", settings] if settings else [])
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found, want = np.load(out).astype(np.float64), taps[tap].numpy().astype(np.float64)
            print("%-13s %-7s relative L2 %.2e" %
                  (name, tap, np.linalg.norm(found - want) / np.linalg.norm(want)), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", action="append", default=[], help="NET=FILE")
    parser.add_argument("--settings", action="append", default=[], help="NET:K=V,…")
    parser.add_argument("--batch", type=int, default=3)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("nets", nargs="*", default=["googlenet", "resnet50", "bn_inception"])
    args = parser.parse_args()
    weights = dict(w.split("=", 1) for w in args.weights)
    settings = dict(s.split(":", 1) for s in args.settings)
    for name in args.nets:
        judge(name, weights.get(name), settings.get(name), args.batch, args.size)


main()
