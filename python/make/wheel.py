"""Write the package as a wheel: wheel.py PACKAGE OUT --stage PREFIX [--tag TAG]

A wheel is a zip file with a folder of facts. It holds the Python files and, in kith/bin, kith/lib and kith/share, what was installed into
PREFIX: libkith, the program, plugins, recipes and, if scripts/stage.sh and bundle.py made the prefix, the libraries that these need. Without
--tag the wheel is for this machine's system; make wheel passes the one that the symbols inside ask for. Nothing is downloaded, and the
same input gives the same bytes. The facts are those of python/pyproject.toml.
"""

import argparse
import base64
import hashlib
import os
import stat
import sysconfig
import tempfile
import tomllib
import zipfile
from typing import Any, Dict, List, Tuple

from package import modules, soname, write_place

WHEN = (2020, 1, 1, 0, 0, 0)  # zip files have dates; these must not differ between builds
HERE = os.path.dirname(os.path.abspath(__file__))
WHEEL = """Wheel-Version: 1.0
Generator: kith
Root-Is-Purelib: false
Tag: {tag}
"""

Files = Dict[str, Tuple[bytes, bool]]


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def version_of(package: str) -> str:
    """The version of the declarations."""
    number = next(int(line.split("=")[1]) for line in read(os.path.join(package, "_declarations.py")).decode().splitlines()
                  if line.startswith("VERSION_NUMBER"))
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def project() -> Dict[str, Any]:
    with open(os.path.join(HERE, "..", "pyproject.toml"), "rb") as file:
        found: Dict[str, Any] = tomllib.load(file)["project"]
    return found


def metadata(facts: Dict[str, Any], version: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {facts['name']}", f"Version: {version}", f"Summary: {facts['description']}",
             f"License: {facts['license']}", f"Keywords: {','.join(facts['keywords'])}"]
    lines += [f"Classifier: {one}" for one in facts["classifiers"]]
    lines += [f"Project-URL: {label}, {url}" for label, url in facts.get("urls", {}).items()]
    lines += [f"Requires-Python: {facts['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in facts["dependencies"]]
    text = read(os.path.join(HERE, "..", facts["readme"])).decode()
    return "\n".join(lines + ["Description-Content-Type: text/markdown", "", text])


def entry_points(facts: Dict[str, Any]) -> str:
    return "[console_scripts]\n" + "".join(f"{name} = {call}\n" for name, call in facts["scripts"].items())


def staged(prefix: str, library: str) -> Files:
    """What is packed of a prefix. A zip file has no links, so libkith goes by its soname alone; headers and the like are left out."""
    files: Files = {"kith/bin/kith": (read(os.path.join(prefix, "bin", "kith")), True),
                    f"kith/lib/{library}": (read(os.path.join(prefix, "lib", library)), True)}
    for part in ("lib/kith", "share/kith", "share/doc/kith"):
        for folder, _, names in sorted(os.walk(os.path.join(prefix, part))):
            for name in sorted(names):
                path = os.path.join(folder, name)
                inside = f"kith/{os.path.relpath(path, prefix)}"
                if not inside.endswith("/libkith-cuda.so"):  # a file of its own, as in make dist
                    files[inside] = (read(path), ".so" in name)
    return files


def contents(package: str, prefix: str) -> Files:
    """Names in the wheel, their bytes, and whether they are programs."""
    files = {f"kith/{name}": (read(os.path.join(package, name)), False) for name in modules(package)}
    library = soname(package)
    files.update(staged(prefix, library))
    with tempfile.TemporaryDirectory() as folder:
        write_place(folder, "/kith", f"/kith/lib/{library}", "/kith/bin/kith")
        files["kith/_place.py"] = (read(os.path.join(folder, "_place.py")), False)
    return files


def record(files: Files, own: str) -> str:
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
    parser.add_argument("--stage", required=True)
    parser.add_argument("--tag", default=sysconfig.get_platform().replace("-", "_").replace(".", "_"))
    arguments = parser.parse_args()
    facts = project()
    version, tag = version_of(arguments.package), f"py3-none-{arguments.tag}"
    files = contents(arguments.package, arguments.stage)
    name = facts["name"].replace("-", "_")
    info = f"{name}-{version}.dist-info"
    files[f"{info}/METADATA"] = (metadata(facts, version).encode(), False)
    files[f"{info}/WHEEL"] = (WHEEL.format(tag=tag).encode(), False)
    files[f"{info}/entry_points.txt"] = (entry_points(facts).encode(), False)
    files[f"{info}/licenses/LICENSE"] = (read(os.path.join(HERE, "..", "..", "LICENSE")), False)
    files[f"{info}/RECORD"] = (record(files, f"{info}/RECORD").encode(), False)
    path = os.path.join(arguments.out, f"{name}-{version}-{tag}.whl")
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (data, is_program) in files.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
            wheel.writestr(entry, data, compresslevel=9)
    os.replace(path + ".new", path)
    print(f"{path}: {len(files)} files, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
