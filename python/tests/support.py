"""What several files of tests use."""

import os
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, Optional, Tuple

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


class InFolder(unittest.TestCase):
    """Tests with an empty folder of their own, self.folder."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory(prefix="kith-python-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)
