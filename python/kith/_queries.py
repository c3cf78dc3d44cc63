"""Images of queries, and why a hit matches: kith.Explanation."""

import os
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, to_numpy
from ._images import Path
from ._library import encode, ffi, text

#: One image of a query: a file, or a decoded image (uint8 [h, w] or [h, w, 3], also of PIL).
Image = Union[Path, ArrayLike]
#: A part of an image: x, y, width and height in pixels of the upright image.
Box = Tuple[float, float, float, float]


@dataclass(frozen=True)
class Shares:
    """What each place of an image adds to the score."""

    #: [rows, columns], from the upper left; below 0: it speaks against the match.
    share: npt.NDArray[np.float64]
    #: Of the linear layer's bias, which has no place.
    rest: float
    #: Where the grid lies on the upright image.
    view: Box
    #: Of the upright image, in pixels.
    width: int
    height: int


@dataclass(frozen=True)
class Explanation:
    """Why two images match: their cosine as an exact sum over the places of either image, unless there is an `estimate`."""

    score: float
    #: Of each image of the query; all shares and rests together are the score.
    query: List[Shares]
    #: Its shares and its rest together are the score, too.
    hit: Shares
    #: None: all is exact. Else why the score is no sum over places, and what the shares are instead.
    estimate: Optional[str] = None

    def __repr__(self) -> str:
        rows, columns = self.hit.share.shape
        return f"Explanation(score {self.score:.4f}, {rows} x {columns} places, {len(self.query)} in the query)"


def is_path(image: Any) -> bool:
    """Is it the name of a file?"""
    return isinstance(image, (str, os.PathLike))


def put_pixels(values: npt.NDArray[Any], i: int, to: Any) -> npt.NDArray[Any]:
    """Write a decoded image into a kith_pixels; returns the memory that must stay."""
    if values.dtype != np.uint8 or not (values.ndim == 2 or (values.ndim == 3 and values.shape[2] in (1, 3))):
        raise TypeError(f"image {i} is {values.dtype.name} {list(values.shape)}; wanted uint8 [h, w] or [h, w, 3], "
                        "or float [n, channels, height, width]")
    kept = np.ascontiguousarray(values)
    to.height, to.width = values.shape[:2]
    to.channels = 1 if values.ndim == 2 else values.shape[2]
    to.data = ffi.cast("uint8_t *", ffi.from_buffer(kept))
    return kept


def query_images(images: Union[Image, Sequence[Image]], weights: Optional[Sequence[float]],
                 boxes: Optional[Sequence[Optional[Box]]]) -> Tuple[Any, int, List[Any]]:
    """kith_query_image[], how many, and what must stay as long as they are used."""
    several: List[Any] = list(images) if isinstance(images, (list, tuple)) else [images]
    for name, given in (("weights", weights), ("boxes", boxes)):
        if given is not None and len(given) != len(several):
            raise ValueError(f"{name} has {len(given)} entries for {len(several)} images")
    made = ffi.new("kith_query_image[]", max(len(several), 1))
    kept: List[Any] = []
    for i, one in enumerate(several):
        if is_path(one):
            kept.append(ffi.new("char[]", encode(os.fspath(one))))
            made[i].path = kept[-1]
        else:
            pixels = ffi.new("kith_pixels *")
            kept += [pixels, put_pixels(to_numpy(one), i, pixels)]
            made[i].pixels = pixels
        made[i].weight = 1.0 if weights is None else weights[i]
        box = None if boxes is None else boxes[i]
        if box is not None:
            made[i].has_box, made[i].box = True, list(box)
    return made, len(several), kept


def explanation(c: Any) -> Explanation:
    """A kith_explanation, copied."""

    def shares(one: Any) -> Shares:
        grid = np.frombuffer(ffi.buffer(one.share, c.rows * c.columns * 8), np.float64).reshape(c.rows, c.columns)
        return Shares(grid.copy(), one.rest, (one.view[0], one.view[1], one.view[2], one.view[3]), one.width, one.height)

    return Explanation(c.score, [shares(c.query[i]) for i in range(c.n)], shares(c.hit), text(c.estimate) or None)
