"""Run one file of tests: run.py test_NAME.py. Prints counts that scripts/count-tests.awk reads; 77 when all were skipped."""

import atexit
import importlib.util
import os
import sys
import unittest


def count_lines(data: str) -> None:
    """Which lines of the package run, in a file DATA.… of this process (scripts/coverage.sh)."""
    import coverage

    counted = coverage.Coverage(data_file=data, data_suffix=True, branch=True, source_pkgs=["kith"])
    counted.start()
    atexit.register(lambda: (counted.stop(), counted.save()))


def main(path: str) -> int:
    if "KITH_PYTHON_COVERAGE" in os.environ:
        count_lines(os.environ["KITH_PYTHON_COVERAGE"])
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as reason:
        print("skipped:", reason)
        return 77
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    if hasattr(module, "more_tests"):
        suite.addTests(module.more_tests())
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    n_failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    n_passed = result.testsRun - n_failed - len(result.skipped)
    print()
    for name, n in (("  PASSED  ", n_passed), ("  FAILED  ", n_failed), ("  SKIPPED ", len(result.skipped))):
        if n > 0:
            print(f"[{name}] {n} test(s).")
    if n_failed:
        return 1
    return 77 if n_passed <= 0 and result.skipped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
