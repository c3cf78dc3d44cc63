"""Networks that turn images into vectors: kith.Model."""

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, strings, taken, to_numpy
from ._calls import Guard, call
from ._errors import Error
from ._images import Path, items_of, open_dataset, paths_of, split_named
from ._library import encode, ffi, lib, options, text
from ._queries import Box, Explanation, Image, explanation, is_path, put_pixels, query_images
from ._work import Progress, Work

FloatArray = npt.NDArray[np.float32]
#: Image files, decoded images (uint8 [h, w] or [h, w, 3], also of PIL), or the network's own input (float [n, c, h, w]).
Images = Union[Path, Sequence[Path], ArrayLike, Sequence[ArrayLike]]


@dataclass(frozen=True)
class Embedded:
    """The vectors of a data set's images, one row for each image that could be read."""

    x: FloatArray
    #: Their classes; -1: none. classes[i] is the name of class i.
    y: npt.NDArray[np.int64]
    paths: List[str]
    classes: List[str]
    #: Images that could not be read, and why: the first hundred.
    bad: List[str]

    def __repr__(self) -> str:
        bad = f", {len(self.bad)} unreadable" if self.bad else ""
        return f"Embedded({len(self.x)} rows of {' x '.join(map(str, self.x.shape[1:]))}, {len(self.classes)} classes{bad})"


@dataclass(frozen=True)
class ModelInfo:
    """What a model is."""

    backbone: str
    pool: str
    device: str
    channels: int
    height: int
    width: int
    #: Sizes of the heads; 0: there is no such head.
    embedding: int
    classes: int
    #: Numbers that training would change.
    n_params: int


@dataclass(frozen=True)
class ModelIdentity:
    """Which vectors a model makes: two models with the same hash and the same words make equal ones."""

    #: The model's file, from the root.
    file: str
    #: SHA-256 of the file.
    hash: str
    #: What decides the vectors beside the file, in words.
    preprocess: str
    #: Values of a vector.
    dim: int


def model_options(path: Optional[Path], **said: Union[None, int, str]) -> Tuple[Any, List[Any]]:
    """kith_model_options with these fields, and what must stay as long as they are used."""
    option = options("kith_model_options")
    kept: List[Any] = []
    for field, value in [("weights", None if path is None else os.fspath(path)), *said.items()]:
        if isinstance(value, str):
            kept.append(ffi.new("char[]", encode(value)))
            setattr(option, field, kept[-1])
        elif value is not None:
            setattr(option, field, value)
    return option, kept


class Model:
    """A network with its weights. One thread uses it at a time: a second one's call raises kith.Busy.

    path is a safetensors file, or the folder of a training run (its model, else its best), or "general", the model that came with kith;
    without it the model is general, or, where a backbone is named, has random weights (seed). general finds the same object, scene or picture
    again; for fine kinds, such as species, kith.pull("dinov2-s").file is a stronger model. size is the side of the input in pixels,
    with the whole picture in it (0: the model's): fewer are faster, more see more detail. views is how many views of
    every image are averaged: 2 the picture and its mirror image, up to 10 also crops at its corners. Options are for files that do not say what they hold: `kith list backbones` has the names. pool is "avg", "max", "both" (their
    sum) or "gem" of the last map; of vision transformers also "class" (the class token), "class_avg" (it and the average) or "attention"
    (SigLIP's). tap and resize are what the model's vectors are where a call does not say others.

    >>> import numpy as np, kith
    >>> model = kith.Model(backbone="convnet4", embedding=16, channels=1, height=28, width=28)
    >>> picture = np.zeros((40, 30), dtype=np.uint8)
    >>> model.embed([picture, 255 - picture]).shape
    (2, 16)
    """

    def __init__(self, path: Optional[Path] = None, *, backbone: Optional[str] = None, settings: Optional[str] = None,
                 pool: Optional[str] = None, embedding: int = 0, embedding_init: Optional[str] = None, channels: int = 0,
                 height: int = 0, width: int = 0, seed: int = 0, device: str = "cpu", precision: str = "float32",
                 batch: int = 0, tap: Optional[str] = None, resize: Optional[str] = None, size: int = 0,
                 views: int = 0) -> None:
        option, kept = model_options(path, backbone=backbone, settings=settings, pool=pool, embedding=embedding,
                                     embedding_init=embedding_init, channels=channels, height=height, width=width, seed=seed,
                                     device=device, precision=precision, batch=batch, tap=tap, resize=resize, side=size,
                                     views=views)
        made = ffi.new("kith_model **")
        call(lib.kith_model_open, option, made)
        handle = ffi.gc(made[0], lib.kith_model_free)
        self._find: Callable[[], Any] = lambda: handle
        self._guard = Guard("the model")
        self._is_part = False  # of a collection, which closes it
        self._alive: ContextManager[None] = nullcontext()  # for calls that go together with embed()

    @classmethod
    def _part(cls, find: Callable[[], Any], guard: Guard, alive: ContextManager[None]) -> "Model":
        """The model of a collection: found anew for each call, and `alive` while one is under way that does not hold the guard, so
        that none outlives the collection."""
        model = cls.__new__(cls)
        model._find, model._guard, model._alive, model._is_part = find, guard, alive, True
        return model

    @property
    def _handle(self) -> Any:
        return self._find()

    def __repr__(self) -> str:
        info = self.info
        size = f"{info.channels} x {info.height} x {info.width}"
        heads = f", embedding of {info.embedding}" if info.embedding else ""
        return f"Model({info.backbone}{heads}, input {size}, {info.n_params} parameters, {info.device})"

    @property
    def info(self) -> ModelInfo:
        """What it is."""
        c = ffi.new("kith_model_info *")
        with self._alive:
            lib.kith_model_info_get(self._handle, c)
            return ModelInfo(text(c.backbone), text(c.pool), text(c.device), c.channels, c.height, c.width, c.embedding,
                             c.classes, c.n_params)

    @property
    def dim(self) -> int:
        """Values of a vector that embed() makes without another tap=."""
        with self._alive:
            found: int = lib.kith_model_dim(self._handle)
        return found

    @property
    def identity(self) -> ModelIdentity:
        """Who it is, as an index notes it. Random weights, and those that set_state() has changed, are nobody's: kith.Error."""
        c = ffi.new("kith_model_identity *")
        with self._guard.alone:
            call(lib.kith_model_identify, self._handle, c)
        return ModelIdentity(text(c.file), text(c.hash), text(c.preprocess), c.dim)

    def _curve(self, to: Any) -> bool:
        """Its curve of false-match rates, into a kith_calibration; False: it has none."""
        with self._guard.alone:
            status = lib.kith_model_curve(self._handle, lib.KITH_COSINE, to, ffi.NULL)
        return bool(status == lib.KITH_OK)

    def _options(self, tap: Optional[str], resize: Optional[str], workers: int) -> Tuple[Any, List[Any]]:
        option = options("kith_embed_options")
        kept = [ffi.new("char[]", encode(word)) for word in (tap, resize) if word is not None]
        if tap is not None:
            option.tap = kept[0]
        if resize is not None:
            option.resize = kept[-1]
        option.n_workers = workers
        return option, kept

    def _room(self, n: int, option: Any) -> FloatArray:
        n_dims, dim = ffi.new("int *"), ffi.new("int64_t[]", lib.KITH_MAX_DIMS)
        call(lib.kith_model_tap_shape, self._handle, lib.kith_model_tap(self._handle, option), n_dims, dim)
        return np.zeros((n, *(dim[i] for i in range(n_dims[0]))), np.float32)

    def embed(self, images: Images, *, tap: Optional[str] = None, resize: Optional[str] = None, workers: int = 0,
              progress: Optional[Progress] = None) -> FloatArray:
        """The vectors of images, [n, …]: float32, one row for each image, in order.

        images: a path or paths of image files; decoded images of any size, uint8 [h, w] or [h, w, 3] (images of PIL are fine);
        or float [n, channels, height, width] as the network takes it, which is used as it is ([n, numbers] by a model of features).
        An unreadable file is an error.
        tap: "embedding", "pooled", "map" or "logits"; without it the embedding, or pooled of a model without one.
        """
        with self._guard.alone:
            return self._embed(images, tap, resize, workers, progress)

    def _embed(self, images: Images, tap: Optional[str], resize: Optional[str], workers: int,
               progress: Optional[Progress]) -> FloatArray:
        option, kept = self._options(tap, resize, workers)
        work = Work(progress)
        work.watch(option)
        several: List[Any] = [images] if is_path(images) else list(images) if isinstance(images, (list, tuple)) else []
        if several and all(is_path(one) for one in several):
            list_, names = strings(paths_of(several))
            found = self._room(len(several), option)
            work.call(lib.kith_model_embed_files, self._handle, list_, len(several), option,
                      ffi.cast("float *", ffi.from_buffer(found)), ffi.NULL)
            return found
        arrays = [to_numpy(one) for one in several] if several else [to_numpy(images)]
        if len(arrays) == 1 and not several and arrays[0].dtype.kind == "f":
            return self._embed_input(arrays[0], option)
        if not several and arrays[0].ndim == 4:
            arrays = list(arrays[0])
        return self._embed_pixels(arrays, option, work)

    def _embed_pixels(self, arrays: List[npt.NDArray[Any]], option: Any, work: Work) -> FloatArray:
        pixels = ffi.new("kith_pixels[]", max(len(arrays), 1))
        kept = []
        for i, values in enumerate(arrays):
            kept.append(put_pixels(values, i, pixels[i]))
        found = self._room(len(arrays), option)
        work.call(lib.kith_model_embed_pixels, self._handle, pixels, len(arrays), option,
                  ffi.cast("float *", ffi.from_buffer(found)))
        return found

    def _embed_input(self, values: npt.NDArray[Any], option: Any) -> FloatArray:
        info = self.info
        wanted = (info.channels, info.height, info.width)
        of_features = wanted[1:] == (1, 1)
        if values.shape[1:] != wanted and not (of_features and values.shape[1:] == wanted[:1]):
            shape = f"[n, {wanted[0]}]" if of_features else f"[n, {wanted[0]}, {wanted[1]}, {wanted[2]}], or uint8"
            raise ValueError(f"the images are {list(values.shape)}; wanted {shape}")
        values = np.ascontiguousarray(values, dtype=np.float32)
        found = self._room(len(values), option)
        call(lib.kith_model_embed_floats, self._handle, ffi.cast("float *", ffi.from_buffer(values)), len(values),
             lib.kith_model_tap(self._handle, option), ffi.cast("float *", ffi.from_buffer(found)))
        return found

    def embed_dataset(self, sources: Union[Path, Sequence[Path]], *, kind: Optional[str] = None, split: str = "all",
                      tap: Optional[str] = None, resize: Optional[str] = None, workers: int = 0,
                      progress: Optional[Progress] = None) -> Embedded:
        """Embed folders of images, a data set (`kith list datasets`), or what the data section of a recipe names."""
        dataset = open_dataset(sources, kind)
        option, kept = self._options(tap, resize, workers)
        option.most_bad = -1
        work = Work(progress)
        work.watch(option)
        made = ffi.new("kith_vectors **")
        with self._guard.alone:
            work.call(lib.kith_model_embed_dataset, self._handle, dataset, split_named(split), option, made)
        handle, keep = self._handle, dataset

        def free(vectors: Any, _model: Any = handle, _dataset: Any = keep) -> None:  # they must be freed before both
            lib.kith_vectors_free(vectors)

        vectors = ffi.gc(made[0], free)
        n = lib.kith_vectors_count(vectors)
        array = ffi.new("kith_array *")
        call(lib.kith_vectors_array, vectors, array)
        shape = tuple(array.dim[i] for i in range(array.n_dims))
        paths, names = items_of(dataset, taken(vectors, lib.kith_vectors_items(vectors), np.int64, (n,)))
        bad = [text(lib.kith_vectors_bad(vectors, i)) for i in range(min(lib.kith_vectors_n_bad(vectors), 100))]
        return Embedded(taken(vectors, array.data, np.float32, shape),
                        taken(vectors, lib.kith_vectors_labels(vectors), np.int64, (n,)), paths, names, bad)

    def query(self, images: Union[Image, Sequence[Image]], *, weights: Optional[Sequence[float]] = None,
              boxes: Optional[Sequence[Optional[Box]]] = None, flips: bool = False) -> FloatArray:
        """One vector to search with, [dim], from one image or several (files or decoded images).

        Several are the sum of their normalised vectors times their weights: below 0, unlike that image. boxes: for each image the
        part of it that counts (x, y, width, height), or None. flips: the mean with the mirror image.
        """
        named, n, kept = query_images(images, weights, boxes)
        option = options("kith_query_options")
        option.flips = flips
        row = np.empty(self.dim, np.float32)
        with self._guard.alone:
            call(lib.kith_model_query, self._handle, named, n, option, ffi.cast("float *", ffi.from_buffer(row)))
        return row

    def explain(self, query: Union[Image, Sequence[Image]], hit: Image, *, weights: Optional[Sequence[float]] = None,
                boxes: Optional[Sequence[Optional[Box]]] = None, flips: bool = False) -> Explanation:
        """Why an image matches a query (of query()'s arguments): the cosine of their vectors as a sum over places, or, where the network
        has none, an estimate that says so."""
        named, n, kept = query_images(query, weights, boxes)
        other, _, kept_hit = query_images(hit, None, None)
        option = options("kith_query_options")
        option.flips = flips
        found = ffi.gc(ffi.new("kith_explanation *"), lib.kith_explanation_release)
        with self._guard.alone:
            call(lib.kith_model_explain, self._handle, named, n, other, option, found)
        return explanation(found)

    @property
    def state(self) -> Dict[str, FloatArray]:
        """Copies of the parameters and running statistics, by name."""
        found: Dict[str, FloatArray] = {}
        param = ffi.new("kith_model_param *")
        with self._alive:
            for i in range(lib.kith_model_param_count(self._handle)):
                lib.kith_model_param_at(self._handle, i, param)
                values = np.empty(tuple(param.dim[k] for k in range(param.n_dims)), np.float32)
                call(lib.kith_model_param_get, self._handle, i, ffi.cast("float *", ffi.from_buffer(values)))
                found[text(param.name)] = values
        return found

    def set_state(self, state: Mapping[str, ArrayLike]) -> None:
        """Write parameters by name; those that are not named stay as they are."""
        param = ffi.new("kith_model_param *")
        left = dict(state)
        with self._guard.alone:
            self._set_state(left, param)
        if left:
            raise Error(f"the model has no parameter {sorted(left)[0]!r}", "Model.state has their names", "ENOTFOUND")

    def _set_state(self, left: Dict[str, ArrayLike], param: Any) -> None:
        for i in range(lib.kith_model_param_count(self._handle)):
            lib.kith_model_param_at(self._handle, i, param)
            given = left.pop(text(param.name), None)
            if given is None:
                continue
            shape = tuple(param.dim[k] for k in range(param.n_dims))
            values = np.ascontiguousarray(to_numpy(given), dtype=np.float32)
            if values.shape != shape:
                raise ValueError(f"{text(param.name)} is {list(values.shape)}; the model's is {list(shape)}")
            call(lib.kith_model_param_set, self._handle, i, ffi.cast("float *", ffi.from_buffer(values)))

    def save(self, path: Path) -> None:
        """Write weights, settings and preprocessing as one safetensors file."""
        with self._alive:
            call(lib.kith_model_save, self._handle, encode(os.fspath(path)))
