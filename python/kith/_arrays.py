"""Arrays of numpy and torch as arrays of libkith, and back, without copies where the memory is laid out as C wants it."""

import sys
from typing import Any, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _dlpack
from ._library import ffi, lib, text

#: numpy arrays, lists, torch tensors in host memory, and what has DLPack there.
ArrayLike = Union[npt.ArrayLike, Any]
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int64]

_DTYPES = {"float32": lib.KITH_F32, "float64": lib.KITH_F64, "float16": lib.KITH_F16, "int32": lib.KITH_I32,
           "int64": lib.KITH_I64, "uint8": lib.KITH_U8}
_NAMES = {value: name for name, value in _DTYPES.items()}


def is_tensor(x: object) -> bool:
    """Is it a torch tensor? torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _of_tensor(x: Any) -> Tuple[npt.NDArray[Any], bool]:
    torch = sys.modules["torch"]
    if x.device.type != "cpu":
        raise TypeError(f"the tensor is on {x.device}; wanted one in host memory: x.cpu()")
    x = x.detach()
    if x.dtype == torch.bfloat16:  # numpy has no such type
        return x.contiguous().view(torch.int16).numpy(), True
    return x.numpy(), False


def to_numpy(x: ArrayLike) -> npt.NDArray[Any]:
    """As numpy sees it; the memory stays the same where it can."""
    if is_tensor(x):
        return _of_tensor(x)[0]
    if hasattr(x, "__cuda_array_interface__"):
        raise TypeError("the array is in a device's memory; wanted one in host memory")
    if _dlpack.has(x) and not hasattr(x, "__array__"):
        if not _dlpack.is_on_host(x):
            raise TypeError("the array is in a device's memory; wanted one in host memory")
        shown: Any = x
        return np.from_dlpack(shown)
    return np.asarray(x)


class Held:
    """A kith_array that borrows memory, and what keeps that memory alive."""

    def __init__(self, values: npt.NDArray[Any], dtype: int) -> None:
        self.values = values
        self._memory = ffi.from_buffer(values)
        self.array = ffi.new("kith_array *", {"dtype": dtype, "n_dims": values.ndim, "data": self._memory})
        for i, extent in enumerate(values.shape):
            self.array.dim[i] = extent


def matrix(x: ArrayLike, what: str = "x") -> Held:
    """Rows [n, dim] of any float type. Copied only if they are not in C order, or in another byte order."""
    values, is_bf16 = _of_tensor(x) if is_tensor(x) else (to_numpy(x), False)
    if values.ndim != 2:
        raise ValueError(f"{what} has the shape {list(values.shape)}; wanted [rows, values]")
    if not is_bf16 and values.dtype.name not in ("float32", "float64", "float16"):
        raise TypeError(f"{what} holds {values.dtype.name}; wanted float32, float64 or float16")
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return Held(values, lib.KITH_BF16 if is_bf16 else _DTYPES[values.dtype.name])


def integers(y: ArrayLike, what: str) -> IntArray:
    """Whole numbers [n] as int64; the memory is that of y if it is int64 already."""
    values = to_numpy(y)
    if values.ndim != 1:
        raise ValueError(f"{what} has the shape {list(values.shape)}; wanted [n]")
    if values.dtype.kind not in "iub":
        raise TypeError(f"{what} holds {values.dtype.name}; wanted whole numbers")
    return np.ascontiguousarray(values, dtype=np.int64)


def labels(y: ArrayLike, what: str = "labels") -> Tuple[IntArray, Optional[npt.NDArray[Any]]]:
    """Classes [n] as numbers. Names are numbered in their sorted order and returned, too."""
    values = to_numpy(y)
    if values.ndim == 1 and values.dtype.kind in "USO":
        names, numbers = np.unique(values, return_inverse=True)
        return numbers.astype(np.int64), names
    return integers(values, what), None


def rows_of(chosen: Optional[ArrayLike], n: int, what: str) -> Optional[IntArray]:
    """Row numbers, from row numbers or a mask."""
    if chosen is None:
        return None
    values = to_numpy(chosen)
    if values.dtype.kind == "b":
        if values.shape != (n,):
            raise ValueError(f"the mask {what} has the shape {list(values.shape)}; wanted [{n}]")
        return np.flatnonzero(values).astype(np.int64)
    return integers(values, what)


def pointer(kind: str, values: Optional[npt.NDArray[Any]]) -> Any:
    """A C pointer to the values of an array in C order, or NULL."""
    if values is None:
        return ffi.NULL
    return ffi.cast(kind, ffi.from_buffer(values))


def taken(holder: Any, data: Any, dtype: npt.DTypeLike, shape: Tuple[int, ...]) -> npt.NDArray[Any]:
    """Memory that `holder` (made with ffi.gc) owns, as an array that keeps the holder alive. No copy."""
    kind = np.dtype(dtype)
    n_bytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if n_bytes == 0:
        return np.empty(shape, kind)
    kept = ffi.gc(ffi.cast("char *", data), lambda _, __=holder: None)
    return np.frombuffer(ffi.buffer(kept, n_bytes), dtype=kind).reshape(shape)


def new_array() -> Any:
    """An empty kith_array for a call to fill; it is released when nothing refers to it."""
    return ffi.gc(ffi.new("kith_array *"), lib.kith_array_release)


def from_array(array: Any) -> npt.NDArray[Any]:
    """The values of a kith_array made by new_array() and filled. No copy."""
    if array.dtype not in _NAMES:
        raise TypeError(f"numpy has no type for {text(lib.kith_dtype_name(array.dtype))}")
    return taken(array, array.data, _NAMES[array.dtype], tuple(array.dim[i] for i in range(array.n_dims)))


def strings(values: List[bytes]) -> Tuple[Any, Any]:
    """A C array of strings, and what must stay alive as long as it."""
    kept = [ffi.new("char[]", value) for value in values]
    return ffi.new("const char *[]", kept), kept
