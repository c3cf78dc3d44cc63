"""kith.examine: what is wrong with a data set."""

import shutil

import numpy as np

import kith

import support


class Doctor(support.InFolder):
    def test_findings(self) -> None:
        kith.synth(self.path("glyphs"), n_classes=4, n_images=6, side=32)
        before = kith.examine(self.path("glyphs"), compare=False)
        self.assertEqual((before.n_images, before.leave_out), (24, []))
        some = next(kith.read_images(self.path("glyphs"), crop=32, resize="squash32")).paths[0]
        shutil.copy(some, self.path("glyphs/again.png"))
        shutil.move(self.path("glyphs/again.png"), some + "_again.png")
        with open(some + "_bad.jpg", "w", encoding="ascii") as file:
            file.write("no image")
        found = kith.examine(self.path("glyphs"), compare=False, out=self.path("clean.csv"))
        self.assertEqual([f.kind for f in found.findings[:2]], ["unreadable", "duplicate"])
        self.assertEqual(found.findings[1].leave_out, [False, True])
        self.assertEqual(found.findings[0].severity, "error")
        self.assertEqual((found.n_images, len(found.leave_out)), (26, 2))
        self.assertIn("26 images, 1 errors, 1 warnings, ", str(found))
        self.assertEqual(kith.examine(self.path("clean.csv"), compare=False, html=self.path("page.html")).n_images, 24)
        with open(self.path("page.html"), encoding="utf-8") as file:
            self.assertIn("What is wrong with clean.csv", file.read())

    def test_own_vectors(self) -> None:
        kith.synth(self.path("glyphs"), n_classes=4, n_images=8, side=32)
        rng = np.random.default_rng(1)
        vectors = np.repeat(np.eye(4), 8, axis=0) + 0.1 * rng.normal(size=(32, 4))
        vectors[3] = vectors[9] + 0.05 * rng.normal(size=4)
        found = kith.examine(self.path("glyphs"), vectors=vectors.astype(np.float32))
        wrong = [f for f in found.findings if f.kind == "mislabelled"]
        self.assertEqual(len(wrong), 1)
        self.assertGreater(wrong[0].score, 0.9)
        self.assertEqual(wrong[0].leave_out, [True])
        self.assertIn("glyph", str(wrong[0].example))
        with self.assertRaisesRegex(kith.Error, "2 vectors for 32 items"):
            kith.examine(self.path("glyphs"), vectors=vectors[:2].astype(np.float32))
