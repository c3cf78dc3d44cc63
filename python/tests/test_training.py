"""kith.train: a small run on drawn glyphs, its events, stopping and resuming."""

import json
import os
import signal
from typing import Any, Dict, List

import kith

import support


class Runs(support.InFolder):
    def recipe(self, **optim: Any) -> Dict[str, Any]:
        kith.synth(self.path("glyphs"), n_classes=8, n_images=6, side=32)
        return {"data": {"root": self.path("glyphs"), "train_classes": 4},
                "input": {"resize": "squash32", "crop": 28, "mirror": False, "channels": 1},
                "model": {"backbone": "convnet4", "embedding": 8, "settings": {"width": 8}},
                "batch": {"classes": 4, "images": 3}, "objective": {"loss": {"name": "binomial"}},
                "optim": {"name": "adam", "lr": 1e-3, "steps": 6, **optim}, "eval": {"select": "last", "every": 0}, "log_every": 1}

    def test_a_run_from_a_dict(self) -> None:
        steps: List[kith.TrainEvent] = []
        others: List[str] = []
        result = kith.train(self.recipe(), self.path("run"), on_step=lambda event: steps.append(event),
                            on_event=lambda event: others.append(event.kind), report=False)
        self.assertEqual([event.step for event in steps], [1, 2, 3, 4, 5, 6])
        self.assertTrue(all(event.total > 0 and list(event.terms) == ["binomial"] for event in steps))
        self.assertEqual(others[0], "begin")
        self.assertIn("eval", others)
        self.assertNotIn("busy", others)
        self.assertEqual((result.run, result.selection, result.n_steps), (self.path("run"), "last", 6))
        self.assertTrue(0 <= result.test.recall_at_1.low <= result.test.recall_at_1.mean <= 1)
        self.assertEqual(result.validation.recall_at_1.n, 0)
        self.assertFalse(os.path.exists(self.path("run/report.html")))
        self.assertEqual(kith.Model(result.run).info.embedding, 8)

    def test_overrides_and_a_file(self) -> None:
        with open(self.path("recipe.yaml"), "w", encoding="utf-8") as file:
            json.dump(self.recipe(), file)
        result = kith.train(self.path("recipe.yaml"), self.path("run"), report=False,
                            overrides={"optim.steps": 2, "eval.clustering": False, "model.pool": "max"})
        self.assertEqual(result.n_steps, 2)
        with open(self.path("run/recipe.yaml"), encoding="utf-8") as file:
            self.assertIn("pool: max", file.read())

    def test_stop_and_resume(self) -> None:
        recipe = self.recipe()
        with self.assertRaises(kith.Stopped):
            kith.train(recipe, self.path("run"), on_step=lambda event: event.step == 3, report=False)
        seen: List[int] = []
        result = kith.train(self.path("run"), resume=True, on_step=lambda event: seen.append(event.step), report=False)
        self.assertEqual((seen, result.n_steps), ([4, 5, 6], 6))

    def test_control_c_saves(self) -> None:
        recipe = self.recipe(steps=1_000_000)

        def interrupt(event: kith.TrainEvent) -> None:
            if event.step == 2:
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            kith.train(recipe, self.path("run"), on_step=interrupt, report=False)
        self.assertEqual(len(os.listdir(self.path("run/checkpoints"))), 1)

    def test_what_a_callback_raises_comes_through(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            kith.train(self.recipe(), self.path("run"), on_step=lambda event: 1 / 0, report=False)

    def test_photos(self) -> None:
        kith.synth(self.path("photos"), n_classes=9, n_images=4, side=32)
        recipe = self.recipe(steps=1)
        start = kith.train(recipe, self.path("start"), report=False).run
        seen: List[str] = []
        result = kith.train_photos(self.path("photos"), self.path("run"), minutes=0.02, model=start, report=False,
                                   on_event=lambda event: seen.append(event.kind))
        self.assertIn("note", seen)
        self.assertNotIn("busy", seen)
        self.assertTrue(result.n_tried > 1 and result.why and result.advice and result.winner in repr(result))
        self.assertTrue(0 <= result.pretrained.recall_at_1.mean <= 1)
        self.assertEqual(kith.Model(result.run.run).info.embedding > 0, True)
        with self.assertRaises(kith.Error):
            kith.train_photos(self.path("photos"), self.path("run"), minutes=0.02, model=start, seed=7)

    def test_photos_stop(self) -> None:
        kith.synth(self.path("photos"), n_classes=9, n_images=4, side=32)
        start = kith.train(self.recipe(steps=1), self.path("start"), report=False).run
        with self.assertRaises(kith.Stopped):
            kith.train_photos(self.path("photos"), self.path("run"), minutes=0.02, model=start, on_event=lambda event: True)

    def test_refused(self) -> None:
        recipe = self.recipe()
        recipe["optim"]["nmae"] = "adam"
        with self.assertRaises(kith.Error) as caught:
            kith.train(recipe, self.path("run"))
        self.assertIn("name", caught.exception.hint)
