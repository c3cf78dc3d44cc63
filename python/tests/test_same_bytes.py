"""The same collection made by the program, from C and from Python has the same bytes. Each is made at the same path, which is moved aside
before the next one begins, because an index notes its place."""

import os
import shutil
import unittest
from typing import Callable, Dict

import numpy as np

import kith

import support


def contents(folder: str) -> Dict[str, bytes]:
    """All files below a folder."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.relpath(os.path.join(place, name), folder)] = file.read()
    return found


class SameBytes(support.InFolder):
    def setUp(self) -> None:
        super().setUp()
        kith.synth(self.path("photos"), n_classes=12, n_images=18, side=32)  # enough for false-match rates
        kith.synth(self.path("more"), n_classes=3, n_images=5, side=32)
        support.save_model(self.path("m.safetensors"))

    def change_photos(self) -> None:
        """Some are removed, moved, changed, touched and new."""
        photo = {(i, k): self.path(f"photos/glyph{i:05}/{k:05}.png") for i in range(12) for k in range(18)}
        os.remove(photo[3, 1])
        os.remove(photo[3, 11])
        os.rename(photo[1, 0], self.path("photos/glyph00002/moved.png"))
        shutil.copyfile(photo[4, 0], photo[5, 0])
        shutil.copyfile(self.path("more/glyph00000/00003.png"), self.path("photos/glyph00008/new.png"))
        for i in (5, 6):
            os.utime(photo[i, 0], (10**9, 10**9))
        os.utime(self.path("photos/glyph00008/new.png"), (10**9, 10**9))

    def assert_same(self, **makers: Callable[[], object]) -> None:
        """Every maker begins with the same photos."""
        made = {}
        self.copy("photos", "kept")
        for name, make in makers.items():
            shutil.rmtree(self.path("photos"))
            self.copy("kept", "photos")
            make()
            made[name] = contents(self.path("x.kith"))
            os.rename(self.path("x.kith"), self.path("by_" + name))
        wanted = made["program"]
        self.assertIn("manifest.json", wanted)
        self.assertIn(b'"calibration"', wanted["manifest.json"])  # false-match rates are part of it
        for name, found in made.items():
            self.assertEqual(sorted(found), sorted(wanted), name)
            for file, data in wanted.items():
                self.assertEqual(found[file], data, f"{file} by {name}")

    def copy(self, source: str, to: str) -> None:
        """A folder, with the dates of its files."""
        shutil.copytree(self.path(source), self.path(to), copy_function=shutil.copy2)

    @unittest.skipUnless(support.BUILD, "only in the build folder: the example in C is there")
    def test_by_the_program_from_c_and_from_python(self) -> None:
        """Made from photos and brought up to date, by three makers."""
        query = self.path("more/glyph00001/00004.png")

        def by_program() -> None:
            self.program("index", "photos", "-o", "x.kith", "--model", "m.safetensors")
            self.change_photos()
            self.program("index", "x.kith", "--sync")

        def by_c() -> None:
            words = [os.path.join(support.BUILD, "examples", "photos"), "x.kith", "m.safetensors", "photos"]
            self.assertEqual(self.run_program(*words), "216 added, 0 changed, 0 moved, 0 removed, 0 as before\n")
            self.change_photos()
            lines = self.run_program(*words, query).splitlines()
            self.assertEqual(lines[0], "1 added, 1 changed, 1 moved, 2 removed, 212 as before")
            self.found = lines[1:]

        def by_python() -> None:
            with kith.Collection.create(self.path("x.kith"), model=self.path("m.safetensors")) as photos:
                self.assertEqual(photos.sync(self.path("photos")).n_added, 216)
                self.change_photos()
                photos.sync()
                hits = photos.search(query)[0].hits
                self.assertEqual([f"{hit.score:.4f} {hit.label} {hit.picture}" for hit in hits], self.found)

        self.assert_same(program=by_program, c=by_c, python=by_python)

    def test_removed_and_added(self) -> None:
        """All changes that there are."""

        def by_program() -> None:
            self.program("index", "photos", "-o", "x.kith", "--model", "m.safetensors")
            self.change_photos()
            self.program("index", "x.kith", "--sync")
            self.program("index", "x.kith", "--remove", "glyph00007/", "--remove", "*3.png")
            self.program("index", "x.kith", "--add", "more", "photos/glyph00007/00001.png")
            self.program("index", "x.kith", "--sync")

        def by_python() -> None:
            with kith.Collection.create(self.path("x.kith"), model=self.path("m.safetensors")) as photos:
                photos.sync(self.path("photos"))
                self.change_photos()
                report = photos.sync()
                self.assertEqual((report.n_removed, report.n_moved, report.n_changed, report.n_touched, report.n_added),
                                 (2, 1, 1, 1, 1))
                self.assertEqual(photos.remove(["glyph00007/", "*3.png"]), 18 + 11 * 2)
                photos.add([self.path("more"), self.path("photos/glyph00007/00001.png")])
                photos.sync()

        self.assert_same(program=by_program, python=by_python)

    def test_a_part_of_a_data_set(self) -> None:
        """By another metric, with other options of the model, measured on other data."""

        def by_program() -> None:
            self.program("index", "photos", "-o", "x.kith", "--model", "m.safetensors", "--dataset", "folder", "--split", "test",
                         "--metric", "inner", "--recall", "0.9", "--tap", "pooled", "--resize", "shorter40", "--crop", "32")
            self.program("index", "x.kith", "--calibrate", "more", "--split", "all")

        def by_python() -> None:
            with kith.Collection.create(self.path("x.kith"), model=self.path("m.safetensors"), metric="inner", recall=0.9,
                                        tap="pooled", resize="shorter40", height=32, width=32) as photos:
                photos.sync(self.path("photos"), kind="folder", split="test")
                photos.calibrate(self.path("more"), split="all")

        self.assert_same(program=by_program, python=by_python)

    def test_vectors(self) -> None:
        """With labels and a table."""
        x, y = support.clusters(n_classes=12, n_each=14)
        np.save(self.path("e.npy"), x)
        with open(self.path("items.csv"), "w") as file:
            file.write("path,label,year\n" + "".join(f"photos/{i}.png,c{y[i]},{2000 + i}\n" for i in range(168)))

        def by_python() -> None:
            with kith.Collection.create(self.path("x.kith"), dim=16, columns={"year": int}, folder=self.folder) as rows:
                rows.add_rows(x, paths=[f"photos/{i}.png" for i in range(168)], labels=[f"c{n}" for n in y],
                              values={"year": [2000 + i for i in range(168)]})

        self.assert_same(program=lambda: self.program("index", "e.npy", "-o", "x.kith", "--meta", "items.csv"), python=by_python)
