"""kith.Index: making, changing, searching, filtering vectors."""

import numpy as np

import kith

import support


class Vectors(support.InFolder):
    def make(self) -> kith.Index:
        x, y = support.clusters()
        index = kith.Index.create(self.path("i.kith"), dim=16, columns={"year": int, "weight": float, "place": str})
        ids = index.add(x, paths=[f"{i}.jpg" for i in range(80)], labels=[f"class {n}" for n in y],
                        values={"year": [2000 + i for i in range(80)], "place": ["sea" if i % 2 else None for i in range(80)]})
        np.testing.assert_array_equal(ids, np.arange(80))
        index.commit()
        self.x = x
        return index

    def test_search_is_knn(self) -> None:
        index = self.make()
        hits = index.search(self.x[:3], k=5)
        wanted = kith.knn(self.x, self.x[:3], k=5)
        for i in range(3):
            np.testing.assert_array_equal(hits[i].ids, wanted.indices[i])
            np.testing.assert_allclose(hits[i].scores, wanted.scores[i], atol=1e-6)

    def test_options_of_a_search(self) -> None:
        index = self.make()
        whole = index.search(self.x[:1], k=6)[0]
        np.testing.assert_array_equal(index.search(self.x[:1], k=4, offset=2)[0].ids, whole.ids[2:])
        np.testing.assert_array_equal(index.search(self.x[:1], k=5, own_ids=[0])[0].ids, whole.ids[1:])
        near = index.search(self.x[:1], k=80, limit=float(whole.scores[3]))[0]
        np.testing.assert_array_equal(near.ids, whole.ids[:4])
        found = index.search(self.x[:1], k=80, where="year >= 2040 and place = sea")[0]
        self.assertEqual(sorted(found.ids.tolist()), list(range(41, 80, 2)))
        with self.assertRaises(kith.Error) as caught:
            index.search(self.x[:1], where="yaer > 2")
        self.assertIn("year", caught.exception.hint + caught.exception.message)

    def test_items(self) -> None:
        index = self.make()
        self.assertEqual(index.item(3), kith.Item(3, "3.jpg", "class 0", {"year": 2003, "weight": None, "place": "sea"}))
        np.testing.assert_array_equal(index.vectors([5, 2]), self.x[[5, 2]])
        np.testing.assert_array_equal(index.ids("label = 'class 1'"), np.arange(8, 16))
        self.assertEqual(len(index.ids()), 80)
        self.assertEqual(len(index.ids("year > 3000")), 0)
        with self.assertRaises(kith.Error) as caught:
            index.item(80)
        self.assertEqual(caught.exception.status, "ENOTFOUND")

    def test_other_values(self) -> None:
        index = self.make()
        index.set([3, 4], {"year": [1900, None], "place": ["dune", "sea"]})
        index.set_labels([3, 4], ["new", None])
        self.assertEqual(index.item(3).label, "class 0")
        index.commit()
        self.assertEqual(index.item(3), kith.Item(3, "3.jpg", "new", {"year": 1900, "weight": None, "place": "dune"}))
        self.assertEqual(index.item(4), kith.Item(4, "4.jpg", None, {"year": None, "weight": None, "place": "sea"}))
        self.assertEqual(index.ids("place = dune and label = new").tolist(), [3])
        for ids, values in [([99], {"year": [1]}), ([3], {"yaer": [1]})]:
            with self.assertRaises(kith.Error) as caught:
                index.set(ids, values)
            self.assertEqual(caught.exception.status, "ENOTFOUND")
        with self.assertRaises(TypeError):
            index.set([3], {"year": ["x"]})
        with self.assertRaises(ValueError):
            index.set([3], {"year": [1, 2]})
        with self.assertRaises(ValueError):
            index.set_labels([3], [])

    def test_facets(self) -> None:
        index = self.make()
        found = index.facets("place", "year < 2010")
        self.assertEqual((found.n_allowed, found.n_items, found.values), (10, 5, [kith.FacetValue("sea", 5)]))
        years = index.facets("year", most=4)
        self.assertEqual(years.n_distinct, 80)
        self.assertEqual(years.values[0], kith.FacetValue((2000.0, 2020.0), 20))
        self.assertEqual(index.facets("weight").values, [])
        with self.assertRaises(kith.Error):
            index.facets("colour")

    def test_what_is_found_outlives_the_index(self) -> None:
        index = self.make()
        hits, ids = index.search(self.x[:1], k=3)[0], index.ids()
        wanted = hits.ids.tolist()
        index.close()
        del index
        self.assertEqual((hits.ids.tolist(), len(ids)), (wanted, 80))

    def test_changes_count_from_the_commit_on(self) -> None:
        index = self.make()
        index.remove([0, 1])
        self.assertEqual(len(index), 80)
        index.commit()
        self.assertEqual(len(index), 78)
        index.compact()
        self.assertEqual(index.info.n_removed, 0)
        index.close()
        with kith.Index.open(self.path("i.kith")) as again:
            self.assertEqual((len(again), again.info.dim, again.info.metric), (78, 16, "cosine"))
            with self.assertRaises(kith.Error):
                again.remove([5])
        with self.assertRaisesRegex(ValueError, "closed"):
            again.ids()

    def test_items_that_are_excluded(self) -> None:
        index = self.make()
        index.exclude([0, 1])
        index.remove([2])
        index.commit()
        self.assertEqual((len(index), index.info.n_excluded), (77, 2))
        with self.assertRaises(kith.Error) as caught:
            index.exclude([2])
        self.assertEqual(caught.exception.status, "ENOTFOUND")

    def test_a_new_column(self) -> None:
        index = self.make()
        index.add_column("colour", str)
        index.add(self.x[:1], values={"colour": ["red"]})
        index.commit()
        self.assertEqual(index.ids("colour = red").tolist(), [80])

    def test_first_values(self) -> None:
        x, _ = support.clusters()
        with kith.Index.create(self.path("first.kith"), dim=16, first=8) as index:
            index.add(x)
            index.commit()
            self.assertEqual(index.info.first, 8)
        with self.assertRaisesRegex(kith.Error, "first is 17 values of 16"):
            kith.Index.create(self.path("more.kith"), dim=16, first=17)

    def test_refused(self) -> None:
        index = self.make()
        with self.assertRaisesRegex(kith.Error, "no column 'yaer'"):
            index.add(self.x[:1], values={"yaer": [1]})
        with self.assertRaisesRegex(TypeError, "the column year holds int; found 'x'"):
            index.add(self.x[:1], values={"year": ["x"]})
        with self.assertRaisesRegex(ValueError, "labels has 1 entries for 2 rows"):
            index.add(self.x[:2], labels=["a"])
        with self.assertRaisesRegex(kith.Error, "i.kith"):
            kith.Index.create(self.path("i.kith"), dim=3)
        with self.assertRaisesRegex(TypeError, "wanted int, float or str"):
            kith.Index.create(self.path("j.kith"), dim=3, columns={"when": list})
        with self.assertRaisesRegex(kith.Error, "dim is 0; wanted 1 to"):
            kith.Index.create(self.path("j.kith"), dim=0)
