"""Give the libraries of a staged prefix names of their own: bundle.py STAGE

In a process of Python there may be other copies of the same libraries: torch brings an OpenMP runtime and a BLAS. The loader takes a
library that is there already for the one that is asked for if their names are the same, whatever its version. So libNAME.so.N in
lib/kith/bundled becomes libNAME-kith.so.N, and everything inside that links it links it by that name. docs/adr/0131 has the reasons.
"""

import os
import subprocess
import sys
from typing import List


def renamed(name: str) -> str:
    stem, dot, rest = name.partition(".so")
    return f"{stem}-kith{dot}{rest}"


def patch(path: str, *words: str) -> None:
    """The file is written anew by patchelf; its date stays as it was."""
    before = os.stat(path)
    subprocess.run(["patchelf", *words, path], check=True)
    os.chmod(path, before.st_mode & 0o777)
    os.utime(path, (before.st_mtime, before.st_mtime))


def needed(path: str) -> List[str]:
    found = subprocess.run(["patchelf", "--print-needed", path], check=True, text=True, stdout=subprocess.PIPE)
    return found.stdout.split()


def linked(stage: str) -> List[str]:
    """The program and the libraries of kith, without links to them."""
    library = os.path.join(stage, "lib")
    found = [os.path.join(stage, "bin", "kith")]
    found += [os.path.join(library, name) for name in os.listdir(library) if name.startswith("libkith.so")]
    return sorted(path for path in found if not os.path.islink(path))


def main(stage: str) -> None:
    folder = os.path.join(stage, "lib", "kith", "bundled")
    names = sorted(name for name in os.listdir(folder) if "-kith.so" not in name)
    for name in names:
        os.rename(os.path.join(folder, name), os.path.join(folder, renamed(name)))
        patch(os.path.join(folder, renamed(name)), "--set-soname", renamed(name))
    for path in [os.path.join(folder, renamed(name)) for name in names] + linked(stage):
        words: List[str] = []
        for name in needed(path):
            if name in names:
                words += ["--replace-needed", name, renamed(name)]
        if words:
            patch(path, *words)
    table = os.path.join(stage, "share", "doc", "kith", "licences", "libraries.tsv")
    with open(table, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    with open(table, "w", encoding="utf-8") as file:
        file.writelines("\t".join([renamed(row[0]) if row[0] in names else row[0], *row[1:]]) + "\n" for row in rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
