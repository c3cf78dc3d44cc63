"""How good an embedding is: kith.evaluate."""

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, IntArray, labels, matrix, pointer, rows_of, taken
from ._library import encode, ffi, lib, options
from ._neighbors import metric_named
from ._work import Progress, Work

Interval = Tuple[float, float]

_SCORES = ("precision_at_1", "r_precision", "map_at_r", "map", "mrr")
# kith_scores and kith_class_scores as numpy sees them: retrieval's own memory is handed out, not a copy.
_SCORES_DTYPE = np.dtype([("recall", "f8", (lib.KITH_MOST_K,))] + [(name, "f8") for name in _SCORES])
_CLASS_DTYPE = np.dtype([("label", "i8"), ("n_query", "i8"), ("n_lone", "i8"), ("n_gallery", "i8"), ("mean", _SCORES_DTYPE)])


@dataclass(frozen=True)
class Intervals:
    """95 % intervals of the means (bootstrap over queries)."""

    recall: Dict[int, Interval]
    precision_at_1: Interval
    r_precision: Interval
    map_at_r: Interval
    map: Interval
    mrr: Interval


@dataclass(frozen=True)
class Clustering:
    """k-means clusters against the classes."""

    nmi: float
    ami: float
    f1: float
    n_clusters: int


@dataclass(frozen=True)
class AcceptRate:
    """True accepts with a threshold that keeps to a false accept rate."""

    far_wanted: float
    threshold: float
    far: float
    tar: float


@dataclass(frozen=True)
class Verification:
    """"The same or not?" over all pairs."""

    auc: float
    eer: float
    eer_threshold: float
    at: List[AcceptRate]


@dataclass(frozen=True)
class Evaluation:
    """The measures of an embedding, as fractions; docs/evaluation.md says how each is counted."""

    #: R@K by K: the part of the queries with a relevant item among the K nearest.
    recall: Dict[int, float]
    precision_at_1: float
    r_precision: float
    map_at_r: float
    map: float
    mrr: float
    n_query: int
    n_gallery: int
    #: Queries without a relevant item; they are left out of every mean.
    n_lone: int
    #: Queries with a relevant and an irrelevant item at exactly the same score.
    n_tied: int
    #: The values of each query, a structured array; its recall has one column for each K.
    per_query: npt.NDArray[Any]
    #: Label, counts and means of each class, a structured array.
    per_class: npt.NDArray[Any]
    #: The names of the classes if the labels were names: label i of per_class is names[i].
    names: Optional[npt.NDArray[Any]]
    intervals: Optional[Intervals]
    clustering: Optional[Clustering]
    verification: Optional[Verification]
    seconds: float

    def __repr__(self) -> str:
        return f"Evaluation({self})"

    def __str__(self) -> str:
        parts = [f"R@{k} {value:.4f}" for k, value in self.recall.items()]
        return ", ".join(parts + [f"MAP@R {self.map_at_r:.4f}", f"{self.n_query} queries"])


def _interval(c: Any) -> Interval:
    return (c.low, c.high)


def _intervals(c: Any, k: List[int]) -> Intervals:
    means = {name: _interval(getattr(c, name)) for name in _SCORES}
    return Intervals(recall={n: _interval(c.recall[i]) for i, n in enumerate(k)}, **means)


def _verification(c: Any) -> Verification:
    at = [AcceptRate(a.far_wanted, a.threshold, a.far, a.tar) for a in c.at]
    return Verification(c.auc, c.eer, c.eer_threshold, at)


def _evaluation(found: Any, k: List[int], names: Optional[npt.NDArray[Any]]) -> Evaluation:
    r = found.retrieval
    clusters = found.clustering
    return Evaluation(
        recall={n: r.mean.recall[i] for i, n in enumerate(k)},
        precision_at_1=r.mean.precision_at_1, r_precision=r.mean.r_precision, map_at_r=r.mean.map_at_r, map=r.mean.map,
        mrr=r.mean.mrr, n_query=r.n_query, n_gallery=r.n_gallery, n_lone=r.n_lone, n_tied=r.n_tied,
        per_query=taken(found, r.query, _SCORES_DTYPE, (r.n_query,)),
        per_class=taken(found, r.per_class, _CLASS_DTYPE, (r.n_classes,)),
        names=names,
        intervals=_intervals(found.intervals, k) if found.has_intervals else None,
        clustering=Clustering(clusters.nmi, clusters.ami, clusters.f1, clusters.n_clusters) if found.has_clustering else None,
        verification=_verification(found.verification) if found.has_verification else None,
        seconds=found.seconds)


def _choose_k(option: Any, k: Iterable[int]) -> List[int]:
    wanted = sorted({int(n) for n in k})
    if not 1 <= len(wanted) <= lib.KITH_MOST_K:
        raise ValueError(f"k has {len(wanted)} values; wanted 1 to {lib.KITH_MOST_K}")
    option.n_k = len(wanted)
    for i, n in enumerate(wanted):
        option.k[i] = n
    return wanted


def evaluate(x: ArrayLike, y: ArrayLike, *, k: Iterable[int] = (1, 2, 4, 8), metric: str = "cosine",
             query: Optional[ArrayLike] = None, gallery: Optional[ArrayLike] = None, intervals: bool = True,
             clustering: bool = True, verification: bool = False, seed: int = 0, device: str = "cpu",
             progress: Optional[Progress] = None) -> Evaluation:
    """Retrieval, clustering and verification measures of embeddings x [n, dim] with labels y [n].

    x is used where it lies: float32, float64 or float16, in C order; a torch tensor in host memory is fine, too. Labels are
    whole numbers or names. `query` and `gallery` are row numbers or masks; without them every row is compared with all others.

    >>> import numpy as np, kith
    >>> x = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], dtype=np.float32)
    >>> found = kith.evaluate(x, ["left", "left", "up", "up"], k=(1, 2))
    >>> found.recall
    {1: 1.0, 2: 1.0}
    >>> found.clustering.nmi
    1.0
    """
    rows = matrix(x)
    numbers, names = labels(y, "y")
    queries = rows_of(query, len(rows.values), "query")
    found_in = rows_of(gallery, len(rows.values), "gallery")
    judge, retrieval = options("kith_judge_options"), options("kith_retrieval_options")
    bootstrap, kmeans = options("kith_bootstrap_options"), options("kith_kmeans_options")
    verify = options("kith_verification_options")
    where = ffi.new("char[]", encode(device))
    retrieval.metric = verify.metric = metric_named(metric)
    retrieval.device = kmeans.device = where
    bootstrap.seed = kmeans.seed = seed
    wanted = _choose_k(retrieval, k)
    judge.has_intervals, judge.has_clustering, judge.has_verification = intervals, clustering, verification
    judge.retrieval, judge.bootstrap, judge.kmeans = retrieval, bootstrap, kmeans
    verify.bootstrap, judge.verification = bootstrap, verify
    work = Work(progress)
    work.watch(retrieval, kmeans, verify)
    found = ffi.gc(ffi.new("kith_judgement *"), lib.kith_judgement_release)
    given = ffi.new("kith_retrieval_input *", {
        "embedding": rows.array, "labels": pointer("int64_t *", numbers), "n_labels": len(numbers),
        "query": pointer("int64_t *", queries), "n_query": _count(queries),
        "gallery": pointer("int64_t *", found_in), "n_gallery": _count(found_in)})
    work.call(lib.kith_judge_run, given, judge, found)
    return _evaluation(found, wanted, names)


def _count(values: Optional[IntArray]) -> int:
    return 0 if values is None else len(values)
