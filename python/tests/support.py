"""What several files of tests use."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

BUILD = os.environ.get("KITH_BUILD", "")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def python(code: str, env: Optional[Dict[str, str]] = None, cwd: Optional[str] = None,
           arguments: Tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    """Run code in a Python of its own."""
    return subprocess.run([sys.executable, "-c", code, *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, cwd=cwd, timeout=300)


def clusters(n_classes: int = 10, n_each: int = 8, dim: int = 16, noise: float = 0.5, seed: int = 0) -> Tuple[Any, Any]:
    """Rows around one centre for each class, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_each)
    x = rng.normal(size=(n_classes, dim))[y] + noise * rng.normal(size=(len(y), dim))
    return x.astype(np.float32), y


def safetensors(path: str, prefix: str = "") -> Dict[str, Any]:
    """The float32 tensors of a file whose names begin with the prefix, by the rest of their names."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name[len(prefix):]: np.frombuffer(data[begin + one["data_offsets"][0]:begin + one["data_offsets"][1]],
                                              np.float32).reshape(one["shape"]).copy()
            for name, one in json.loads(data[8:begin]).items() if name.startswith(prefix) and one.get("dtype") == "F32"}


def save_model(path: str, seed: int = 9) -> None:
    """A small network with random weights, as a file."""
    import kith

    kith.Model(backbone="convnet4", embedding=16, channels=1, height=28, width=28, seed=seed).save(path)


def under_way(begin: Callable[[Callable[..., bool]], object], meanwhile: Callable[[], object]) -> None:
    """Call `begin` with a progress function in a thread of its own, and `meanwhile` here while it is inside libkith."""
    is_inside, may_go_on, failures = threading.Event(), threading.Event(), []

    def progress(*facts: Any) -> bool:
        is_inside.set()
        may_go_on.wait(60)
        return False

    def work() -> None:
        try:
            begin(progress)
        except BaseException as error:
            failures.append(error)
        finally:
            is_inside.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert is_inside.wait(60)
        assert thread.is_alive(), failures or "it never called back"
        meanwhile()
    finally:
        may_go_on.set()
        thread.join()
    if failures:
        raise failures[0]


class InFolder(unittest.TestCase):
    """Tests with an empty folder of their own, self.folder."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory(prefix="kith-python-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def program(self, *words: str) -> str:
        """The output of the program kith, run in the folder; it must succeed."""
        from kith import _library

        return self.run_program(_library.program(), *words)

    def run_program(self, *words: str) -> str:
        """The same for any program."""
        found = subprocess.run(words, text=True, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(found.returncode, 0, found.stdout)
        return found.stdout
