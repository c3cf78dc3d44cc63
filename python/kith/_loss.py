"""Losses, miners and regularizers on arrays of numpy and tensors of torch: kith.Loss."""

import json
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _device
from ._arrays import ArrayLike, from_array, integers, new_array, pointer, taken, to_numpy
from ._calls import call
from ._errors import Error, failure
from ._library import encode, ffi, lib, text

FloatArray = npt.NDArray[np.float32]
#: A method's name, or its name and options: "vthm", {"name": "vthm", "margin": 0.1}.
Method = Union[str, Mapping[str, Any]]

_TAPS = {"map": lib.KITH_TAP_MAP, "pooled": lib.KITH_TAP_POOLED, "embedding": lib.KITH_TAP_EMBEDDING,
         "weight": lib.KITH_TAP_WEIGHT}
_N_TEACHERS = lib.KITH_N_TAPS - lib.KITH_TAP_TEACHER
_TEACHERS = ["teacher"] + [f"teacher_{i}" for i in range(1, _N_TEACHERS)]
_TAPS.update({name: lib.KITH_TAP_TEACHER + i for i, name in enumerate(_TEACHERS)})
_torch: Any = None  # _of_torch() imports it
# The taps whose sizes an objective is made with.
_SIZED = ("embedding", "pooled", "map", *_TEACHERS)
# Only to see whether the names and options are right, before the sizes are known.
_ANY_SIZE = 8


@dataclass(frozen=True)
class LossValue:
    """One evaluation."""

    #: The sum of the terms times their weights.
    value: float
    #: d value / d embedding, float32 [n, dim].
    gradient: FloatArray
    #: The value of each term, without its weight.
    terms: Dict[str, float]
    #: d value / d tap for every tap that a term reads, the embedding too.
    gradients: Dict[str, FloatArray]
    #: d value / d parameter for everything that is learned (Loss.state).
    state_gradients: Dict[str, FloatArray]
    #: The part of `gradient` that must not flow below the embedding layer; None: there is no such part.
    stopped: Optional[FloatArray]
    #: Ordered pairs that counted in the loss.
    n_positive: int
    n_negative: int

    def __repr__(self) -> str:
        terms = "".join(f", {name} {value:.6g}" for name, value in self.terms.items()) if len(self.terms) > 1 else ""
        return f"LossValue({self.value:.6f}{terms}, gradient {' x '.join(map(str, self.gradient.shape))})"


class PairWeights(NamedTuple):
    """How hard a loss pulls and pushes each pair: both [n, n], or [n, proxies]."""

    weight: FloatArray
    similarity: FloatArray


@dataclass
class Parameter:
    """Something that an objective owns; its values are the objective's own memory."""

    name: str
    value: FloatArray
    #: On the learning rate.
    lr_multiplier: float
    _gradient: Any

    @property
    def is_trained(self) -> bool:
        """Does it have a gradient?"""
        return bool(self._gradient != ffi.NULL)

    def gradient(self) -> FloatArray:
        """A copy of the gradient."""
        return np.array(np.frombuffer(ffi.buffer(self._gradient, self.value.nbytes), np.float32).reshape(self.value.shape))


def _method(given: Method) -> Dict[str, Any]:
    return {"name": given} if isinstance(given, str) else dict(given)


class Loss:
    """A loss with a miner and regularizers, as the `objective:` section of a recipe has them.

    `kith list losses`, `miners` and `regularizers` print the methods and their options; options of the loss are keywords here.
    What owns one thing for each class (proxies, density targets) needs n_classes, and labels from 0 to n_classes - 1.

    With numpy, value_and_gradient() is the way:

    >>> import numpy as np, kith
    >>> loss = kith.Loss("binomial", beta=40, miner="vthm")
    >>> x = np.array([[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.6]], dtype=np.float32)
    >>> found = loss.value_and_gradient(x, [0, 0, 1, 1])
    >>> found.gradient.shape, found.value > 0
    ((4, 2), True)

    With torch, call it: loss(x, y).backward(). Learned state is in parameters(), for the optimizer. One thread uses a loss at a
    time.
    """

    def __init__(self, name: Method = "none", *, miner: Optional[Method] = None, regularizers: Sequence[Method] = (),
                 memory: Optional[Mapping[str, Any]] = None, n_classes: int = 0, dim: int = 0, pooled: int = 0, map: int = 0,
                 heads: int = 0, teachers: Sequence[int] = (), seed: int = 1, **options: Any) -> None:
        """dim, pooled, map and teachers (sizes of the taps) are taken from the first batch where they are not given. Give them to
        have parameters() before the first batch. `memory` is {"size": embeddings, "warmup": steps}."""
        section: Dict[str, Any] = {"loss": {**_method(name), **options}}
        if miner is not None:
            section["miner"] = _method(miner)
        if regularizers:
            section["regularizers"] = [_method(one) for one in regularizers]
        if memory is not None:
            section["memory"] = dict(memory)
        self._begin(json.dumps(section), n_classes, dim, pooled, map, heads, teachers, seed)

    @classmethod
    def from_recipe(cls, recipe: str, *, n_classes: int = 0, dim: int = 0, pooled: int = 0, map: int = 0, heads: int = 0,
                    teachers: Sequence[int] = (), seed: int = 1) -> "Loss":
        """From YAML: a recipe with a section `objective`, or that section alone.

        >>> import kith
        >>> kith.Loss.from_recipe("objective: {loss: {name: raw}, miner: {name: vthm}}").reads
        ['embedding']
        """
        made = cls.__new__(cls)
        made._begin(recipe, n_classes, dim, pooled, map, heads, teachers, seed)
        return made

    def __repr__(self) -> str:
        return f"Loss({' '.join(self._recipe.split())})"

    def _begin(self, recipe: str, n_classes: int, dim: int, pooled: int, map: int, heads: int, teachers: Sequence[int],
               seed: int) -> None:
        self._recipe = recipe
        self._seed = seed
        self._sizes: Dict[str, int] = {"n_classes": n_classes, "embedding": dim, "pooled": pooled, "map": map, "heads": heads,
                                       **dict.fromkeys(_TEACHERS, 0), **dict(zip(_TEACHERS, teachers))}
        #: The training step of the next evaluation: for warm-ups and random choices. Counts up by itself.
        self.step = 0
        self._terms: Dict[str, float] = {}
        self._is_queued = False  # the last evaluation was, on a device, and nobody has read its values
        self._device = "cpu"
        self._batch = ffi.new("kith_batch *")
        #: The batch of queue() and of tensors on a device.
        self._device_batch = _device.Batch(_TAPS)
        self._result = ffi.new("kith_objective_result *")
        self._parameters: List[Parameter] = []
        self._tensors: Optional[List[Any]] = None
        self._handle: Any = None
        tried = self._make({**self._sizes, **{tap: self._sizes[tap] or _ANY_SIZE for tap in _SIZED}})
        #: The taps that terms read; every batch must have them.
        self.reads: List[str] = [tap for tap, number in _TAPS.items() if lib.kith_objective_reads(tried, number)]
        self._learns = bool(lib.kith_objective_param_at(tried, 0, ffi.new("kith_objective_param *")))
        if all(self._sizes[tap] for tap in self.reads if tap != "weight"):
            self._open(self._sizes)

    def _make(self, sizes: Dict[str, int]) -> Any:
        made = ffi.new("kith_objective **")
        given: Dict[str, Any] = {name: size for name, size in sizes.items() if name not in _TEACHERS}
        given["teacher"] = [sizes[name] for name in _TEACHERS]
        call(lib.kith_objective_new, encode(self._recipe), ffi.new("kith_objective_sizes *", given), self._seed, made)
        return ffi.gc(made[0], lib.kith_objective_free)

    def _open(self, sizes: Dict[str, int]) -> None:
        self._handle = self._make(sizes)
        self._sizes = sizes
        found = ffi.new("kith_objective_param *")
        while lib.kith_objective_param_at(self._handle, len(self._parameters), found):
            shape = tuple(found.dim[i] for i in range(found.n_dims))
            value = taken(self._handle, found.value, np.float32, shape)
            self._parameters.append(Parameter(text(found.name), value, found.lr_multiplier, found.gradient))

    def _opened(self) -> Any:
        if self._handle is None:
            missing = [tap for tap in self.reads if tap != "weight" and not self._sizes[tap]]
            raise Error(f"the size of the {' and the '.join(missing)} is not known before the first batch",
                        "give it: kith.Loss(…, dim=128)")
        return self._handle

    def _place(self, device: str) -> Any:
        if self._device != device:
            call(lib.kith_objective_place, self._opened(), encode(device))
            self._device = device
        return self._handle

    # ---- what is learned ----

    @property
    def state(self) -> Dict[str, FloatArray]:
        """Everything that is learned or kept, by name. These are the values themselves: write to them to change them.

        >>> import kith
        >>> {name: value.shape for name, value in kith.Loss("proxy_anchor", n_classes=10, dim=4).state.items()}
        {'proxies': (10, 4)}
        """
        if self._learns:
            self._opened()
        return {parameter.name: parameter.value for parameter in self._parameters}

    def save(self, path: str) -> None:
        """Write the state as a safetensors file."""
        call(lib.kith_objective_save, self._opened(), encode(path))

    def load(self, path: str) -> None:
        """Take the state from a file that save(), or the program, wrote."""
        call(lib.kith_objective_load, self._opened(), encode(path))

    def parameters(self) -> List[Any]:
        """What is learned, as parameters of torch that share the objective's memory: give them to the optimizer."""
        if not self._learns:
            return []
        from ._torch import as_parameters

        self._opened()
        if self._tensors is None:
            self._tensors = as_parameters(self._parameters)
        return [tensor for tensor in self._tensors if tensor.requires_grad]

    def parameter_groups(self, lr: float) -> List[Dict[str, Any]]:
        """The same, each with its own learning rate: lr times what the method asks for (lr_multiplier)."""
        trained = [parameter for parameter in self._parameters if parameter.is_trained]
        return [{"params": [tensor], "lr": lr * parameter.lr_multiplier}
                for tensor, parameter in zip(self.parameters(), trained)]

    # ---- evaluating ----

    def _fill(self, x: Dict[str, npt.NDArray[Any]], y: ArrayLike, step: Optional[int]) -> Tuple[Any, List[Any]]:
        """The batch as C has it, and what must stay alive for it."""
        labels = integers(y, "y")
        kept: List[Any] = [labels]
        batch = self._batch
        batch.n, batch.labels = len(labels), pointer("int64_t *", labels)
        batch.step = self.step if step is None else step
        for name, number in _TAPS.items():
            tap, values = batch.tap[number], x.get(name)
            if values is None:
                tap.data = ffi.NULL
                continue
            if values.ndim != (4 if name == "map" else 2):
                raise ValueError(f"{name} has the shape {list(values.shape)}; wanted "
                                 f"{'[n, c, h, w]' if name == 'map' else '[rows, values]'}")
            if values.dtype.kind != "f":
                raise TypeError(f"{name} holds {values.dtype.name}; wanted float32")
            values = np.ascontiguousarray(values, dtype=np.float32)
            kept.append(values)
            tap.data = pointer("float *", values)
            tap.rows, tap.cols = values.shape[0], values.shape[1]
            tap.height, tap.width = values.shape[2:] if name == "map" else (0, 0)
        return batch, kept

    def _ready(self, x: Dict[str, npt.NDArray[Any]]) -> None:
        if self._handle is None:
            seen = {tap: x[tap].shape[1] for tap in _SIZED if tap in x and x[tap].ndim >= 2}
            self._open({name: size or seen.get(name, 0) for name, size in self._sizes.items()})

    def _evaluate(self, x: Dict[str, npt.NDArray[Any]], y: ArrayLike, step: Optional[int]) -> LossValue:
        self._ready(x)
        batch, kept = self._fill(x, y, step)
        self._place("cpu")
        lib.kith_objective_clear_gradients(self._handle)
        call(lib.kith_objective_evaluate, self._handle, batch, self._result)
        result = self._result
        self.step, self._is_queued = batch.step + 1, False
        self._terms = _terms_of(result)
        gradients = {name: _copied(result.gradient[_TAPS[name]], x[name].shape) for name in x
                     if result.gradient[_TAPS[name]] != ffi.NULL}
        stopped = None if result.stopped == ffi.NULL else _copied(result.stopped, x["embedding"].shape)
        of_state = {one.name: one.gradient() for one in self._parameters if one.is_trained}
        return LossValue(result.total, gradients.get("embedding", np.zeros((0, 0), np.float32)), self._terms, gradients,
                         of_state, stopped, result.n_positive, result.n_negative)

    def value_and_gradient(self, x: ArrayLike, y: ArrayLike, *, pooled: Optional[ArrayLike] = None,
                           map: Optional[ArrayLike] = None, weight: Optional[ArrayLike] = None,
                           teachers: Sequence[ArrayLike] = (), step: Optional[int] = None) -> LossValue:
        """Evaluate embeddings x [n, dim] (un-normalised) with labels y [n]; float32 is used where it lies.

        pooled [n, c], map [n, c, h, w] and weight [dim, c] are for terms that read them, and so are teachers, what other networks
        say of the items [n, their numbers]. Items at the end with the label -1 have no class: terms of teachers alone count
        them. step: instead of the count so far.
        """
        if len(teachers) > _N_TEACHERS:
            raise ValueError(f"{len(teachers)} teachers; wanted at most {_N_TEACHERS}")
        said = dict(zip(_TEACHERS, teachers))
        return self._evaluate(_given(embedding=x, pooled=pooled, map=map, weight=weight, **said), y, step)

    def __call__(self, x: Any, y: Any, *, pooled: Any = None, map: Any = None, weight: Any = None, detached: Any = None,
                 step: Optional[int] = None) -> Any:
        """The same on tensors of torch: a scalar tensor, whose backward() gives x and the parameters their gradients.

        detached: the embedding once more, computed by the embedding layer from features that were detached. Terms that train
        the embedding layer alone (energy_confusion) send their gradient there.
        """
        return _of_torch().evaluate(self, x, y, {"pooled": pooled, "map": map, "weight": weight, "detached": detached}, step)

    def queue(self, x: Any, y: Any, gradient: Any, *, total: Any = None, stopped: Any = None, pooled: Any = None,
              pooled_gradient: Any = None, weight: Any = None, weight_gradient: Any = None, stream: int = 0,
              device: str = "cuda", step: Optional[int] = None) -> None:
        """Evaluate arrays in a device's memory (CuPy, torch, JAX, …: whatever has __cuda_array_interface__ or DLPack) without
        waiting.

        x float32 [n, dim] and y int32 [n] are read, gradient (like x) and total (one float64) are written, in the order of
        `stream`, the number of a CUDA stream. `stopped` (like x) gets the part of the gradient that trains the embedding layer
        alone; the gradient is then without it. `terms` waits for the values, and raises what was wrong with the batch.
        """
        given = {"embedding": x, "pooled": pooled, "weight": weight}
        taps = {name: array for name, array in given.items() if array is not None}
        if self._handle is None:
            seen = {name: _device.width(taps[name]) for name in ("embedding", "pooled") if name in taps}
            self._open({name: size or seen.get(name, 0) for name, size in self._sizes.items()})
        wanted = {"embedding": gradient, "pooled": pooled_gradient, "weight": weight_gradient}
        kept = self._device_batch.fill(taps, y, wanted, stopped, total, stream)
        self._queue_batch(device, step)
        del kept

    def _queue_batch(self, device: str, step: Optional[int]) -> None:
        """Queue what _device_batch holds; for queue() and for torch."""
        batch, number = self._device_batch, self.step if step is None else step
        batch.words[batch.at["step"]] = number
        self._place(device)
        if self._learns:
            lib.kith_objective_clear_gradients(self._handle)
        status = lib.kith_objective_queue(self._handle, batch.struct, batch.err)
        if status:
            raise failure(status, batch.err)
        self.step, self._is_queued = number + 1, True

    def _learned(self) -> List[FloatArray]:
        """The gradients of what is trained, of the last evaluation."""
        return [one.gradient() for one in self._parameters if one.is_trained]

    @property
    def terms(self) -> Dict[str, float]:
        """The terms of the last evaluation, without their weights."""
        if self._is_queued:
            self._is_queued = False
            call(lib.kith_objective_read, self._handle, self._result)
            self._terms = _terms_of(self._result)
        return self._terms

    def pair_weights(self, x: ArrayLike, y: ArrayLike, *, step: Optional[int] = None) -> PairWeights:
        """The weight that the loss gives to every pair, and the similarities: positive weights pull positives together and push
        negatives apart.

        >>> import numpy as np, kith
        >>> x = np.array([[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.6]], dtype=np.float32)
        >>> kith.Loss("contrastive").pair_weights(x, [0, 0, 1, 1]).weight.shape
        (4, 4)
        """
        given = _given(embedding=x)
        self._ready(given)
        batch, kept = self._fill(given, y, step)
        weight, similarity = new_array(), new_array()
        call(lib.kith_objective_weights, self._handle, batch, weight, similarity)
        return PairWeights(from_array(weight), from_array(similarity))


def _of_torch() -> Any:
    """The part that needs torch. Looking it up again and again would cost a microsecond in every step."""
    global _torch
    if _torch is None:
        from . import _torch as found

        _torch = found
    return _torch


def _terms_of(result: Any) -> Dict[str, float]:
    return {text(result.terms[i].name): result.terms[i].value for i in range(result.n_terms)}


def _given(**taps: Optional[ArrayLike]) -> Dict[str, npt.NDArray[Any]]:
    return {name: to_numpy(values) for name, values in taps.items() if values is not None}


def _copied(data: Any, shape: Iterable[int]) -> FloatArray:
    made = np.empty(tuple(shape), np.float32)
    ffi.memmove(ffi.from_buffer(made), data, made.nbytes)
    return made
