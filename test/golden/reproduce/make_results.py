#!/usr/bin/env python3
"""Made-up results for the page of test_reproduce_page: numbers chosen by hand, no run behind them.

    python3 make_results.py      writes results/*.json beside this file

page.md and pictures/*.svg beside it are what kith makes of them, read through once by a person; the intervals in it
were checked with the formulas at the end of this file."""
import json, math, os, pathlib

here = pathlib.Path(__file__).parent
(here / "results").mkdir(exist_ok=True)


def result(row, seed, recall, nmi, **more):
    recalls = {"1": recall, "2": recall + 0.1, "4": recall + 0.2, "8": recall + 0.3}
    block = {"recall": recalls, "map_at_r": recall / 2, "r_precision": recall / 1.5, "step": 1500,
             "nmi": nmi, "ami": nmi - 0.1, "f1": nmi / 2,
             "intervals": {"level": 0.95, "recall": {"1": [recall - 0.0125, recall + 0.0125]}}}
    card = {"selection": "last", "step": 1500, "steps": 1500, "test": block, "seen": {"recall": {"1": 0.9}},
            "best_on_test": {"recall": {k: v + 0.01 for k, v in recalls.items()}, "step": 1000},
            "wall_seconds": 14.5, "img_per_s": 15000, "commit": "0123456789abcdef", "kith": "0.1.0",
            "data_sha256": "d" * 64, "weights_sha256": "a" * 64, "device": "cuda", "precision": "bf16"}
    card.update(more.pop("card", {}))
    curves = {"seen": [[0, 0.5], [500, 0.7], [1000, 0.85], [1500, 0.9]],
              "test": [[0, 0.43], [500, recall - 0.02], [1000, recall + 0.01], [1500, recall]]}
    if seed == 1 and "all_orders" in card:  # as results are today; the other seeds are as they were before
        whole, on_test, orders = card.pop("all_orders"), card.pop("transductive"), card.pop("order_curves")
        alone, beside = whole.pop("order_recall_at_1"), whole.pop("side_by_side_recall_at_1")
        card["variants"] = [{"name": "all_orders", "transform": "pca", "fitted_on": "training"} | whole,
                            {"name": "transductive", "transform": "pca", "fitted_on": "test"} | on_test,
                            {"name": "order_2", "transform": "none", "recall": {"1": alone["2"]}},
                            {"name": "side_by_side", "transform": "none", "recall": {"1": beside}}]
        curves["variants"] = {split: {"order_2": list(zip(of["step"], of["2"]))} for split, of in orders.items()}
    out = {"row": row, "recipe": more.pop("recipe", row), "seed": seed, "set": more.pop("set", []),
           "experiment_sha256": more.pop("experiment", "e") * 64, "recipe_sha256": "c" * 64, "result": card,
           "curves": curves}
    (here / "results" / f"{row}-seed{seed}.json").write_text(json.dumps(out) + "\n")


for seed, recall in enumerate((0.550, 0.553, 0.556)):
    result("plain", seed, recall, 0.60)
for seed, recall in enumerate((0.575, 0.577, 0.579)):
    result("better", seed, recall, 0.62,
           card={"all_orders": {"recall": {"1": recall + 0.01}, "map_at_r": 0.3,
                                "order_recall_at_1": {"1": recall, "2": recall - 0.02},
                                "side_by_side_recall_at_1": recall + 0.005},
                 "order_curves": {"seen": {"step": [0, 1000, 1500], "1": [0.5, 0.85, 0.9], "2": [0.4, 0.8, 0.82]},
                                  "test": {"step": [0, 1000, 1500], "1": [0.43, recall, recall],
                                           "2": [0.4, recall - 0.01, recall - 0.02]}},
                 "transductive": {"recall": {"1": recall + 0.02}, "map_at_r": 0.3}} if seed < 2 else {})
result("same", 0, 0.5545, 0.61, recipe="plain", set=["optim.steps=1500"])
result("worse", 0, 0.52, 0.55)
result("worse", 1, 0.53, 0.56, experiment="f")
(here / "results" / "broken-seed0.failed.json").write_text(json.dumps(
    {"row": "broken", "recipe": "broken", "seed": 0, "set": [], "experiment_sha256": "e" * 64,
     "recipe_sha256": "c" * 64, "error": "objective.loss: unknown loss 'tripelt'", "hint": "did you mean 'triplet'?",
     "commit": "0123456789abcdef"}) + "\n")

if __name__ == "__main__":
    # 0.975 quantiles of Student's t: 2 degrees 4.3027, 5 degrees 2.5706.
    print("plain 55.3 +-", 4.3027 * 0.3 / math.sqrt(3))
    squares = 2 * 0.3**2 + 2 * 0.2**2 + 2 * 0.5**2
    deviation = math.sqrt(squares / 5)
    print("pooled deviation", deviation, "of 5 degrees of freedom")
    print("better - plain 2.4 +-", 2.5706 * deviation * math.sqrt(2 / 3))
    print("same - plain 0.15 +-", 2.5706 * deviation * math.sqrt(1 + 1 / 3))
