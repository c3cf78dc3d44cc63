"""Turn the headers of include/kith into the module kith/_declarations.py: declarations.py INCLUDE OUTPUT

The C preprocessor leaves the declarations alone (the standard headers are replaced by empty ones, because cffi knows their
types), cffi turns them into a module that needs no compiler when it is imported. Added to it: the version of the headers, and
the names of their structs, whose sizes are compared with the library's at import.
"""

import os
import re
import subprocess
import sys
import tempfile
from typing import Dict, List

import cffi

STANDARD = ("stdbool.h", "stddef.h", "stdint.h")


def preprocess(include: str) -> str:
    """All declarations of kith/kith.h, without those of the standard headers."""
    with tempfile.TemporaryDirectory() as empty:
        for name in STANDARD:
            open(os.path.join(empty, name), "w").close()
        command = [os.environ.get("CC", "cc"), "-E", "-P", "-nostdinc", "-U__GNUC__", "-I", empty, "-I", include]
        return subprocess.run(command + [os.path.join(include, "kith", "kith.h")], check=True, text=True,
                              stdout=subprocess.PIPE).stdout


def constants(include: str) -> Dict[str, int]:
    """The macros that are whole numbers."""
    found: Dict[str, int] = {}
    folder = os.path.join(include, "kith")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".h"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for macro, value in re.findall(r"^#define (KITH_[A-Z0-9_]+) +\(?(-?[0-9]+)\)?(?: |$)", file.read(), re.M):
                found[macro] = int(value)
    return found


def main(include: str, output: str) -> None:
    code = preprocess(include)
    numbers = constants(include)
    major, minor, patch = (numbers["KITH_VERSION_" + part] for part in ("MAJOR", "MINOR", "PATCH"))
    macros = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
    ffi = cffi.FFI()
    ffi.set_source("kith._declarations", None)
    ffi.cdef(macros + code)
    made = output + ".new"
    ffi.emit_python_code(made)
    structs: List[str] = re.findall(r"^typedef struct (kith_[a-z0-9_]+) \{", code, re.M)
    options = [name for name in structs if re.search(r"struct " + name + r" \{\s*size_t size;", code)]
    with open(made, "a", encoding="utf-8") as file:
        file.write(f"VERSION_NUMBER = {major * 10000 + minor * 100 + patch}\n")
        file.write(f"SONAME = 'libkith.so.{f'{major}.{minor}' if major == 0 else major}'\n")
        file.write(f"STRUCTS = {tuple(name for name in structs if name not in options)!r}\n")
        file.write(f"OPTIONS = {tuple(options)!r}\n")
    os.replace(made, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
