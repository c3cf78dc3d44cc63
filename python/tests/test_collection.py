"""kith.Collection: made from folders, synced, added to, removed from, measured, opened again."""

import os
import shutil

import numpy as np

import kith

import support


class Photos(support.InFolder):
    def setUp(self) -> None:
        super().setUp()
        kith.synth(self.path("glyphs"), n_classes=3, n_images=4, side=32)
        support.save_model(self.path("m.safetensors"))

    def make(self) -> kith.Collection:
        """Made of a folder that is named from the working folder, which the program will not be in."""
        photos = kith.Collection.create(self.path("p.kith"), model=self.path("m.safetensors"))
        self.assertEqual(photos.sync(os.path.relpath(self.path("glyphs"))).n_added, 12)
        return photos

    def paths(self, photos: kith.Collection) -> "dict[str, int]":
        return {photos.picture(int(i)): int(i) for i in photos.index.ids()}

    def test_a_folder(self) -> None:
        photos = kith.Collection.create(self.path("p.kith"), model=self.path("m.safetensors"))
        report = photos.sync(self.path("glyphs"))
        self.assertEqual((report.n_files, report.n_added, report.n_bad, report.reason, report.unmeasured), (12, 12, 0, "fine", ""))
        one = photos.index.item(5)
        assert one.path is not None
        self.assertEqual(one.label, os.path.basename(os.path.dirname(one.path)))
        self.assertEqual(photos.index.search([photos.model.query(one.path)], k=1)[0].ids.tolist(), [5])
        os.remove(one.path)
        photos.close()
        with kith.Collection.open(self.path("p.kith"), write=True) as photos:
            report = photos.sync()
            self.assertEqual((report.n_same, report.n_removed, len(photos)), (11, 1, 11))
        shutil.copy(self.path("glyphs/glyph00000/00000.png"), self.path("glyphs/glyph00000/copy.png"))
        self.program("index", "p.kith", "--sync")
        self.assertEqual(len(kith.Collection.open(self.path("p.kith"))), 12)

    def test_what_it_remembers(self) -> None:
        photos = self.make()
        info = photos.info
        self.assertEqual((info.index.n_items, info.index.dim, info.kind, info.split, info.folder), (12, 16, None, "all", None))
        self.assertEqual(info.sources, [os.path.realpath(self.path("glyphs"))])
        self.assertEqual(info.model, os.path.realpath(self.path("m.safetensors")))
        self.assertIsNone(info.false_match_rates)
        self.assertEqual(info.index.model, photos.model.identity.hash)
        self.assertGreater(photos.check(), 12 * 16 * 4)
        with open(self.path("p.kith/manifest.json"), "r+b") as file:
            file.truncate(20)
        with self.assertRaisesRegex(kith.Error, "manifest"):
            kith.Collection.open(self.path("p.kith"))

    def test_the_program_goes_on_with_it(self) -> None:
        photos = self.make()
        before = self.paths(photos)
        photos.close()
        self.assertIn("; 12 as before\n", self.program("index", "p.kith", "--sync"))
        shutil.move(self.path("glyphs/glyph00001/00002.png"), self.path("glyphs/glyph00002/other.png"))
        self.assertIn("; 1 moved, 11 as before\n", self.program("index", "p.kith", "--sync"))
        with kith.Collection.open(self.path("p.kith")) as photos:
            after = self.paths(photos)
            old, new = (os.path.realpath(self.path("glyphs/" + name)) for name in ("glyph00001/00002.png", "glyph00002/other.png"))
            self.assertEqual(after.pop(new), before.pop(old))
            self.assertEqual(after, before)
            self.assertEqual(photos.index.item(6).label, "glyph00002")

    def test_what_was_removed_stays_out(self) -> None:
        photos = self.make()
        self.assertEqual(photos.remove(["glyph00002/*3.png", "glyph00001/00000.png"]), 2)
        self.assertEqual((len(photos), photos.info.index.n_excluded), (10, 2))
        with self.assertRaises(kith.Error) as caught:
            photos.remove("oak/")
        self.assertEqual(caught.exception.status, "ENOTFOUND")
        photos.index.exclude([0])
        photos.index.commit()
        report = photos.sync()
        self.assertEqual((report.n_same, report.n_added, report.n_excluded), (9, 0, 3))
        photos.close()
        self.assertIn("3 left out", self.program("index", "p.kith", "--sync"))
        with kith.Collection.open(self.path("p.kith"), write=True) as photos:
            self.assertEqual(photos.add(self.path("glyphs/glyph00000/00000.png")).n_added, 1)
            report = photos.sync(self.path("glyphs"), with_removed=True)
            self.assertEqual((report.n_same, report.n_added, report.n_excluded), (10, 2, 0))
            photos.index.remove([1])  # not by hand: it comes back
            photos.index.commit()
            self.assertEqual((len(photos), photos.sync().n_added, len(photos)), (11, 1, 12))

    def test_sources_that_are_added(self) -> None:
        photos = self.make()
        kith.synth(self.path("more"), n_classes=2, n_images=2, side=32, seed=5)
        self.assertEqual(photos.add(self.path("more")).n_added, 4)
        self.assertEqual(len(photos.info.sources), 2)
        photos.close()
        self.assertIn("; 16 as before\n", self.program("index", "p.kith", "--sync"))

    def test_a_table_and_facts(self) -> None:
        photos = self.make()
        with open(self.path("t.csv"), "w") as table:
            table.write("path,year\nglyph00001/00001.png,2001\nnowhere.png,1\n")
        report = photos.sync(meta=self.path("t.csv"))
        self.assertEqual((report.n_revalued, report.n_same, len(report.said)), (1, 12, 1))
        self.assertIn("nowhere.png", report.said[0])
        self.assertEqual(photos.facets("year").values, [kith.FacetValue(2001.0, 1)])
        self.assertEqual(photos.sync(exif=True).n_revalued, 0)  # drawn images have no facts
        self.assertEqual(photos.sync(exif=False, meta="").n_revalued, 1)
        self.assertEqual(photos.facets("year").n_items, 0)

    def test_a_sync_that_is_refused(self) -> None:
        photos = self.make()
        os.rename(self.path("glyphs/glyph00001"), self.path("away"))
        with self.assertRaises(kith.Error) as caught:
            photos.sync(most_removed=0.1)
        assert caught.exception.report is not None
        self.assertEqual((caught.exception.report.reason, len(photos)), ("most_removed", 12))
        os.rename(self.path("glyphs"), self.path("unplugged"))
        with self.assertRaises(kith.Error) as caught:
            photos.sync()
        assert caught.exception.report is not None
        self.assertEqual((caught.exception.report.reason, len(photos)), ("source_missing", 12))
        with self.assertRaisesRegex(ValueError, "kind is 'folder'; wanted the data set"):
            photos.sync(kind="folder")
        photos.close()
        with kith.Collection.open(self.path("p.kith")) as reader, self.assertRaises(kith.Error):
            reader.sync()

    def test_a_sync_that_is_stopped(self) -> None:
        photos = self.make()
        kith.synth(self.path("glyphs/more"), n_classes=6, n_images=18, side=32, seed=3)
        with self.assertRaises(kith.Stopped) as caught:
            photos.sync(progress=lambda done, n: True)
        assert caught.exception.report is not None
        self.assertEqual(caught.exception.report.reason, "fine")
        self.assertLess(len(photos), 120)
        photos.sync()
        self.assertEqual(len(photos), 120)

    def test_nothing_half_made_is_left(self) -> None:
        os.mkdir(self.path("bad"))
        with open(self.path("bad/a.png"), "w") as file:
            file.write("no")
        with kith.Collection.create(self.path("p.kith"), model=self.path("m.safetensors")) as photos:
            with self.assertRaises(kith.Error) as caught:
                photos.sync(self.path("bad"))
            assert caught.exception.report is not None
            self.assertEqual(caught.exception.report.reason, "nothing_read")
        self.assertFalse(os.path.exists(self.path("p.kith")))

    def test_a_model_that_was_moved(self) -> None:
        self.make().close()
        os.rename(self.path("m.safetensors"), self.path("moved.safetensors"))
        query = self.path("glyphs/glyph00000/00000.png")
        with kith.Collection.open(self.path("p.kith")) as photos, self.assertRaisesRegex(kith.Error, "say where"):
            photos.model.query(query)
        with kith.Collection.open(self.path("p.kith"), write=True, model=self.path("moved.safetensors")) as photos:
            self.assertEqual(photos.sync().n_same, 12)
        with kith.Collection.open(self.path("p.kith")) as photos:
            self.assertEqual(photos.info.model, os.path.realpath(self.path("moved.safetensors")))
            wanted = photos.model.query(query)
        support.save_model(self.path("other.safetensors"), seed=8)
        with kith.Collection.open(self.path("p.kith"), write=True, model=self.path("other.safetensors")) as photos:
            with self.assertRaisesRegex(kith.Error, "was made with model"):
                photos.sync()
        open_already = kith.Model(self.path("moved.safetensors"))
        with kith.Collection.open(self.path("p.kith"), model=open_already) as photos:
            np.testing.assert_array_equal(photos.model.query(query), wanted)
            with self.assertRaisesRegex(ValueError, "the model is another collection's"):
                kith.Collection.open(self.path("p.kith"), model=photos.model)
        np.testing.assert_array_equal(open_already.query(query), wanted)  # it stays open

    def test_what_is_closed_with_it(self) -> None:
        photos = self.make()
        index, model = photos.index, photos.model
        index.close()  # is the collection's
        self.assertEqual(len(index), 12)
        rows = model.embed_dataset(self.path("glyphs"))
        photos.close()
        photos.close()
        self.assertEqual(rows.x.shape, (12, 16))
        for refused in (lambda: len(index), lambda: model.dim, lambda: model.embed(np.zeros((8, 8), np.uint8)), photos.sync,
                        lambda: photos.info, lambda: photos.index.search(rows.x)):
            with self.assertRaisesRegex(ValueError, "the collection is closed"):
                refused()

    def test_an_index_outlives_the_name_of_its_collection(self) -> None:
        self.make().close()
        index = kith.Collection.open(self.path("p.kith")).index
        model = kith.Collection.open(self.path("p.kith")).model
        self.assertEqual((len(index), model.dim), (12, 16))


class Rates(support.InFolder):
    def test_rows_with_labels(self) -> None:
        x, y = support.clusters(n_classes=12, n_each=14)
        photos = kith.Collection.create(self.path("p.kith"), dim=16, columns={"year": int}, folder=self.folder)
        report = photos.add_rows(x, paths=[f"{i}.png" for i in range(168)], labels=[f"c{n}" for n in y],
                                 values={"year": [2000 + i for i in range(168)]})
        self.assertEqual((report.n_added, report.reason, report.unmeasured), (168, "fine", ""))
        self.assertEqual(photos.info.folder, os.path.realpath(self.folder))
        rates = photos.info.false_match_rates
        assert rates is not None
        self.assertEqual((rates.source, rates.n_classes, rates.n_same + rates.n_different), ("index", 12, 168 * 167 // 2))
        score = rates.threshold(0.01)
        self.assertAlmostEqual(rates.false_match_rate(score), 0.01)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        scores = (unit @ unit.T)[np.triu(y[:, None] != y)]
        self.assertAlmostEqual(float((scores >= score).mean()), 0.01, places=3)
        self.assertTrue((np.diff(rates.thresholds) > 0).all() and (np.diff(rates.false_match_rates) <= 0).all())
        with self.assertRaisesRegex(kith.Error, "no column 'yaer'"):
            photos.add_rows(x[:1], values={"yaer": [1]})

    def test_measured_again(self) -> None:
        kith.synth(self.path("glyphs"), n_classes=12, n_images=14, side=32)
        kith.synth(self.path("more"), n_classes=4, n_images=5, side=32, seed=2)
        support.save_model(self.path("m.safetensors"))
        with kith.Collection.create(self.path("p.kith"), model=self.path("m.safetensors")) as photos:
            photos.sync(self.path("glyphs"))
            own = photos.info.false_match_rates
            assert own is not None
            self.assertEqual((own.n_classes, photos.calibrate().thresholds.tolist()), (12, own.thresholds.tolist()))
            other = photos.calibrate(self.path("more"), split="all")
            self.assertEqual((other.n_classes, other.n_same, other.n_different), (4, 40, 150))
            kept = photos.info.false_match_rates
            assert kept is not None
            self.assertEqual(kept.thresholds.tolist(), other.thresholds.tolist())
        with kith.Collection.create(self.path("few.kith"), dim=2) as photos:
            photos.add_rows(np.eye(2), labels=["a", "b"])
            with self.assertRaises(kith.Error) as caught:
                photos.calibrate()
            self.assertEqual(caught.exception.status, "ENOTFOUND")
