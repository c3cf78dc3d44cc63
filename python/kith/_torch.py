"""kith.Loss as a function that torch can differentiate. torch is imported here, and only when it is asked for."""

from typing import Any, Dict, List, Optional, Tuple

import torch

from ._arrays import to_numpy
from ._errors import Error
from ._torch_device import EvaluateOnDevice, gather, hand_out


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
    def backward(ctx: Any, factor: Any) -> Any:
        """Everything is linear in the factor."""
        return hand_out(ctx, factor)


def evaluate(loss: Any, x: Any, y: Any, others: Dict[str, Any], step: Optional[int]) -> Any:
    """What Loss.__call__ does. `others` are taps and "detached", by name; None is not there."""
    names, tensors = gather(x, others)
    if loss._handle is None:
        loss._ready({name: tensor for name, tensor in zip(names, tensors) if name != "detached"})
    how: Any = EvaluateOnDevice if x.is_cuda else _Evaluate
    return how.apply(loss, names, y, step, *tensors, *loss.parameters())
