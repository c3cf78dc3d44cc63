"""Failed calls as exceptions."""

from typing import Any

from ._library import ffi, lib, text


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


class Stopped(Error):
    """Work that was stopped on request, by a progress function that returned True."""


def failure(status: int, err: Any) -> Error:
    """The exception for a status that is not OK."""
    name = text(lib.kith_status_name(status)).replace("KITH_", "", 1)
    kind = Stopped if name == "ECANCELED" else Error
    return kind(text(err.message) or text(lib.kith_status_text(status)), text(err.hint), name)


def call(function: Any, *arguments: Any) -> None:
    """Call a function of libkith that returns a status and takes the error last."""
    err = ffi.new("kith_error *")
    status = function(*arguments, err)
    if status:
        raise failure(status, err)
