"""Calls at the same time, and after a fork: refused or working, never a crash or a wait without end."""

import os
import unittest
from typing import Any, Callable, List

import numpy as np

import kith

import support


class Threads(support.InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.x = support.clusters()[0]
        self.index = kith.Index.create(self.path("i.kith"), dim=16)
        self.index.add(self.x)
        self.index.commit()

    def test_no_close_while_another_thread_searches(self) -> None:
        found: List[Any] = []

        def search(progress: Callable[..., bool]) -> None:
            found.append(self.index.search(self.x[:2], k=3, exact=True, progress=progress))

        def close() -> None:
            with self.assertRaisesRegex(kith.Busy, "a call that is under way uses the index .wait for the other thread"):
                self.index.close()
            self.assertEqual(len(self.index.search(self.x[:1], k=1)), 1)  # asking goes together with asking

        support.under_way(search, close)
        np.testing.assert_array_equal(found[0][0].ids, kith.knn(self.x, self.x[:1], k=3).indices[0])
        self.index.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.index.search(self.x[:1])

    def test_nothing_beside_a_commit(self) -> None:
        self.index.add(self.x)

        def ask() -> None:
            for one in (lambda: self.index.search(self.x[:1]), lambda: self.index.item(0), lambda: self.index.add(self.x),
                        lambda: len(self.index), self.index.commit, self.index.close):
                with self.assertRaisesRegex(kith.Busy, "a call that is under way needs the index for itself"):
                    one()
            self.assertRegex(repr(self.index), "in use")

        support.under_way(lambda progress: self.index.compact(progress=progress), ask)
        self.assertEqual(len(self.index), 160)

    def test_no_change_beside_a_search(self) -> None:
        def change() -> None:
            for one in (lambda: self.index.add(self.x), lambda: self.index.remove([0]), self.index.commit):
                with self.assertRaisesRegex(kith.Busy, "uses the index"):
                    one()

        support.under_way(lambda progress: self.index.search(self.x, exact=True, progress=progress), change)
        self.index.remove([0])

    def test_a_model_is_for_one_thread(self) -> None:
        model = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28)
        kith.synth(self.path("glyphs"), n_classes=2, n_images=2, side=32)
        images = [self.path(f"glyphs/glyph0000{i}/0000{k}.png") for i in range(2) for k in range(2)]

        def embed() -> None:
            for refused in (lambda: model.embed(images), lambda: model.embed_dataset(self.path("glyphs"))):
                with self.assertRaisesRegex(kith.Busy, "a call that is under way needs the model for itself"):
                    refused()

        support.under_way(lambda progress: model.embed(images, progress=progress), embed)
        self.assertEqual(model.embed(images).shape, (4, 8))


FORK = """
import os, sys, threading, numpy as np, kith

x = np.random.default_rng(0).normal(size=(2000, 32)).astype(np.float32)
y = np.arange(2000) % 50
kith.threads(2)

def in_child(work):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            print(work())
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


class Forks(support.InFolder):
    def run_code(self, code: str) -> str:
        found = support.python(FORK + code, cwd=self.folder)
        self.assertEqual(found.returncode, 0, found.stdout)
        return found.stdout

    def test_a_child_computes(self) -> None:
        out = self.run_code("""
wanted = kith.evaluate(x, y).recall
in_child(lambda: kith.evaluate(x, y).recall == wanted)
print(kith.evaluate(x, y).recall == wanted)
""")
        self.assertEqual(out, "True\nTrue\n")

    def test_workers_of_a_pool(self) -> None:
        out = self.run_code("""
import multiprocessing

def work(seed):
    return len(kith.knn(x[seed:seed + 500], k=3).indices)

if __name__ == "__main__":
    kith.knn(x, k=3)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [0, 1, 2]))
""")
        self.assertEqual(out, "[500, 500, 500]\n")

    def test_a_fork_beside_a_call(self) -> None:
        out = self.run_code("""
inside, go_on = threading.Event(), threading.Event()

def wait(done, n):
    inside.set()
    go_on.wait(60)

thread = threading.Thread(target=lambda: kith.knn(x, k=3, progress=wait))
thread.start()
inside.wait(60)
in_child(lambda: kith.knn(x, k=3))
go_on.set()
thread.join()
print(kith.knn(x, k=3).indices.shape)
""")
        self.assertIn("Error: this process was forked while a call of kith was under way", out)
        self.assertIn("spawn", out)
        self.assertIn("(2000, 3)", out)

    def test_what_the_parent_writes(self) -> None:
        out = self.run_code("""
index = kith.Index.create("i.kith", dim=32)
index.add(x)

def ask():
    try:
        return index.search(x[:1])
    finally:
        globals().pop("index")   # the child gives it back

in_child(ask)
index.commit()
print(len(index))
reader = kith.Index.open("i.kith")
in_child(lambda: reader.search(x[:1], k=1)[0].ids.tolist())
""")
        self.assertIn("Error: i.kith is written by the process that this one was forked from", out)
        self.assertIn("2000\n[0]\n", out)


class Names(support.InFolder):
    def test_a_nul_is_refused(self) -> None:
        x = np.eye(2, dtype=np.float32)
        model = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28)
        for refused in (lambda: kith.Index.create(self.path("a\0b.kith"), dim=2), lambda: kith.Index.open(self.path("a\0b")),
                        lambda: kith.Model(self.path("a\0b")), lambda: model.embed(self.path("a\0b")),
                        lambda: model.save(self.path("a\0b")), lambda: kith.train(self.path("a\0b")),
                        lambda: kith.synth(self.path("a\0b")), lambda: kith.knn(x, k=1, device="cpu\0x")):
            with self.assertRaisesRegex(ValueError, "has a NUL character in it"):
                refused()
        self.assertEqual(os.listdir(self.folder), [])
        with kith.Index.create(self.path("i.kith"), dim=2) as index, self.assertRaisesRegex(ValueError, "NUL"):
            index.add(x, labels=["a\0b", "c"])


if __name__ == "__main__":
    unittest.main()
