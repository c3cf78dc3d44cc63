"""Finding and loading libkith, and checking that it is the one these files were made for.

Looked for, in this order: the file that the environment variable KITH_LIBRARY names; the place that was written down when the
package was built, installed or packed (_place.py, relative to the package); wherever the system's loader looks.
"""

import os
from typing import Any, List, Optional

try:
    from . import _declarations
except ImportError as error:
    raise ImportError(
        "kith's declarations cannot be imported: wanted kith/_declarations.py, which the build makes, and the package cffi. "
        "Import kith from build/python, or install it: make install-python"
    ) from error

ffi: Any = _declarations.ffi

_HERE = os.path.dirname(os.path.abspath(__file__))
# Threads of the OpenMP runtime that wait spin for a moment only: on a machine with other work they would take the time of the
# threads they wait for. The runtime reads this once, when it is loaded; the program kith has the same default.
_SPIN = {"GOMP_SPINCOUNT": "10000"}


def _placed(name: str) -> Optional[str]:
    """What _place.py says of the library or the program: an absolute path, or None."""
    try:
        from . import _place
    except ImportError:
        return None
    path = getattr(_place, name, None)
    return os.path.normpath(os.path.join(_HERE, path)) if path else None


def _places() -> List[str]:
    named = os.environ.get("KITH_LIBRARY")
    if named:
        return [named]
    placed = _placed("LIBRARY")
    return ([placed] if placed else []) + [_declarations.SONAME]


def _open(path: str) -> Any:
    added = {} if "OMP_WAIT_POLICY" in os.environ else {k: v for k, v in _SPIN.items() if k not in os.environ}
    os.environ.update(added)
    try:
        return ffi.dlopen(path)
    finally:
        for name in added:
            del os.environ[name]


def _check(library: Any, path: str) -> None:
    """Refuse a library whose structs are not those of the declarations."""
    err = ffi.new("kith_error *")
    if library.kith_version_check(_declarations.VERSION_NUMBER, err):
        raise ImportError(f"{path}: {text(err.message)}")
    for name in _declarations.STRUCTS:
        ours, theirs = ffi.sizeof(name), library.kith_struct_bytes(name.encode())
        if ours != theirs:
            raise ImportError(f"{path} was built from other headers: its {name} has {theirs} bytes, this package's has "
                              f"{ours}; build both again, or say where the right library is with KITH_LIBRARY")
    for name in _declarations.OPTIONS:
        options = ffi.new(name + " *")
        getattr(library, name + "_init")(options, ffi.sizeof(name))
        if options.size != ffi.sizeof(name):
            raise ImportError(f"{path}: {name}_init gave the size {options.size}; wanted {ffi.sizeof(name)}")


def _load() -> Any:
    failures = []
    for path in _places():
        try:
            library = _open(path)
        except OSError as error:
            failures.append(str(error))
            continue
        try:
            _check(library, path)
        except (AttributeError, ffi.error) as error:
            raise ImportError(f"{path} is no libkith of this version: {error}") from None
        return library
    raise ImportError("libkith cannot be loaded: " + "; ".join(failures) +
                      " (say where it is with KITH_LIBRARY=/path/to/" + _declarations.SONAME + ")")


def text(pointer: Any) -> str:
    """A C string; "" for NULL."""
    if pointer == ffi.NULL:
        return ""
    value: bytes = ffi.string(pointer)
    return value.decode("utf-8", "surrogateescape")


def encode(value: str) -> bytes:
    """Text as the library takes it; paths keep bytes that are no UTF-8. A C string ends at a NUL: one inside is refused, where the
    library would take the part before it."""
    taken = os.fsencode(value)
    if b"\0" in taken:
        raise ValueError(f"{value!r} has a NUL character in it")
    return taken


def options(name: str) -> Any:
    """A struct of options with its defaults."""
    made = ffi.new(name + " *")
    getattr(lib, name + "_init")(made, ffi.sizeof(name))
    return made


def program() -> str:
    """The program kith that belongs to this package: $KITH_PROGRAM, the one beside it, or the one on the PATH."""
    named = os.environ.get("KITH_PROGRAM") or _placed("PROGRAM")
    return named if named and os.path.exists(named) else "kith"


lib: Any = _load()
