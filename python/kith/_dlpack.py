"""Arrays that show their memory by DLPack alone (__dlpack__ and __dlpack_device__)."""

import ctypes
from typing import Any, Dict, Tuple

_HOST = (1, 3)  # plain and pinned; of the numbers of DLDeviceType
_CUDA = (2, 13)  # plain and managed
_LEGACY_STREAM = 1  # what DLPack calls CUDA's stream 0
_KINDS = {0: "i", 1: "u", 2: "f"}  # DLDataTypeCode


class _Tensor(ctypes.Structure):
    """DLTensor, which a DLManagedTensor begins with."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("n_dims", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def has(array: Any) -> bool:
    """Does it show itself by DLPack?"""
    return hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__")


def is_on_host(array: Any) -> bool:
    """Is its memory the host's?"""
    return int(array.__dlpack_device__()[0]) in _HOST


def cuda_facts(array: Any, stream: int) -> Dict[str, Any]:
    """What __cuda_array_interface__ would say. The memory is ready in the order of `stream`, and lives as long as "owner"."""
    if int(array.__dlpack_device__()[0]) not in _CUDA:
        raise TypeError(f"{type(array).__name__} is not in the memory of a CUDA device (DLPack's device {array.__dlpack_device__()})")
    capsule = array.__dlpack__(stream=stream or _LEGACY_STREAM)
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    if tensor.lanes != 1 or tensor.code not in _KINDS:
        raise TypeError(f"{type(array).__name__} holds DLPack's type ({tensor.code}, {tensor.bits}, {tensor.lanes}); wanted numbers")
    size = tensor.bits // 8
    shape: Tuple[int, ...] = tuple(tensor.shape[i] for i in range(tensor.n_dims))
    strides = tuple(tensor.strides[i] * size for i in range(tensor.n_dims)) if tensor.strides else None
    return {"shape": shape, "typestr": f"<{_KINDS[tensor.code]}{size}", "strides": strides,
            "data": ((tensor.data or 0) + tensor.offset, False), "owner": capsule}
