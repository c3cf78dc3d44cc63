"""The package's type hints, checked by mypy --strict."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import kith

import support


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not here")
class Types(unittest.TestCase):
    def mypy(self, *words: str) -> "subprocess.CompletedProcess[str]":
        cache = os.path.join(support.BUILD or tempfile.gettempdir(), "python", "mypy")
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "--config-file",
                               os.path.join(support.SOURCE, "python", "mypy.ini"), *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_the_package(self) -> None:
        found = self.mypy(os.path.dirname(kith.__file__))
        self.assertEqual(found.returncode, 0, found.stdout)

    def test_wrong_use_is_seen(self) -> None:
        """The package says that it has types (py.typed)."""
        found = self.mypy("-c", "import kith\nx: int = kith.evaluate([[1.0]], [0]).map_at_r\nkith.knn([[1.0]], k='3')\n")
        self.assertIn('expression has type "float", variable has type "int"', found.stdout)
        self.assertIn('Argument "k" to "knn" has incompatible type "str"', found.stdout)
