"""Failed calls as exceptions."""

import re
from typing import TYPE_CHECKING, Any, Optional

from ._library import lib, text

if TYPE_CHECKING:
    from ._sync import SyncReport


class Error(Exception):
    """What libkith says of a call that failed.

    >>> import kith
    >>> try:
    ...     kith.Loss("binomail")
    ... except kith.Error as error:
    ...     print(error.message, "|", error.hint, "|", error.status)
    unknown loss 'binomail' | did you mean 'binomial'? | ENOTFOUND
    """

    def __init__(self, message: str, hint: str = "", status: str = "EINVAL") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        #: What was found, and what was wanted: one line.
        self.message = message
        #: What to do; may be empty.
        self.hint = hint
        #: The name of the status: "EINVAL", "ESHAPE" …
        self.status = status
        #: Of a sync that failed or was stopped: why, and what it had done.
        self.report: Optional["SyncReport"] = None


class Stopped(Error):
    """Work that was stopped on request, by a progress function that returned True."""


class Busy(Error):
    """An object is in use by another thread, in a way that this call does not go together with."""


# ---- what libkith says, in the words of this package ----

# Commands stay as they are: they can be typed.
_COMMAND = re.compile(r"(`kith [^`]*`|\bkith (?:data|embed|eval|index|list|map|report|reproduce|search|serve|synth|train)\b[^,;()`]*)")
_FLAGS = ("resume", "allow-test-selection", "tf32", "exact", "flips")
_RENAMED = {"classes": "n_classes", "images": "n_images", "size": "side", "restarts": "n_restarts"}
_CALLED = {"set": "overrides", "sync": "sync()"}
_SIZES = {"the number of classes": "n_classes=", "the embedding's dimension": "dim=", "the channels of the map": "map="}


def _value(word: str) -> str:
    return word if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?|true|false", word) else '"' + word + '"'


def _option(match: "re.Match[str]") -> str:
    name, word = match.group(1), match.group(2)
    if name in _FLAGS:
        return name.replace("-", "_") + "=True" + (" " + word if word else "")
    if name in _CALLED:
        return _CALLED[name] + (" " + word if word else "")
    keyword = _RENAMED.get(name, name).replace("-", "_") + "="
    takes = name in ("backbone", "pool", "resize", "tap", "device", "precision", "settings") or bool(word and word[0].isdigit())
    return keyword + (_value(word) if word and takes else " " + word if word else "")


def spoken(said: str) -> str:
    """Options of the program, which libkith's messages name, as keyword arguments.

    >>> from kith._errors import spoken
    >>> spoken("resume it with --resume, or name it: --backbone googlenet")
    'resume it with resume=True, or name it: backbone="googlenet"'
    """
    said = re.sub(r"^--set ([^=\s:]+)(?:=.*?)?(?=: )", r'overrides["\1"]', said)
    parts = _COMMAND.split(said)
    for i in range(0, len(parts), 2):
        part = re.sub(r"--set ([\w.]+)=([^\s,;)]*)", lambda m: 'overrides={"' + m[1] + '": ' + _value(m[2]) + "}", parts[i])
        parts[i] = re.sub(r"--([a-z][a-z0-9-]*)(?: ([\w.]+))?", _option, part)
    return "".join(parts)


def _hint(message: str, hint: str) -> str:
    if "the objective's sizes" in hint:
        for what, keyword in _SIZES.items():
            if f"needs {what}," in message:
                return f"give {keyword}"
    if hint.endswith("give them as .npy"):
        return hint.replace("give them as .npy", "give search() their vectors")
    if hint.startswith("write key=value"):
        return 'write keys with dots between names, as in {"optim.lr": 1e-4}'
    return spoken(hint)


def failure(status: int, err: Any) -> Error:
    """The exception for a status that is not OK."""
    name = text(lib.kith_status_name(status)).replace("KITH_", "", 1)
    kind = Stopped if name == "ECANCELED" else Error
    message = spoken(text(err.message)) or text(lib.kith_status_text(status))
    return kind(message, _hint(message, text(err.hint)), name)
