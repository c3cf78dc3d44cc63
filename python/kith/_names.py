"""Names with a promised rate of false ones, and whether two photos show the same thing: kith.Identified, kith.same."""

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Union

from ._arrays import matrix
from ._calls import call
from ._errors import Error, failure
from ._images import Path
from ._library import ffi, lib, text
from ._model import Model
from ._queries import Image
from ._requests import Hit, hit_of, number_of


@dataclass(frozen=True)
class Named:
    """The answer for one thing."""

    #: The label; None: unknown.
    name: Optional[str]
    #: Of the first candidate: larger is stronger; None: too few of the photos say the same.
    evidence: Optional[float]
    #: The rate of false names if names are given from this evidence on: as measured, and its bounds at 95 %.
    false_name_rate: Optional[float]
    false_name_low: Optional[float]
    false_name_high: Optional[float]
    #: The name has one photo in the collection: it is measured only with all others.
    is_single: bool
    #: The nearest photo of each name: the name in question first, then by score.
    candidates: List[Hit]
    #: Why there is no answer (keep_errors=True).
    error: Optional[Error] = None


@dataclass(frozen=True)
class Identified:
    """What Collection.identify() says, and what it goes by."""

    things: List[Named]
    #: The rate of false names, as promised, and the smallest that could be.
    error: float
    least_error: float
    #: Of photos whose thing is in the collection, about this share gets its name.
    named: float
    #: Photos with a label, labels, and labels of one photo.
    n_photos: int
    n_names: int
    n_single: int
    #: Of 20 photos and more: they are "farther" from the collection than new things are, or "nearer" than its own photos to each other,
    #: and the error was not measured on photos like them; None: neither.
    unlike: Optional[str]


@dataclass(frozen=True)
class Same:
    """What is known of two photos."""

    #: "same", "different" or "cannot say".
    verdict: str
    score: float
    #: Of pairs of different things, the share that looks at least this alike; None: the model has no curve.
    false_match_rate: Optional[float]
    #: Of pairs of the same thing, the share that looks less alike.
    missed_rate: Optional[float]


def named_of(c: Any, columns: Mapping[str, type]) -> Named:
    """A kith_identified, copied."""
    if c.status:
        return Named(None, None, None, None, None, False, [], failure(c.status, c.error))
    return Named(None if c.name == ffi.NULL else text(c.name), number_of(c.evidence), number_of(c.false_name_rate),
                 number_of(c.false_name_low), number_of(c.false_name_high), c.is_single,
                 [hit_of(c.candidates[i], columns) for i in range(c.n_candidates)])


def identified_of(things: List[Named], c: Any) -> Identified:
    """A kith_identify_report, copied."""
    unlike = {-1: "farther", 1: "nearer"}.get(c.unlike)
    return Identified(things, c.error, c.least, c.named, c.n_photos, c.n_names, c.n_single, unlike)


def same(a: Union[Path, Image], b: Union[Path, Image], *, model: Optional[Union[Model, Path]] = None,
         error: float = 0.01) -> Same:
    """Do two photos show the same thing? By the model's own false-match rates; model: "general" without.

    "same" where at most `error` of the pairs of different things look as alike, "different" where at most `error` of the pairs of the same
    thing look as different, else "cannot say".

    >>> import kith, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> kith.synth(folder.name + "/glyphs", n_classes=2, n_images=2, side=32)
    >>> model = kith.Model(backbone="convnet4", embedding=8, channels=1, height=28, width=28)
    >>> photo = folder.name + "/glyphs/glyph00001/00001.png"
    >>> kith.same(photo, photo, model=model).verdict  # a model that was not trained has no rates
    'cannot say'
    """
    own = model if isinstance(model, Model) else Model(model) if model is not None else Model()
    rows = matrix([own.query(a), own.query(b)], "photos")
    curve = ffi.new("kith_calibration *")
    has_curve = own._curve(curve)
    found = ffi.new("kith_sameness *")
    at = ffi.cast("float *", ffi.from_buffer(rows.values))
    call(lib.kith_same, curve if has_curve else ffi.NULL, at, at + rows.values.shape[1], rows.values.shape[1], error, found)
    return Same(text(lib.kith_verdict_name(found.verdict)), found.score, number_of(found.false_match_rate),
                number_of(found.missed_rate))
