"""Calls of libkith that are under way: what may be done beside them, and after a fork.

An object of libkith (a model, an index that is written) is for one thread at a time. A Guard counts the calls of one object that are
under way, so that another thread's call that does not go together with them is refused, where libkith would crash.

A child of fork has only the thread that forked. libkith computes in a child, unless a call was under way at the fork: its threads,
and what it was changing, are then lost to the child, which is told so once and for all.
"""

import os
import re
import threading
from types import TracebackType
from typing import Any, Optional, Type

from ._errors import Busy, Error, failure
from ._library import ffi


class _Inside:
    """with inside: a call of libkith."""

    def __init__(self) -> None:
        self._lock, self._n, self._is_lost = threading.Lock(), 0, False

    def __enter__(self) -> None:
        if self._is_lost:
            raise Error("this process was forked while a call of kith was under way, and does not have its threads",
                        "fork while no thread is inside kith, or start processes by spawn: multiprocessing.get_context(\"spawn\")")
        with self._lock:
            self._n += 1

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        with self._lock:
            self._n -= 1

    def after_fork(self) -> None:
        """In the child: another thread may have held the lock."""
        self._is_lost = self._is_lost or self._n > 0
        self._lock, self._n = threading.Lock(), 0


inside = _Inside()
os.register_at_fork(after_in_child=inside.after_fork)


def call(function: Any, *arguments: Any) -> None:
    """Call a function of libkith that returns a status and takes the error last."""
    err = ffi.new("kith_error *")
    with inside:
        status = function(*arguments, err)
    if status:
        raise failure(status, err)


class _Turn:
    def __init__(self, guard: "Guard", is_alone: bool) -> None:
        self._guard, self._is_alone = guard, is_alone

    def __enter__(self) -> None:
        self._guard.begin(self._is_alone)

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._guard.end(self._is_alone)


class Guard:
    """Counts the calls of one object: any number that share it, or one that needs it alone."""

    def __init__(self, what: str) -> None:
        self._what, self._lock = what, threading.Lock()
        self._n_shared, self._is_taken = 0, False
        #: with guard.shared, with guard.alone: a call of the object.
        self.shared, self.alone = _Turn(self, False), _Turn(self, True)

    def begin(self, is_alone: bool) -> None:
        """A call begins; Busy where it cannot."""
        with self._lock:
            if self._is_taken or (is_alone and self._n_shared > 0):
                doing = f"needs {self._what} for itself" if self._is_taken else f"uses {self._what}"
                raise Busy(f"a call that is under way {doing}", "wait for the other thread's call to return")
            if is_alone:
                self._is_taken = True
            else:
                self._n_shared += 1

    def end(self, is_alone: bool) -> None:
        """It has returned."""
        with self._lock:
            if is_alone:
                self._is_taken = False
            else:
                self._n_shared -= 1


class Handle:
    """An index or a collection that is open, and the guard of its calls."""

    def __init__(self, made: Any, free: Any, path: str, writes: bool, what: str) -> None:
        owner = os.getpid()
        # A child of fork must not end what its parent writes: there it is left as it is.
        self._made: Any = ffi.gc(made, lambda one: free(one) if os.getpid() == owner else None)
        self._path, self._owner, self._what = path, owner, what
        self.writes, self.guard = writes, Guard("the " + what)

    @property
    def path(self) -> str:
        """Where it is, without the password that an address may hold."""
        return re.sub("://.*@", "://", self._path)

    def get(self) -> Any:
        """What libkith takes; refused when it is closed, and in a child of the process that writes it."""
        if self._made is None:
            raise ValueError(f"the {self._what} is closed")
        if self.writes and os.getpid() != self._owner:
            raise Error(f"{self.path} is written by the process that this one was forked from", "open it again here, to read it")
        return self._made

    def close(self) -> None:
        """Give it back, alone: the caller holds its guard."""
        if self._made is not None:
            ffi.release(self._made)
            self._made = None
