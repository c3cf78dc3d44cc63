"""kith.Model, kith.synth, kith.read_images."""

import os
import subprocess
import unittest
from typing import ClassVar

import numpy as np

import kith
from kith import _library

import support


class Images(support.InFolder):
    def setUp(self) -> None:
        super().setUp()
        kith.synth(self.path("glyphs"), n_classes=3, n_images=4, side=32)
        self.files = [os.path.join(self.path("glyphs"), c, f) for c in sorted(os.listdir(self.path("glyphs")))
                      for f in sorted(os.listdir(os.path.join(self.path("glyphs"), c)))]
        self.model = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28, seed=3)

    def test_files_as_the_program_embeds_them(self) -> None:
        self.model.save(self.path("m.safetensors"))
        subprocess.run([_library.program(), "embed", self.path("m.safetensors"), self.path("glyphs"), "-o",
                        self.path("e.npy")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        np.testing.assert_array_equal(kith.Model(self.path("m.safetensors")).embed(self.files), np.load(self.path("e.npy")))

    def test_one_path_and_path_objects(self) -> None:
        from pathlib import Path

        one = self.model.embed(self.files[5])
        self.assertEqual(one.shape, (1, 8))
        np.testing.assert_array_equal(self.model.embed([Path(self.files[5])]), one)

    def test_folders_with_their_classes(self) -> None:
        found = self.model.embed_dataset(self.path("glyphs"))
        np.testing.assert_array_equal(found.x, self.model.embed(self.files))
        self.assertEqual(found.paths, self.files)
        np.testing.assert_array_equal(found.y, np.repeat([0, 1, 2], 4))
        self.assertEqual(found.classes, sorted(os.listdir(self.path("glyphs"))))

    def test_vectors_outlive_the_model(self) -> None:
        found = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28,
                           seed=3).embed_dataset(self.path("glyphs")).x
        np.testing.assert_array_equal(found, self.model.embed(self.files))

    def test_unreadable_files(self) -> None:
        with open(os.path.join(os.path.dirname(self.files[0]), "no.png"), "w", encoding="utf-8") as file:
            file.write("no picture")
        found = self.model.embed_dataset(self.path("glyphs"))
        self.assertEqual(len(found.x), 12)
        self.assertEqual(len(found.bad), 1)
        self.assertIn("no.png", found.bad[0])
        with self.assertRaisesRegex(kith.Error, "no.png"):
            self.model.embed([os.path.join(os.path.dirname(self.files[0]), "no.png")])

    def test_rows_of_features(self) -> None:
        x, _ = support.clusters(4, 4, 8)
        model = kith.Model(backbone="none", embedding=3, channels=8, seed=2)
        found = model.embed(x)
        np.testing.assert_allclose(found, x @ model.state["embedding.weight"].T + model.state["embedding.bias"], atol=1e-6)
        np.testing.assert_array_equal(model.embed(x[:, :, None, None]), found)
        with self.assertRaisesRegex(ValueError, r"the images are \[16, 7\]; wanted \[n, 8\]"):
            model.embed(x[:, :7])
        with self.assertRaisesRegex(ValueError, r"the images are \[16, 8\]; wanted \[n, 1, 28, 28\], or uint8"):
            self.model.embed(x)

    def test_read_images_is_the_networks_input(self) -> None:
        batches = list(kith.read_images(self.path("glyphs"), resize="squash256", crop=28, channels=1, mean=[0.5], std=[0.5],
                                        batch=5))
        self.assertEqual([len(batch.x) for batch in batches], [5, 5, 2])
        self.assertEqual([path for batch in batches for path in batch.paths], self.files)
        x = np.concatenate([batch.x for batch in batches])
        np.testing.assert_allclose(self.model.embed(x), self.model.embed(self.files, resize="squash256"), atol=2e-5)


class Queries(support.InFolder):
    def setUp(self) -> None:
        super().setUp()
        kith.synth(self.path("glyphs"), n_classes=3, n_images=2, side=40)
        self.files = [os.path.join(self.path("glyphs"), c, f) for c in sorted(os.listdir(self.path("glyphs")))
                      for f in sorted(os.listdir(os.path.join(self.path("glyphs"), c)))]
        made = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28, seed=3)
        os.mkdir(self.path("run"))
        made.save(self.path("run/best.safetensors"))
        self.model = kith.Model(self.path("run"))

    def test_one_image_is_its_vector(self) -> None:
        self.assertEqual(self.model.dim, 8)
        np.testing.assert_allclose(self.model.query(self.files[0]), self.model.embed(self.files[0])[0], rtol=1e-5, atol=1e-6)
        picture = np.random.default_rng(1).integers(0, 255, (50, 30, 3), dtype=np.uint8)
        np.testing.assert_array_equal(self.model.query(picture), self.model.embed([picture])[0])

    def test_several_are_weighed_and_added(self) -> None:
        x = self.model.embed(self.files[:3]).astype(float)
        unit = x / np.linalg.norm(x, axis=1)[:, None]
        np.testing.assert_allclose(self.model.query(self.files[:3], weights=[1, 0.5, -1]), unit[0] + 0.5 * unit[1] - unit[2],
                                   atol=1e-5)
        with self.assertRaisesRegex(ValueError, "weights has 2 entries for 3 images"):
            self.model.query(self.files[:3], weights=[1, 2])
        with self.assertRaisesRegex(kith.Error, "above 0"):
            self.model.query(self.files[0], weights=[-1])

    def test_boxes_and_mirror_images(self) -> None:
        picture = np.random.default_rng(1).integers(0, 255, (40, 40), dtype=np.uint8)
        np.testing.assert_allclose(self.model.query(picture, boxes=[(4, 8, 20, 24)]), self.model.query(picture[8:32, 4:24]),
                                   rtol=1e-5, atol=1e-6)
        both = self.model.query(picture, flips=True)
        np.testing.assert_allclose(both, self.model.query([picture, picture[:, ::-1]], weights=[0.5, 0.5]), atol=1e-5)

    def test_an_explanation_sums_to_the_score(self) -> None:
        why = self.model.explain([self.files[0], self.files[2]], self.files[1], weights=[1, 0.5])
        query = self.model.query([self.files[0], self.files[2]], weights=[1, 0.5]).astype(float)
        hit = self.model.embed(self.files[1])[0].astype(float)
        self.assertAlmostEqual(why.score, query @ hit / np.linalg.norm(query) / np.linalg.norm(hit), places=5)
        self.assertAlmostEqual(why.hit.share.sum() + why.hit.rest, why.score, places=12)
        self.assertAlmostEqual(sum(one.share.sum() + one.rest for one in why.query), why.score, places=12)
        self.assertEqual((why.hit.width, why.hit.height, len(why.query)), (40, 40, 2))
        self.assertIn("2 in the query", repr(why))
        self.assertIsNone(why.estimate)

    def test_who_it_is(self) -> None:
        import hashlib

        who = self.model.identity
        with open(self.path("run/best.safetensors"), "rb") as file:
            self.assertEqual(who.hash, hashlib.sha256(file.read()).hexdigest())
        self.assertEqual(who.file, os.path.realpath(self.path("run/best.safetensors")))
        self.assertEqual(who.dim, 8)
        self.assertTrue(who.preprocess.startswith("embedding of convnet4 (pool avg), squash256, 28 x 28"), who.preprocess)
        pooled = kith.Model(self.path("run"), tap="pooled", resize="shorter40")
        self.assertTrue(pooled.identity.preprocess.startswith("pooled of convnet4 (pool avg), shorter40"))
        self.assertEqual(pooled.embed(self.files[0]).shape, (1, pooled.dim))
        self.model.set_state({"embedding.bias": np.ones(8)})
        with self.assertRaisesRegex(kith.Error, "were set"):
            self.model.identity
        with self.assertRaisesRegex(kith.Error, "random weights"):
            kith.Model(backbone="convnet4", embedding=8).identity

    def test_the_model_where_none_is_named(self) -> None:
        os.mkdir(self.path("models"))
        self.model.save(self.path("models/general.safetensors"))
        before = os.environ.get("KITH_MODELS")
        try:
            os.environ["KITH_MODELS"] = self.path("models")
            np.testing.assert_array_equal(kith.Model().embed(self.files), self.model.embed(self.files))
            np.testing.assert_array_equal(kith.Model("general").embed(self.files), self.model.embed(self.files))
            self.assertEqual(kith.Model(size=56).info.height, 56)
            self.assertIn("squash512, 56 x 56", kith.Model(size=56).identity.preprocess)
            os.environ["KITH_MODELS"] = self.path("none")
            with self.assertRaisesRegex(kith.Error, "general is not installed"):
                kith.Model()
        finally:
            del os.environ["KITH_MODELS"]
            if before is not None:
                os.environ["KITH_MODELS"] = before

    def test_a_folder_without_a_model(self) -> None:
        with self.assertRaisesRegex(kith.Error, "neither a model.safetensors nor a best.safetensors"):
            kith.Model(self.path("glyphs"))


class Arrays(unittest.TestCase):
    model: ClassVar[kith.Model]

    @classmethod
    def setUpClass(cls) -> None:
        cls.model = kith.Model(backbone="convnet4", embedding=8, channels=3, height=28, width=28)

    def test_pixels(self) -> None:
        pictures = np.random.default_rng(0).integers(0, 256, (4, 40, 30, 3), dtype=np.uint8)
        together = self.model.embed(pictures)
        self.assertEqual(together.shape, (4, 8))
        np.testing.assert_allclose(self.model.embed(list(pictures)), together, atol=1e-5)
        np.testing.assert_allclose(self.model.embed([pictures[2], pictures[0][:20]])[0], together[2], atol=1e-5)
        np.testing.assert_allclose(self.model.embed(pictures[1]), together[1:2], atol=1e-5)
        self.assertEqual(self.model.embed(pictures[0, :, :, 0]).shape, (1, 8))

    def test_input(self) -> None:
        x = np.random.default_rng(0).normal(size=(3, 3, 28, 28)).astype(np.float32)
        self.assertEqual(self.model.embed(x, tap="map").shape, (3, 64, 1, 1))
        np.testing.assert_array_equal(self.model.embed(x.astype(np.float64)), self.model.embed(x))
        with self.assertRaisesRegex(ValueError, r"wanted \[n, 3, 28, 28\], or uint8"):
            self.model.embed(x[:, :1])

    def test_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "image 0 is int64"):
            self.model.embed(np.zeros((28, 28), np.int64))
        with self.assertRaisesRegex(kith.Error, "pooled") as caught:
            self.model.embed(np.zeros((28, 28), np.uint8), tap="poold")
        self.assertEqual(caught.exception.status, "ENOTFOUND")
        with self.assertRaisesRegex(kith.Error, "nowhere"):
            kith.Model("/nowhere/model.safetensors")

    def test_state(self) -> None:
        other = kith.Model(backbone="convnet4", embedding=8, channels=3, height=28, width=28, seed=9)
        x = np.ones((1, 3, 28, 28), np.float32)
        self.assertFalse(np.array_equal(other.embed(x), self.model.embed(x)))
        other.set_state(self.model.state)
        np.testing.assert_array_equal(other.embed(x), self.model.embed(x))
        with self.assertRaisesRegex(kith.Error, "no parameter 'conv9.weight'"):
            other.set_state({"conv9.weight": x})
        with self.assertRaisesRegex(ValueError, "the model's is"):
            other.set_state({"embedding.weight": x})

    def test_info(self) -> None:
        info = self.model.info
        self.assertEqual((info.backbone, info.channels, info.height, info.embedding), ("convnet4", 3, 28, 8))
