#!/usr/bin/env python3
"""Every recipe of research/recipes/omniglot with kith and in PyTorch (omniglot_torch.py), several seeds each, as a table.

    /usr/bin/python3 research/peers/omniglot.py --root data/omniglot --out runs/omniglot [--seeds 3] [--only binomial,triplet]

What is there already in --out is not run again, so it may be stopped and started; --table prints what there is.
Both sides leave out the same validation characters. kith's model is the one chosen on them, PyTorch's the last."""
import argparse
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The two sides take turns, so that a disturbed minute hits both.
T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}


def run_kith(args, recipe, name, seed):
    out = os.path.join(args.out, name, "kith-%d" % seed)
    if not os.path.exists(out + "/result.json"):
        command = [args.kith, "train", recipe, "--out", out, "--seed", str(seed), "--quiet",
                   "--set", "data.root=" + args.root] + (["--resume"] if os.path.exists(out + "/run.json") else [])
        subprocess.run(command + sum((["--set", s] for s in args.set), []), check=True)
    return out


def run_torch(args, recipe, name, seed, split):
    path = os.path.join(args.out, name, "torch-%d.json" % seed)
    if not os.path.exists(path):
        command = [sys.executable, os.path.join(HERE, "omniglot_torch.py"), recipe, "--root", args.root,
                   "--seed", str(seed), "--split", split, "--threads", str(args.threads),
                   "--cache", args.out]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        open(path, "w").write(done.stdout)


def spread(values):
    n = len(values)
    mean = sum(values) / n
    if n not in T_975:
        return "%.2f" % mean
    half = T_975[n] * (sum((v - mean) ** 2 for v in values) / (n - 1) / n) ** 0.5
    return "%.2f ± %.2f" % (mean, half)


def row(folder):
    ours = [json.load(open(path)) for path in sorted(glob.glob(folder + "/kith-*/result.json"))]
    theirs = [json.load(open(path)) for path in sorted(glob.glob(folder + "/torch-*.json"))]
    cells = [spread([100 * r["test"]["recall"]["1"] for r in ours]), spread([100 * r["test"]["map_at_r"] for r in ours]),
             "%.2f" % (sum(100 * r["untrained"]["recall"]["1"] for r in ours) / len(ours)),
             "%.0f" % (sum(r["seconds"] for r in ours) / len(ours))] if ours else ["–"] * 4
    cells += [spread([r["r_at_1"] for r in theirs]), spread([r["map_at_r"] for r in theirs]),
              "%.0f" % (sum(r["seconds"] for r in theirs) / len(theirs))] if theirs else ["–"] * 3
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default="data/omniglot")
    parser.add_argument("--out", default="runs/omniglot")
    parser.add_argument("--kith", default="build/kith")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch; kith takes all cores")
    parser.add_argument("--only", help="recipes by name, with commas between")
    parser.add_argument("--set", action="append", default=[], help="for kith, as in kith train --set")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    names = [os.path.basename(path)[:-5] for path in sorted(glob.glob(HERE + "/../recipes/omniglot/*.yaml"))]
    names = [name for name in names if name != "tables" and (not args.only or name in args.only.split(","))]
    for name in [] if args.table else names:
        recipe = os.path.join(HERE, "../recipes/omniglot", name + ".yaml")
        os.makedirs(os.path.join(args.out, name), exist_ok=True)
        for seed in range(1, args.seeds + 1):
            out = run_kith(args, recipe, name, seed)
            if not args.no_torch:
                run_torch(args, recipe, name, seed, out + "/split.csv")
    print("| objective | R@1 | MAP@R | untrained R@1 | seconds | PyTorch R@1 | MAP@R | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        folder = os.path.join(args.out, name)
        if os.path.isdir(folder):
            print("| " + " | ".join([name] + row(folder)) + " |")


main()
