"""Where an embedding fails: kith.worst."""

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, labels, matrix, pointer, rows_of, taken
from ._library import encode, ffi, lib, options
from ._neighbors import metric_named
from ._work import Progress, Work

# kith_worst_hit, kith_worst_query and kith_hard_negative as numpy sees them.
_HIT = np.dtype([("row", "i8"), ("label", "i8"), ("score", "f8")])
_QUERY = np.dtype([("row", "i8"), ("label", "i8"), ("average_precision", "f8"), ("first_hit", "i8")])
_NEGATIVE = np.dtype([("row", "i8"), ("label", "i8"), ("negative", _HIT), ("positive", _HIT), ("margin", "f8")])


@dataclass(frozen=True)
class Worst:
    """The worst queries and the hardest negatives: structured arrays, the worst first. Rows are those of x."""

    #: row, label, average_precision, first_hit (the rank of the nearest relevant row, from 1).
    queries: npt.NDArray[Any]
    #: [queries, n_nearest] row, label and score of what each of them finds; row -1 at the end of a small gallery.
    nearest: npt.NDArray[Any]
    #: row and label of a query, negative (its nearest row, of another class), positive (the nearest of its own), margin.
    negatives: npt.NDArray[Any]
    n_judged: int
    #: Queries whose nearest row is of another class.
    n_wrong: int
    #: The names of the classes if the labels were names.
    names: Optional[npt.NDArray[Any]]


def worst(x: ArrayLike, y: ArrayLike, *, most: int = 50, n_nearest: int = 6, metric: str = "cosine",
          query: Optional[ArrayLike] = None, gallery: Optional[ArrayLike] = None, device: str = "cpu",
          progress: Optional[Progress] = None) -> Worst:
    """The queries with the lowest average precision, and those whose nearest row is wrong by the greatest margin; most=0: all.

    >>> import numpy as np, kith
    >>> x = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1], [0.1, 0.9]], dtype=np.float32)
    >>> found = kith.worst(x, ["left", "left", "up", "up", "up"], n_nearest=2)
    >>> int(found.queries["row"][0]), found.n_wrong
    (2, 1)
    >>> [int(found.negatives[side]["row"][0]) for side in ("negative", "positive")]
    [1, 4]
    """
    rows = matrix(x)
    numbers, names = labels(y, "y")
    queries = rows_of(query, len(rows.values), "query")
    found_in = rows_of(gallery, len(rows.values), "gallery")
    option = options("kith_worst_options")
    where = ffi.new("char[]", encode(device))
    option.metric, option.most, option.n_nearest, option.device = metric_named(metric), most, n_nearest, where
    work = Work(progress)
    work.watch(option)
    found = ffi.gc(ffi.new("kith_worst *"), lib.kith_worst_release)
    given = ffi.new("kith_retrieval_input *", {
        "embedding": rows.array, "labels": pointer("int64_t *", numbers), "n_labels": len(numbers),
        "query": pointer("int64_t *", queries), "n_query": 0 if queries is None else len(queries),
        "gallery": pointer("int64_t *", found_in), "n_gallery": 0 if found_in is None else len(found_in)})
    work.call(lib.kith_worst_find, given, option, found)
    return Worst(taken(found, found.queries, _QUERY, (found.n,)), taken(found, found.nearest, _HIT, (found.n, found.n_nearest)),
                 taken(found, found.negatives, _NEGATIVE, (found.n_negatives,)), found.n_judged, found.n_wrong, names)
