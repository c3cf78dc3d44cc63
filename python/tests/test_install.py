"""make install-python and the wheel: the package finds its own library wherever it was put, and passes its tests there."""

import glob
import os
import shutil
import subprocess
import sys
import unittest
from typing import Dict

import kith

import support

# What shows that a package that was installed elsewhere works; torch's tests are left out, they take no other path.
TESTS = ("test_library.py", "test_measures.py", "test_index.py")


@unittest.skipUnless(support.BUILD, "only in the build folder")
class Installed(support.InFolder):
    def run_it(self, *words: str, **env: str) -> str:
        found = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500,
                               env={**self.clean(), **env}, cwd=self.folder)
        self.assertEqual(found.returncode, 0, f"{words}: {found.stdout}")
        return found.stdout

    def clean(self) -> Dict[str, str]:
        """Nothing that leads to the build folder."""
        return {name: value for name, value in os.environ.items()
                if not name.startswith(("KITH_", "PYTHONPATH", "LD_LIBRARY"))}

    def test_a_prefix_that_was_moved(self) -> None:
        for words in ((), ("--component", "python")):
            self.run_it("cmake", "--install", support.BUILD, "--prefix", "/opt/kith", *words, DESTDIR=self.path("stage"))
        shutil.move(self.path("stage/opt/kith"), self.path("elsewhere"))
        packages = glob.glob(self.path("elsewhere/lib/python3*/*-packages"))
        self.assertEqual(len(packages), 1)
        found = self.run_it(sys.executable, "-c",
                            "import kith, os; from kith import _library; print(kith.__version__, _library._places()[0], "
                            "_library.program())", PYTHONPATH=packages[0]).split()
        self.assertEqual(found[0], kith.__version__)
        self.assertTrue(found[1].startswith(self.path("elsewhere/lib/libkith.so.")), found[1])
        self.assertEqual(found[2], self.path("elsewhere/bin/kith"))
        self.assertEqual(self.run_it(sys.executable, "-m", "kith", "--version", PYTHONPATH=packages[0]),
                         f"kith {kith.__version__}\n")

    def test_a_wheel_in_a_fresh_environment(self) -> None:
        # Without the libraries that libkith needs: those of this machine are used (make wheel packs them, test/long/wheel.sh tries it).
        self.run_it("cmake", "--install", support.BUILD, "--prefix", "/", DESTDIR=self.path("stage"))
        make = os.path.join(support.SOURCE, "python", "make", "wheel.py")
        said = self.run_it(sys.executable, make, os.path.dirname(kith.__file__), self.folder, "--stage", self.path("stage"))
        wheel = glob.glob(self.path("*.whl"))
        self.assertEqual(len(wheel), 1, said)
        try:
            import ensurepip  # noqa: F401
        except ImportError:
            self.skipTest("python3-venv is not here")
        # numpy and cffi are Debian's: they are not downloaded either.
        self.run_it(sys.executable, "-m", "venv", "--system-site-packages", self.path("venv"))
        python = self.path("venv/bin/python3")
        self.run_it(python, "-m", "pip", "install", "--no-index", "--quiet", wheel[0])
        where = self.run_it(python, "-c", "import kith; print(kith.__file__)")
        self.assertTrue(where.startswith(self.path("venv")), where)
        for name in TESTS:
            out = self.run_it(python, os.path.join(support.SOURCE, "python", "tests", "run.py"),
                              os.path.join(support.SOURCE, "python", "tests", name))
            self.assertIn("[  PASSED  ]", out)
        self.assertEqual(self.run_it(python, "-m", "kith", "--version"), f"kith {kith.__version__}\n")
        self.assertEqual(self.run_it(self.path("venv/bin/kith"), "--version"), f"kith {kith.__version__}\n")
        self.run_it(python, "-m", "pip", "uninstall", "--yes", "--quiet", "kith-metric")
        self.assertFalse(os.path.exists(os.path.dirname(where.strip())))
