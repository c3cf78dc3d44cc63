"""Write the package as a wheel: wheel.py PACKAGE OUT --library FILE --program FILE [--plugin FILE]

A wheel is a zip file with a folder of facts. It holds the Python files, libkith, the program and the CUDA plugin if there is one.
What these need beside them (oneDNN, OpenBLAS, the image libraries) comes from the system. Nothing is downloaded, and the same
input gives the same bytes.
"""

import argparse
import base64
import hashlib
import os
import stat
import sysconfig
import tempfile
import zipfile
from typing import Dict, List, Tuple

from package import modules, soname, write_place

WHEN = (2020, 1, 1, 0, 0, 0)  # zip files have dates; these shall not differ between builds
METADATA = """Metadata-Version: 2.1
Name: kith
Version: {version}
Summary: Deep metric learning: losses, measures, training and search of libkith
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
Requires-Dist: cffi
"""
WHEEL = """Wheel-Version: 1.0
Generator: kith
Root-Is-Purelib: false
Tag: {tag}
"""


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def facts(package: str) -> Tuple[str, str]:
    """The version of the declarations, and what the wheel runs on: any Python 3, this machine's system."""
    number = next(int(line.split("=")[1]) for line in read(os.path.join(package, "_declarations.py")).decode().splitlines()
                  if line.startswith("VERSION_NUMBER"))
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}", f"py3-none-{platform}"


def contents(arguments: argparse.Namespace) -> Dict[str, Tuple[bytes, bool]]:
    """Names in the wheel, their bytes, and whether they are programs."""
    files = {f"kith/{name}": (read(os.path.join(arguments.package, name)), False) for name in modules(arguments.package)}
    library = soname(arguments.package)
    files[f"kith/lib/{library}"] = (read(arguments.library), True)
    files["kith/bin/kith"] = (read(arguments.program), True)
    if arguments.plugin:
        files[f"kith/lib/kith/{os.path.basename(arguments.plugin)}"] = (read(arguments.plugin), True)
    with tempfile.TemporaryDirectory() as folder:
        write_place(folder, "/kith", f"/kith/lib/{library}", "/kith/bin/kith")
        files["kith/_place.py"] = (read(os.path.join(folder, "_place.py")), False)
    return files


def record(files: Dict[str, Tuple[bytes, bool]], own: str) -> str:
    """Hash and size of every file, as installers check them."""
    rows: List[str] = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    return "\n".join(rows + [f"{own},,", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("out")
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--plugin")
    arguments = parser.parse_args()
    version, tag = facts(arguments.package)
    files = contents(arguments)
    info = f"kith-{version}.dist-info"
    files[f"{info}/METADATA"] = (METADATA.format(version=version).encode(), False)
    files[f"{info}/WHEEL"] = (WHEEL.format(tag=tag).encode(), False)
    files[f"{info}/RECORD"] = (record(files, f"{info}/RECORD").encode(), False)
    path = os.path.join(arguments.out, f"kith-{version}-{tag}.whl")
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (data, is_program) in files.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
            wheel.writestr(entry, data)
    os.replace(path + ".new", path)
    print(f"{path}: {len(files)} files, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
