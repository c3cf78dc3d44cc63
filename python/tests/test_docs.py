"""What the documentation shows is run: docstrings, and the python blocks of README.md and docs/python.md."""

import doctest
import importlib
import os
import pkgutil
import re
import unittest
from typing import Any, Dict, List

import kith

import support


class Pages(support.InFolder):
    def run_page(self, name: str) -> int:
        """The blocks of a page, one after the other, as one program in an empty folder."""
        with open(os.path.join(support.SOURCE, name), encoding="utf-8") as file:
            text = file.read()
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        space: Dict[str, Any] = {}
        n_run = 0
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
            line = text[:match.start()].count("\n") + 1
            block = match.group(1)
            if "import torch" in block and not has_torch():
                continue
            self.run_block(f"{name}:{line}", block, space)
            n_run += 1
        return n_run

    def run_block(self, where: str, block: str, space: Dict[str, Any]) -> None:
        if ">>>" not in block:
            exec(compile(block, where, "exec"), space)
            return
        test = doctest.DocTestParser().get_doctest(block, space, where, where, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        report: List[str] = []
        runner.run(test, out=report.append, clear_globs=False)
        space.update(test.globs)
        self.assertEqual(runner.failures, 0, "".join(report))

    def test_the_tour(self) -> None:
        self.assertGreater(self.run_page("docs/python.md"), 4)

    def test_the_readme(self) -> None:
        self.assertGreater(self.run_page("README.md"), 0)


def has_torch() -> bool:
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def more_tests() -> unittest.TestSuite:
    """The docstrings of every module."""
    suite = unittest.TestSuite()
    for module in pkgutil.iter_modules(kith.__path__):
        if module.name not in ("__main__", "_torch", "_torch_device", "_declarations"):
            suite.addTests(doctest.DocTestSuite(importlib.import_module("kith." + module.name)))
    suite.addTests(doctest.DocTestSuite(kith))
    return suite
