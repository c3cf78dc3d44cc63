"""kith.Loss on tensors of a CUDA device, as a function that torch can differentiate.

The evaluation in C takes tens of microseconds, so what Python adds to it counts. A batch is written into words of memory that C
reads, and nothing is looked up, cast or allocated that need not be. torch runs two kernels in a step: one makes backward()'s 1,
and one multiplies the gradient by it, because only the device knows that it is a 1.

Nothing else of this package is imported: bench/python_cuda.py times this very code on machines without cffi, too.
"""

from typing import Any, Dict, List, Optional, Protocol, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

_FLOAT, _LABEL = torch.float32, torch.int32
# What torch's own generated code asks. The public way makes an object of Python for every question.
_stream_number: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)


class Batch(Protocol):
    """A kith_device_batch that is filled again and again."""

    #: The struct as 64-bit words, and 0 for all of them but the first, which is the struct's size.
    words: Any
    nothing: Any
    #: Which word is which field: "n", "labels", "stream", "stopped", "total_f32".
    at: Dict[str, int]
    #: The words of a tap: its memory, rows, columns, and the memory of its gradient.
    taps: Dict[str, Tuple[int, int, int, int]]


class Evaluator(Protocol):
    """What evaluates: kith.Loss, or whatever else calls C."""

    _device_batch: Batch
    #: The taps that terms read. Their gradients are written as a whole.
    reads: List[str]

    def _queue_batch(self, device: str, step: Optional[int]) -> None:
        """Call kith_objective_queue with _device_batch; step None: the next one."""

    def _learned(self) -> Sequence[Any]:
        """The gradients of what is learned, as arrays of numpy."""


def gather(x: Any, others: Dict[str, Any]) -> Tuple[Tuple[str, ...], List[Any]]:
    """The embedding and what else was given (not None), by name, when all of them are tensors in one place."""
    names, tensors = ["embedding"], [x]
    for name, tensor in others.items():
        if tensor is not None:
            names.append(name)
            tensors.append(tensor)
    for name, tensor in zip(names, tensors):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is {type(tensor).__name__}; wanted a torch tensor (numpy arrays: value_and_gradient)")
        if tensor.device != x.device or tensor.device.type not in ("cpu", "cuda"):
            raise ValueError(f"{name} is on {tensor.device} and the embedding on {x.device}; wanted both on the CPU or on one CUDA "
                             "device")
        if name == "map" and tensor.is_cuda:
            raise NotImplementedError("terms that read the map are not evaluated in CUDA memory: hand in map.cpu() and the others")
    return tuple(names), tensors


def _stream(device: Any) -> int:
    if _stream_number is not None:
        return int(_stream_number(device.index))
    return int(torch.cuda.current_stream(device).cuda_stream)


class EvaluateOnDevice(torch.autograd.Function):  # type: ignore[misc]
    """The value; gradients are computed along with it and handed out by backward. All of it is queued on torch's stream, and
    nobody waits, unless the objective learns something."""

    @staticmethod
    def forward(ctx: Any, loss: Evaluator, names: Tuple[str, ...], y: Any, step: Optional[int], *tensors: Any) -> Any:
        """`tensors` are those of `names` (the embedding first; "detached" gets the part of the gradient that trains the embedding
        layer alone) and the objective's parameters."""
        batch, x = loss._device_batch, tensors[0]
        words, at, device = batch.words, batch.at, tensors[0].device
        if y.dtype is not _LABEL or y.device != device or not y.is_contiguous():
            y = y.to(device, _LABEL).contiguous()
        if y.dim() != 1:
            raise ValueError(f"y has the shape {list(y.shape)}; wanted [n]")
        words[1:] = batch.nothing
        words[at["n"]], words[at["labels"]], words[at["stream"]] = y.size(0), y.data_ptr(), _stream(device)
        kept, gradients = [], []
        for name, tensor in zip(names, tensors):
            if tensor.dtype is not _FLOAT or not tensor.is_contiguous():
                tensor = tensor.float().contiguous()
                kept.append(tensor)  # until its work is queued
            gradient = torch.empty_like(tensor) if name in loss.reads else torch.zeros_like(tensor)
            gradients.append(gradient)
            if name == "detached":
                words[at["stopped"]] = gradient.data_ptr()
                continue
            if tensor.dim() != 2:
                raise ValueError(f"{name} has the shape {list(tensor.shape)}; wanted [rows, values]")
            data, rows, columns, to = batch.taps[name]
            words[data], words[rows], words[columns] = tensor.data_ptr(), tensor.size(0), tensor.size(1)
            words[to] = gradient.data_ptr()
        value = x.new_empty((), dtype=_FLOAT)
        words[at["total_f32"]] = value.data_ptr()
        loss._queue_batch(f"cuda:{device.index or 0}", step)
        if len(tensors) > len(names):
            gradients += [torch.from_numpy(one) for one in loss._learned()]
        ctx.gradients, ctx.dtypes = gradients, [tensor.dtype for tensor in tensors]
        return value if x.dtype is _FLOAT else value.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, factor: Any) -> Any:
        """Everything is linear in the factor."""
        return hand_out(ctx, factor)


def _scaled(ctx: Any, factor: Any) -> Tuple[Any, ...]:
    handed: List[Any] = [None, None, None, None]
    for gradient, dtype in zip(ctx.gradients, ctx.dtypes):
        if gradient is not None:
            # What is learned lies in host memory.
            gradient = gradient * (factor if gradient.device == factor.device else factor.to(gradient.device))
            gradient = gradient if gradient.dtype is dtype else gradient.to(dtype)
        handed.append(gradient)
    return tuple(handed)


_scaled_once = once_differentiable(_scaled)


def hand_out(ctx: Any, factor: Any) -> Any:
    """ctx.gradients times the factor, in ctx.dtypes, for a function whose first four arguments have no gradients."""
    # The decorator costs more than all else here, and says something only in backward(create_graph=True), where this is on.
    return _scaled_once(ctx, factor) if torch.is_grad_enabled() else _scaled(ctx, factor)
