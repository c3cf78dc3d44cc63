"""Loading libkith: where it is looked for, what is refused, how its failures look."""

import os
import shutil
import subprocess
import sys
import unittest

import kith
from kith import _declarations, _library

import support

PACKAGE = os.path.dirname(kith.__file__)


class Loading(support.InFolder):
    def copy_of_the_package(self) -> str:
        """A second package in self.folder, which finds the library under test."""
        shutil.copytree(PACKAGE, self.path("kith"), ignore=shutil.ignore_patterns("__pycache__", "lib", "bin"))
        with open(self.path("kith/_place.py"), "w", encoding="utf-8") as file:
            file.write(f"LIBRARY = {_library._places()[0]!r}\n")
        return self.folder

    def test_it_finds_its_library_from_any_folder(self) -> None:
        env = {name: "" for name in ("KITH_LIBRARY", "LD_LIBRARY_PATH")}
        found = support.python("import kith; print(kith.__version__)", env, cwd="/")
        self.assertEqual(found.stdout, kith.__version__ + "\n")

    def test_a_library_that_is_not_there_is_named(self) -> None:
        found = support.python("import kith", {"KITH_LIBRARY": "/nowhere/libkith.so"})
        self.assertIn("ImportError: libkith cannot be loaded: cannot load library '/nowhere/libkith.so'", found.stdout)
        self.assertIn("KITH_LIBRARY=/path/to/", found.stdout)

    def test_another_library_is_refused(self) -> None:
        found = support.python("import kith", {"KITH_LIBRARY": "libm.so.6"})
        self.assertIn("ImportError: libm.so.6 is no libkith of this version", found.stdout)

    def test_another_version_is_refused(self) -> None:
        folder = self.copy_of_the_package()
        self.assertEqual(support.python("import kith", {"PYTHONPATH": folder}).stdout, "")
        with open(self.path("kith/_declarations.py"), "a", encoding="utf-8") as file:
            file.write("VERSION_NUMBER = 100\n")
        found = support.python("import kith", {"PYTHONPATH": folder})
        self.assertIn("compiled with kith 0.1.0, and the library is " + kith.__version__, found.stdout)

    @unittest.skipUnless(shutil.which(os.environ.get("CC", "cc")), "there is no C compiler")
    def test_another_layout_is_refused(self) -> None:
        make = os.path.join(support.SOURCE, "python", "make", "declarations.py")
        folder = self.copy_of_the_package()
        shutil.copytree(os.path.join(support.SOURCE, "include"), self.path("include"))
        with open(self.path("include/kith/eval.h"), encoding="utf-8") as file:
            header = file.read()
        with open(self.path("include/kith/eval.h"), "w", encoding="utf-8") as file:
            file.write(header.replace("int64_t n_query, n_gallery, n_lone;", "int64_t n_query, n_gallery, n_lone, n_more;"))
        subprocess.run([sys.executable, make, self.path("include"), self.path("kith/_declarations.py")], check=True,
                       stdout=subprocess.DEVNULL)
        found = support.python("import kith", {"PYTHONPATH": folder})
        self.assertIn("was built from other headers: its kith_retrieval has ", found.stdout)

    def test_every_struct_is_compared(self) -> None:
        self.assertGreater(len(_declarations.STRUCTS), 40)
        self.assertIn("kith_train_options", _declarations.OPTIONS)
        for name in _declarations.STRUCTS + _declarations.OPTIONS:
            self.assertEqual(_library.ffi.sizeof(name), _library.lib.kith_struct_bytes(name.encode()), name)

    def test_the_environment_stays_as_it_was(self) -> None:
        code = "import os; before = dict(os.environ); import kith; print(dict(os.environ) == before)"
        env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        found = subprocess.run([sys.executable, "-c", code], env=env, text=True, stdout=subprocess.PIPE, check=True)
        self.assertEqual(found.stdout, "True\n")

    def test_torch_is_not_imported(self) -> None:
        self.assertEqual(support.python("import kith, sys; print('torch' in sys.modules)").stdout, "False\n")


class TheProgram(unittest.TestCase):
    def run_it(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-m", "kith", *words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, **env})

    def test_it_runs_with_its_arguments(self) -> None:
        self.assertEqual(self.run_it("--version").stdout, f"kith {kith.__version__}\n")

    def test_it_has_the_programs_exit_status(self) -> None:
        found = self.run_it("hepl")
        self.assertEqual(found.returncode, 2)
        self.assertIn("did you mean 'help'?", found.stdout)


class Errors(unittest.TestCase):
    def test_they_carry_message_hint_and_status(self) -> None:
        with self.assertRaises(kith.Error) as caught:
            kith.knn([[1.0, 2.0]], metric="cosin")
        self.assertEqual(caught.exception.message, "unknown metric 'cosin'")
        self.assertEqual(caught.exception.hint, "did you mean 'cosine'?")
        self.assertEqual(caught.exception.status, "ENOTFOUND")
        self.assertEqual(str(caught.exception), "unknown metric 'cosin' (did you mean 'cosine'?)")

    def test_without_a_hint(self) -> None:
        self.assertEqual(str(kith.Error("found this")), "found this")
