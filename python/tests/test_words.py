"""Errors speak of keyword arguments, not of options; and what objects and results say of themselves."""

import math
import os
import unittest
from typing import Any, Callable

import numpy as np

import kith
from kith._errors import spoken

import support


class Words(unittest.TestCase):
    def test_options_become_keywords(self) -> None:
        for given, wanted in (
                ("resume it with --resume, or begin a new run with another --out",
                 "resume it with resume=True, or begin a new run with another out="),
                ("name it: --backbone googlenet (see kith list backbones)",
                 'name it: backbone="googlenet" (see kith list backbones)'),
                ("say where the images are, as in --set data.root=photos",
                 'say where the images are, as in overrides={"data.root": "photos"}'),
                ("as in --set optim.steps=200, or more", 'as in overrides={"optim.steps": 200}, or more'),
                ("--set optim.lrr=3: unknown key", 'overrides["optim.lrr"]: unknown key'),
                ("classes; --allow-test-selection allows it", "classes; allow_test_selection=True allows it"),
                ("draw more with --classes 20", "draw more with n_classes=20"),
                ("look at the files with `kith data ROOT --check`", "look at the files with `kith data ROOT --check`"),
                ("kith train RUN --resume ends it", "kith train RUN --resume ends it"),
                ("--set:1: not YAML", "overrides:1: not YAML"),
                ("bring it up to date with --sync", "bring it up to date with sync()"),
                ("nothing -- to say", "nothing -- to say")):
            self.assertEqual(spoken(given), wanted)

    def test_every_option_of_the_library_has_words(self) -> None:
        """No hint of libkith's sources keeps an option, other than in a command."""
        import re
        n_found = 0
        for folder, _, files in os.walk(os.path.join(support.SOURCE, "src")):
            if os.path.relpath(folder, support.SOURCE).split(os.sep)[:2] in (["src", "cli"], ["src", "serve"]):
                continue
            for name in files:
                if not name.endswith(".c") or name in ("style.c", "hits.c", "grid.c"):
                    continue
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    code = file.read()
                for text in re.findall(r'ki_(?:hint|fail)\((?:[^"]|"(?=[^"]*"\s*"))*?"((?:[^"\\]|\\.)*--[a-z](?:[^"\\]|\\.)*)"', code):
                    n_found += 1
                    left = re.sub(r"`[^`]*`|kith [a-z]+ [^,;()]*", "", spoken(text))
                    self.assertNotRegex(left, "--[a-z]", f"{name}: {text}")
        self.assertGreater(n_found, 5)


class Raised(support.InFolder):
    def says(self, call: Callable[[], object]) -> str:
        with self.assertRaises(kith.Error) as caught:
            call()
        return str(caught.exception)

    def test_a_loss_names_its_keyword(self) -> None:
        self.assertEqual(self.says(lambda: kith.Loss("proxy_anchor")),
                         "proxy_anchor needs the number of classes, which is not known here (give n_classes=)")

    def test_a_drawn_set_names_its_keywords(self) -> None:
        self.assertEqual(self.says(lambda: kith.synth(self.path("glyphs"), n_classes=0)), "n_classes is 0; wanted 1 … 100000")
        self.assertIn("side is 3; wanted", self.says(lambda: kith.synth(self.path("glyphs"), side=3)))

    def test_a_collection_without_a_model(self) -> None:
        with kith.Collection.create(self.path("i.kith"), dim=2) as collection:
            self.assertTrue(self.says(lambda: collection.model).endswith("(embed the images yourself and give search() their vectors)"))

    def test_one_missing_file(self) -> None:
        model = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28)
        name = self.path("nix.png")
        self.assertEqual(self.says(lambda: model.embed(name)), f"cannot open {name}: No such file or directory")

    def test_a_folder_that_holds_a_run(self) -> None:
        kith.synth(self.path("glyphs"), n_classes=6, n_images=4, side=32)
        recipe = {"data": {"root": self.path("glyphs"), "train_classes": 3}, "eval": {"select": "last", "clustering": False},
                  "input": {"resize": "squash32", "crop": 28, "channels": 1, "mirror": False},
                  "model": {"backbone": "convnet4", "embedding": 8, "settings": {"width": 16}},
                  "batch": {"classes": 3, "images": 2}, "objective": {"loss": {"name": "binomial"}},
                  "optim": {"name": "adam", "lr": 1e-3, "steps": 2}}
        result = kith.train(recipe, self.path("run"), report=False)
        self.assertTrue(math.isnan(result.test.nmi.mean) and result.test.nmi.n == 0)
        self.assertTrue(math.isnan(result.untrained.nmi.low))
        self.assertRegex(repr(result), r"^TrainResult\('.*run', R@1 \d\.\d{4} \(\d\.\d{4} to \d\.\d{4}\), MAP@R .*, step 2 of 2\)$")
        said = self.says(lambda: kith.train(recipe, self.path("run")))
        self.assertIn("resume=True", said)
        self.assertNotIn("--", said)
        self.assertEqual(self.says(lambda: kith.train(recipe, self.path("new"), overrides={"optim..lr": 3})),
                         'overrides["optim..lr"]: a key is empty (write keys with dots between names, as in {"optim.lr": 1e-4})')

    def test_a_collection_of_a_file_that_does_not_say_its_network(self) -> None:
        kith.synth(self.path("glyphs"), n_classes=3, n_images=4, side=32)
        plain = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28)
        plain.save(self.path("m.safetensors"))
        photos = kith.Collection.create(self.path("i.kith"), model=self.path("m.safetensors"), backbone="convnet4", pool="max",
                                        resize="shorter40")
        self.assertEqual(photos.sync(self.path("glyphs")).n_added, 12)
        wanted = plain.query(self.path("glyphs/glyph00000/00000.png"))
        found = photos.model.query(self.path("glyphs/glyph00000/00000.png"))
        self.assertGreater(float(np.abs(wanted - found).max()), 1e-4)  # resized otherwise
        photos.close()
        again = kith.Collection.open(self.path("i.kith"))  # it remembers how
        np.testing.assert_allclose(again.model.query(self.path("glyphs/glyph00000/00000.png")), found, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "wanted model="):
            kith.Collection.create(self.path("j.kith"), dim=3, pool="max")
        self.assertEqual(self.says(lambda: kith.Collection.create(self.path("j.kith"))), "dim is 0; wanted 1 to 65536")


class Representations(support.InFolder):
    def line(self, value: Any, wanted: str) -> None:
        self.assertRegex(repr(value), wanted)
        self.assertNotIn("\n", repr(value))
        self.assertLess(len(repr(value)), 200)

    def test_one_line_each(self) -> None:
        x, y = support.clusters()
        kith.synth(self.path("glyphs"), n_classes=3, n_images=4, side=32)
        model = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28)
        self.line(model, r"^Model\(convnet4, embedding of 8, input 1 x 28 x 28, \d+ parameters, cpu\)$")
        self.line(model.embed_dataset(self.path("glyphs")), r"^Embedded\(12 rows of 8, 3 classes\)$")
        self.line(kith.evaluate(x, y), r"^Evaluation\(R@1 \d\.\d{4}, .* 80 queries\)$")
        self.line(kith.knn(x, k=3), r"^Neighbors\(80 queries, k 3\)$")
        self.line(kith.kmeans(x, 10), r"^KMeans\(10 clusters of 80 rows, objective .*\)$")
        loss = kith.Loss("binomial", beta=40)
        self.line(loss, r"^Loss\(.*binomial.*\)$")
        self.line(loss.value_and_gradient(x, y), r"^LossValue\(\d+\.\d+.*, gradient 80 x 16\)$")
        index = kith.Index.create(self.path("i.kith"), dim=16)
        self.line(index, r"^Index\('.*i\.kith', 0 items of 16 values, cosine\)$")
        index.close()
        self.line(index, r"^Index\('.*i\.kith', closed\)$")
        photos = kith.Collection.create(self.path("p.kith"), dim=16)
        self.line(photos, r"^Collection\('.*p\.kith', 0 items of 16 values, cosine\)$")
        photos.add_rows(x, labels=[str(one) for one in y])
        self.line(photos.search(x[0])[0], r"^Answer\(10 hits, nearest 0 at 1\.0000, among 80 items\)$")
        self.line(photos.duplicates(), r"^Duplicates\(0 groups among 0 pictures\)$")
        self.line(photos.groups(all=True), r"^Groups\(\d+ groups of \d+ items, \d+ alone\)$")
        photos.close()
        self.line(photos, r"^Collection\('.*p\.kith', closed\)$")


if __name__ == "__main__":
    unittest.main()
