#!/usr/bin/env python3
"""The peer of the recipes in research/recipes/omniglot: the same network, objective, batches, steps and optimizer in a
plain PyTorch loop.

    /usr/bin/python3 research/peers/omniglot_torch.py research/recipes/omniglot/binomial.yaml --root data/omniglot --seed 0

reads the recipe (network, objective, batch, optimizer, steps), trains on the background characters, scores the
evaluation characters once after the last step and prints one JSON line: R@1, MAP@R, images/s. --split takes the
split.csv of a kith run, so that both leave out the same validation characters. Needs PyTorch, Pillow, PyYAML."""
import argparse
import csv
import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/golden/net"))
import torch_nets  # noqa: E402


# ---- data: every image once in memory, as bytes ----

def read_part(root, part, side, cache=None):
    kept = os.path.join(cache, "%s-%d.npz" % (part, side)) if cache else None
    if kept and os.path.exists(kept):
        arrays = np.load(kept)
        return arrays["images"], arrays["labels"], arrays["names"].tolist()
    images, labels, names = [], [], []
    folder = os.path.join(root, part)
    for alphabet in sorted(os.listdir(folder)):
        if not os.path.isdir(os.path.join(folder, alphabet)):
            continue
        for character in sorted(os.listdir(os.path.join(folder, alphabet))):
            files = sorted(os.listdir(os.path.join(folder, alphabet, character)))
            for name in files:
                image = Image.open(os.path.join(folder, alphabet, character, name)).convert("L")
                images.append(np.asarray(image.resize((side, side), Image.BILINEAR)))
                labels.append(len(names))
            names.append(alphabet + "/" + character)
    if kept:
        np.savez(kept, images=np.stack(images), labels=np.array(labels), names=np.array(names))
    return np.stack(images), np.array(labels), names


def without_validation(labels, names, split, share, seed):
    """Which images train: not those of the classes held out."""
    if split:
        held = {row["class"] for row in csv.DictReader(open(split)) if row["split"] == "validation"}
        out = {i for i, name in enumerate(names) if name in held or name.replace("/", ".") in held}
        if held and not out:
            raise SystemExit("%s: no class of it is known here, as in '%s'" % (split, sorted(held)[0]))
    else:
        n = round(share * len(names))
        out = set(np.random.default_rng(seed).permutation(len(names))[:n].tolist())
    keep = np.array([label not in out for label in labels])
    _, dense = np.unique(labels[keep], return_inverse=True)
    return keep, dense


class Balanced:
    """n_classes classes, n_images images of each, without repeats inside a batch."""

    def __init__(self, labels, n_classes, n_images, rng):
        self.members = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
        self.n_classes, self.n_images, self.rng = n_classes, n_images, rng
        self.order = []

    def batch(self):
        if len(self.order) < self.n_classes:
            self.order = self.rng.permutation(len(self.members)).tolist()
        chosen, self.order = self.order[:self.n_classes], self.order[self.n_classes:]
        return np.concatenate([self.rng.permutation(self.members[c])[:self.n_images] for c in chosen])


IMAGENET = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, None, :, None, None]


def crops(images, side, rng=None):
    """Random crops, or the centre; values in -1 … 1."""
    n, full = len(images), images.shape[1]
    out = np.empty((n, 1, side, side), np.float32)
    for i in range(n):
        y, x = (full - side) // 2, (full - side) // 2
        if rng is not None:
            y, x = rng.integers(0, full - side + 1, 2)
        out[i, 0] = images[i, y:y + side, x:x + side]
    return torch.from_numpy(out / 127.5 - 1)


# ---- objectives ----

def unit(x):
    return F.normalize(x, eps=1e-12)


def pairs(y):
    same = y[:, None] == y[None]
    return same & ~torch.eye(len(y), dtype=torch.bool, device=y.device), ~same


def squared(x):
    g = x @ x.t()
    return (g.diagonal()[:, None] + g.diagonal()[None] - 2 * g).clamp_min(0)


def binomial(x, y, alpha=2.0, beta=50.0, gamma=0.5):
    s, (pos, neg) = x @ x.t(), pairs(y)
    p, n = F.softplus(alpha * (gamma - s)) * pos, F.softplus(beta * (s - gamma)) * neg
    return (p.sum(1) / pos.sum(1).clamp_min(1) + n.sum(1) / neg.sum(1).clamp_min(1)).mean()


def raw(x, y, alpha=2.0, beta=50.0, gamma=0.5, margin=None):
    s, (pos, neg) = x @ x.t(), pairs(y)
    if margin is not None:                                          # valid-triplet hard mining
        d, big = s.detach(), 1e9
        hardest_p = d.masked_fill(~pos, big).min(1, keepdim=True).values
        hardest_n = d.masked_fill(~neg, -big).max(1, keepdim=True).values
        both = (pos.any(1) & neg.any(1))[:, None]
        pos, neg = pos & (d < hardest_n + margin) & both, neg & (d > hardest_p - margin) & both
    zero = s.new_zeros(len(s), 1)
    p = torch.cat([zero, (alpha * (gamma - s)).masked_fill(~pos, -math.inf)], 1).logsumexp(1) / alpha
    n = torch.cat([zero, (beta * (s - gamma)).masked_fill(~neg, -math.inf)], 1).logsumexp(1) / beta
    return (p + n).mean()


def triplet(x, y, margin=0.1):
    d, (pos, neg) = squared(x), pairs(y)
    t = (d[:, :, None] - d[:, None, :] + margin).clamp_min(0)[pos[:, :, None] & neg[:, None, :]]
    return t.sum() / (t > 0).sum().clamp_min(1)


def amsoftmax(x, y, w, scale=20.0, margin=0.1):
    z = x @ unit(w).t()
    return F.cross_entropy(scale * (z - margin * F.one_hot(y, len(w))), y)


def gaussian(x, n=3):
    d = squared(x)
    b = d.detach().sum() / (len(x) * (len(x) - 1))
    return sum(torch.exp(-d / (b * 2.0 ** (i - n // 2))) for i in range(n)) / n


class Objective(torch.nn.Module):
    """The recipe's objective: section on the taps of a batch; owns what it learns."""

    def __init__(self, section, n_classes, dim, channels):
        super().__init__()
        self.loss = dict(section["loss"])
        self.name = self.loss.pop("name")
        self.proxies_rate = self.loss.pop("lr_multiplier", 100)
        self.miner = section.get("miner") or {"name": "all"}
        self.terms = [dict(term) for term in section.get("regularizers") or []]
        if self.name == "amsoftmax":
            self.proxies = torch.nn.Parameter(torch.empty(n_classes, dim).uniform_(-0.1, 0.1))
        for term in self.terms:
            if term["name"] == "horde":
                k, d, e = term["orders"], term["dimension"], term["embedding"]
                init = torch.nn.init.xavier_uniform_
                self.w = torch.nn.ParameterList(torch.nn.Parameter(init(torch.empty(channels, d))) for _ in range(k))
                self.e = torch.nn.ParameterList(torch.nn.Parameter(init(torch.empty(d, e))) for _ in range(k - 1))
            if term["name"] == "density":
                self.alpha = torch.nn.Parameter(torch.full((n_classes,), float(term.get("alpha", 0.5))))
                self.d0 = None

    def base(self, x, y):
        if self.name == "binomial":
            return binomial(x, y, **self.loss)
        if self.name == "raw":
            mined = self.miner["name"] == "vthm"
            return raw(x, y, margin=self.miner.get("margin", 0.1) if mined else None, **self.loss)
        if self.name == "triplet":
            return triplet(x, y, **self.loss)
        return amsoftmax(x, y, self.proxies, **self.loss)

    def forward(self, taps, stopped, y):
        """stopped: the embedding computed from a pooled tap that passes no gradient on."""
        x = unit(taps["embedding"])
        total = self.base(x, y)
        for term in self.terms:
            weight, name = term.get("weight", 1), term["name"]
            if name == "energy_confusion":
                _, neg = pairs(y)
                value = squared(stopped)[neg].mean().log()
            elif name == "joint_similarity":
                _, neg = pairs(y)
                value = (gaussian(taps["pooled"]) * gaussian(x))[neg].mean()
            elif name == "density":
                classes = y.unique()
                d = torch.stack([((x[y == c] - x[y == c].mean(0)) ** 2).sum(1).mean() for c in classes])
                a = self.alpha[classes]
                value = ((d - a) ** 2).mean() - a.mean()
                if self.d0 is not None:
                    r = self.d0[classes] ** term.get("eta", 0.5)
                    value = value + ((r[None] * a[:, None] - r[:, None] * a[None]) ** 2).mean()
            elif name == "horde":
                f = taps["map"].flatten(2).transpose(1, 2)
                phi, value = (f @ self.w[0]) * (f @ self.w[1]), 0
                for k in range(2, len(self.w) + 1):
                    phi = phi if k == 2 else phi * (f @ self.w[k - 1])
                    value = value + self.base(unit(phi.mean(1) @ self.e[k - 2]), y)
            else:
                raise SystemExit("regularizer %s is not in this loop" % name)
            total = total + weight * value
        return total


class Net(torch_nets.ConvNet4):
    """convnet4 with its setting `features`: a last convolution over the whole map."""

    def __init__(self, side, features=0, width=64, embedding=0):
        super().__init__(embedding=0, channels=1, width=width)
        self.out = features or width
        if features:
            self.conv5 = torch.nn.Conv2d(width, features, side // 16, bias=False)
            self.bn5 = torch.nn.BatchNorm2d(features)
        self.add_heads(self.out, embedding, 0)

    def features(self, x):
        x = super().features(x)
        return F.relu(self.bn5(self.conv5(x))) if hasattr(self, "conv5") else x


class Torchvision(torch_nets.Net):
    """ViT-S and ConvNeXt-T of torchvision, which see grey images three times."""

    def __init__(self, backbone, side, embedding, patch=16, drop_path=0.0):
        super().__init__()
        import torchvision
        if backbone == "vit_s":
            self.body, self.out = torchvision.models.VisionTransformer(side, patch, 12, 6, 384, 1536), 384
            self.body.heads = torch.nn.Identity()
        else:
            self.body, self.out = torchvision.models.convnext_tiny(stochastic_depth_prob=drop_path), 768
            self.body.classifier = torch.nn.Sequential(*list(self.body.classifier)[:2])
        self.embedding = torch.nn.Linear(self.out, embedding)

    def forward(self, x):
        x = ((x + 1) / 2).repeat(1, 3, 1, 1)
        pooled = self.body((x - IMAGENET[0].to(x.device)) / IMAGENET[1].to(x.device))
        return {"pooled": pooled, "embedding": self.embedding(pooled)}

    def start(self):
        """As kith starts: matrices, the class token and positions with deviation 0.02, biases at 0; the embedding layer by He."""
        for name, p in self.body.named_parameters():
            if p.dim() > 1 and "layer_scale" not in name:
                torch.nn.init.uniform_(p, -0.02 * 3 ** 0.5, 0.02 * 3 ** 0.5)
            elif name.endswith("bias"):
                torch.nn.init.zeros_(p)
        torch.nn.init.kaiming_uniform_(self.embedding.weight)
        torch.nn.init.zeros_(self.embedding.bias)


def make_net(model, side):
    settings = model.get("settings") or {}
    if model["backbone"] == "convnet4":
        net = Net(side, embedding=model["embedding"], **settings)
        for p in net.parameters():
            if p.dim() > 1:
                torch.nn.init.kaiming_uniform_(p)
        return net
    net = Torchvision(model["backbone"], side, model["embedding"], **settings)
    net.start()
    return net


def rate_at(o, steps):
    """The share of the rate at a step: linear warm-up, then constant or cosine."""
    schedule = o.get("schedule")
    name = schedule.get("name") if isinstance(schedule, dict) else schedule
    warmup = int(o.get("warmup", 0))

    def share(t):
        if t < warmup:
            return (t + 1) / warmup
        place = (t - warmup) / max(steps - warmup - 1, 1)
        return 0.5 * (1 + math.cos(math.pi * place)) if name == "cosine" else 1.0
    return share


# ---- evaluation ----

def embed(net, images, side, device, tap="embedding"):
    net.eval()
    with torch.no_grad():
        out = [net(crops(images[i:i + 128], side).to(device))[tap].cpu() for i in range(0, len(images), 128)]
    net.train()
    return torch.cat(out)


def scores(x, labels):
    """R@1 and MAP@R in per cent: cosine, the query left out by its index."""
    x, y = unit(x), torch.from_numpy(labels)
    hits, ap = 0, 0.0
    counts = torch.bincount(y)[y] - 1
    most = int(counts.max())
    for at in range(0, len(x), 512):
        s = x[at:at + 512] @ x.t()
        s[torch.arange(len(s)), torch.arange(at, at + len(s))] = -math.inf
        right = (y[s.topk(most, 1).indices] == y[at:at + 512, None]).double()
        hits += right[:, 0].sum().item()
        r = counts[at:at + 512, None]
        place = torch.arange(1, most + 1)
        right = right * (place <= r)
        ap += ((right.cumsum(1) / place * right).sum(1) / r[:, 0]).sum().item()
    return 100 * hits / len(x), 100 * ap / len(x)


def class_densities(net, images, labels, side, device, n_classes):
    x = unit(embed(net, images, side, device, "pooled"))
    out = torch.empty(n_classes)
    for c in range(n_classes):
        part = x[torch.from_numpy(labels == c)]
        out[c] = ((part - part.mean(0)) ** 2).sum(1).mean()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("--root", help="the data set's folder; default: the recipe's")
    parser.add_argument("--split", help="split.csv of a kith run")
    parser.add_argument("--cache", help="folder for the decoded images, which are then read once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="instead of the recipe's")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    recipe = yaml.safe_load(open(args.recipe))
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    full, side = int(recipe["input"]["resize"].replace("squash", "")), recipe["input"]["crop"]
    root = args.root or recipe["data"]["root"]
    images, labels, names = read_part(root, "images_background", full, args.cache)
    test_images, test_labels, _ = read_part(root, "images_evaluation", full, args.cache)
    keep, labels = without_validation(labels, names, args.split, recipe["data"].get("validation", 0), args.seed)
    images, n_classes = images[keep], int(labels.max()) + 1

    dim = recipe["model"]["embedding"]
    net = make_net(recipe["model"], side)
    objective = Objective(recipe["objective"], n_classes, dim, net.out)
    net.to(args.device).train()
    untrained = scores(embed(net, test_images, side, args.device), test_labels)
    if hasattr(objective, "d0"):
        objective.d0 = class_densities(net, images, labels, side, args.device, n_classes).to(args.device)
    objective.to(args.device)
    o = recipe["optim"]
    steps, lr = args.steps or o["steps"], float(o["lr"])
    groups = [{"params": [p for n, p in objective.named_parameters() if n != "proxies"], "lr": lr},
              {"params": net.parameters(), "lr": lr}]
    if hasattr(objective, "proxies"):
        groups.append({"params": [objective.proxies], "lr": lr * objective.proxies_rate})
    groups = [g for g in groups if g["params"]]
    kind = torch.optim.AdamW if o["name"] == "adamw" else torch.optim.Adam
    optimizer = kind(groups, lr=lr, eps=float(o.get("eps", 1e-8)), weight_decay=float(o.get("weight_decay", 0)))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_at(o, steps))
    sampler = Balanced(labels, recipe["batch"]["classes"], recipe["batch"]["images"], rng)
    began = time.perf_counter()
    for _ in range(steps):
        items = sampler.batch()
        x = crops(images[items], side, rng).to(args.device)
        y = torch.from_numpy(labels[items]).to(args.device)
        taps = net(x)
        loss = objective(taps, net.embedding(taps["pooled"].detach()), y)
        optimizer.zero_grad()
        loss.backward()
        if o.get("clip"):
            torch.nn.utils.clip_grad_norm_(net.parameters(), float(o["clip"]))
        optimizer.step()
        schedule.step()
    seconds = time.perf_counter() - began
    recall, map_at_r = scores(embed(net, test_images, side, args.device), test_labels)
    batch = recipe["batch"]["classes"] * recipe["batch"]["images"]
    print(json.dumps({"recipe": args.recipe, "seed": args.seed, "steps": steps, "classes": n_classes,
                      "device": args.device, "untrained_r_at_1": untrained[0], "r_at_1": recall,
                      "map_at_r": map_at_r, "loss": loss.item(), "seconds": seconds,
                      "images_per_second": steps * batch / seconds}))


if __name__ == "__main__":
    main()
