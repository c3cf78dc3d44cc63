"""The peer of `kith bench train|embed --device cuda`: the same training step, or the same forward pass, in PyTorch.

    python3 bench/train_torch_cuda.py --nets googlenet,bn_inception --how eager,compiled --precision bf16
    python3 bench/train_torch_cuda.py --nets vit_s,vit_b,convnext_t --loss binomial --optimizer adamw --size 224

A step is forward, a loss (RAW on the pairs VTHM keeps, or binomial), backward, fused Adam or AdamW; channels_last (or, for float32, where
cuDNN has more to offer for it, the plain order too: --how eager_nchw), autocast for bf16, cuDNN's own search of
algorithms. `compiled` is torch.compile(mode="reduce-overhead"): forward, loss
and backward in CUDA graphs. Images and labels are on the device and normalised before the clock starts,
so the peer pays for neither copies nor conversion. One JSON line per net and way; memory is what
PyTorch's allocator held at most (reserved) and what tensors took of it (allocated).

With --mode embed a step is the forward pass to the pooled features, as in inference.

Nets: googlenet (BVLC's, LRN), googlenet_bn (torchvision's, batch norm), bn_inception, resnet50; torchvision's vit_s, vit_b,
convnext_t, mobilenet_v3_large, efficientnet_b0."""
import argparse
import gc
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_more import NETS  # noqa: E402


def raw_vthm(x, y, alpha=2.0, beta=50.0, gamma=0.5, margin=0.1):
    """The mean over anchors of ln(1 + sum_P e^(-alpha (s - gamma))) / alpha + the same of negatives."""
    s = F.normalize(x.float())
    s = s @ s.t()
    same = y[:, None] == y[None, :]
    pos, neg = same & ~torch.eye(len(y), dtype=torch.bool, device=y.device), ~same
    d, inf = s.detach(), float("inf")
    least = d.masked_fill(~pos, inf).amin(1, keepdim=True)
    most = d.masked_fill(~neg, -inf).amax(1, keepdim=True)
    both = pos.any(1, keepdim=True) & neg.any(1, keepdim=True)
    pos, neg = pos & (d < most + margin) & both, neg & (d > least - margin) & both
    zero = s.new_zeros(len(y), 1)
    lp = torch.cat([zero, (-alpha * (s - gamma)).masked_fill(~pos, -inf)], 1).logsumexp(1) / alpha
    ln = torch.cat([zero, (beta * (s - gamma)).masked_fill(~neg, -inf)], 1).logsumexp(1) / beta
    return (lp + ln).mean()


def binomial(x, y, alpha=2.0, beta=50.0, gamma=0.5):
    """The mean over anchors of the means of softplus over its positives and over its negatives."""
    s = F.normalize(x.float())
    s = s @ s.t()
    same = y[:, None] == y[None, :]
    pos, neg = same & ~torch.eye(len(y), dtype=torch.bool, device=y.device), ~same
    p, n = F.softplus(alpha * (gamma - s)) * pos, F.softplus(beta * (s - gamma)) * neg
    return (p.sum(1) / pos.sum(1).clamp_min(1) + n.sum(1) / neg.sum(1).clamp_min(1)).mean()


LOSSES = {"raw": raw_vthm, "binomial": binomial}
OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def make_batches(args, layout, n=4):
    """n batches of the sampler's kind: classes with args.images images each."""
    batches = []
    for _ in range(n):
        x = 255 * torch.rand(args.batch, 3, args.size, args.size, device="cuda") - 110
        y = torch.arange(args.batch, device="cuda") // args.images
        batches.append((x.contiguous(memory_format=layout), y))
    return batches


def measure(args, name, how):
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    layout = torch.contiguous_format if how.endswith("_nchw") else torch.channels_last
    train = args.mode == "train"
    net = NETS[name](embedding=512 if train else 0).cuda().to(memory_format=layout).train(train)
    optimizer = OPTIMIZERS[args.optimizer](net.parameters(), lr=1e-5, fused=True) if train else None
    batches = make_batches(args, layout)

    def loss_of(x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=args.precision == "bf16"):
            out = net(x)
        return LOSSES[args.loss](out["embedding"], y) if train else out["pooled"]

    is_compiled = how.startswith("compiled")
    if is_compiled:
        torch._dynamo.reset()
        loss_of = torch.compile(loss_of, mode="reduce-overhead")

    def step(i):
        x, y = batches[i % len(batches)]
        if is_compiled:
            torch.compiler.cudagraph_mark_step_begin()
        if not train:
            with torch.inference_mode():
                return loss_of(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    began = time.perf_counter()
    for i in range(args.warm_ups):
        loss = step(i)
    torch.cuda.synchronize()
    warm_seconds = time.perf_counter() - began
    if args.turn:  # others may be compiling, or being timed
        open(args.turn + ".warm", "w").close()
        while not os.path.exists(args.turn):
            time.sleep(0.02)
    # All steps queued one behind the other, as in training; an event after each.
    events = [torch.cuda.Event(enable_timing=True) for _ in range(args.steps + 1)]
    events[0].record()
    for i in range(args.steps):
        loss = step(i)
        events[i + 1].record()
    torch.cuda.synchronize()
    each = [events[i].elapsed_time(events[i + 1]) for i in range(args.steps)]
    whole = events[0].elapsed_time(events[-1]) / args.steps
    print(json.dumps({
        "bench": args.mode, "who": "torch-" + how, "backbone": name, "precision": args.precision,
        "tf32": args.tf32, "batch": args.batch, "size": args.size, "steps": args.steps,
        "images_per_second": 1000 * args.batch / statistics.median(each),
        "images_per_second_mean": 1000 * args.batch / whole,
        "step_ms": statistics.median(each), "fastest_ms": min(each), "warm_seconds": warm_seconds,
        "reserved_bytes": torch.cuda.max_memory_reserved(),
        "allocated_bytes": torch.cuda.max_memory_allocated(),
        "loss": float(loss.detach().float().mean())}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="googlenet,googlenet_bn,bn_inception,resnet50")
    parser.add_argument("--how", default="eager,compiled")
    parser.add_argument("--precision", choices=("bf16", "float32"), default="bf16")
    parser.add_argument("--mode", choices=("train", "embed"), default="train")
    parser.add_argument("--loss", choices=LOSSES, default="raw")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adam")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--images", type=int, default=4, help="of a class")
    parser.add_argument("--size", type=int, default=227)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warm-ups", type=int, default=8)
    parser.add_argument("--turn", help="write this name + .warm when warm, and begin timing when the file is there")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.tf32
    for name in args.nets.split(","):
        for how in args.how.split(","):
            try:
                measure(args, name, how)
            except Exception as error:  # one net that does not compile must not cost the others
                print(json.dumps({"backbone": name, "who": "torch-" + how, "precision": args.precision,
                                  "error": str(error)[:300]}), flush=True)
            gc.collect()


main()
