"""kith: deep metric learning. Losses, measures, training and search of libkith from Python.

>>> import numpy as np, kith
>>> rng = np.random.default_rng(0)
>>> y = np.repeat(np.arange(10), 8)
>>> x = rng.normal(size=(10, 16))[y] + 0.3 * rng.normal(size=(80, 16))
>>> print(kith.evaluate(x, y, k=[1]))
R@1 1.0000, MAP@R 1.0000, 80 queries

docs/python.md is a tour.
"""

from ._collection import Collection, CollectionInfo
from ._doctor import Finding, Findings, examine
from ._errors import Busy, Error, Stopped
from ._groups import Group, Groups
from ._images import ImageBatch, read_images, synth
from ._index import Facets, FacetValue, Hits, Index, IndexInfo
from ._items import Item
from ._library import lib as _lib, text as _text
from ._loss import Loss, LossValue, PairWeights
from ._measures import AcceptRate, Clustering, Evaluation, Intervals, Verification, evaluate
from ._model import Embedded, Model, ModelIdentity, ModelInfo
from ._names import Identified, Named, Same, same
from ._neighbors import KMeans, Neighbors, kmeans, knn, tsne
from ._pull import Pulled, pull, pulled, remove_pulled
from ._queries import Explanation, Shares
from ._requests import Answer, Duplicate, Duplicates, Hit, Part
from ._sync import Calibration, SyncReport
from ._threads import threads
from ._training import Estimate, TrainEvent, TrainResult, TrainScores, train
from ._tuning import PhotosResult, train_photos
from ._worst import Worst, worst

#: The version of the library that was loaded, and the commit it was built from.
__version__: str = _text(_lib.kith_version())
commit: str = _text(_lib.kith_commit())

__all__ = [
    "AcceptRate", "Answer", "Busy", "Calibration", "Clustering", "Collection", "CollectionInfo", "Duplicate", "Duplicates",
    "Embedded", "Error", "Estimate", "Evaluation", "Explanation", "FacetValue", "Facets", "Finding", "Findings", "Group",
    "Groups", "Hit", "Hits", "Identified", "ImageBatch", "Index", "IndexInfo", "Intervals", "Item", "KMeans", "Loss",
    "LossValue", "Model", "ModelIdentity", "ModelInfo", "Named", "Neighbors", "PairWeights", "Part", "PhotosResult",
    "Pulled", "Same", "Shares", "Stopped", "SyncReport", "TrainEvent", "TrainResult", "TrainScores", "Verification",
    "Worst", "commit", "evaluate", "examine", "kmeans", "knn", "pull", "pulled", "read_images", "remove_pulled", "same",
    "synth", "threads", "train", "train_photos", "tsne", "worst",
]
