"""Vectors on disk, with what is known of each: kith.Index."""

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, integers, matrix, pointer, taken
from ._calls import Handle, call
from ._errors import Busy, Error
from ._images import Path
from ._items import Item, Value, columns_of, item_of, new_columns, new_items, new_values, type_named
from ._library import encode, ffi, lib, options, text
from ._neighbors import metric_named
from ._work import Progress, Work

_HIT = np.dtype([("id", "i8"), ("score", "f8")])


@dataclass(frozen=True)
class IndexInfo:
    """What an index is, as of its last commit."""

    n_items: int
    dim: int
    metric: str
    #: How searches are made: "exact", "scan" or "lists", and their recall, measured on the index's own rows.
    tier: str
    recall: float
    n_removed: int
    n_segments: int
    generation: int
    #: SHA-256 of the model's file; "" where it is not known.
    model: str
    file_bytes: int
    is_calibrated: bool
    #: Files that were removed by hand and stay out.
    n_excluded: int
    #: Searches that are not exact find candidates by so many values of a vector; 0: by all.
    first: int


def info_of(c: Any) -> IndexInfo:
    """A kith_index_info, copied."""
    return IndexInfo(c.n_items, c.dim, text(lib.kith_metric_name(c.metric)), text(lib.kith_index_tier_name(c.tier)), c.recall,
                     c.n_removed, c.n_segments, c.generation, text(c.model), c.file_bytes, c.is_calibrated, c.n_excluded,
                     c.first)


class Hits(NamedTuple):
    """The items found for one query, nearest first."""

    ids: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


class FacetValue(NamedTuple):
    """A value of a column, or a range of numbers from the first to below the second, and how many items have it."""

    value: Union[str, float, Tuple[float, float]]
    n: int


@dataclass(frozen=True)
class Facets:
    """The values of a column among items."""

    #: Items that were let through, and of them those with a value.
    n_allowed: int
    n_items: int
    #: Different values; of dates days, months or years.
    n_distinct: int
    values: List[FacetValue]


def _facet_of(c: Any) -> FacetValue:
    if c.text != ffi.NULL:
        return FacetValue(text(c.text), c.n)
    return FacetValue(c.low if c.low == c.high else (c.low, c.high), c.n)


class Index:
    """An index: a folder with vectors, searched by similarity and filtered by what is known of the items.

    What is added and removed counts from the next commit() on. Several threads may ask an index at once; while one changes it or
    closes it, calls of others raise kith.Busy.

    >>> import numpy as np, kith, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> index = kith.Index.create(folder.name + "/birds.kith", dim=2, columns={"year": int})
    >>> index.add(np.eye(2), labels=["tern", "gull"], values={"year": [2020, 2021]})
    array([0, 1])
    >>> index.commit()
    >>> index.search([[1.0, 0.1]], k=1)[0].ids
    array([0])
    >>> index.ids("year > 2020")
    array([1])
    """

    def __init__(self, handle: Handle, is_part: bool = False) -> None:
        """Use Index.create(), Index.open() and Collection.index."""
        self._handle, self._is_part = handle, is_part  # of a collection, whose handle it is then
        self._guard = handle.guard

    # ---- making and opening ----

    @classmethod
    def create(cls, path: Path, *, dim: int, metric: str = "cosine", columns: Optional[Mapping[str, Type[Any]]] = None,
               recall: float = 0.99, first: int = 0) -> "Index":
        """Make an empty index of vectors of this size, and open it for writing. columns: {"year": int, "weight": float,
        "place": str}. first: of vectors whose first values are vectors, too, find candidates by so many; 0: by all."""
        option = options("kith_index_options")
        option.columns, option.n_columns, kept = new_columns(columns)
        option.dim, option.metric, option.recall, option.first = dim, metric_named(metric), recall, first
        made = ffi.new("kith_index **")
        call(lib.kith_index_create, encode(os.fspath(path)), option, made)
        return cls(Handle(made[0], lib.kith_index_free, os.fspath(path), True, "index"))

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> "Index":
        """Open the last commit."""
        made = ffi.new("kith_index **")
        call(lib.kith_index_open, encode(os.fspath(path)), lib.KITH_INDEX_WRITE if write else lib.KITH_INDEX_READ, made)
        return cls(Handle(made[0], lib.kith_index_free, os.fspath(path), write, "index"))

    def close(self) -> None:
        """Give it back; what was not committed is dropped. kith.Busy while another thread's call is under way. The index of a
        collection is closed with the collection, and not before."""
        if not self._is_part:
            with self._guard.alone:
                self._handle.close()

    def __repr__(self) -> str:
        try:
            info = self.info
        except Busy:
            return f"Index({self._handle.path!r}, in use)"
        except (ValueError, Error):
            return f"Index({self._handle.path!r}, closed)"
        return f"Index({self._handle.path!r}, {info.n_items} items of {info.dim} values, {info.metric})"

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _open(self) -> Any:
        """The kith_index; a collection has another one after a change."""
        if not self._is_part:
            return self._handle.get()
        index = lib.kith_collection_index(self._handle.get())
        if index == ffi.NULL:
            raise Error(f"{self._handle.path} could not be opened again after a change that failed", "close it and open it again")
        return index

    # ---- changing ----

    def add(self, rows: ArrayLike, *, paths: Optional[Sequence[Optional[Path]]] = None,
            labels: Optional[Sequence[Optional[str]]] = None,
            values: Optional[Mapping[str, Sequence[Value]]] = None) -> npt.NDArray[np.int64]:
        """Add vectors [n, dim], with what is known of each. Returns their ids."""
        given = matrix(rows, "rows")
        ids = np.empty(len(given.values), np.int64)
        with self._guard.alone:
            index = self._open()
            items, kept = new_items(columns_of(index), len(ids), paths, labels, values)
            call(lib.kith_index_add, index, given.array, items, pointer("int64_t *", ids))
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; none is removed when one of them is not there. If their files are still there, the next sync of a
        collection brings them back: exclude() does not let it."""
        self._remove(lib.kith_index_remove, ids)

    def exclude(self, ids: ArrayLike) -> None:
        """Remove items by hand: a sync leaves their files out until they are added again."""
        self._remove(lib.kith_index_exclude, ids)

    def _remove(self, function: Any, ids: ArrayLike) -> None:
        given = integers(ids, "ids")
        with self._guard.alone:
            call(function, self._open(), pointer("int64_t *", given), len(given))

    def add_column(self, name: str, kind: Type[Any]) -> None:
        """A new column, in which the items there are have no value."""
        with self._guard.alone:
            call(lib.kith_index_column_add, self._open(), encode(name), type_named(name, kind))

    def set(self, ids: ArrayLike, values: Mapping[str, Sequence[Value]]) -> None:
        """Give items other values in these columns, from the next commit on; None: no value."""
        given = integers(ids, "ids")
        with self._guard.alone:
            index = self._open()
            names, cells, kept = new_values(columns_of(index), len(given), values)
            call(lib.kith_index_set, index, pointer("int64_t *", given), len(given), names, len(values), cells)

    def set_labels(self, ids: ArrayLike, labels: Sequence[Optional[str]]) -> None:
        """Give items other labels, from the next commit on; None: no label."""
        given = integers(ids, "ids")
        if len(labels) != len(given):
            raise ValueError(f"labels has {len(labels)} entries for {len(given)} ids")
        words = [ffi.NULL if label is None else ffi.new("char[]", encode(label)) for label in labels]
        with self._guard.alone:
            call(lib.kith_index_label, self._open(), pointer("int64_t *", given), len(given), ffi.new("const char *[]", words or 1))

    def commit(self, progress: Optional[Progress] = None) -> None:
        """Make what was changed the state of the index. If it is stopped or fails, the changes are lost, and the index must be
        opened again."""
        self._work(lib.kith_index_commit, progress)

    def compact(self, progress: Optional[Progress] = None) -> None:
        """Commit, and write everything anew without what was removed."""
        self._work(lib.kith_index_compact, progress)

    def _work(self, function: Any, progress: Optional[Progress]) -> None:
        option = options("kith_work_options")
        work = Work(progress)
        work.watch(option)
        with self._guard.alone:
            work.call(function, self._open(), option)

    # ---- asking ----

    def search(self, query: ArrayLike, k: int = 10, *, where: Optional[str] = None, offset: int = 0,
               limit: Optional[float] = None, exact: bool = False, recall: float = 0.0, own_ids: Optional[ArrayLike] = None,
               progress: Optional[Progress] = None) -> List[Hits]:
        """The k nearest items of each query [n, dim]: one Hits for each.

        where: only items that an expression holds for, as "label = tern and year >= 2020". offset: leave out so many of the
        nearest. limit: only hits at least as near. own_ids: for each query the id of the item that is the query itself, or -1.
        """
        rows = matrix(query, "query")
        option = options("kith_search_options")
        option.k, option.offset, option.exact, option.recall = k, offset, exact, recall
        if limit is not None:
            option.has_limit, option.limit = True, limit
        expression = None if where is None else ffi.new("char[]", encode(where))
        if expression is not None:
            option.where = expression
        own = None if own_ids is None else integers(own_ids, "own_ids")
        if own is not None and len(own) != len(rows.values):
            raise ValueError(f"own_ids has {len(own)} numbers for {len(rows.values)} queries")
        option.self = pointer("int64_t *", own)
        work = Work(progress)
        work.watch(option)
        found = ffi.gc(ffi.new("kith_hits *"), lib.kith_hits_release)
        with self._guard.shared:
            work.call(lib.kith_index_search, self._open(), rows.array, option, found)
        begin = taken(found, found.begin, np.int64, (found.n_queries + 1,))
        hits = taken(found, found.hits, _HIT, (int(begin[-1]),))
        return [Hits(hits["id"][begin[i]:begin[i + 1]], hits["score"][begin[i]:begin[i + 1]]) for i in range(found.n_queries)]

    def ids(self, where: Optional[str] = None) -> npt.NDArray[np.int64]:
        """The ids of all items that an expression holds for; without one, of all."""
        found, n = ffi.new("int64_t **"), ffi.new("int64_t *")
        with self._guard.shared:
            call(lib.kith_index_ids, self._open(), ffi.NULL if where is None else encode(where), found, n)
        return taken(ffi.gc(found[0], lib.kith_ids_free), found[0], np.int64, (n[0],))

    def facets(self, column: str, where: Optional[str] = None, most: int = 20) -> Facets:
        """Count the values of a column (label, or one of the index's own) among the items that an expression holds for: texts by how
        many items have them, numbers in their order or by ranges, dates by day, month or year, at most so many of them."""
        c = ffi.gc(ffi.new("kith_facets *"), lib.kith_facets_release)
        with self._guard.shared:
            call(lib.kith_index_facets, self._open(), encode(column), ffi.NULL if where is None else encode(where), most, c)
        return Facets(c.n_allowed, c.n_items, c.n_distinct, [_facet_of(c.values[i]) for i in range(c.n_values)])

    def item(self, id: int) -> Item:
        """What is known of one item."""
        c = ffi.gc(ffi.new("kith_index_item *"), lib.kith_index_item_release)
        with self._guard.shared:
            index = self._open()
            call(lib.kith_index_item_get, index, id, c)
            return item_of(c, columns_of(index))

    def vectors(self, ids: ArrayLike) -> npt.NDArray[np.float32]:
        """The vectors of items, [n, dim]."""
        given = integers(ids, "ids")
        with self._guard.shared:
            rows = np.empty((len(given), self.info.dim), np.float32)
            call(lib.kith_index_vectors, self._open(), pointer("int64_t *", given), len(given), pointer("float *", rows))
        return rows

    @property
    def info(self) -> IndexInfo:
        """What it is."""
        c = ffi.new("kith_index_info *")
        with self._guard.shared:
            lib.kith_index_info_get(self._open(), c)
            return info_of(c)

    def __len__(self) -> int:
        return self.info.n_items
