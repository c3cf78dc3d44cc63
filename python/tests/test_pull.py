"""Weights by name, from a hub of the test's own."""

import importlib.util
import os
import unittest
from typing import Any
from unittest import mock

import kith

import support


def _hub() -> Any:
    """The server of test/tools/hub_both_ways.py."""
    path = os.path.join(support.SOURCE, "test", "tools", "hub_both_ways.py")
    spec = importlib.util.spec_from_file_location("hub_both_ways", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Pull(support.InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.hub = _hub()
        self.endpoint = self.hub.serve()
        self.cache = self.path("the cache")

    def pull(self, name: str, **more: Any) -> kith.Pulled:
        try:
            return kith.pull(name, cache=self.cache, endpoint=self.endpoint, **more)
        except kith.Error as error:
            if "there is no plugin" in str(error):
                self.skipTest(str(error))
            raise

    def test_pull_list_remove(self) -> None:
        seen = []
        got = self.pull(self.hub.REPO, progress=lambda n_done, n_all: seen.append((n_done, n_all)))
        with open(got.file, "rb") as file:
            self.assertEqual(file.read(), self.hub.FILES["model.safetensors"])
        self.assertEqual((got.repo, got.commit, got.revision), (self.hub.REPO, self.hub.COMMIT, "main"))
        self.assertEqual(got.n_fetched, sum(map(len, self.hub.FILES.values())))
        self.assertEqual(seen[-1][0], seen[-1][1])
        self.assertEqual(self.pull(self.hub.REPO).n_fetched, 0)
        self.assertEqual([one.file for one in kith.pulled(cache=self.cache)], [got.file])
        self.assertEqual(kith.remove_pulled(self.hub.REPO, cache=self.cache), got.n_fetched)
        self.assertEqual(kith.pulled(cache=self.cache), [])

    def test_stopped(self) -> None:
        with self.assertRaises(kith.Stopped):
            self.pull(self.hub.REPO, progress=lambda n_done, n_all: True)

    def test_refused(self) -> None:
        with self.assertRaisesRegex(kith.Error, "has no repository no/such"):
            self.pull("no/such")
        with self.assertRaisesRegex(kith.Error, "is not a name of weights"):
            kith.pull("../x", cache=self.cache)
        with mock.patch.dict(os.environ, HF_HUB_CACHE=self.cache):
            with self.assertRaisesRegex(kith.Error, "kith pull resnet50"):
                kith.Model("hub:resnet50")


if __name__ == "__main__":
    unittest.main()
