#!/usr/bin/env python3
"""How many false matches `kith search --same RATE` lets through: search_same.py KITH RUN EMBEDDINGS.npy LABELS.txt [RATE…] [PART…]

RUN is a model with a curve of its validation classes, the embeddings are its own, of classes that it was not trained on. Indexes
are made of all rows, of a random half (the other half asks), of every second class (the others ask), and of all rows without
their labels (PART in place of all four: all, half, classes or unlabelled). Prints, for each index and rate, which part of the pairs of a query and an item of another class are hits."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

BLOCK = 256  # queries asked at once


def kith(*arguments):
    return subprocess.run([sys.argv[1], *arguments], check=True, capture_output=True, text=True).stdout


def measure(name, rows, labels, items, queries, rates, labelled=True):
    index, vectors, names, asked = (f"{name}.{end}" for end in ("kith", "npy", "txt", "queries.npy"))
    np.save(vectors, rows[items])
    with open(names, "w", encoding="utf-8") as file:
        file.writelines(label + "\n" for label in labels[items])
    kith("index", vectors, "-o", index, "--model", RUN, *(["--labels", names] if labelled else []))
    source = json.loads(kith("index", index, "--info", "--json"))["calibration_source"]
    n_pairs = sum(int((labels[items] != labels[q]).sum()) for q in queries)
    for rate in rates:
        n_false = 0
        for at in range(0, len(queries), BLOCK):  # where most pairs are hits, all answers at once would be gigabytes
            block = queries[at:at + BLOCK]
            np.save(asked, rows[block])
            found = json.loads(kith("search", index, asked, "--same", rate, "-k", str(len(items)), "--json"))["queries"]
            for q, answer in zip(block, found):
                ids = np.array([hit["id"] for hit in answer["hits"]], dtype=np.int64)
                n_false += int((labels[items[ids]] != labels[q]).sum())
        print(f"{name}\t{source}\t--same {rate}\t{n_false} of {n_pairs}\t{100 * n_false / n_pairs:.3f} %", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    RUN = os.path.abspath(sys.argv[2])
    sys.argv[1] = os.path.abspath(sys.argv[1])
    x = np.load(sys.argv[3])
    with open(sys.argv[4], encoding="utf-8") as file:
        y = np.array(file.read().splitlines())
    parts = [word for word in sys.argv[5:] if word.isalpha()] or ["all", "half", "classes", "unlabelled"]
    wanted = [word for word in sys.argv[5:] if not word.isalpha()] or ["0.01", "0.001"]
    everything, half = np.arange(len(x)), np.random.default_rng(0).random(len(x)) < 0.5
    second = np.isin(y, np.unique(y)[::2])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # name: items, queries
        what = {"all": (everything, everything), "half": (everything[half], everything[~half]),
                "classes": (everything[second], everything[~second]), "unlabelled": (everything, everything)}
        for part in parts:
            measure(part, x, y, *what[part], wanted, labelled=part != "unlabelled")
