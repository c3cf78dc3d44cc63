"""The peer of `kith bench train` and `kith bench embed`: the same networks in PyTorch.

    /usr/bin/python3 bench/train_torch.py --net googlenet --mode train --layout nchw --batch 32 --size 224

Prints one JSON line with the keys of `kith bench … --json` that both have. A training step is
forward, the gradient of a fixed linear function of a 512-d embedding, backward, Adam; inference is
eval mode without gradients up to the pooled features. --net googlenet_bn is torchvision's GoogLeNet
with batch norm, for scale."""
import argparse
import json
import os
import resource
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch_more  # noqa: E402


def main():
    nets = torch_more.NETS
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", choices=nets, default="googlenet")
    parser.add_argument("--mode", choices=("train", "embed"), default="train")
    parser.add_argument("--layout", choices=("nchw", "nhwc"), default="nchw", help="nhwc is channels_last")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    train = args.mode == "train"
    net = nets[args.net](embedding=512 if train else 0).train(train)
    x = 2 * torch.rand(args.batch, 3, args.size, args.size) - 1
    if args.layout == "nhwc":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    direction = (2 * torch.rand(args.batch, 512) - 1) / args.batch
    adam = torch.optim.Adam(net.parameters(), lr=1e-5) if train else None

    def step():
        if not train:
            with torch.no_grad():
                return float(net(x)["pooled"].sum())
        adam.zero_grad()
        loss = (net(x)["embedding"] * direction).sum()
        loss.backward()
        adam.step()
        return float(loss)

    for _ in range(args.warm_ups):
        step()
    seconds = []
    for _ in range(args.steps):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    median = statistics.median(seconds)
    print(json.dumps({"bench": args.mode, "backbone": args.net, "layout": args.layout, "batch": args.batch,
                      "size": args.size, "threads": args.threads, "steps": args.steps,
                      "images_per_second": args.batch / median, "step_seconds": median,
                      "fastest_seconds": min(seconds),
                      "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


main()
