"""Nearest neighbours, k-means and t-SNE over rows of numbers."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from ._arrays import ArrayLike, FloatArray, IntArray, from_array, matrix, new_array, pointer, rows_of, taken
from ._calls import call
from ._library import encode, ffi, lib, options
from ._work import Progress, Work

_NEIGHBOR = np.dtype([("score", "f8"), ("index", "i8")])


def metric_named(name: str) -> int:
    """The number of a metric: "cosine", "inner" or "sqeuclidean"."""
    found = ffi.new("kith_metric *")
    call(lib.kith_metric_parse, encode(name), found)
    value: int = found[0]
    return value


class Neighbors(NamedTuple):
    """The nearest rows of each query, nearest first: two arrays [queries, k]. Where there are fewer than k, -1 and NaN."""

    indices: IntArray
    scores: FloatArray

    def __repr__(self) -> str:
        return f"Neighbors({self.indices.shape[0]} queries, k {self.indices.shape[1]})"


def knn(x: ArrayLike, queries: Optional[ArrayLike] = None, *, k: int = 10, metric: str = "cosine", exact: bool = False,
        own_rows: Optional[ArrayLike] = None, device: str = "cpu", progress: Optional[Progress] = None) -> Neighbors:
    """The k nearest rows of x for each row of `queries`; without queries, the k nearest other rows of each row.

    exact: order by float64 scores where float32 cannot decide. own_rows: for each query the row of x that is the query itself
    and must not be found, or -1.

    >>> import numpy as np, kith
    >>> x = np.array([[1, 0], [0.9, 0.1], [0, 1]], dtype=np.float32)
    >>> kith.knn(x, k=1).indices.ravel()
    array([1, 0, 1])
    >>> kith.knn(x, np.array([[0.2, 1]]), k=2).indices
    array([[2, 1]])
    """
    rows = matrix(x)
    option = options("kith_knn_options")
    where = ffi.new("char[]", encode(device))
    option.metric, option.exact, option.device = metric_named(metric), exact, where
    work = Work(progress)
    work.watch(option)
    made = ffi.new("kith_gallery **")
    work.call(lib.kith_gallery_new, rows.array, option, made)
    gallery = ffi.gc(made[0], lib.kith_gallery_free)
    asked = rows if queries is None else matrix(queries, "queries")
    found = np.empty((len(asked.values), max(int(k), 0)), _NEIGHBOR)
    if queries is None:
        work.call(lib.kith_gallery_self, gallery, k, pointer("kith_neighbor *", found))
    else:
        own = rows_of(own_rows, len(asked.values), "own_rows")
        if own is not None and len(own) != len(asked.values):
            raise ValueError(f"own_rows has {len(own)} numbers for {len(asked.values)} queries")
        work.call(lib.kith_gallery_search, gallery, asked.array, pointer("int64_t *", own), k,
                  pointer("kith_neighbor *", found))
    return Neighbors(found["index"], found["score"])


@dataclass(frozen=True)
class KMeans:
    """Clusters of rows."""

    #: float32 [n_clusters, dim].
    centroids: FloatArray
    #: The cluster of each row.
    cluster: IntArray
    #: How many rows each cluster has.
    size: IntArray
    #: The sum of squared distances to the nearest centroid.
    objective: float
    n_iterations: int

    def __repr__(self) -> str:
        return f"KMeans({len(self.centroids)} clusters of {len(self.cluster)} rows, objective {self.objective:.6g})"


def kmeans(x: ArrayLike, n_clusters: int, *, n_iterations: int = 25, n_restarts: int = 1, seed: int = 0,
           tolerance: float = 0.0, normalize: bool = True, random_start: bool = False, device: str = "cpu",
           progress: Optional[Progress] = None) -> KMeans:
    """Lloyd's k-means with k-means++ (or random_start). The same bits with any number of threads.

    >>> import numpy as np, kith
    >>> x = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], dtype=np.float32)
    >>> found = kith.kmeans(x, 2)
    >>> bool(found.cluster[0] == found.cluster[1]), bool(found.cluster[0] == found.cluster[2])
    (True, False)
    """
    rows = matrix(x)
    option = options("kith_kmeans_options")
    where = ffi.new("char[]", encode(device))
    option.n_clusters, option.n_iterations, option.n_restarts = n_clusters, n_iterations, n_restarts
    option.seed, option.tolerance, option.normalize = seed, tolerance, normalize
    option.is_random_start, option.device = random_start, where
    work = Work(progress)
    work.watch(option)
    found = ffi.gc(ffi.new("kith_kmeans_result *"), lib.kith_kmeans_result_release)
    work.call(lib.kith_kmeans, rows.array, option, found)
    shape = (found.centroids.dim[0], found.centroids.dim[1])
    return KMeans(taken(found, found.centroids.data, np.float32, shape),
                  taken(found, found.cluster, np.int64, (len(rows.values),)),
                  taken(found, found.size, np.int64, shape[:1]), found.objective, found.n_iterations)


def tsne(x: ArrayLike, *, perplexity: Optional[float] = None, n_iterations: int = 1000, exaggeration: float = 12.0,
         learning_rate: float = 0.0, theta: float = 0.5, n_components: int = 50, metric: str = "cosine", seed: int = 0,
         progress: Optional[Progress] = None) -> npt.NDArray[np.float64]:
    """A map of the rows in the plane, [n, 2] (Barnes-Hut t-SNE on exact neighbours). The same seed gives the same map.
    perplexity: None: 30, less for few rows.

    >>> import numpy as np, kith
    >>> x = np.eye(40, dtype=np.float32)
    >>> kith.tsne(x, perplexity=5, n_iterations=20).shape
    (40, 2)
    """
    rows = matrix(x)
    option: Any = options("kith_tsne_options")
    option.perplexity, option.n_iterations, option.exaggeration = perplexity or 0.0, n_iterations, exaggeration
    option.learning_rate, option.theta, option.n_components = learning_rate, theta, n_components
    option.metric, option.seed = metric_named(metric), seed
    work = Work(progress)
    work.watch(option)
    made = new_array()
    work.call(lib.kith_tsne, rows.array, option, made, ffi.NULL)
    return from_array(made)
