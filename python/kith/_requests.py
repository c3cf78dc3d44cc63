"""What a collection is asked, and its answers: kith.Part, kith.Answer, kith.Hit."""

import math
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, pointer, to_numpy
from ._errors import Error, failure
from ._items import Value, item_of
from ._library import encode, ffi, lib, text
from ._queries import Box, Image, is_path, put_pixels

_RERANKS = {"none": lib.KITH_RERANK_NONE, "qe": lib.KITH_RERANK_EXPANSION, "kr": lib.KITH_RERANK_RECIPROCAL}


@dataclass(frozen=True)
class Part:
    """One part of a query, with its weight (below 0: unlike it), and for an image maybe the box that counts."""

    #: An image: a file, the bytes of one, or decoded (uint8 [h, w] or [h, w, 3]); the id of an item; or a vector (float [dim]).
    of: Union[Image, bytes, int, ArrayLike]
    weight: float = 1.0
    #: x, y, width, height in pixels of the upright image.
    box: Optional[Box] = None


#: What may be looked for: a part, or what a part is of.
Asked = Union[Part, Image, bytes, int, ArrayLike]
#: One query: one of these, or a list of them that count together.
Query = Union[Asked, Sequence[Asked]]


@dataclass(frozen=True)
class Hit:
    """An item that was found, with what is known of it."""

    id: int
    score: float
    #: How often different things look as much alike; None: not measured.
    false_match_rate: Optional[float]
    label: Optional[str]
    path: Optional[str]
    values: Dict[str, Value]
    #: Where its image lies; None: it has none that is a file.
    picture: Optional[str]
    #: The chance that it is wrong, and its 95 % interval; None: not known.
    error_rate: Optional[float] = None
    error_rate_interval: Optional[Tuple[float, float]] = None


@dataclass(frozen=True)
class Answer:
    """What was found for one query, nearest first."""

    hits: List[Hit]
    #: Items that may be found.
    n_allowed: int
    #: Every vector was compared.
    is_exact: bool
    #: The score that same= or min_score= meant.
    limit: Optional[float]
    #: [dim]: what was asked with.
    vector: Optional[npt.NDArray[np.float32]]
    #: Why there is no answer (keep_errors=True).
    error: Optional[Error] = None

    def __repr__(self) -> str:
        if self.error is not None:
            return f"Answer({self.error})"
        nearest = f", nearest {self.hits[0].id} at {self.hits[0].score:.4f}" if self.hits else ""
        return f"Answer({len(self.hits)} hits{nearest}, among {self.n_allowed} items)"


@dataclass(frozen=True)
class Duplicate:
    """One picture of a group."""

    id: int
    #: Its contents are those of the group's first.
    is_same_file: bool
    #: It is the mirror image of the group's first.
    is_mirrored: bool
    #: With the group's first, -1 to 1.
    likeness: float


@dataclass(frozen=True)
class Duplicates:
    """Groups of the same picture, the largest group first, and in each the largest file."""

    groups: List[List[Duplicate]]
    #: Items whose picture was read, and those without one that can be.
    n_looked_at: int
    n_unread: int

    def __repr__(self) -> str:
        return f"Duplicates({len(self.groups)} groups among {self.n_looked_at} pictures)"


class Requests:
    """kith_search_request[n] for queries that share their options, and the memory they borrow."""

    def __init__(self, queries: Union[Query, Sequence[Query]], dim: int, k: Optional[int], offset: int, where: Optional[str],
                 same: Optional[float], min_score: Optional[float], rerank: str, flips: bool, exact: bool,
                 hide_duplicates: bool, unknown: float, precision: Optional[float], complete: Optional[float]) -> None:
        if rerank not in _RERANKS:
            raise ValueError(f"rerank is {rerank!r}; wanted one of {', '.join(_RERANKS)}")
        several: Sequence[Any] = queries if isinstance(queries, (list, tuple)) else [queries]
        self.n, self._kept, self._dim = len(several), [], dim  # type: int, List[Any], int
        self.c = ffi.new("kith_search_request[]", max(self.n, 1))
        expression = ffi.NULL if where is None else self._keep(ffi.new("char[]", encode(where)))
        for i, query in enumerate(several):
            one = self.c + i
            lib.kith_search_request_init(one, ffi.sizeof("kith_search_request"))
            one.parts, one.n_parts = self._parts(i, query)
            one.k, one.offset, one.where = 2**63 - 1 if k is None else k, offset, expression
            one.same = math.nan if same is None else same
            one.min_score = math.nan if min_score is None else min_score
            one.unknown = unknown
            one.precision = math.nan if precision is None else precision
            one.complete = math.nan if complete is None else complete
            one.rerank, one.flips, one.exact, one.hide_duplicates = _RERANKS[rerank], flips, exact, hide_duplicates

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    def _parts(self, i: int, query: Any) -> Tuple[Any, int]:
        parts = [one if isinstance(one, Part) else Part(one) for one in (query if isinstance(query, (list, tuple)) else [query])]
        made = self._keep(ffi.new("kith_query_part[]", max(len(parts), 1)))
        for k, part in enumerate(parts):
            made[k].id, made[k].weight = -1, part.weight
            self._put(i, part.of, made[k])
            if part.box is not None:
                made[k].image.has_box, made[k].image.box = True, list(part.box)
        return made, len(parts)

    def _put(self, i: int, of: Any, to: Any) -> None:
        if is_path(of):
            to.image.path = self._keep(ffi.new("char[]", encode(os.fspath(of))))
        elif isinstance(of, (bytes, bytearray, memoryview)):
            to.image.bytes, to.image.n_bytes = self._keep(ffi.from_buffer(of)), memoryview(of).nbytes
        elif isinstance(of, (int, np.integer)) and not isinstance(of, bool):
            if of < 0:
                raise ValueError(f"query {i} is the item {of}; wanted an id from 0 on")
            to.id = int(of)
        else:
            self._put_array(i, to_numpy(of), to)

    def _put_array(self, i: int, values: npt.NDArray[Any], to: Any) -> None:
        if values.dtype.kind != "f":
            pixels = self._keep(ffi.new("kith_pixels *"))
            self._keep(put_pixels(values, i, pixels))
            to.image.pixels = pixels
            return
        if values.shape != (self._dim,):
            raise ValueError(f"query {i} is {values.dtype.name} {list(values.shape)}; wanted a vector [{self._dim}], or an image as uint8")
        row = self._keep(np.ascontiguousarray(values, dtype=np.float32))
        to.row = self._keep(pointer("float *", row))


class IdentifyRequests(Requests):
    """kith_identify_request[n], and the memory they borrow."""

    def __init__(self, things: Union[Query, Sequence[Query]], dim: int) -> None:
        several: Sequence[Any] = things if isinstance(things, (list, tuple)) else [things]
        self.n, self._kept, self._dim = len(several), [], dim
        self.c = ffi.new("kith_identify_request[]", max(self.n, 1))
        for i, thing in enumerate(several):
            one = self.c + i
            lib.kith_identify_request_init(one, ffi.sizeof("kith_identify_request"))
            one.parts, one.n_parts = self._parts(i, thing)


def new_identified(n: int) -> Any:
    """kith_identified[n], which is released when nothing refers to it."""

    made = ffi.new("kith_identified[]", max(n, 1))

    def release(found: Any, _made: Any = made) -> None:
        for i in range(n):
            lib.kith_identified_release(found + i)

    return ffi.gc(ffi.cast("kith_identified *", made), release)


def new_found(n: int) -> Any:
    """kith_found[n], which is released when nothing refers to it."""

    made = ffi.new("kith_found[]", max(n, 1))

    def release(found: Any, _made: Any = made) -> None:
        for i in range(n):
            lib.kith_found_release(found + i)

    return ffi.gc(ffi.cast("kith_found *", made), release)


def answer_of(c: Any, columns: Mapping[str, type], dim: int) -> Answer:
    """A kith_found, copied."""
    hits = [hit_of(c.hits[i], columns) for i in range(c.n_hits)]
    row = None if c.row == ffi.NULL else np.frombuffer(ffi.buffer(c.row, dim * 4), np.float32).copy()
    return Answer(hits, c.n_allowed, c.is_exact, number_of(c.limit), row, failure(c.status, c.error) if c.status else None)


def hit_of(c: Any, columns: Mapping[str, type]) -> Hit:
    """A kith_found_hit, copied."""
    item = item_of(c.item, columns)
    return Hit(item.id, c.score, number_of(c.false_match_rate), item.label, item.path, item.values,
               None if c.picture == ffi.NULL else text(c.picture), number_of(c.error_rate),
               None if math.isnan(c.error_rate) else (c.error_rate_low, c.error_rate_high))


def number_of(value: float) -> Optional[float]:
    """NaN is None."""
    return None if math.isnan(value) else value


def duplicates_of(c: Any) -> Duplicates:
    """A kith_duplicates, copied."""
    groups = [[Duplicate(one.id, one.is_same_file, one.is_mirrored, one.likeness)
               for one in (c.pictures[k] for k in range(c.begin[i], c.begin[i + 1]))] for i in range(c.n_groups)]
    return Duplicates(groups, c.n_looked_at, c.n_unread)
