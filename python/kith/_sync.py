"""What a collection is made from and what came of it: sources, reports of syncs, false-match rates."""

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._arrays import strings
from ._images import Path, paths_of, split_named
from ._library import encode, ffi, lib, text

_REASONS = {lib.KITH_SYNC_FINE: "fine", lib.KITH_SYNC_NO_SOURCES: "no_sources", lib.KITH_SYNC_SOURCE_MISSING: "source_missing",
            lib.KITH_SYNC_MOST_REMOVED: "most_removed", lib.KITH_SYNC_NOTHING_READ: "nothing_read"}


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
    #: Were there before and have other values: of a table, or of their files (EXIF).
    n_revalued: int
    #: The first hundred that could not be read, and why.
    bad: List[str]
    #: Why it did not take place: "no_sources", "source_missing", "most_removed" or "nothing_read"; else "fine".
    reason: str
    #: Why the false-match rates could not be measured; "": nothing failed.
    unmeasured: str
    #: Put into groups, and why what is new could not be.
    n_grouped: int
    ungrouped: str
    #: Lines about the table: rows of no photo, for instance.
    said: List[str]


class Calibration:
    """How often different things look alike: the rates of false matches for thresholds on the score."""

    def __init__(self, c: Any) -> None:
        """Made by Collection.calibrate() and Collection.info."""
        self._c = ffi.new("kith_calibration *", c[0])
        #: Which items were compared: "validation", "index" …
        self.source = text(c.source)
        self.n_classes: int = c.n_classes
        #: Pairs of one class, and of two.
        self.n_same: int = c.n_same
        self.n_different: int = c.n_different
        #: From the loosest threshold to the strictest: the share of pairs of two classes and of one that score as well.
        self.thresholds = self._points(self._c.threshold)
        self.false_match_rates = self._points(self._c.fmr)
        self.match_rates = self._points(self._c.tmr)

    def _points(self, values: Any) -> npt.NDArray[np.float64]:
        return np.array([values[i] for i in range(self._c.n)], np.float64)

    def threshold(self, rate: float) -> float:
        """The score at which at most this part of different pairs match; NaN: the pairs were too few to tell."""
        found: float = lib.kith_calibration_threshold(self._c, rate)
        return found

    def false_match_rate(self, score: float) -> float:
        """How often a pair of different classes scores as well."""
        found: float = lib.kith_calibration_false_match_rate(self._c, score)
        return found

    def __repr__(self) -> str:
        return f"Calibration({self.source}, {self.n_classes} classes, {self.n_different} different pairs)"


def sources_of(sources: Optional[Union[Path, Sequence[Path]]], kind: Optional[str], split: str) -> Tuple[Any, List[Any]]:
    """kith_sources, or NULL where none are named, and what must stay as long as they are used."""
    number = split_named(split)
    if sources is None:
        if kind is not None:
            raise ValueError(f"kind is {kind!r}; wanted the data set of that kind, too")
        return ffi.NULL, []
    named = paths_of(sources)
    paths, kept = strings(named)
    data = ffi.NULL if kind is None else ffi.new("char[]", encode(kind))
    made = ffi.new("kith_sources *", {"paths": paths, "n": len(named), "kind": data, "split": number})
    return made, [paths, kept, data]


def report_of(c: Any) -> SyncReport:
    """A kith_sync_report, copied."""
    return SyncReport(c.n_files, c.n_same, c.n_touched, c.n_moved, c.n_changed, c.n_added, c.n_removed, c.n_bad, c.n_excluded,
                      c.n_relabelled, c.n_revalued, [text(c.bad[i]) for i in range(c.n_named)], _REASONS[c.reason],
                      text(c.measured_error.message) if c.measured else "",
                      c.n_grouped, text(c.grouped_error.message) if c.grouped else "",
                      [text(c.said[i]) for i in range(c.n_said)])
