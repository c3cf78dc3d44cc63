"""A linear head on GoogLeNet's pooled features of CUB-200-2011, trained by kith and by torch: R@1 of the unseen classes.

    build/kith embed --backbone googlenet --weights googlenet.safetensors --tap pooled CUB_200_2011 -o cub.npy
    PYTHONPATH=build/python python3 research/peers/features_cub.py cub.npy [--seeds 3] [--lr 3e-4] [--steps 600]

Both take the same rows, loss (binomial deviance), optimizer (Adam), start (He's), shape of batches and number of steps; batches
and start are drawn by each program's own generator. Classes 1 to 100 train, 101 to 200 test. The setting was chosen with
`kith train` and data.validation=0.2, on 20 of the training classes. Needs Debian's python3-torch and the package kith."""
import argparse
import statistics
import tempfile

import numpy as np
import torch

import kith

ALPHA, BETA, GAMMA = 2, 50, 0.5


def binomial(x, y):
    """The mean over anchors of the mean of its positives' terms and the mean of its negatives'."""
    s = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(x).T
    same = y[:, None] == y[None, :]
    positive, negative = (same & ~torch.eye(len(y), dtype=torch.bool)).float(), (~same).float()
    term = torch.nn.functional.softplus
    return ((term(ALPHA * (GAMMA - s)) * positive).sum(1) / positive.sum(1)
            + (term(BETA * (s - GAMMA)) * negative).sum(1) / negative.sum(1)).mean()


def by_torch(x, y, o, seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    head = torch.nn.Linear(x.shape[1], o.embedding)
    torch.nn.init.kaiming_uniform_(head.weight, nonlinearity="relu")
    torch.nn.init.zeros_(head.bias)
    optimizer = torch.optim.Adam(head.parameters(), lr=o.lr)
    members = [np.flatnonzero(y == c) for c in np.unique(y)]
    for _ in range(o.steps):
        chosen = rng.choice(len(members), o.classes, replace=False)
        rows = np.concatenate([rng.choice(members[c], o.images, replace=False) for c in chosen])
        optimizer.zero_grad()
        binomial(head(torch.from_numpy(x[rows])), torch.from_numpy(y[rows])).backward()
        optimizer.step()
    return lambda rows: head(torch.from_numpy(rows)).detach()


def by_kith(o, seed):
    recipe = {"data": {"features": o.features, "validation": 0}, "model": {"backbone": "none", "embedding": o.embedding},
              "batch": {"classes": o.classes, "images": o.images},
              "objective": {"loss": {"name": "binomial", "alpha": ALPHA, "beta": BETA, "gamma": GAMMA}},
              "optim": {"name": "adam", "lr": o.lr, "steps": o.steps}, "seed": seed,
              "eval": {"every": 0, "select": "last", "test": False, "seen": False, "untrained": False, "clustering": False}}
    with tempfile.TemporaryDirectory() as folder:
        kith.train(recipe, folder + "/run", report=False)
        return kith.Model(folder + "/run").embed


def show(what, found):
    r, m = [100 * one.recall[1] for one in found], [100 * one.map_at_r for one in found]
    means = [f"{statistics.mean(v):.2f}" + (f" ± {statistics.stdev(v):.2f}" if len(v) > 1 else "") for v in (r, m)]
    print(f"| {what} | {means[0]} | {means[1]} | {', '.join(f'{v:.2f}' for v in r)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--embedding", type=int, default=512)
    parser.add_argument("--classes", type=int, default=32)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    o = parser.parse_args()
    x = np.load(o.features)
    with open(o.features[:-len(".npy")] + ".labels.txt") as lines:
        y = np.unique([line.strip() for line in lines], return_inverse=True)[1]  # "001.Black_footed_Albatross" … in order
    unseen = y >= 100
    seen_x, seen_y, unseen_x, unseen_y = x[~unseen], y[~unseen], x[unseen], y[unseen]
    print("| | R@1 | MAP@R | R@1 of each seed |\n|---|---|---|---|")
    show("the features themselves", [kith.evaluate(unseen_x, unseen_y, k=[1])])
    for what, train in (("the head by kith", lambda seed: by_kith(o, seed)),
                        ("the head by torch", lambda seed: by_torch(seen_x, seen_y, o, seed))):
        show(what, [kith.evaluate(train(seed)(unseen_x), unseen_y, k=[1]) for seed in range(o.seeds)])


if __name__ == "__main__":
    main()
