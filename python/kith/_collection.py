"""An index together with the photos it was made from and the model that embeds them: kith.Collection."""

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, List, Mapping, Optional, Sequence, Type, Union

from ._arrays import ArrayLike, matrix, strings
from ._calls import Guard, Handle, call
from ._errors import Busy, Error
from ._groups import Groups, groups_of, groups_options, new_groups
from ._images import SPLIT_NAMES, Path, paths_of
from ._index import Facets, Index, IndexInfo, info_of
from ._items import Value, columns_of, new_columns, new_items
from ._library import encode, ffi, lib, options, text
from ._model import Model, model_options
from ._names import Identified, identified_of, named_of
from ._neighbors import metric_named
from ._requests import (Answer, Duplicates, IdentifyRequests, Query, Requests, answer_of, duplicates_of, new_found,
                        new_identified)
from ._sync import Calibration, SyncReport, report_of, sources_of
from ._work import Progress, Work

_MOST_PATH = 4096  # bytes


@dataclass(frozen=True)
class CollectionInfo:
    """What a collection is, as of its last commit, and what it remembers."""

    index: IndexInfo
    #: The model's file; None: not known.
    model: Optional[str]
    #: Whole paths of what it was made from, and the kind of data set that it is; None: files and folders.
    sources: List[str]
    kind: Optional[str]
    split: str
    #: Where relative paths of items begin; None: nowhere.
    folder: Optional[str]
    #: None: not known.
    false_match_rates: Optional[Calibration]


class Collection:
    """A collection of photos: made from folders or a data set, kept up to date, searched by photos, items or vectors.

    Every change is committed. The same collection made by the program has the same bytes, and either goes on with it. It is for
    one thread at a time: a second one's call raises kith.Busy, but for picture() and duplicates() of one that is opened for reading,
    and for its index (Collection.index), which several may ask.

    >>> import kith, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> kith.synth(folder.name + "/glyphs", n_classes=3, n_images=4, side=32)
    >>> kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28).save(folder.name + "/m.safetensors")
    >>> photos = kith.Collection.create(folder.name + "/photos.kith", model=folder.name + "/m.safetensors")
    >>> photos.sync(folder.name + "/glyphs").n_added
    12
    >>> hit = photos.search(folder.name + "/glyphs/glyph00001/00002.png", k=1)[0].hits[0]
    >>> hit.id, hit.label
    (6, 'glyph00001')
    >>> photos.close()
    """

    def __init__(self, handle: Handle, model: Optional[Model] = None) -> None:
        """Use Collection.create() and Collection.open()."""
        self._handle, self._guard = handle, handle.guard
        self._lent = model  # lives as long as the collection, which may use it
        # The model and what searches keep are for one thread, also beside others that ask the index.
        self._asking = Guard("the collection's model") if model is None else model._guard
        self._asks = self._guard.alone if handle.writes else self._guard.shared
        self._index = Index(handle, is_part=True)

    # ---- making and opening ----

    @classmethod
    def create(cls, path: Path, *, model: Optional[Path] = None, backbone: Optional[str] = None, settings: Optional[str] = None,
               pool: Optional[str] = None, tap: Optional[str] = None, resize: Optional[str] = None, channels: int = 0,
               height: int = 0, width: int = 0, device: str = "cpu", precision: str = "float32", batch: int = 0, dim: int = 0,
               metric: str = "cosine", recall: float = 0.99, columns: Optional[Mapping[str, Type[Any]]] = None,
               folder: Optional[Path] = None, first: int = 0) -> "Collection":
        """Make an empty collection and open it for writing. If its first sync or addition fails, close() removes it.

        model: the file or the run that makes vectors from images; backbone … batch are as kith.Model's, where the file does not say
        them or others are wanted, and the collection remembers those that count. Without a model, dim: the size of vectors that are
        made elsewhere. columns: {"year": int, "weight": float, "place": str}. folder: where relative paths of added rows begin.
        first: as Index.create's.
        """
        option = options("kith_collection_options")
        how, kept = model_options(model, backbone=backbone, settings=settings, pool=pool, tap=tap, resize=resize, channels=channels,
                                  height=height, width=width, device=device, precision=precision, batch=batch)
        if model is not None:
            option.model = how
        elif any((backbone, settings, pool, tap, resize, channels, height, width)):
            raise ValueError("backbone, settings, pool, tap, resize and the input's size are of a model; wanted model=, too")
        option.columns, option.n_columns, kept_columns = new_columns(columns)
        option.dim, option.metric, option.recall, option.first = dim, metric_named(metric), recall, first
        where = ffi.NULL if folder is None else ffi.new("char[]", encode(os.fspath(folder)))
        option.folder = where
        made = ffi.new("kith_collection **")
        call(lib.kith_collection_create, encode(os.fspath(path)), option, made)
        return cls(Handle(made[0], lib.kith_collection_free, os.fspath(path), True, "collection"))

    @classmethod
    def open(cls, path: Path, *, write: bool = False, model: Union[None, Path, Model] = None, device: str = "cpu",
             precision: str = "float32", batch: int = 0) -> "Collection":
        """Open the last commit; the model is opened when it is first needed. model: where its file lies now, if it was moved since
        the collection was made; or a kith.Model that is open already, which is used if it made the vectors."""
        option = options("kith_collection_open_options")
        lent = model if isinstance(model, Model) else None
        how, kept = model_options(None if isinstance(model, Model) else model, device=device, precision=precision, batch=batch)
        option.mode = lib.KITH_INDEX_WRITE if write else lib.KITH_INDEX_READ
        option.model = how
        if lent is not None and lent._is_part:
            raise ValueError("the model is another collection's, which closes it; wanted kith.Model(FILE)")
        if lent is not None:
            option.shared = lent._handle
        made = ffi.new("kith_collection **")
        call(lib.kith_collection_open, encode(os.fspath(path)), option, made)
        return cls(Handle(made[0], lib.kith_collection_free, os.fspath(path), write, "collection"), lent)

    def close(self) -> None:
        """Give it back, with its index and its model. kith.Busy while another thread's call is under way."""
        with self._guard.alone, self._asking.alone:
            self._handle.close()

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            info = self._index.info
        except Busy:
            return f"Collection({self._handle.path!r}, in use)"
        except (ValueError, Error):
            return f"Collection({self._handle.path!r}, closed)"
        return f"Collection({self._handle.path!r}, {info.n_items} items of {info.dim} values, {info.metric})"

    def __len__(self) -> int:
        return len(self._index)

    @property
    def index(self) -> Index:
        """Its index, for everything that has nothing to do with photos. It is closed with the collection."""
        return self._index

    @property
    def model(self) -> Model:
        """Its model, opened if it is not yet. It is closed with the collection, whose searches it goes by turns with."""
        made = ffi.new("kith_model **")
        with self._asks, self._asking.alone:
            call(lib.kith_collection_model, self._handle.get(), made)

        def find() -> Any:
            self._handle.get()  # not after close()
            return made[0]

        return Model._part(find, self._asking, self._guard.shared)

    @property
    def info(self) -> CollectionInfo:
        """What it is and remembers."""
        c = ffi.new("kith_collection_info *")
        with self._asks, self._asking.alone:
            call(lib.kith_collection_info_get, self._handle.get(), c)
            return CollectionInfo(info_of(c.index), _word(c.model), [text(c.sources[i]) for i in range(c.n_sources)], _word(c.kind),
                                  SPLIT_NAMES[c.split], _word(c.folder),
                                  None if c.false_match_rates == ffi.NULL else Calibration(c.false_match_rates))

    def check(self, progress: Optional[Progress] = None) -> int:
        """Read everything and check it; how many bytes that were. What is wrong is a kith.Error that names the file."""
        option = options("kith_work_options")
        work = Work(progress)
        work.watch(option)
        n_bytes = ffi.new("int64_t *")
        with self._asks:
            work.call(lib.kith_collection_check, self._handle.get(), option, n_bytes)
        found: int = n_bytes[0]
        return found

    # ---- keeping up with photos ----

    def sync(self, sources: Optional[Union[Path, Sequence[Path]]] = None, *, kind: Optional[str] = None, split: str = "all",
             most_removed: float = 1.0, with_removed: bool = False, exif: Optional[bool] = None, meta: Optional[Path] = None,
             progress: Optional[Progress] = None) -> SyncReport:
        """Make the collection hold what its sources hold: what is new or changed is embedded, what is gone is removed, and false-match
        rates are measured where labels are many enough.

        sources: files and folders, one data set (kind=), or a recipe; without, those it remembers. most_removed: refuse when a
        larger part of the items would go. with_removed: also files that were removed by hand. exif: read date, camera and place of all
        photos (True), or of none from now on (False); without, of what is new, unless it was told otherwise before. meta: a CSV file
        whose rows belong to photos by the column path; it is remembered, and "" forgets it. A kith.Error has the report, too:
        error.report.reason.
        """
        given, kept = sources_of(sources, kind, split)
        return self._sync(lib.kith_collection_sync, (given,), most_removed, with_removed, progress, exif, meta)

    def add(self, paths: Union[Path, Sequence[Path]], *, progress: Optional[Progress] = None) -> SyncReport:
        """These files and folders too, from now on, also if they were removed by hand; nothing goes."""
        named = paths_of(paths)
        list_, kept = strings(named)
        return self._sync(lib.kith_collection_add, (list_, len(named)), None, False, progress)

    def _sync(self, function: Any, given: Any, most_removed: Optional[float], with_removed: bool, progress: Optional[Progress],
              exif: Optional[bool] = None, meta: Optional[Path] = None) -> SyncReport:
        option = options("kith_sync_options")
        if exif is not None:
            option.exif = lib.KITH_EXIF_ALL if exif else lib.KITH_EXIF_NONE
        table = None if meta is None else ffi.new("char[]", encode(os.fspath(meta)))
        if table is not None:
            option.meta = table
        if most_removed is not None:
            option.most_removed = most_removed
        option.with_excluded = with_removed
        work = Work(progress)
        work.watch(option)
        report = ffi.gc(ffi.new("kith_sync_report *"), lib.kith_sync_report_release)
        with self._guard.alone, self._asking.alone:
            try:
                work.call(function, self._handle.get(), *given, option, report)
            except Error as error:
                error.report = report_of(report)
                raise
        return report_of(report)

    def facets(self, column: str, where: Optional[str] = None, most: int = 20) -> Facets:
        """How many items have which value of a column, as Index.facets()."""
        return self.index.facets(column, where, most)

    def add_rows(self, rows: ArrayLike, *, paths: Optional[Sequence[Optional[Path]]] = None,
                 labels: Optional[Sequence[Optional[str]]] = None, values: Optional[Mapping[str, Sequence[Value]]] = None,
                 progress: Optional[Progress] = None) -> SyncReport:
        """Vectors [n, dim] that were made elsewhere, with what is known of each; false-match rates are measured as after a sync."""
        given = matrix(rows, "rows")
        option = options("kith_work_options")
        work = Work(progress)
        work.watch(option)
        report = ffi.gc(ffi.new("kith_sync_report *"), lib.kith_sync_report_release)
        with self._guard.alone, self._asking.alone:
            columns = columns_of(self._index._open())
            items, kept = new_items(columns, len(given.values), paths, labels, values)
            work.call(lib.kith_collection_add_rows, self._handle.get(), given.array, items, option, report)
        return report_of(report)

    def remove(self, patterns: Union[str, Sequence[str]]) -> int:
        """Remove by hand the items whose path is like one of the patterns of a shell ("oak/" for a folder, "*.png"), for the whole path or
        for its end behind a slash: a sync leaves their files out until they are added again. How many they were. By id:
        index.exclude() and index.commit()."""
        named = paths_of(patterns)
        list_, kept = strings(named)
        n_removed = ffi.new("int64_t *")
        with self._guard.alone, self._asking.alone:
            call(lib.kith_collection_remove, self._handle.get(), list_, len(named), n_removed)
        found: int = n_removed[0]
        return found

    def calibrate(self, data: Optional[Union[Path, Sequence[Path]]] = None, *, kind: Optional[str] = None, split: str = "test",
                  progress: Optional[Progress] = None) -> Calibration:
        """Measure how often different things look alike, on data whose classes the model was not trained on, or without it on the
        labels of the collection itself; same= and false_match_rate of searches go by that."""
        given, kept = sources_of(data, kind, split)
        work = Work(progress)
        found = ffi.new("kith_calibration *")
        with self._guard.alone, self._asking.alone:
            work.call(lib.kith_collection_calibrate, self._handle.get(), given, work.callback, ffi.NULL, found)
        return Calibration(found)

    # ---- asking ----

    def search(self, queries: Union[Query, Sequence[Query]], k: Optional[int] = 10, *, where: Optional[str] = None,
               same: Optional[float] = None, min_score: Optional[float] = None, rerank: str = "none", flips: bool = False,
               exact: bool = False, hide_duplicates: bool = False, offset: int = 0, keep_errors: bool = False,
               device: Optional[str] = None, progress: Optional[Progress] = None, unknown: float = 0.1,
               precision: Optional[float] = None, complete: Optional[float] = None) -> List[Answer]:
        """One answer for each query, with its k nearest items (None: all).

        A query is a file, a decoded image (uint8 [h, w] or [h, w, 3], also of PIL), the bytes of a file, the id of an item, a vector
        (float [dim]), or a list of these that count together, which kith.Part gives weights and boxes:
        search([["a.jpg", kith.Part("b.jpg", weight=-1)]]) is one query, search(["a.jpg", "b.jpg"]) are two.

        where: only items that an expression holds for, as "label = tern and year >= 2020". same: only hits with at most this
        false-match rate; min_score: with at least this score. rerank: a better order, "qe" asks again with the first hits, "kr" counts shared neighbours. flips: images count
        as the mean with their mirror images. exact: compare every vector; device: where. hide_duplicates: of several hits with the
        same picture only the nearest. offset: leave out so many of the nearest. keep_errors: a query that fails has its error in
        its answer, unless all fail; else the first is raised.

        unknown: the part of the queries that shows things the collection does not have, for Hit.error_rate. precision: of the first k
        hits so many that at most the part 1 - precision of all is wrong; complete: so many that this part of the queries whose
        thing is there gets a right one, both with 95 % confidence.
        """
        option = options("kith_ask_options")
        place = ffi.NULL if device is None else ffi.new("char[]", encode(device))
        option.device = place
        work = Work(progress)
        work.watch(option)
        with self._asks, self._asking.alone:
            index, known = self._index._open(), ffi.new("kith_index_info *")
            lib.kith_index_info_get(index, known)
            asked = Requests(queries, known.dim, k, offset, where, same, min_score, rerank, flips, exact, hide_duplicates,
                             unknown, precision, complete)
            found = new_found(asked.n)
            if asked.n > 0:
                work.call(lib.kith_collection_search, self._handle.get(), asked.c, asked.n, option, found)
            columns = columns_of(index)
            answers = [answer_of(found[i], columns, known.dim) for i in range(asked.n)]
        for answer in answers:
            if answer.error is not None and not keep_errors:
                raise answer.error
        return answers

    def identify(self, things: Union[Query, Sequence[Query]], *, error: float = 0.01, k: int = 3, exact: bool = False,
                 keep_errors: bool = False, device: Optional[str] = None, progress: Optional[Progress] = None) -> Identified:
        """The names of things by the labels of the collection, or None where no name can be given with at most this rate of false ones.

        A thing is a photo as in search(), or a list of photos of the same thing: identify(["a.jpg", "b.jpg"]) are two things,
        identify([["a.jpg", "b.jpg"]]) is one. The error holds for photos of things that are not in the collection (the share that is given a name) and
        for photos of those that are (the share that is given a wrong one), in every mix. k: names that are told with their nearest photos, given or
        not. keep_errors: a thing that fails has its error in its answer, unless all fail; else the first is raised. A
        kith.Error says how many labelled photos are wanted where they are too few to promise the error.
        """
        option = options("kith_identify_options")
        place = ffi.NULL if device is None else ffi.new("char[]", encode(device))
        option.error, option.k, option.exact, option.device = error, k, exact, place
        work = Work(progress)
        work.watch(option)
        report = ffi.new("kith_identify_report *")
        with self._asks, self._asking.alone:
            index, known = self._index._open(), ffi.new("kith_index_info *")
            lib.kith_index_info_get(index, known)
            asked = IdentifyRequests(things, known.dim)
            found = new_identified(asked.n)
            work.call(lib.kith_collection_identify, self._handle.get(), asked.c, asked.n, option, report, found)
            columns = columns_of(index)
            named = [named_of(found[i], columns) for i in range(asked.n)]
        for one in named:
            if one.error is not None and not keep_errors:
                raise one.error
        return identified_of(named, report)

    def duplicates(self, *, where: Optional[str] = None, n_candidates: Optional[int] = None, least: Optional[float] = None,
                   progress: Optional[Progress] = None) -> Duplicates:
        """Groups of the same picture: copied, resized, saved again, mirrored or cut a little. where: only among the items that an
        expression holds for. n_candidates: nearest neighbours looked at for each item (8); least: how alike pictures must be, 0 to 1
        (0.95)."""
        option = options("kith_duplicates_options")
        expression = ffi.NULL if where is None else ffi.new("char[]", encode(where))
        option.where = expression
        if n_candidates is not None:
            option.n_candidates = n_candidates
        if least is not None:
            option.least = least
        work = Work(progress)
        work.watch(option)
        found = ffi.gc(ffi.new("kith_duplicates *"), lib.kith_duplicates_release)
        with self._asks:
            work.call(lib.kith_collection_duplicates, self._handle.get(), option, found)
        return duplicates_of(found)

    def groups(self, *, error: float = 0.01, least: int = 2, all: bool = False, where: Optional[str] = None,
               progress: Optional[Progress] = None) -> Groups:
        """What belongs together, of the items without a label (all: of all). In a collection opened for writing every item of a group gets its
        number in the column "group", and what is added later is put into the groups; one opened for reading stays as it is.

        error: which part of the pairs put together may be wrong; measured on the items that have labels, where they are enough,
        else an estimate. least: items that make a group. where: only the items that an expression holds for.
        """
        option, work, kept = groups_options(error, least, all, where, progress)
        found = new_groups()
        with self._guard.alone, self._asking.alone:
            work.call(lib.kith_collection_group, self._handle.get(), option, found)
        return groups_of(found)

    def picture(self, id: int) -> str:
        """Where the image of an item lies."""
        path = ffi.new("char[]", _MOST_PATH)
        with self._asks:
            call(lib.kith_collection_picture, self._handle.get(), id, path, _MOST_PATH)
        return text(path)


def _word(c: Any) -> Optional[str]:
    return None if c == ffi.NULL else text(c)
