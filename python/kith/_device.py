"""Losses on arrays in a device's memory, without copies through the host: anything with __cuda_array_interface__."""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from ._library import ffi, options


class _Seen(NamedTuple):
    pointer: int
    shape: Tuple[int, ...]


def _facts(array: Any) -> Any:
    return getattr(array, "__cuda_array_interface__", None)


def _see(array: Any, what: str, kind: str) -> _Seen:
    """The memory of an array of the given type ("<f4") in C order."""
    facts = _facts(array)
    if facts is None:
        raise TypeError(f"{what} is {type(array).__name__}; wanted an array with __cuda_array_interface__")
    if facts["typestr"] != kind:
        raise TypeError(f"{what} holds {facts['typestr']}; wanted {kind}")
    shape, strides = tuple(facts["shape"]), facts.get("strides")
    if strides is not None:
        step = int(kind[2:])
        for extent, stride in zip(reversed(shape), reversed(strides)):
            if stride != step and extent > 1:
                raise ValueError(f"{what} is not in C order")
            step *= extent
    return _Seen(facts["data"][0], shape)


def fill(taps: Dict[str, Any], y: Any, gradients: Dict[str, Any], stopped: Any, total: Any, stream: int, step: int,
         numbers: Dict[str, int]) -> Any:
    """A kith_device_batch. `numbers` are those of the taps."""
    batch = options("kith_device_batch")
    labels = _see(y, "y", "<i4")
    batch.n, batch.labels, batch.step = labels.shape[0], ffi.cast("int32_t *", labels.pointer), step
    batch.stream = ffi.cast("void *", stream)
    for name, array in taps.items():
        seen = _see(array, name, "<f4")
        if len(seen.shape) != 2:
            raise ValueError(f"{name} has the shape {list(seen.shape)}; wanted [rows, values]")
        tap = batch.tap[numbers[name]]
        tap.data, tap.rows, tap.cols = ffi.cast("float *", seen.pointer), *seen.shape
        batch.gradient[numbers[name]] = _result(gradients.get(name), f"the gradient of {name}", seen.shape)
    batch.stopped = _result(stopped, "stopped", _see(taps["embedding"], "embedding", "<f4").shape)
    if total is not None:
        batch.total = ffi.cast("double *", _see(total, "total", "<f8").pointer)
    return batch


def _result(array: Optional[Any], what: str, shape: Tuple[int, ...]) -> Any:
    if array is None:
        return ffi.NULL
    seen = _see(array, what, "<f4")
    if seen.shape != shape:
        raise ValueError(f"{what} has the shape {list(seen.shape)}; wanted {list(shape)}")
    return ffi.cast("float *", seen.pointer)

