"""Training from a recipe: kith.train."""

import json
import math
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from ._arrays import strings
from ._images import Path
from ._library import encode, ffi, lib, options, text
from ._work import Work

_KINDS = {lib.KITH_TRAIN_BEGIN: "begin", lib.KITH_TRAIN_STEP: "step", lib.KITH_TRAIN_EVAL: "eval",
          lib.KITH_TRAIN_SAVED: "saved", lib.KITH_TRAIN_WARNING: "warning", lib.KITH_TRAIN_NOTE: "note",
          lib.KITH_TRAIN_BUSY: "busy"}


@dataclass(frozen=True)
class TrainEvent:
    """What happened in a run: "begin", "step", "eval", "saved", "warning" or "note"."""

    kind: str
    #: The folder of the run.
    run: str
    run_number: int
    n_runs: int
    #: Steps done, and steps in all.
    step: int
    n_steps: int
    epoch: int
    #: Of the last step that was logged (recipe: log_every).
    total: float
    terms: Dict[str, float]
    lr: float
    images_per_second: float
    #: Of "eval": "validation", "seen" or "test", and its scores.
    split: str
    recall_at_1: float
    map_at_r: float
    is_best: bool
    text: str


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval. Without a value n is 0, and the numbers are NaN."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.low:.4f} to {self.high:.4f})" if self.n else "not measured"


@dataclass(frozen=True)
class TrainScores:
    """The scores of one split."""

    recall_at_1: Estimate
    map_at_r: Estimate
    r_precision: Estimate
    nmi: Estimate


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to; run/result.json has more."""

    #: The folder; kith.Model(result.run) opens its model.
    run: str
    #: What the model was chosen on: "validation", "test" or "last".
    selection: str
    n_runs: int
    #: The step of the chosen model, and steps taken.
    step: int
    n_steps: int
    #: Unseen classes: with the chosen model, and before the first step.
    test: TrainScores
    untrained: TrainScores
    validation: TrainScores
    #: Training classes.
    seen: TrainScores
    seconds: float
    images_per_second: float

    def __repr__(self) -> str:
        runs = f", {self.n_runs} runs" if self.n_runs > 1 else ""
        return (f"TrainResult({self.run!r}, R@1 {self.test.recall_at_1}, MAP@R {self.test.map_at_r}, "
                f"step {self.step} of {self.n_steps}{runs})")


#: Called with an event; a true result asks for a stop after this step.
OnEvent = Callable[[TrainEvent], object]


def event_of(c: Any) -> TrainEvent:
    terms = {text(c.terms[i].name): c.terms[i].value for i in range(c.n_terms)}
    return TrainEvent(_KINDS[c.kind], text(c.run), c.run_number, c.n_runs, c.step, c.n_steps, c.epoch, c.total, terms, c.lr,
                      c.images_per_second, text(c.split), c.recall_at_1, c.map_at_r, c.is_best, text(c.text))


def _estimate(c: Any) -> Estimate:
    return Estimate(c.mean, c.low, c.high, c.n) if c.n else Estimate(math.nan, math.nan, math.nan, 0)


def scores_of(c: Any) -> TrainScores:
    return TrainScores(*(_estimate(e) for e in (c.recall_at_1, c.map_at_r, c.r_precision, c.nmi)))


def result_of(c: Any) -> TrainResult:
    return TrainResult(text(c.run), text(c.selection), c.n_runs, c.step, c.n_steps, scores_of(c.test), scores_of(c.untrained),
                       scores_of(c.validation), scores_of(c.seen), c.seconds, c.images_per_second)


def _overrides(given: Optional[Mapping[str, Any]]) -> List[bytes]:
    return [encode(f"{key}={value if isinstance(value, str) else json.dumps(value)}") for key, value in (given or {}).items()]


def train(recipe: Union[Path, Mapping[str, Any]], out: Optional[Path] = None, *,
          overrides: Optional[Mapping[str, Any]] = None, on_step: Optional[OnEvent] = None,
          on_event: Optional[OnEvent] = None, resume: bool = False, report: bool = True,
          allow_test_selection: bool = False) -> TrainResult:
    """Train a network as `kith train` does, in the folder `out`.

    recipe: a YAML file, a run's folder, or the recipe as a dict. overrides: {"optim.lr": 1e-4}. on_step is called after every
    step, on_event with everything else that happens. A true result of either stops the run after the step, and kith.Stopped is
    raised; so does Ctrl-C, with KeyboardInterrupt. The run is then saved, and train(out, resume=True) continues it.
    """
    option = options("kith_train_options")
    is_text = isinstance(recipe, Mapping)
    given = ffi.new("char[]", encode(json.dumps(recipe) if isinstance(recipe, Mapping) else os.fspath(recipe)))
    setattr(option, "recipe_text" if is_text else "recipe", given)
    words = _overrides(overrides)
    sets, kept = strings(words)
    option.sets, option.n_sets = sets, len(words)
    folder = None if out is None else ffi.new("char[]", encode(os.fspath(out)))
    if folder is not None:
        option.out = folder
    command = ffi.new("char[]", b"kith.train (Python)")
    option.command = command
    option.resume, option.no_report, option.allow_test_selection = resume, not report, allow_test_selection

    def notify(c: Any) -> object:
        wants = on_step if c.kind == lib.KITH_TRAIN_STEP else on_event
        # Busy events are there to look for Ctrl-C.
        return wants is not None and c.kind != lib.KITH_TRAIN_BUSY and wants(event_of(c))

    work = Work(notify, "kith_train_fn")
    option.notify = work.callback
    found = ffi.new("kith_train_result *")
    work.call(lib.kith_train_run, option, found)
    return result_of(found)
