"""kith.Collection: asked with every kind of query and every option, beside other threads and in children."""

import json
import os
import shutil
from typing import Any, Callable, List

import numpy as np

import kith

import support


class Asked(support.InFolder):
    """16 photos of 4 classes and a copy of the first, which is item 4; false-match rates measured on themselves."""

    def setUp(self) -> None:
        super().setUp()
        kith.synth(self.path("glyphs"), n_classes=4, n_images=4, side=40)
        shutil.copyfile(self.photo(0, 0), self.path("glyphs/glyph00000/copy.png"))
        support.save_model(self.path("m.safetensors"))
        with kith.Collection.create(self.path("p.kith"), model=self.path("m.safetensors")) as photos:
            photos.sync(self.path("glyphs"))
            photos.calibrate(self.path("glyphs"), split="all")
        self.photos = kith.Collection.open(self.path("p.kith"))

    def photo(self, i: int, k: int) -> str:
        return self.path(f"glyphs/glyph{i:05}/{k:05}.png")

    def ids(self, query: Any, **how: Any) -> List[int]:
        answers = self.photos.search(query, **how)
        self.assertEqual(len(answers), 1)
        return [hit.id for hit in answers[0].hits]

    def pixels(self, path: str) -> Any:
        """A drawn glyph as decoded pixels: the program does not hand them out, so they come by the reader."""
        batch = next(kith.read_images(path, resize="none", crop=40, channels=1, scale=1.0))
        return np.rint(batch.x[0, 0]).astype(np.uint8)

    def test_every_kind_of_query(self) -> None:
        path = self.photo(1, 2)
        first = self.photos.search(path, k=17)[0]
        self.assertEqual((len(first.hits), first.n_allowed, first.is_exact, first.limit), (17, 17, True, None))
        hit = first.hits[0]
        self.assertEqual((hit.id, hit.label, hit.values, hit.picture), (7, "glyph00001", {}, os.path.realpath(path)))
        self.assertGreater(hit.score, 0.999999)
        assert first.vector is not None
        np.testing.assert_allclose(first.vector, self.photos.model.query(path), rtol=1e-5, atol=1e-6)
        with open(path, "rb") as file:
            data = file.read()
        for query in (data, self.pixels(path), 7, np.int64(7), first.vector, first.vector.astype(np.float64), kith.Part(path),
                      [path], kith.Part(path, box=(0, 0, 40, 40))):
            found = self.photos.search(query, k=17)[0] if not isinstance(query, list) else self.photos.search([query], k=17)[0]
            self.assertEqual([one.id for one in found.hits], [one.id for one in first.hits], type(query))
            np.testing.assert_allclose([one.score for one in found.hits], [one.score for one in first.hits], atol=1e-6)

    def test_parts_count_together(self) -> None:
        one, two = self.photo(1, 2), self.photo(2, 1)
        row = self.photos.index.vectors([3])[0]
        wanted = self.photos.model.query([one, two], weights=[1, -0.5]) + 2 * row / np.linalg.norm(row)
        found = self.photos.search([[one, kith.Part(two, weight=-0.5), kith.Part(3, weight=2)]])
        self.assertEqual(len(found), 1)
        assert found[0].vector is not None
        np.testing.assert_allclose(found[0].vector, wanted, atol=1e-5)
        flipped = self.photos.search([[one, two]], flips=True)[0].vector
        np.testing.assert_allclose(flipped, self.photos.model.query([one, two], flips=True), atol=1e-6)
        self.assertGreater(float(np.abs(flipped - self.photos.search([[one, two]])[0].vector).max()), 1e-3)
        boxed = self.photos.search(kith.Part(one, box=(4, 4, 20, 30)))[0].vector
        np.testing.assert_allclose(boxed, self.photos.model.query(one, boxes=[(4, 4, 20, 30)]), atol=1e-6)

    def test_several_queries_as_each_alone(self) -> None:
        queries = [self.photo(0, 1), 9, [self.photo(3, 3), kith.Part(2, weight=-1)]]
        together = self.photos.search(queries, k=5)
        for answer, query in zip(together, queries):
            self.assertEqual([hit.id for hit in answer.hits], self.ids([query], k=5))
        self.assertEqual(self.photos.search([]), [])

    def test_pages_filters_and_limits(self) -> None:
        all_ids = self.ids(5, k=None)
        self.assertEqual((len(all_ids), len(self.ids(5))), (17, 10))
        self.assertEqual(self.ids(5, k=4, offset=3), all_ids[3:7])
        self.assertEqual(self.ids(5, exact=True, device="cpu"), all_ids[:10])
        filtered = self.photos.search(5, where="label = glyph00003")[0]
        self.assertEqual((filtered.n_allowed, {hit.label for hit in filtered.hits}), (4, {"glyph00003"}))
        ten = self.photos.search(5)[0].hits
        near = self.photos.search(5, min_score=ten[6].score)[0]
        self.assertEqual((len(near.hits), near.limit), (7, ten[6].score))
        rates = self.photos.info.false_match_rates
        assert rates is not None
        same = self.photos.search(5, k=None, same=0.3)[0]
        self.assertEqual(same.limit, rates.threshold(0.3))
        self.assertTrue(0 < len(same.hits) < 17)
        for hit in same.hits:
            self.assertEqual(hit.false_match_rate, rates.false_match_rate(hit.score))
            self.assertLessEqual(rates.false_match_rate(hit.score), 0.3 * (1 + 1e-9))

    def test_better_orders(self) -> None:
        queries: List[Any] = [self.photo(2, 1), *range(17)]
        plain = [[hit.id for hit in one.hits] for one in self.photos.search(queries, k=None)]
        for rerank in ("qe", "kr"):
            found = [[hit.id for hit in one.hits] for one in self.photos.search(queries, k=None, rerank=rerank)]
            self.assertEqual([sorted(ids) for ids in found], [sorted(ids) for ids in plain])
            self.assertNotEqual(found, plain)
            said = self.program("search", "p.kith", self.photo(2, 1), "--json", "--rerank", rerank, "-k", "17")
            self.assertEqual(program_ids(said), found[0])
        with self.assertRaisesRegex(ValueError, "rerank is 'best'; wanted one of none, qe, kr"):
            self.photos.search(0, rerank="best")

    def test_duplicates(self) -> None:
        found = self.photos.duplicates()
        self.assertEqual((len(found.groups), found.n_looked_at, found.n_unread), (1, 17, 0))
        self.assertEqual(sorted(one.id for one in found.groups[0]), [0, 4])
        self.assertTrue(all(one.is_same_file and not one.is_mirrored for one in found.groups[0]))
        self.assertEqual(self.photos.duplicates(where="label = glyph00001", n_candidates=3, least=0.9).groups, [])
        with_both, hidden = self.ids(0, k=3), self.ids(0, k=3, hide_duplicates=True)
        self.assertEqual((set(with_both[:2]), hidden[0], hidden[1]), ({0, 4}, with_both[0], with_both[2]))
        self.assertEqual(len(self.ids(0, k=None, hide_duplicates=True)), 16)
        with self.assertRaises(kith.Stopped):
            self.photos.duplicates(progress=lambda done, n: True)

    def test_pictures(self) -> None:
        self.assertEqual(self.photos.picture(7), os.path.realpath(self.photo(1, 2)))
        with self.assertRaises(kith.Error) as caught:
            self.photos.picture(17)
        self.assertEqual(caught.exception.status, "ENOTFOUND")

    def test_refused(self) -> None:
        for wanted, query, how in (("there is no item 99", 99, {}), ("cannot open .*nix.png", "nix.png", {}),
                                   ("a query of 0 parts", [[]], {}), ("column|yaer", 0, {"where": "yaer > 3"}),
                                   ("same and min_score are both given", 0, {"same": 0.1, "min_score": 0.2}),
                                   ("k is 0", 0, {"k": 0}), ("tell rates from", 0, {"same": 1e-9})):
            with self.assertRaisesRegex(kith.Error, wanted):
                self.photos.search(query, **how)  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, r"query 1 is float32 \[3\]; wanted a vector \[16\], or an image as uint8"):
            self.photos.search([0, np.zeros(3, np.float32)])
        with self.assertRaisesRegex(ValueError, "query 0 is the item -1; wanted an id from 0 on"):
            self.photos.search(-1)
        with self.assertRaisesRegex(TypeError, "uint8"):
            self.photos.search(np.zeros((4, 4), np.int32))
        with self.assertRaisesRegex(kith.Error, "there is no item 99"):
            self.photos.search([0, 99])
        kept = self.photos.search([0, 99, 3], keep_errors=True)
        self.assertEqual([len(one.hits) for one in kept], [10, 0, 10])
        self.assertIsNone(kept[0].error)
        assert kept[1].error is not None
        self.assertEqual((kept[1].error.status, repr(kept[1])), ("ENOTFOUND", "Answer(there is no item 99)"))

    def test_as_the_program_answers(self) -> None:
        for words, how in (([], {}), (["--where", "label != glyph00001"], {"where": "label != glyph00001"}),
                           (["--same", "0.3"], {"same": 0.3}), (["--views", "flips"], {"flips": True}),
                           (["--hide-duplicates"], {"hide_duplicates": True}), (["--exact"], {"exact": True})):
            said = self.program("search", "p.kith", self.photo(0, 0), "--json", *words)
            self.assertEqual(program_ids(said), self.ids(self.photo(0, 0), **how), words)

    def test_vectors_with_values(self) -> None:
        x, y = support.clusters()
        with kith.Collection.create(self.path("v.kith"), dim=16, columns={"year": int, "place": str}) as rows:
            rows.add_rows(x, labels=[f"c{n}" for n in y], values={"year": list(range(80)), "place": ["sea"] + [None] * 79})
            hits = rows.search(list(x[:2]), k=3, where="year < 2")  # asked while it is open for writing
            self.assertEqual([hit.id for hit in hits[1].hits], [1, 0])
            self.assertEqual((hits[0].hits[0].values, hits[0].hits[0].picture), ({"year": 0, "place": "sea"}, None))
            with self.assertRaisesRegex(kith.Error, "embed the images yourself"):
                rows.search(self.photo(0, 0))

    # ---- beside other threads, and in children ----

    def test_beside_other_threads(self) -> None:
        model = self.photos.model

        def meanwhile() -> None:
            for refused in (lambda: self.photos.search(0), lambda: model.query(self.photo(0, 0)), self.photos.close,
                            lambda: self.photos.info):
                with self.assertRaises(kith.Busy):
                    refused()
            self.assertEqual(model.dim, 16)
            self.assertEqual(len(self.photos.index.search(self.photos.index.vectors([0]), k=1)), 1)
            self.assertEqual(self.photos.picture(0), os.path.realpath(self.photo(0, 0)))
            self.assertEqual(len(self.photos), 17)

        support.under_way(lambda progress: self.photos.search([self.photo(0, 0), self.photo(1, 1)], progress=progress), meanwhile)
        self.photos.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.photos.search(0)

    def test_nothing_beside_a_sync(self) -> None:
        self.photos.close()
        shutil.copyfile(self.photo(0, 0), self.path("glyphs/glyph00001/new.png"))
        with kith.Collection.open(self.path("p.kith"), write=True) as photos:
            model = photos.model

            def meanwhile() -> None:
                model_calls: List[Callable[[], object]] = [lambda: model.dim, lambda: model.info, lambda: model.state]
                calls: List[Callable[[], object]] = [*model_calls,
                                                     lambda: photos.search(0), lambda: len(photos), lambda: photos.index.ids(),
                                                     photos.sync, photos.close, lambda: photos.picture(0), lambda: photos.model]
                for refused in calls:
                    with self.assertRaisesRegex(kith.Busy, "needs the collection for itself"):
                        refused()
                self.assertRegex(repr(photos), "in use")

            support.under_way(lambda progress: photos.sync(progress=progress), meanwhile)
            self.assertEqual(len(photos), 18)

    def test_children(self) -> None:
        found = support.python(f"""
import os, kith

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            print(work(), flush=True)
        except Exception as error:
            print(f"{{type(error).__name__}}: {{error}}", flush=True)
        globals().pop("writer", None)   # the child gives it back
        os._exit(0)
    os.waitpid(child, 0)

reader = kith.Collection.open("p.kith")
in_child(lambda: [hit.id for hit in reader.search({self.photo(1, 2)!r}, k=1)[0].hits])
writer = kith.Collection.open("p.kith", write=True)
in_child(lambda: writer.search(0))
in_child(lambda: len(writer.index))
print(writer.sync().n_same)
""", cwd=self.folder)
        self.assertEqual(found.returncode, 0, found.stdout)
        lines = found.stdout.splitlines()
        self.assertEqual((lines[0], lines[3]), ("[7]", "17"))
        for line in lines[1:3]:
            self.assertIn("Error: p.kith is written by the process that this one was forked from", line)


class Named(support.InFolder):
    """288 photos of 24 things, and a model that was not trained."""

    def setUp(self) -> None:
        super().setUp()
        kith.synth(self.path("glyphs"), n_classes=24, n_images=12, side=32)
        support.save_model(self.path("m.safetensors"))
        with kith.Collection.create(self.path("p.kith"), model=self.path("m.safetensors")) as photos:
            photos.sync(self.path("glyphs"))
        self.photos = kith.Collection.open(self.path("p.kith"))

    def photo(self, i: int, k: int) -> str:
        return self.path(f"glyphs/glyph{i:05}/{k:05}.png")

    def test_identify(self) -> None:
        found = self.photos.identify([self.photo(3, 1), [self.photo(3, 2), 39], 40], error=0.4)
        self.assertEqual((len(found.things), found.n_names, found.n_photos, found.n_single, found.unlike), (3, 24, 288, 0, None))
        self.assertGreaterEqual(found.error, found.least_error)
        for one in found.things:
            self.assertEqual(len(one.candidates), 3)
            self.assertEqual(len({hit.label for hit in one.candidates}), 3)
            if one.name is not None:
                assert one.false_name_high is not None and one.false_name_rate is not None
                self.assertEqual(one.name, one.candidates[0].label)
                self.assertLessEqual(one.false_name_rate, one.false_name_high)
                self.assertLessEqual(one.false_name_high, 0.4)
        self.assertEqual(found.things[0].candidates[0].label, "glyph00003")

    def test_what_is_refused(self) -> None:
        with self.assertRaisesRegex(kith.Error, "cannot be promised"):
            self.photos.identify(self.photo(3, 1), error=1e-5)
        for error in (0, 1, 2, float("nan")):
            with self.assertRaisesRegex(kith.Error, "error is"):
                self.photos.identify(self.photo(3, 1), error=error)
        with self.assertRaises(kith.Error):
            self.photos.identify([self.photo(3, 1), self.path("missing.png")], error=0.4)
        kept = self.photos.identify([self.photo(3, 1), self.path("missing.png")], error=0.4, keep_errors=True)
        self.assertIsNone(kept.things[0].error)
        self.assertIsNotNone(kept.things[1].error)

    def test_same(self) -> None:
        model = kith.Model(self.path("m.safetensors"))
        same = kith.same(self.photo(1, 1), self.photo(1, 1), model=model)
        self.assertEqual((same.verdict, same.score, same.false_match_rate, same.missed_rate), ("cannot say", 1.0, None, None))
        self.assertLess(kith.same(self.photo(1, 1), self.photo(2, 1), model=self.path("m.safetensors")).score, 1)
        with self.assertRaisesRegex(kith.Error, "error is"):
            kith.same(self.photo(1, 1), self.photo(1, 2), model=model, error=0)


def program_ids(said: str) -> List[int]:
    """The ids that `kith search --json` printed."""
    return [hit["id"] for hit in json.loads(said)["queries"][0]["hits"]]
