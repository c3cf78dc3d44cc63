"""Data sets and images of libkith: the drawn data set, images as the input of a network."""

import os
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._arrays import strings
from ._calls import call
from ._library import encode, ffi, lib, options, text
from ._work import Progress, Work

Path = Union[str, "os.PathLike[str]"]

_SPLITS = {"all": lib.KITH_SPLIT_ALL, "train": lib.KITH_SPLIT_TRAIN, "validation": lib.KITH_SPLIT_VALIDATION,
           "test": lib.KITH_SPLIT_TEST}
SPLIT_NAMES = {number: name for name, number in _SPLITS.items()}
_RESIZES = {"none": lib.KITH_RESIZE_NONE, "shorter": lib.KITH_RESIZE_SHORTER, "squash": lib.KITH_RESIZE_SQUASH,
            "atmost": lib.KITH_RESIZE_AT_MOST, "pad": lib.KITH_RESIZE_PAD}


def paths_of(paths: Union[Path, Sequence[Path]]) -> List[bytes]:
    """One path or several, as bytes."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [encode(os.fspath(path)) for path in several]


def split_named(name: str) -> int:
    """The number of a split."""
    if name not in _SPLITS:
        raise ValueError(f"split is {name!r}; wanted one of {', '.join(_SPLITS)}")
    value: int = _SPLITS[name]
    return value


def open_dataset(sources: Union[Path, Sequence[Path]], kind: Optional[str] = None) -> Any:
    """A kith_dataset: folders, images, a data set of a known layout, or a recipe (.yaml) that says which."""
    named = paths_of(sources)
    made = ffi.new("kith_dataset **")
    if len(named) == 1 and named[0].lower().endswith((b".yaml", b".yml")):
        call(lib.kith_dataset_open_recipe, named[0], made)
    elif kind is not None:
        if len(named) != 1:
            raise ValueError(f"{len(named)} sources; wanted one data set of the kind {kind}")
        call(lib.kith_dataset_open, encode(kind), named[0], made)
    else:
        list_, kept = strings(named)
        call(lib.kith_dataset_open_files, list_, len(named), made)
    return ffi.gc(made[0], lib.kith_dataset_free)


class ImageBatch(NamedTuple):
    """Images as the input of a network, float32 [n, channels, side, side], and where they came from."""

    x: npt.NDArray[np.float32]
    paths: List[str]


def read_images(paths: Union[Path, Sequence[Path]], *, resize: str = "squash256", crop: int = 227, channels: int = 3,
                bgr: bool = False, scale: float = 1 / 255, mean: Sequence[float] = (0.0, 0.0, 0.0),
                std: Sequence[float] = (1.0, 1.0, 1.0), batch: int = 32, workers: int = 0) -> Iterator[ImageBatch]:
    """Decode, resize, crop and normalise images, as kith's networks see them: value = (pixel * scale - mean) / std.

    paths are images and folders; workers: threads that decode (0: one for each core). Unreadable images are left out. Each
    batch is a copy of its own.
    """
    how = options("kith_transform")
    kind = resize.rstrip("0123456789")
    if kind not in _RESIZES:
        raise ValueError(f"resize is {resize!r}; wanted none, or one of squash, shorter, atmost, pad with a number: squash256")
    how.resize, how.resize_to = _RESIZES[kind], int(resize[len(kind):] or crop)
    how.crop_to, how.channels, how.bgr, how.pixel_scale = crop, channels, bgr, scale
    for i in range(min(3, len(mean), len(std))):
        how.mean[i], how.std[i] = mean[i], std[i]
    option = options("kith_image_reader_options")
    option.batch, option.n_workers = batch, workers
    named = paths_of(paths)
    list_, kept = strings(named)
    made = ffi.new("kith_image_reader **")
    call(lib.kith_image_reader_new, list_, len(named), how, option, made)
    reader = ffi.gc(made[0], lib.kith_image_reader_free)
    found = ffi.new("kith_image_batch *")
    while True:
        call(lib.kith_image_reader_next, reader, found)
        if found.n == 0:
            return
        x = np.empty((found.n, channels, crop, crop), np.float32)
        ffi.memmove(ffi.from_buffer(x), found.data, x.nbytes)
        yield ImageBatch(x, [text(found.path[i]) for i in range(found.n)])


def synth(folder: Path, *, n_classes: int = 200, n_images: int = 20, side: int = 64, seed: int = 1, colour: bool = False,
          background: bool = False, noise: float = 10.0, jitter: float = 1.0, progress: Optional[Progress] = None) -> None:
    """Draw a data set of glyphs, a folder for each class, to try things with. The same options give the same bytes."""
    option = options("kith_synth_options")
    option.n_classes, option.n_images, option.side, option.seed = n_classes, n_images, side, seed
    option.colour, option.background, option.noise, option.jitter = colour, background, noise, jitter
    work = Work(progress)
    work.call(lib.kith_synth_write, encode(os.fspath(folder)), option, work.callback, ffi.NULL)


def items_of(dataset: Any, numbers: "npt.NDArray[np.int64]") -> Tuple[List[str], List[str]]:
    """The paths of items of a data set, and the names of all its classes."""
    paths = [text(lib.kith_dataset_item(dataset, int(i)).path) for i in numbers]
    names = [text(lib.kith_dataset_class_name(dataset, i)) for i in range(lib.kith_dataset_n_classes(dataset))]
    return paths, names
