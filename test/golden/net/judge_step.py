"""One training step at full size, all parameter gradients against PyTorch.

    cmake --build build && /usr/bin/python3 test/golden/net/judge_step.py --images FOLDER [--weights NET=FILE …]

For every backbone build/test/dump_step writes parameters and gradients for a batch of images (noise
without --images); PyTorch computes the same from the same numbers, in float (the figure asked for) and in double (which tells a difference
in the engine from rounding that the network itself magnifies)."""
import argparse
import glob
import os
import subprocess
import tempfile

import numpy as np
import torch

import safetensors
import torch_nets

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "../../../build/test/dump_step")


def make_batch(folder, batch, size, caffe):
    """[batch, 3, size, size], preprocessed as the weights want; images from all over the folder."""
    if not folder:
        x = np.random.default_rng(0).standard_normal((batch, 3, size, size))
        return (60 * x if caffe else x).astype(np.float32)
    from PIL import Image
    files = sorted(glob.glob(os.path.join(folder, "**", "*.jpg"), recursive=True))
    files = files[::len(files) // batch][:batch]
    x = np.stack([np.asarray(Image.open(f).convert("RGB").resize((size, size), Image.BILINEAR)) for f in files])
    x = x.astype(np.float64)
    if caffe:
        x = x[..., ::-1] - [104, 117, 123]
    else:
        x = (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2), np.float32)


def step(net, x, data, dtype):
    net = net.to(dtype)
    taps = net(torch.tensor(x).to(dtype))
    (taps["embedding"] * torch.tensor(data["diff.embedding"]).to(dtype)).sum().backward()
    grads = {k: p.grad.double() for k, p in net.named_parameters()}
    return {k: v.detach().double() for k, v in taps.items()}, grads


def distances(a, b):
    """Relative L2 of all together and the worst tensor; gradients that are nothing but rounding
    (a bias under a batch norm with batch statistics) are left out of the second."""
    total = sum(float((b[k] ** 2).sum()) for k in b)
    error = sum(float(((a[k] - b[k]) ** 2).sum()) for k in b)
    worst = max((float((a[k] - b[k]).norm() / b[k].norm()), k) for k in b if float(b[k].norm()) > 1e-6 * total**0.5)
    return (error / total) ** 0.5, worst


def judge(name, weights, settings, images, batch, size, frozen):
    x = make_batch(images, batch, size, name != "resnet50" or "caffe" in (settings or ""))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.safetensors")
        np.save(os.path.join(folder, "x.npy"), x)
        subprocess.run([TOOL, name, weights or "-", settings or "-", os.path.join(folder, "x.npy"),
                        "frozen" if frozen else "batch", path], check=True)
        data = safetensors.read(path)
    print("%s, %s weights, batch %d, %d px, %s statistics" %
          (name, "given" if weights else "random", batch, size, "frozen" if frozen else "batch"))
    params = {k[6:]: torch.tensor(v) for k, v in data.items() if k.startswith("param/")}
    ours = {k[5:]: torch.tensor(v).double() for k, v in data.items() if k.startswith("grad/")}
    extra = {"stride": "1x1"} if settings and "stride=1x1" in settings else {}
    results = []
    for dtype in (torch.float32, torch.float64):
        net = torch_nets.NETS[name](embedding=128, **extra).train()
        net.load_state_dict(params, strict=False)
        for module in net.modules():
            if frozen and isinstance(module, torch.nn.BatchNorm2d):
                module.eval()
        results.append(step(net, x, data, dtype))
    (taps, single), (_, double) = results
    assert set(ours) == set(single), set(ours) ^ set(single)
    for tap in ("map", "pooled", "embedding"):
        found = torch.tensor(data["tap/" + tap]).double()
        print("  tap %-10s %.2e" % (tap, float((found - taps[tap]).norm() / taps[tap].norm())))
    print("  %d gradients: kith against float %.2e (worst %.2e, %s)" % ((len(ours),) + flat(distances(ours, single))))
    print("      kith against double %.2e (worst %.2e, %s)" % flat(distances(ours, double)))
    print("      float against double %.2e (worst %.2e, %s)" % flat(distances(single, double)), flush=True)


def flat(d):
    return d[0], d[1][0], d[1][1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", action="append", default=[], help="NET=FILE")
    parser.add_argument("--settings", action="append", default=[], help="NET:K=V,…")
    parser.add_argument("--images", help="a folder with .jpg files somewhere below")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("nets", nargs="*", default=["googlenet", "resnet50", "bn_inception"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    weights = dict(w.split("=", 1) for w in args.weights)
    settings = dict(s.split(":", 1) for s in args.settings)
    for name in args.nets:
        for frozen in ((True, False) if name != "googlenet" else (False,)):
            judge(name, weights.get(name), settings.get(name), args.images, args.batch, args.size, frozen)


main()
