"""kith.evaluate, knn, kmeans and tsne: the numbers, the kinds of arrays, no copies, stopping."""

import os
import signal
import threading
import time
import tracemalloc
import unittest
from typing import Any

import numpy as np

import kith
from kith._arrays import to_numpy

import support


def recall_at_1(x: Any, y: Any) -> float:
    """By definition, in float64."""
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2)
    return float(np.mean(y[similarity.argmax(axis=1)] == y))


class Evaluate(unittest.TestCase):
    def setUp(self) -> None:
        self.x, self.y = support.clusters(noise=1.5)

    def test_recall_is_what_numpy_says(self) -> None:
        found = kith.evaluate(self.x, self.y)
        self.assertGreater(found.recall[1], 0.2)
        self.assertLess(found.recall[1], 1)
        self.assertAlmostEqual(found.recall[1], recall_at_1(self.x, self.y), places=12)
        self.assertEqual(list(found.recall), [1, 2, 4, 8])
        self.assertEqual((found.n_query, found.n_gallery, found.n_lone), (80, 80, 0))

    def test_parts_come_when_asked_for(self) -> None:
        found = kith.evaluate(self.x, self.y, intervals=False, clustering=False)
        self.assertIsNone(found.intervals)
        self.assertIsNone(found.clustering)
        self.assertIsNone(found.verification)
        found = kith.evaluate(self.x, self.y, verification=True)
        assert found.intervals and found.clustering and found.verification
        low, high = found.intervals.recall[1]
        self.assertTrue(low <= found.recall[1] <= high)
        self.assertEqual(found.clustering.n_clusters, 10)
        self.assertEqual([a.far_wanted for a in found.verification.at], [0.1, 0.01, 0.001, 0.0001])

    def test_the_values_of_queries_and_classes_outlive_the_result(self) -> None:
        per_query, per_class, mean = (lambda e: (e.per_query, e.per_class, e.recall[2]))(kith.evaluate(self.x, self.y))
        self.assertAlmostEqual(per_query["recall"][:, 1].mean(), mean, places=12)
        np.testing.assert_array_equal(per_class["label"], np.arange(10))
        np.testing.assert_array_equal(per_class["n_query"], np.full(10, 8))

    def test_the_worst_are_those_of_the_measures(self) -> None:
        found, scores = kith.worst(self.x, self.y, most=0), kith.evaluate(self.x, self.y)
        np.testing.assert_array_equal(found.queries["average_precision"], np.sort(scores.per_query["map"]))
        self.assertEqual(found.n_wrong, round(80 * (1 - scores.recall[1])))
        self.assertTrue((found.negatives["margin"] > 0).all())
        for negative in found.negatives:
            self.assertNotEqual(negative["negative"]["label"], self.y[negative["row"]])
            self.assertEqual(negative["positive"]["label"], self.y[negative["row"]])
        nearest = kith.knn(self.x, k=6)
        np.testing.assert_array_equal(found.nearest["row"], nearest.indices[found.queries["row"]])
        self.assertEqual(len(kith.worst(self.x, self.y, most=3).queries), 3)

    def test_other_kinds_of_arrays_give_the_same(self) -> None:
        wanted = kith.evaluate(self.x, self.y).map_at_r
        wide = np.zeros((80, 32), np.float32)
        wide[:, ::2] = self.x
        for x in (self.x.astype(np.float64), np.asfortranarray(self.x), wide[:, ::2], self.x.astype(">f4"),
                  self.x.tolist()):
            self.assertAlmostEqual(kith.evaluate(x, self.y).map_at_r, wanted, places=12)
        half = self.x.astype(np.float16)
        self.assertEqual(kith.evaluate(half, self.y).map_at_r, kith.evaluate(half.astype(np.float32), self.y).map_at_r)
        for y in (self.y.astype(np.int32), self.y.astype(np.uint8), self.y.tolist(), 1000 + self.y):
            self.assertEqual(kith.evaluate(self.x, y).map_at_r, wanted)

    def test_labels_may_be_names(self) -> None:
        names = np.array(["tern", "gull", "auk", "crow", "jay", "wren", "lark", "rook", "kite", "swan"])[self.y]
        found = kith.evaluate(self.x, names)
        self.assertEqual(found.map_at_r, kith.evaluate(self.x, self.y).map_at_r)
        assert found.names is not None
        self.assertEqual(list(found.names), sorted(set(names)))

    def test_queries_and_gallery(self) -> None:
        mask = np.arange(80) % 8 == 0
        found = kith.evaluate(self.x, self.y, query=mask, gallery=np.flatnonzero(~mask))
        self.assertEqual((found.n_query, found.n_gallery), (10, 70))

    def test_failures(self) -> None:
        with self.assertRaisesRegex(kith.Error, "labels"):
            kith.evaluate(self.x, self.y[:-1])
        with self.assertRaisesRegex(ValueError, r"x has the shape \[80\]; wanted \[rows, values\]"):
            kith.evaluate(self.y, self.y)
        with self.assertRaisesRegex(TypeError, "x holds int64; wanted float32"):
            kith.evaluate(np.zeros((80, 2), np.int64), self.y)
        with self.assertRaisesRegex(TypeError, "y holds float64; wanted whole numbers"):
            kith.evaluate(self.x, self.y + 0.5)
        with self.assertRaisesRegex(ValueError, r"mask query has the shape \[3\]; wanted \[80\]"):
            kith.evaluate(self.x, self.y, query=[True, False, True])
        self.x[7, 3] = np.nan
        with self.assertRaisesRegex(kith.Error, "row 7") as caught:
            kith.evaluate(self.x, self.y)
        self.assertEqual(caught.exception.status, "ENUMERIC")

    def test_arrays_with_dlpack_alone(self) -> None:
        class ByDlpack:
            def __init__(self, values: Any, device: int = 1) -> None:
                self.values, self.device = values, device

            def __dlpack_device__(self) -> Any:
                return self.device, 0

            def __dlpack__(self, **how: Any) -> Any:
                return self.values.__dlpack__()

        x, y = ByDlpack(self.x), ByDlpack(self.y)
        self.assertEqual(to_numpy(x).ctypes.data, self.x.ctypes.data)  # no copy
        self.assertEqual(kith.evaluate(x, y).recall, kith.evaluate(self.x, self.y).recall)
        np.testing.assert_array_equal(kith.knn(x, k=2).indices, kith.knn(self.x, k=2).indices)
        self.assertEqual(kith.Loss("binomial").value_and_gradient(x, y).value,
                         kith.Loss("binomial").value_and_gradient(self.x, self.y).value)
        with self.assertRaisesRegex(TypeError, "the array is in a device's memory; wanted one in host memory"):
            kith.evaluate(ByDlpack(self.x, device=2), y)

    def test_arrays_of_a_device_are_refused(self) -> None:
        class OnADevice:
            __cuda_array_interface__ = {"shape": (80, 16)}

        with self.assertRaisesRegex(TypeError, "wanted one in host memory"):
            kith.evaluate(OnADevice(), self.y)

    def test_nothing_is_copied(self) -> None:
        """numpy tells tracemalloc of its memory: a copy of x would be seen."""
        x = np.random.default_rng(0).normal(size=(3000, 256)).astype(np.float32)
        y = np.arange(3000) % 100
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        kith.evaluate(x, y, clustering=False)
        self.assertLess(tracemalloc.get_traced_memory()[1], x.nbytes // 10)
        tracemalloc.reset_peak()
        kith.evaluate(np.asfortranarray(x), y, clustering=False)
        self.assertGreater(tracemalloc.get_traced_memory()[1], x.nbytes)

    def test_an_array_that_cannot_be_written_will_do(self) -> None:
        self.x.flags.writeable = False
        self.y.flags.writeable = False
        self.assertEqual(kith.evaluate(self.x, self.y).n_query, 80)


class Neighbors(unittest.TestCase):
    def test_they_are_what_numpy_says(self) -> None:
        x, _ = support.clusters()
        distance = ((x[:, None, :].astype(np.float64) - x[None]) ** 2).sum(axis=2)
        np.fill_diagonal(distance, np.inf)
        found = kith.knn(x, k=3, metric="sqeuclidean")
        np.testing.assert_array_equal(found.indices, distance.argsort(axis=1)[:, :3])
        np.testing.assert_allclose(found.scores, np.sort(distance, axis=1)[:, :3], rtol=1e-5)

    def test_queries_that_are_rows(self) -> None:
        x, _ = support.clusters()
        self.assertEqual(kith.knn(x, x[:5], k=1).indices.ravel().tolist(), [0, 1, 2, 3, 4])
        np.testing.assert_array_equal(kith.knn(x, x[:5], k=1, own_rows=np.arange(5)).indices, kith.knn(x, k=1).indices[:5])
        with self.assertRaisesRegex(ValueError, "own_rows has 2 numbers for 5 queries"):
            kith.knn(x, x[:5], own_rows=[0, 1])

    def test_fewer_rows_than_asked_for(self) -> None:
        found = kith.knn(np.eye(3), k=4)
        np.testing.assert_array_equal(found.indices[:, 2:], -1)
        self.assertTrue(np.isnan(found.scores[:, 2:]).all())

    def test_k_must_be_positive(self) -> None:
        for k in (0, -1):
            with self.assertRaises(kith.Error):
                kith.knn(np.eye(3), k=k)


class Clusters(unittest.TestCase):
    def test_they_are_the_classes_where_these_lie_apart(self) -> None:
        x, y = support.clusters(noise=0.1)
        found = kith.kmeans(x, 10, n_restarts=5)
        self.assertEqual(len({(a, b) for a, b in zip(found.cluster.tolist(), y.tolist())}), 10)
        np.testing.assert_array_equal(found.size, np.full(10, 8))
        self.assertEqual(found.centroids.shape, (10, 16))

    def test_arrays_outlive_the_result(self) -> None:
        x, _ = support.clusters()
        centroids = kith.kmeans(x, 4).centroids
        np.testing.assert_array_equal(centroids, kith.kmeans(x, 4).centroids)

    def test_maps(self) -> None:
        x, y = support.clusters(noise=0.1)
        found = kith.tsne(x, perplexity=5, n_iterations=300)
        self.assertEqual((found.shape, found.dtype), ((80, 2), np.float64))
        self.assertGreater(kith.evaluate(found, y, metric="sqeuclidean").recall[1], 0.9)


class Stopping(unittest.TestCase):
    def test_progress_is_told_and_may_stop(self) -> None:
        seen = []
        kith.tsne(np.eye(50), perplexity=5, n_iterations=10, progress=lambda done, of_all: seen.append((done, of_all)))
        self.assertEqual(seen[-1], (10, 10))
        with self.assertRaises(kith.Stopped) as caught:
            kith.tsne(np.eye(50), perplexity=5, n_iterations=10, progress=lambda done, of_all: done >= 3)
        self.assertEqual(caught.exception.status, "ECANCELED")

    def test_what_progress_raises_comes_through(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            kith.tsne(np.eye(50), perplexity=5, n_iterations=10, progress=lambda done, of_all: 1 / 0)

    def test_control_c(self) -> None:
        x, _ = support.clusters(50, 20)
        before = time.monotonic()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            kith.tsne(x, n_iterations=10_000_000)
        self.assertLess(time.monotonic() - before, 30)
        self.assertEqual(kith.knn(np.eye(2), k=1).indices.ravel().tolist(), [1, 0])

    def test_another_thread_may_say_stop(self) -> None:
        go = threading.Event()
        threading.Timer(0.1, go.set).start()
        x, _ = support.clusters(50, 20)
        with self.assertRaises(kith.Stopped):
            kith.tsne(x, n_iterations=10_000_000, progress=lambda done, of_all: go.is_set())
