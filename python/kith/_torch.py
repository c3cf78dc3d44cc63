"""kith.Loss as a function that torch can differentiate. torch is imported here, and only when it is asked for."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from ._arrays import to_numpy
from ._errors import Error


def as_parameters(found: List[Any]) -> List[Any]:
    """Parameters that share the memory of the objective's: what an optimizer does to them is done to it."""
    return [torch.nn.Parameter(torch.from_numpy(one.value), requires_grad=one.is_trained) for one in found]


class _Evaluate(torch.autograd.Function):  # type: ignore[misc]
    """The value; gradients are computed along with it and handed out by backward."""

    @staticmethod
    def forward(ctx: Any, loss: Any, names: Tuple[str, ...], y: Any, step: Optional[int], *tensors: Any) -> Any:
        """`tensors` are those of `names` (taps, then "detached" if it is given) and the objective's parameters."""
        taps = {name: to_numpy(tensor.float()) for name, tensor in zip(names, tensors) if name != "detached"}
        found = loss._evaluate(taps, y, step)
        gradients = dict(found.gradients)
        if found.stopped is not None:
            if "detached" not in names:
                raise Error("a term trains the embedding layer alone, and its gradient has nowhere to go",
                            "give detached=layer(features.detach())")
            gradients["embedding"] = gradients["embedding"] - found.stopped
            gradients["detached"] = found.stopped
        ordered = [gradients.get(name) for name in names] + list(found.state_gradients.values())
        ctx.dtypes = [tensor.dtype for tensor in tensors]
        ctx.gradients = [None if gradient is None else torch.from_numpy(gradient) for gradient in ordered]
        return tensors[0].new_tensor(found.value)

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, factor: Any) -> Any:
        """Everything is linear in the factor."""
        handed = [None if gradient is None else (gradient * factor).to(dtype)
                  for gradient, dtype in zip(ctx.gradients, ctx.dtypes)]
        return (None, None, None, None, *handed)


class _EvaluateOnDevice(torch.autograd.Function):  # type: ignore[misc]
    """The same on a CUDA device: queued on torch's stream, and nobody waits, unless the objective learns something."""

    @staticmethod
    def forward(ctx: Any, loss: Any, names: Tuple[str, ...], y: Any, step: Optional[int], *tensors: Any) -> Any:
        """As _Evaluate.forward."""
        taps = {name: tensor.detach().float().contiguous() for name, tensor in zip(names, tensors)}
        x = taps["embedding"]
        # What a term reads is written as a whole.
        gradients = {name: (torch.empty_like if name in loss.reads else torch.zeros_like)(tensor) for name, tensor in taps.items()}
        total = torch.empty((), dtype=torch.float64, device=x.device)
        loss.queue(x, y.to(x.device, torch.int32).contiguous(), gradients["embedding"], total=total,
                   stopped=gradients.get("detached"), pooled=taps.get("pooled"), pooled_gradient=gradients.get("pooled"),
                   weight=taps.get("weight"), weight_gradient=gradients.get("weight"), step=step,
                   stream=torch.cuda.current_stream(x.device).cuda_stream, device=f"cuda:{x.device.index or 0}")
        learned = [torch.from_numpy(one.gradient()) for one in loss._parameters if one.is_trained]
        ctx.dtypes = [tensor.dtype for tensor in tensors]
        ctx.gradients = [gradients[name] for name in names] + learned
        return total.to(tensors[0].dtype)

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, factor: Any) -> Any:
        """Everything is linear in the factor; what is learned lies in host memory."""
        handed = [(gradient * factor.to(gradient.device)).to(dtype) for gradient, dtype in zip(ctx.gradients, ctx.dtypes)]
        return (None, None, None, None, *handed)


def evaluate(loss: Any, given: Dict[str, Any], y: Any, detached: Any, step: Optional[int]) -> Any:
    """What Loss.__call__ does."""
    taps = {name: tensor for name, tensor in given.items() if tensor is not None}
    if detached is not None:
        taps["detached"] = detached
    for name, tensor in taps.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is {type(tensor).__name__}; wanted a torch tensor (numpy arrays: value_and_gradient)")
        if tensor.device != taps["embedding"].device or tensor.device.type not in ("cpu", "cuda"):
            raise ValueError(f"{name} is on {tensor.device} and the embedding on {taps['embedding'].device}; wanted both on the "
                             "CPU or on one CUDA device")
        if tensor.device.type == "cuda" and name == "map":
            raise NotImplementedError("terms that read the map are not evaluated in CUDA memory: hand in map.cpu() and the others")
    loss._ready({name: tensor for name, tensor in taps.items() if name != "detached"})
    how: Any = _EvaluateOnDevice if taps["embedding"].device.type == "cuda" else _Evaluate
    return how.apply(loss, tuple(taps), y, step, *taps.values(), *loss.parameters())
