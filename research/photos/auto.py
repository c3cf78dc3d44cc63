#!/usr/bin/env python3
"""What kith train PHOTOS finds, beside the pretrained model and recipes/photos.yaml, on folders of photos.

    python3 research/photos/auto.py --out runs/photos --cub data/CUB_200_2011 --omniglot data/omniglot \\
        [--folder flowers=data/flowers ...] [--minutes 1,5] [--draws 3] [--only cub-30,omniglot] [--no-recipe] [--no-auto] [--half]

Folders: 30 and 100 kinds of birds (cub-30, cub-100), 100 characters (omniglot), and those of --folder, each a folder of one folder for each class (at
most 100 classes of it). A draw is other classes and another third of them for the test. All models are judged on the same test photos of the draw, with
kith eval; the search never sees more of them than their number. --half also trains with half of the training classes, and with half of each class's
photos, and compares what that run forecast for twice as many with what all of them brought.

Up to two draws have a row each, with the 95 % range of the gain over the test photos; of more there is the mean, with the 95 % interval over draws.

What is in --out already is not done again, so it may be stopped and started; --table prints what there is. Times mean something only on
a machine that does nothing else."""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
MOST_CLASSES = 100
PHOTOS = (".jpg", ".jpeg", ".png", ".webp")


def classes_below(folder):
    """{class: [files]} of a folder of one folder for each class."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            files = [os.path.join(path, f) for f in sorted(os.listdir(path)) if f.lower().endswith(PHOTOS)]
            if len(files) > 1:
                found[name] = files
    return found


def sources(args):
    """[(name, number of classes, {class: files})]"""
    found = []
    if args.cub:
        birds = classes_below(os.path.join(args.cub, "images"))
        found += [("cub-30", 30, birds), ("cub-100", 100, birds)]
    if args.omniglot:
        characters = {}
        for part in ("images_background", "images_evaluation"):
            base = os.path.join(args.omniglot, part)
            for alphabet in sorted(os.listdir(base)) if os.path.isdir(base) else []:
                for name, files in classes_below(os.path.join(base, alphabet)).items():
                    characters[alphabet + "-" + name] = files
        found.append(("omniglot", 100, characters))
    for item in args.folder:
        name, _, path = item.partition("=")
        if not path:
            sys.exit("auto.py: --folder is '%s'; wanted NAME=FOLDER" % item)
        found.append((name, MOST_CLASSES, classes_below(path)))
    names = args.only.split(",") if args.only else [f[0] for f in found]
    for name in names:
        if name not in [f[0] for f in found]:
            sys.exit("auto.py: no folder is called '%s'; there are: %s" % (name, ", ".join(f[0] for f in found)))
    return [f for f in found if f[0] in names]


def link(folder, part, name, files):
    os.makedirs(os.path.join(folder, part, name))
    for number, file in enumerate(files):
        os.symlink(os.path.abspath(file), os.path.join(folder, part, name, "%05d%s" % (number, os.path.splitext(file)[1])))


def draw(out, number, n_classes, photos, half):
    """The folder of a draw: train/ and test/ of links. half: "", "classes" or "photos"."""
    folder = os.path.join(out, "photos" + ("-half-" + half if half else ""))
    if os.path.exists(folder):
        return folder
    rng = random.Random("draw %d" % number)
    names = sorted(rng.sample(sorted(photos), min(n_classes, len(photos))))
    rng.shuffle(names)
    n_test = (len(names) + 1) // 3
    tests, trains = names[:n_test], names[n_test:]
    if half == "classes":
        trains = trains[:(len(trains) + 1) // 2]
    aside = folder + ".part"
    subprocess.run(["rm", "-rf", aside], check=True)
    for name in tests:
        link(aside, "test", name, photos[name])
    for name in trains:
        files = list(photos[name])
        if half == "photos":
            files = sorted(random.Random(name).sample(files, max(2, (len(files) + 1) // 2)))
        link(aside, "train", name, files)
    os.rename(aside, folder)
    return folder


def run(command, log):
    began = time.time()
    with open(log, "w") as to:
        done = subprocess.run(command, stdout=to, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit("auto.py: %s failed; see %s" % (" ".join(command), log))
    return time.time() - began


def judge(args, out, name, model, folder):
    """R@1 and MAP@R of a model on the draw's test photos, in percent."""
    path = os.path.join(out, name + ".eval.json")
    if not os.path.exists(path):
        command = [args.kith, "eval", model, "--data", folder, "--split", "test", "--metrics", "recall,map_at_r", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
        with open(path + ".part", "w") as to:
            to.write(done.stdout)
        os.rename(path + ".part", path)
    found = json.load(open(path))
    return {"recall": 100 * found["recall"]["1"], "map": 100 * found["map_at_r"]}


def keep(path, make):
    """The JSON at the path, made if it is not there."""
    if not os.path.exists(path):
        value = make()
        json.dump(value, open(path + ".part", "w"))
        os.rename(path + ".part", path)
    return json.load(open(path))


def seconds_of_head(run_folder):
    """From the last view of the photos to the decision: what a better head costs once the photos are embedded."""
    embedded = decided = None
    for line in open(os.path.join(run_folder, "tried.jsonl")):
        if not line.endswith("\n"):
            break
        found = json.loads(line)
        if "trial" not in found:
            continue
        if embedded is None:
            embedded = found["seconds"]
        if "partition 1" in found["trial"] and "all of the network" not in found["trial"] and "share 1" in found["trial"]:
            decided = found["seconds"]
    return decided - embedded if decided is not None else None


def auto(args, out, folder, minutes, half="", judged=None):
    name = "auto-%g%s" % (minutes, "-half-" + half if half else "")
    run_folder = os.path.join(out, name)

    def make():
        seconds = run([args.kith, "train", folder, "-o", run_folder, "--minutes", "%g" % minutes, "--no-report"],
                      os.path.join(out, name + ".log"))
        tune = json.load(open(os.path.join(run_folder, "tune.json")))
        return {"seconds": seconds, "winner": tune["winner"], "n_photos": tune["n_photos_used"],
                "forecast": tune.get("forecast", {}), "head_seconds": seconds_of_head(run_folder)}

    facts = keep(os.path.join(out, name + ".json"), make)
    return dict(facts, **judge(args, out, name, run_folder, judged or folder))


def beside(args, out, before, after):
    """By how much R@1 and MAP@R of a model are better than another's, in points, with the 95 % ranges over the test photos: {score: [gain, low, high]}."""
    command = [args.kith, "eval", "--compare", "--json"] + [os.path.join(out, name + ".eval.json") for name in (before, after)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout)
    return {s["name"]: [100 * v for v in [s["difference"]] + s["interval"]] for s in found["scores"] if s["name"] in ("R@1", "MAP@R")}


def came(args, out, before, after):
    """The same of the mean of both."""
    return [sum(values) / 2 for values in zip(*beside(args, out, before, after).values())]


def recipe(args, out, folder, n_train):
    run_folder = os.path.join(out, "recipe")

    def make():
        return {"seconds": run([args.kith, "train", os.path.join(ROOT, "recipes", "photos.yaml"), "--set", "data.root=" + folder, "--set",
                                "threads=%d" % args.threads, "--set",
                                "model.weights=general", "--set", "batch.classes=%d" % min(8, n_train), "--set", "eval.every=0",
                                "--out", run_folder, "--no-report"], os.path.join(out, "recipe.log"))}

    facts = keep(os.path.join(out, "recipe.json"), make)
    return dict(facts, **judge(args, out, "recipe", run_folder, folder))


def measure(args, name, number, n_classes, photos):
    out = os.path.join(args.out, name, "draw-%d" % number)
    os.makedirs(out, exist_ok=True)
    folder = draw(out, number, n_classes, photos, "")
    found = {"general": judge(args, out, "general", "general", folder)}
    for minutes in args.minutes if not args.no_auto else ():
        print("%s, draw %d: kith train PHOTOS --minutes %g" % (name, number, minutes), file=sys.stderr)
        found["auto-%g" % minutes] = auto(args, out, folder, minutes)
    if not args.no_recipe:
        print("%s, draw %d: recipes/photos.yaml" % (name, number), file=sys.stderr)
        found["recipe"] = recipe(args, out, folder, len(os.listdir(os.path.join(folder, "train"))))
    for half in ("classes", "photos") if args.half else ():
        print("%s, draw %d: half of the %s" % (name, number, half), file=sys.stderr)
        found["half-" + half] = auto(args, out, draw(out, number, n_classes, photos, half), args.minutes[0], half, folder)
        found["half-" + half]["came"] = came(args, out, "auto-%g-half-%s" % (args.minutes[0], half), "auto-%g" % args.minutes[0])
    path = os.path.join(out, "found.json")
    before = json.load(open(path)) if os.path.exists(path) else {}
    json.dump(dict(before, **found), open(path, "w"))


def mean(values):
    n = len(values)
    middle = sum(values) / n
    if n < 2:
        return "%.1f" % middle
    error = math.sqrt(sum((v - middle) ** 2 for v in values) / (n - 1) / n)
    return "%.1f ± %.1f" % (middle, T_975.get(n, 2.0) * error)


def read(args, name):
    found = []
    base = os.path.join(args.out, name)
    for folder in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        path = os.path.join(base, folder, "found.json")
        if os.path.exists(path):
            found.append(json.load(open(path)))
    return found


def row(name, model, draws, recall, precision, gains, seconds):
    print("| %s | %s | %s | %s | %s | %s | %s | %s |" % (name, model, draws, recall, precision, *gains, seconds))


def rows_of(args, name, model, numbers, draws):
    """Fewer than three draws have a row each, with the range of the gain over the test photos; more have one, with the interval over draws."""
    found = [draws[i][model] for i in numbers]
    seconds = ["%.0f" % f["seconds"] if "seconds" in f else "–" for f in found]
    if len(numbers) >= 3:
        gains = [mean([f[k] - draws[i]["general"][k] for f, i in zip(found, numbers)]) for k in ("recall", "map")]
        row(name, model, "%d of them" % len(numbers), mean([f["recall"] for f in found]), mean([f["map"] for f in found]),
            ["–", "–"] if model == "general" else gains, ", ".join(seconds))
        return
    for i, f, time_taken in zip(numbers, found, seconds):
        gains = ["–", "–"]
        if model != "general":
            by = beside(args, os.path.join(args.out, name, "draw-%d" % i), "general", model)
            gains = ["%+.1f (%+.1f to %+.1f)" % tuple(by[k]) for k in ("R@1", "MAP@R")]
        row(name, model, i, "%.1f" % f["recall"], "%.1f" % f["map"], gains, time_taken)


def table(args, names):
    row("photos", "model", "draw", "R@1", "MAP@R", ["gain in R@1", "gain in MAP@R"], "seconds")
    print("|---" * 8 + "|")
    for name in names:
        draws = read(args, name)
        for model in ["general", "recipe"] + ["auto-%g" % m for m in args.minutes]:
            numbers = [i for i, d in enumerate(draws) if model in d]
            if numbers:
                rows_of(args, name, model, numbers, draws)
    print("\n| photos | minutes | what won in each draw | photos used | seconds of the search for a head |\n|---|---|---|---|---|")
    for name in names:
        draws = read(args, name)
        for minutes in args.minutes:
            rows = [d["auto-%g" % minutes] for d in draws if "auto-%g" % minutes in d]
            if rows:
                print("| %s | %g | %s | %s | %s |" % (name, minutes, "; ".join(r["winner"] for r in rows), ", ".join(str(r["n_photos"]) for r in rows),
                                                     ", ".join("%.1f" % r["head_seconds"] for r in rows if r["head_seconds"] is not None)))
    halves(args, names)


def halves(args, names):
    """Forecast of the run with half, against what all of it brought on the test photos: the mean of R@1 and MAP@R. Both have a range."""
    lines = []
    n_agree = 0
    for name in names:
        for number, found in enumerate(read(args, name)):
            for half in ("classes", "photos"):
                part = found.get("half-" + half, {})
                forecast = part.get("forecast", {}).get("twice_the_" + half)
                if not forecast:
                    continue
                gain, low, high = part["came"]
                least, most = 100 * forecast["low"], 100 * forecast["high"]
                n_agree += least <= high and low <= most
                lines.append("| %s | %d | %s | %+.1f (%+.1f to %+.1f) | %+.1f (%+.1f to %+.1f) |" % (name, number, half, 100 * forecast["gain"],
                                                                                         least, most, gain, low, high))
    if lines:
        print("\n| photos | draw | half of the | forecast | came |\n|---|---|---|---|---|")
        print("\n".join(lines))
        print("\nThe ranges of forecast and outcome meet in %d of %d." % (n_agree, len(lines)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--cub")
    parser.add_argument("--omniglot")
    parser.add_argument("--folder", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--minutes", default="1,5")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--no-recipe", action="store_true")
    parser.add_argument("--threads", type=int, default=0, help="of the recipe's run; 0: one for each core")
    parser.add_argument("--no-auto", action="store_true", help="only what the search is compared with")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--kith", default=os.path.join(ROOT, "build", "kith"))
    args = parser.parse_args()
    args.minutes = [float(m) for m in args.minutes.split(",")]
    found = sources(args)
    for number in range(args.draws if not args.table else 0):
        for name, n_classes, photos in found:
            measure(args, name, number, n_classes, photos)
    table(args, [f[0] for f in found])


if __name__ == "__main__":
    main()
