"""Vectors on disk, with what is known of each: kith.Index."""

import os
import re
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, integers, matrix, pointer, taken
from ._calls import Guard, call
from ._errors import Busy, Error
from ._images import Path, open_dataset, paths_of, split_named
from ._library import encode, ffi, lib, options, text
from ._model import model_file
from ._neighbors import metric_named
from ._work import Progress, Work

#: A value of a column: None means that there is none.
Value = Union[None, int, float, str]

_HIT = np.dtype([("id", "i8"), ("score", "f8")])
_TYPES: Dict[type, int] = {int: lib.KITH_VALUE_INT, float: lib.KITH_VALUE_REAL, str: lib.KITH_VALUE_TEXT}
_PYTHON_TYPES = {number: kind for kind, number in _TYPES.items()}


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


@dataclass(frozen=True)
class Item:
    """What is known of one item."""

    id: int
    path: Optional[str]
    label: Optional[str]
    values: Dict[str, Value]


class Hits(NamedTuple):
    """The items found for one query, nearest first."""

    ids: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


@dataclass(frozen=True)
class SyncReport:
    """What a sync found and did, in items."""

    n_files: int
    n_same: int
    n_touched: int
    n_moved: int
    n_changed: int
    n_added: int
    n_removed: int
    n_bad: int
    #: Removed by hand, and left out.
    n_excluded: int
    #: As before, with another label.
    n_relabelled: int
    #: The first hundred that could not be read, and why.
    bad: List[str]


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

    def __init__(self, handle: Any, path: str, writes: bool, model: Optional[bytes], device: str) -> None:
        """Use Index.create() and Index.open()."""
        owner = os.getpid()
        # A child of fork must not end what its parent writes: there it is left as it is.
        self._handle: Any = ffi.gc(handle, lambda index: lib.kith_index_free(index) if os.getpid() == owner else None)
        self._path, self._writes, self._owner = path, writes, owner
        self._model, self._device = model, device
        self._embedder: Any = None
        self._guard, self._embedding = Guard("the index"), Guard("the index's model")

    # ---- making and opening ----

    @classmethod
    def create(cls, path: Path, *, dim: int = 0, model: Optional[Path] = None, backbone: Optional[str] = None,
               pool: Optional[str] = None, resize: Optional[str] = None, metric: str = "cosine",
               columns: Optional[Mapping[str, Type[Any]]] = None, recall: float = 0.99, device: str = "cpu") -> "Index":
        """Make an empty index and open it for writing. dim: the size of the vectors; or model: the file or run that makes them
        from images, with backbone, pool and resize ("shorter256") where the file does not say them or others are wanted.
        columns: {"year": int, "weight": float, "place": str}."""
        option = options("kith_index_options")
        embedder, kept = None, []
        if model is None and (backbone or pool or resize):
            raise ValueError("backbone, pool and resize are of a model; wanted model=, too")
        if model is None and dim < 1:
            raise ValueError(f"dim is {dim}; wanted the size of the vectors, or model=")
        if model is not None:
            embedder = _open_embedder(None, model_file(model), device, backbone=backbone, pool=pool, resize=resize)
            option.model, option.preprocess = lib.kith_embedder_hash(embedder), lib.kith_embedder_preprocess(embedder)
            dim = lib.kith_embedder_dim(embedder)
        named = ffi.new("kith_column[]", max(len(columns or {}), 1))
        for i, (name, kind) in enumerate((columns or {}).items()):
            if kind not in _TYPES:
                raise TypeError(f"the column {name} has the type {kind!r}; wanted int, float or str")
            kept.append(ffi.new("char[]", encode(name)))
            named[i].name, named[i].type = kept[-1], _TYPES[kind]
        option.columns, option.n_columns = named, len(columns or {})
        option.dim, option.metric, option.recall = dim, metric_named(metric), recall
        made = ffi.new("kith_index **")
        call(lib.kith_index_create, encode(os.fspath(path)), option, made)
        index = cls(made[0], os.fspath(path), True, None if model is None else model_file(model), device)
        if embedder is not None:
            index._embedder = embedder
            call(lib.kith_embedder_remember, embedder, index._handle)
        return index

    @classmethod
    def open(cls, path: Path, *, write: bool = False, model: Optional[Path] = None, device: str = "cpu") -> "Index":
        """Open the last commit. model: where the model's file lies now, if it was moved since the index was made."""
        made = ffi.new("kith_index **")
        call(lib.kith_index_open, encode(os.fspath(path)), lib.KITH_INDEX_WRITE if write else lib.KITH_INDEX_READ, made)
        return cls(made[0], os.fspath(path), write, None if model is None else model_file(model), device)

    def close(self) -> None:
        """Give it back; what was not committed is dropped. kith.Busy while another thread's call is under way."""
        with self._guard.alone:
            if self._handle is not None:
                ffi.release(self._handle)
                self._handle = None

    def __repr__(self) -> str:
        where = re.sub("://.*@", "://", self._path)  # an address may hold a password
        try:
            info = self.info
        except Busy:
            return f"Index({where!r}, in use)"
        except (ValueError, Error):
            return f"Index({where!r}, closed)"
        return f"Index({where!r}, {info.n_items} items of {info.dim} values, {info.metric})"

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _open(self) -> Any:
        if self._handle is None:
            raise ValueError("the index is closed")
        if self._writes and os.getpid() != self._owner:
            raise Error(f"{self._path} is written by the process that this one was forked from", "open it again here, to read it")
        return self._handle

    def _with_model(self) -> Any:
        if self._embedder is None:
            self._embedder = _open_embedder(self._open(), self._model, self._device)
        return self._embedder

    # ---- changing ----

    def add(self, rows: ArrayLike, *, paths: Optional[Sequence[Optional[Path]]] = None,
            labels: Optional[Sequence[Optional[str]]] = None,
            values: Optional[Mapping[str, Sequence[Value]]] = None) -> npt.NDArray[np.int64]:
        """Add vectors [n, dim], with what is known of each. Returns their ids."""
        given = matrix(rows, "rows")
        n = len(given.values)
        ids = np.empty(n, np.int64)
        with self._guard.alone:
            items, kept = self._items(n, paths, labels, values or {})
            call(lib.kith_index_add, self._open(), given.array, items, pointer("int64_t *", ids))
        return ids

    def _items(self, n: int, paths: Optional[Sequence[Optional[Path]]], labels: Optional[Sequence[Optional[str]]],
               values: Mapping[str, Sequence[Value]]) -> Tuple[Any, List[Any]]:
        columns = self._columns()
        for what, given in [("paths", paths), ("labels", labels), *values.items()]:
            if given is not None and len(given) != n:
                raise ValueError(f"{what} has {len(given)} entries for {n} rows")
        unknown = sorted(set(values) - set(columns))
        if unknown:
            raise Error(f"the index has no column {unknown[0]!r}", "its columns: " + (", ".join(columns) or "none"), "ENOTFOUND")
        items = ffi.new("kith_index_item[]", max(n, 1))
        cells = ffi.new("kith_value[]", max(n * len(columns), 1))
        kept: List[Any] = [cells]

        def word(value: str) -> Any:
            kept.append(ffi.new("char[]", encode(value)))
            return kept[-1]

        for i in range(n):
            path, label = paths[i] if paths is not None else None, labels[i] if labels is not None else None
            items[i].bytes = items[i].mtime_ns = -1
            if path is not None:
                items[i].path = word(os.fspath(path))
            if label is not None:
                items[i].label = word(str(label))
            items[i].values = cells + i * len(columns)
            for k, (name, kind) in enumerate(columns.items()):
                if name in values:
                    _put(cells[i * len(columns) + k], kind, values[name][i], name, word)
        return items, kept

    def _columns(self) -> Dict[str, type]:
        found: Dict[str, type] = {}
        while True:
            column = lib.kith_index_column(self._open(), len(found))
            if column.name == ffi.NULL:
                return found
            found[text(column.name)] = _PYTHON_TYPES[column.type]

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; none is removed when one of them is not there. In an index that sync() keeps, their files stay out until
        they are added again: sync(…, with_removed=True)."""
        given = integers(ids, "ids")
        with self._guard.alone:
            synced = lib.kith_index_note(self._open(), b"sources") != ffi.NULL
            call(lib.kith_index_exclude if synced else lib.kith_index_remove, self._open(), pointer("int64_t *", given),
                 len(given))

    def add_column(self, name: str, kind: Type[Any]) -> None:
        """A new column, in which the items there are have no value."""
        if kind not in _TYPES:
            raise TypeError(f"the column {name} has the type {kind!r}; wanted int, float or str")
        with self._guard.alone:
            call(lib.kith_index_column_add, self._open(), encode(name), _TYPES[kind])

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

    def sync(self, sources: Union[Path, Sequence[Path]], *, kind: Optional[str] = None, split: str = "all",
             only_adds: bool = False, most_removed: float = 1.0, with_removed: bool = False,
             progress: Optional[Progress] = None) -> SyncReport:
        """Make the index hold the images of folders (or of a data set), and commit: what is new or changed is embedded by the
        index's model, what is gone is removed. most_removed: refuse when a larger part of the items would go.
        with_removed: also files whose items were removed by hand."""
        if isinstance(sources, (str, os.PathLike)):
            sources = [sources]
        # The paths that the program's --sync sees: those of items are known again.
        whole = [os.path.realpath(os.fspath(path)) for path in sources]
        option = options("kith_sync_options")
        option.split, option.only_adds, option.most_removed = split_named(split), only_adds, most_removed
        option.with_excluded = with_removed
        work = Work(progress)
        work.watch(option)
        report = ffi.gc(ffi.new("kith_sync_report *"), lib.kith_sync_report_release)
        with self._guard.alone, self._embedding.alone:
            embedder = self._with_model()
            dataset = open_dataset(whole, kind)
            note = lib.kith_index_note(self._open(), b"sources") if only_adds and kind is None else ffi.NULL
            known = [] if note == ffi.NULL else text(note).splitlines()
            self._remember_sources(known + [path for path in whole if path not in known], kind, split)
            work.call(lib.kith_index_sync, self._open(), embedder, dataset, option, report)
        return SyncReport(report.n_files, report.n_same, report.n_touched, report.n_moved, report.n_changed, report.n_added,
                          report.n_removed, report.n_bad, report.n_excluded, report.n_relabelled,
                          [text(report.bad[i]) for i in range(report.n_named)])

    def _remember_sources(self, sources: List[str], kind: Optional[str], split: str) -> None:
        """Notes that the program reads: `kith index INDEX --sync` then needs no folders."""
        for name, value in (("sources", "\n".join(sources)), ("dataset", kind or ""), ("split", split)):
            call(lib.kith_index_note_set, self._open(), encode(name), encode(value))

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

    def embed(self, images: Union[Path, Sequence[Path]], *, flips: bool = False) -> npt.NDArray[np.float32]:
        """The vectors of image files by the model that made the index, for search(). flips: the mean with the mirror image."""
        named = paths_of(images)
        option = options("kith_query_options")
        option.flips = flips
        with self._guard.shared, self._embedding.alone:
            embedder = self._with_model()
            rows = np.empty((len(named), lib.kith_embedder_dim(embedder)), np.float32)
            for i, name in enumerate(named):
                path = ffi.new("char[]", name)
                image = ffi.new("kith_query_image *", {"path": path, "weight": 1.0})
                call(lib.kith_embedder_query, embedder, image, 1, option, pointer("float *", rows[i]))
        return rows

    def ids(self, where: Optional[str] = None) -> npt.NDArray[np.int64]:
        """The ids of all items that an expression holds for; without one, of all."""
        found, n = ffi.new("int64_t **"), ffi.new("int64_t *")
        with self._guard.shared:
            call(lib.kith_index_ids, self._open(), ffi.NULL if where is None else encode(where), found, n)
        return taken(ffi.gc(found[0], lib.kith_ids_free), found[0], np.int64, (n[0],))

    def item(self, id: int) -> Item:
        """What is known of one item."""
        c = ffi.gc(ffi.new("kith_index_item *"), lib.kith_index_item_release)
        with self._guard.shared:
            call(lib.kith_index_item_get, self._open(), id, c)
            columns = self._columns()
        return Item(c.id, None if c.path == ffi.NULL else text(c.path), None if c.label == ffi.NULL else text(c.label),
                    {name: _get(c.values[i]) if c.values != ffi.NULL else None for i, name in enumerate(columns)})

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
        return IndexInfo(c.n_items, c.dim, text(lib.kith_metric_name(c.metric)), text(lib.kith_index_tier_name(c.tier)),
                         c.recall, c.n_removed, c.n_segments, c.generation, text(c.model), c.file_bytes, c.is_calibrated,
                         c.n_excluded)

    def __len__(self) -> int:
        return self.info.n_items


def _open_embedder(index: Any, model: Optional[bytes], device: str, **said: Optional[str]) -> Any:
    """The embedder of an index, or (index None) of a model's file; `said`: options beside it."""
    option = options("kith_embedder_options")
    kept = []
    for field, value in [("model", model), ("device", encode(device)),
                         *((field, None if word is None else encode(word)) for field, word in said.items())]:
        if value is not None:
            kept.append(ffi.new("char[]", value))
            setattr(option, field, kept[-1])
    made = ffi.new("kith_embedder **")
    if index is None:
        call(lib.kith_embedder_open, option, made)
    else:
        call(lib.kith_embedder_open_index, index, option, made)
    return ffi.gc(made[0], lib.kith_embedder_free)


def _put(cell: Any, kind: type, value: Value, name: str, word: Any) -> None:
    """Write a value into a cell of its column."""
    if value is None:
        return
    if kind is str and isinstance(value, str):
        cell.type, cell.text = lib.KITH_VALUE_TEXT, word(value)
    elif kind is int and isinstance(value, (int, np.integer)):
        cell.type, cell.integer = lib.KITH_VALUE_INT, int(value)
    elif kind is float and isinstance(value, (int, float, np.number)):
        cell.type, cell.real = lib.KITH_VALUE_REAL, float(value)
    else:
        raise TypeError(f"the column {name} holds {kind.__name__}; found {value!r}")


def _get(cell: Any) -> Value:
    if cell.type == lib.KITH_VALUE_INT:
        return int(cell.integer)
    if cell.type == lib.KITH_VALUE_REAL:
        return float(cell.real)
    return text(cell.text) if cell.type == lib.KITH_VALUE_TEXT else None
