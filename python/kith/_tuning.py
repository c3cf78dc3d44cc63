"""Training on a folder of photos, without a recipe: kith.train_photos."""

import math
import os
from dataclasses import dataclass
from typing import Any, Optional

from ._images import Path
from ._library import encode, ffi, lib, options, text
from ._training import OnEvent, TrainResult, TrainScores, event_of, result_of, scores_of
from ._work import Work


@dataclass(frozen=True)
class PhotosResult:
    """What kith.train_photos found; run/tune.json has more."""

    #: The run that made the model: kith.Model(result.run.run) opens it.
    run: TrainResult
    #: The test classes by the model it started from.
    pretrained: TrainScores
    #: Nothing was better by more than chance: the model is as it was.
    is_pretrained: bool
    n_tried: int
    seconds: float
    #: In words: what won, by how much on held-out classes, and what more photos would likely bring.
    winner: str
    why: str
    advice: str

    def __repr__(self) -> str:
        before = self.pretrained.recall_at_1.mean
        from_ = "" if math.isnan(before) else f", R@1 {before:.4f} before"
        return f"PhotosResult({self.run.run!r}, {self.winner}, R@1 {self.run.test.recall_at_1}{from_})"


def train_photos(photos: Path, out: Path, *, minutes: float = 5, model: Optional[Path] = None, device: Optional[str] = None,
                 seed: int = 0, on_event: Optional[OnEvent] = None, report: bool = True) -> PhotosResult:
    """Find the best model for a folder of photos, one folder for each class, as `kith train PHOTOS` does, in the folder `out`.

    model: what to start from, a file, a run or "hub:NAME"; the one that comes with kith without it. A true result of on_event stops
    it, and kith.Stopped is raised; so does Ctrl-C, with KeyboardInterrupt. The same call goes on.
    """
    option = options("kith_tune_options")
    kept = []
    for name, value in (("photos", photos), ("out", out), ("model", model), ("device", device),
                        ("command", "kith.train_photos (Python)")):
        if value is not None:
            kept.append(ffi.new("char[]", encode(os.fspath(value))))
            setattr(option, name, kept[-1])
    option.minutes, option.seed, option.no_report = minutes, seed, not report

    def notify(c: Any) -> object:
        return on_event is not None and c.kind != lib.KITH_TRAIN_BUSY and on_event(event_of(c))

    work = Work(notify, "kith_train_fn")
    option.notify = work.callback
    found = ffi.new("kith_tune_result *")
    work.call(lib.kith_tune_run, option, found)
    return PhotosResult(result_of(found.run), scores_of(found.pretrained), found.is_pretrained, found.n_tried, found.seconds,
                        text(found.winner), text(found.why), text(found.advice))
