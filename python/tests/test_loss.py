"""kith.Loss with numpy: the same numbers as the program, gradients, learned state, threads."""

import json
import os
import subprocess
import threading
import time
import unittest
from typing import Any, Dict, Tuple

import numpy as np

import kith
from kith import _library

import support


class TheProgram(support.InFolder):
    def by_the_program(self, section: str, x: Any, y: Any) -> Tuple[Dict[str, Any], Any]:
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), y)
        with open(self.path("recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(section)
        found = subprocess.run([_library.program(), "objective", self.path("recipe.yaml"), "--embedding", self.path("x.npy"),
                                "--labels", self.path("y.npy"), "--json", "--out", self.path("out")], check=True,
                               stdout=subprocess.PIPE, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        return json.loads(found.stdout), np.load(self.path("out/grad_embedding.npy"))

    def test_teachers(self) -> None:
        x, y = support.clusters(noise=1.0)
        said = [np.tanh(x[:, :5]), np.cos(x[:, :7])]
        loss = kith.Loss("none", regularizers=["relational", {"name": "match", "teacher": 1}])
        self.assertEqual(loss.reads, ["embedding", "teacher", "teacher_1"])
        found = loss.value_and_gradient(x, y, teachers=said)
        self.assertEqual(loss.state["match.1.weight"].shape, (7, x.shape[1]))
        self.assertEqual(list(found.gradients), ["embedding"])
        # Classes do not matter to them.
        self.assertEqual(loss.value_and_gradient(x, [-1] * len(y), teachers=said).value, found.value)
        # The softmax of the teacher's own similarities is nearest to itself.
        same = kith.Loss("none", regularizers=[{"name": "relational", "form": "softmax"}])
        self.assertLess(abs(same.value_and_gradient(x, y, teachers=[x]).value), 1e-6)
        with self.assertRaisesRegex(kith.Error, "learns from a teacher, and there is none"):
            kith.Loss("none", regularizers=["match"]).value_and_gradient(x, y)
        with self.assertRaisesRegex(ValueError, "5 teachers; wanted at most 4"):
            loss.value_and_gradient(x, y, teachers=[x] * 5)

    def test_the_same_numbers(self) -> None:
        x, y = support.clusters(noise=1.0)
        wanted, gradient = self.by_the_program(
            "objective: {loss: {name: binomial, beta: 40}, miner: {name: vthm, margin: 0.2}, "
            "regularizers: [{name: norm_l2, weight: 0.01}, {name: entropy, weight: 0.5}]}\n", x, y)
        loss = kith.Loss("binomial", beta=40, miner={"name": "vthm", "margin": 0.2},
                         regularizers=[{"name": "norm_l2", "weight": 0.01}, {"name": "entropy", "weight": 0.5}])
        found = loss.value_and_gradient(x, y)
        self.assertAlmostEqual(found.value, wanted["total"], delta=1e-6 * abs(wanted["total"]))
        self.assertEqual(list(found.terms), ["binomial", "norm_l2", "entropy"])
        for name, value in wanted["terms"].items():
            self.assertAlmostEqual(found.terms[name], value, delta=1e-6 * abs(value))
        np.testing.assert_array_equal(found.gradient, gradient)
        self.assertTrue(found.n_positive > 0 and found.n_negative > 0)


class Gradients(unittest.TestCase):
    def test_it_is_the_slope(self) -> None:
        x, y = support.clusters(4, 4, 6)
        direction = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
        loss = kith.Loss("binomial", beta=10)
        found = loss.value_and_gradient(x, y)
        ahead, behind = (loss.value_and_gradient(x + e * direction, y).value for e in (1e-2, -1e-2))
        self.assertAlmostEqual(float((found.gradient * direction).sum()), (ahead - behind) / 2e-2, delta=2e-3)

    def test_results_stay_when_the_next_comes(self) -> None:
        x, y = support.clusters()
        loss = kith.Loss("contrastive")
        first = loss.value_and_gradient(x, y)
        kept = first.gradient.copy()
        loss.value_and_gradient(2 * x[:, ::-1], y)
        np.testing.assert_array_equal(first.gradient, kept)

    def test_batches_of_other_sizes(self) -> None:
        x, y = support.clusters()
        loss = kith.Loss("binomial")
        self.assertEqual(loss.value_and_gradient(x[:40], y[:40]).gradient.shape, (40, 16))
        self.assertEqual(loss.value_and_gradient(x, y).gradient.shape, (80, 16))
        self.assertEqual(loss.step, 2)

    def test_other_taps(self) -> None:
        x, y = support.clusters(4, 4)
        features = np.random.default_rng(0).normal(size=(16, 12, 3, 3)).astype(np.float32)
        loss = kith.Loss("contrastive", regularizers=[{"name": "horde", "orders": 3, "dimension": 32, "embedding": 8}])
        self.assertEqual(sorted(loss.reads), ["embedding", "map"])
        found = loss.value_and_gradient(x, y, map=features)
        self.assertEqual(found.gradients["map"].shape, features.shape)
        self.assertTrue(np.abs(found.gradients["map"]).max() > 0)
        self.assertIn("horde.w1", found.state_gradients)
        with self.assertRaisesRegex(kith.Error, "map"):
            loss.value_and_gradient(x, y)

    def test_the_part_that_stops(self) -> None:
        x, y = support.clusters(4, 4)
        found = kith.Loss("binomial", regularizers=["energy_confusion"]).value_and_gradient(x, y)
        assert found.stopped is not None
        alone = kith.Loss("binomial").value_and_gradient(x, y)
        self.assertIsNone(alone.stopped)
        np.testing.assert_allclose(found.gradient - found.stopped, alone.gradient, atol=1e-6)


class State(support.InFolder):
    def test_proxies_are_the_objectives_own_memory(self) -> None:
        x, y = support.clusters()
        loss = kith.Loss("proxy_anchor", n_classes=10, dim=16)
        before = loss.value_and_gradient(x, y)
        self.assertEqual(before.state_gradients["proxies"].shape, (10, 16))
        loss.state["proxies"][:] -= 0.01 * before.state_gradients["proxies"]
        self.assertLess(loss.value_and_gradient(x, y).value, before.value)

    def test_gradients_do_not_add_up(self) -> None:
        x, y = support.clusters()
        loss = kith.Loss("proxy_anchor", n_classes=10)
        first, second = (loss.value_and_gradient(x, y).state_gradients["proxies"] for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_it_is_saved_and_loaded(self) -> None:
        one, other = (kith.Loss("proxy_anchor", n_classes=10, dim=16, seed=seed) for seed in (1, 2))
        self.assertFalse(np.array_equal(one.state["proxies"], other.state["proxies"]))
        one.save(self.path("state.safetensors"))
        other.load(self.path("state.safetensors"))
        np.testing.assert_array_equal(one.state["proxies"], other.state["proxies"])

    def test_values_outlive_the_loss(self) -> None:
        values = kith.Loss("proxy_anchor", n_classes=1000, dim=64).state["proxies"]
        np.testing.assert_array_equal(values, kith.Loss("proxy_anchor", n_classes=1000, dim=64).state["proxies"])

    def test_sizes_must_be_known(self) -> None:
        with self.assertRaisesRegex(kith.Error, "size of the embedding is not known before the first batch"):
            kith.Loss("proxy_anchor", n_classes=10).state
        with self.assertRaisesRegex(kith.Error, "class"):
            kith.Loss("proxy_anchor")


class Failures(unittest.TestCase):
    def test_names_and_options_are_checked_at_once(self) -> None:
        for make in (lambda: kith.Loss("binomail"), lambda: kith.Loss("binomial", miner="vtmh"),
                     lambda: kith.Loss("binomial", betta=40), lambda: kith.Loss("binomial", regularizers=["hode"])):
            with self.assertRaisesRegex(kith.Error, "did you mean"):
                make()

    def test_shapes_and_types(self) -> None:
        x, y = support.clusters()
        loss = kith.Loss("binomial")
        with self.assertRaisesRegex(ValueError, r"embedding has the shape \[80\]"):
            loss.value_and_gradient(x[:, 0], y)
        with self.assertRaisesRegex(TypeError, "embedding holds int64; wanted float32"):
            loss.value_and_gradient(x.astype(np.int64), y)
        with self.assertRaises(kith.Error) as caught:
            loss.value_and_gradient(x, y[:-1])
        self.assertEqual(caught.exception.status, "ESHAPE")
        with self.assertRaises(kith.Error) as caught:
            kith.Loss("proxy_anchor", n_classes=10, dim=16).value_and_gradient(x[:, :8], y)
        self.assertEqual(caught.exception.status, "ESHAPE")
        x[3, 2] = np.inf
        with self.assertRaises(kith.Error) as caught:
            loss.value_and_gradient(x, y)
        self.assertEqual(caught.exception.status, "ENUMERIC")

    def test_a_failed_evaluation_does_not_count_as_a_step(self) -> None:
        x, y = support.clusters()
        loss = kith.Loss("binomial")
        with self.assertRaises(kith.Error):
            loss.value_and_gradient(x, y[:-1])
        self.assertEqual(loss.step, 0)


class Threads(unittest.TestCase):
    def test_other_threads_run_while_c_computes(self) -> None:
        """Another thread wakes many times during one call. A call that held the interpreter would let it wake at the call's ends alone."""
        x, y = support.clusters(500, 8, 512)
        loss = kith.Loss("raw", miner="vthm")
        loss.value_and_gradient(x, y)
        times, done = [time.monotonic()], threading.Event()

        def count() -> None:
            while not done.is_set():
                time.sleep(0.001)
                times.append(time.monotonic())

        counter = threading.Thread(target=count)
        counter.start()
        calls = []
        for _ in range(3):
            begin = time.monotonic()
            loss._evaluate({"embedding": x}, y, None)
            calls.append((begin, time.monotonic()))
        done.set()
        counter.join()
        within = [sum(begin < t < end for t in times) for begin, end in calls]
        self.assertGreater(max(within), 5, f"calls take {[round(end - begin, 3) for begin, end in calls]} s")
