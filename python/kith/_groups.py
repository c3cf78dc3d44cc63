"""What belongs together in a collection: kith.Groups."""

import math
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

from ._library import encode, ffi, lib, options
from ._work import Progress, Work


@dataclass(frozen=True)
class Group:
    """Items that belong together: of one thing, as far as the model can tell."""

    #: The number that the group keeps while it lives, and that its items have in the column "group".
    number: int
    #: The item that represents it, and the mean score of the others with it.
    medoid: int
    cohesion: float
    #: The medoid first, then by falling score with it.
    ids: List[int]


@dataclass(frozen=True)
class Groups:
    """The groups of a collection, the largest first."""

    groups: List[Group]
    #: Items that could be grouped, those in no group, and groups that got a number now.
    n_items: int
    n_alone: int
    n_new: int
    #: As asked: which part of the pairs put together may be wrong.
    error: float
    #: From labels: how many there are, pairs of labelled items put together, which part of them is right, and which part of the pairs
    #: of one label was put together; None: too few to measure it, and the error is an estimate.
    n_labels: int
    n_pairs: int
    precision: Optional[float]
    recall: Optional[float]

    def __repr__(self) -> str:
        return f"Groups({len(self.groups)} groups of {self.n_items - self.n_alone} items, {self.n_alone} alone)"


def groups_options(error: float, least: int, all: bool, where: Optional[str], progress: Optional[Progress]) -> Tuple[Any, Work, Any]:
    """kith_groups_options, the Work that watches it, and what must stay as long as it is used."""
    option = options("kith_groups_options")
    expression = ffi.NULL if where is None else ffi.new("char[]", encode(where))
    option.error, option.least, option.all, option.where = error, least, all, expression
    work = Work(progress)
    work.watch(option)
    return option, work, expression


def new_groups() -> Any:
    return ffi.gc(ffi.new("kith_groups *"), lib.kith_groups_release)


def groups_of(c: Any) -> Groups:
    """A kith_groups, copied."""
    groups = [Group(c.groups[i].number, c.groups[i].medoid, c.groups[i].cohesion,
                    [c.ids[k] for k in range(c.begin[i], c.begin[i + 1])]) for i in range(c.n_groups)]
    return Groups(groups, c.n_items, c.n_alone, c.n_new, c.error, c.n_labels, c.n_pairs, _part(c.precision), _part(c.recall))


def _part(value: float) -> Optional[float]:
    return None if math.isnan(value) else value
