"""Losses on arrays in a device's memory, without copies through the host: anything with __cuda_array_interface__ or DLPack."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _dlpack
from ._library import ffi, options


class _Seen(NamedTuple):
    pointer: int
    shape: Tuple[int, ...]


def _facts(array: Any, stream: int) -> Any:
    facts = getattr(array, "__cuda_array_interface__", None)
    if facts is None and _dlpack.has(array) and not _dlpack.is_on_host(array):
        return _dlpack.cuda_facts(array, stream)
    return facts


def width(array: Any) -> int:
    """The numbers of a row; 0 of what is no array on a device."""
    facts = _facts(array, 0)
    return int(facts["shape"][-1]) if facts is not None and facts["shape"] else 0


class _Reader:
    """Looks at arrays for work on a stream. `kept` is what their memory lives as long as."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.kept: List[Any] = []

    def see(self, array: Any, what: str, kind: str) -> _Seen:
        """The memory of an array of the given type ("<f4") in C order."""
        facts = _facts(array, self.stream)
        if facts is None:
            raise TypeError(f"{what} is {type(array).__name__}; wanted an array with __cuda_array_interface__ or DLPack")
        if facts["typestr"] != kind:
            raise TypeError(f"{what} holds {facts['typestr']}; wanted {kind}")
        shape, strides = tuple(facts["shape"]), facts.get("strides")
        if strides is not None:
            step = int(kind[2:])
            for extent, stride in zip(reversed(shape), reversed(strides)):
                if stride != step and extent > 1:
                    raise ValueError(f"{what} is not in C order")
                step *= extent
        self.kept.append(facts)
        return _Seen(facts["data"][0], shape)

    def result(self, array: Optional[Any], what: str, shape: Tuple[int, ...]) -> int:
        """Where results of that shape go, or 0."""
        if array is None:
            return 0
        seen = self.see(array, what, "<f4")
        if seen.shape != shape:
            raise ValueError(f"{what} has the shape {list(seen.shape)}; wanted {list(shape)}")
        return seen.pointer


class Batch:
    """A kith_device_batch that is filled again and again. Its words cost less to write than its fields."""

    def __init__(self, numbers: Dict[str, int]) -> None:
        """`numbers` are those of the taps."""
        def word(*field: Any) -> int:
            return int(ffi.offsetof("kith_device_batch", *field)) // 8

        self.struct = options("kith_device_batch")
        self.err = ffi.new("kith_error *")
        self.words = memoryview(ffi.buffer(self.struct)).cast("B").cast("Q")
        self.nothing = memoryview(bytes(8 * len(self.words) - 8)).cast("Q")
        self.at = {name: word(name) for name in ("n", "labels", "step", "stream", "stopped", "total", "total_f32")}
        self.taps = {name: (word("tap", i, "data"), word("tap", i, "rows"), word("tap", i, "cols"), word("gradient", i))
                     for name, i in numbers.items()}

    def fill(self, taps: Dict[str, Any], y: Any, gradients: Dict[str, Any], stopped: Any, total: Any, stream: int) -> List[Any]:
        """All but the step. Returns what must stay alive until the batch is queued."""
        reader, words, at = _Reader(stream), self.words, self.at
        labels = reader.see(y, "y", "<i4")
        words[1:] = self.nothing
        words[at["n"]], words[at["labels"]], words[at["stream"]] = labels.shape[0], labels.pointer, stream
        for name, array in taps.items():
            seen = reader.see(array, name, "<f4")
            if len(seen.shape) != 2:
                raise ValueError(f"{name} has the shape {list(seen.shape)}; wanted [rows, values]")
            data, rows, columns, to = self.taps[name]
            words[data], words[rows], words[columns] = seen.pointer, *seen.shape
            words[to] = reader.result(gradients.get(name), f"the gradient of {name}", seen.shape)
            if name == "embedding":
                words[at["stopped"]] = reader.result(stopped, "stopped", seen.shape)
        if total is not None:
            words[at["total"]] = reader.see(total, "total", "<f8").pointer
        return reader.kept
