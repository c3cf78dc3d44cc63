"""Put the package kith somewhere, with a note where its libkith and its program are.

    package.py stage SOURCE PACKAGE --library FILE --program FILE      from the sources to the build folder
    package.py install PACKAGE --prefix DIR --libdir lib --bindir bin  from the build folder to a prefix ($DESTDIR counts)

The note is the module _place.py: paths relative to the package, so that a prefix may be moved as a whole.
"""

import argparse
import os
import shutil
import sys
import sysconfig
from typing import Dict, List


def write_place(package: str, seen_as: str, library: str, program: str) -> None:
    """Write package/_place.py. `seen_as` is where the package will be when it is used."""
    with open(os.path.join(package, "_place.py"), "w", encoding="utf-8") as file:
        file.write('"""Where libkith and the program are, relative to this folder."""\n')
        file.write(f"LIBRARY = {os.path.relpath(library, seen_as)!r}\n")
        file.write(f"PROGRAM = {os.path.relpath(program, seen_as)!r}\n")


def modules(package: str) -> List[str]:
    """The files of the package."""
    return sorted(name for name in os.listdir(package) if name.endswith(".py") or name == "py.typed")


def copy(source: str, target: str) -> None:
    """Copy the files of a package; those that are gone in the source go in the target, too."""
    os.makedirs(target, exist_ok=True)
    for name in modules(target):
        if name not in ("_declarations.py", "_place.py") and not os.path.exists(os.path.join(source, name)):
            os.remove(os.path.join(target, name))
    for name in modules(source):
        shutil.copy(os.path.join(source, name), os.path.join(target, name))


def packages_folder(prefix: str) -> str:
    """Where this Python looks for packages below a prefix; else where it would if it was installed there."""
    for folder in sys.path:
        if folder.startswith(prefix.rstrip("/") + "/") and os.path.basename(folder) in ("dist-packages", "site-packages"):
            return folder
    return sysconfig.get_path("purelib", "posix_prefix", vars={"base": prefix})


def soname(package: str) -> str:
    """The file name of libkith, as the declarations have it. (Importing them would need cffi.)"""
    values: Dict[str, str] = {}
    with open(os.path.join(package, "_declarations.py"), encoding="utf-8") as file:
        exec("\n".join(line for line in file if line.startswith("SONAME")), values)
    return values["SONAME"]


def stage(arguments: argparse.Namespace) -> None:
    copy(arguments.source, arguments.package)
    write_place(arguments.package, arguments.package, arguments.library, arguments.program)


def install(arguments: argparse.Namespace) -> None:
    prefix = os.path.abspath(arguments.prefix)
    seen_as = os.path.join(packages_folder(prefix), "kith")
    target = os.environ.get("DESTDIR", "") + seen_as
    copy(arguments.package, target)
    write_place(target, seen_as, os.path.join(prefix, arguments.libdir, soname(arguments.package)),
                os.path.join(prefix, arguments.bindir, "kith"))
    print(f"-- Installing: {target}")
    if os.path.dirname(seen_as) not in sys.path:
        print(f"-- Set PYTHONPATH={os.path.dirname(seen_as)} to import it from there")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("stage")
    one.add_argument("source")
    one.add_argument("package")
    one.add_argument("--library", required=True)
    one.add_argument("--program", required=True)
    one.set_defaults(run=stage)
    one = commands.add_parser("install")
    one.add_argument("package")
    one.add_argument("--prefix", required=True)
    one.add_argument("--libdir", required=True)
    one.add_argument("--bindir", required=True)
    one.set_defaults(run=install)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
