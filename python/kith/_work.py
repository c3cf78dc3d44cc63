"""Long work in C that can be watched and stopped.

A call of libkith holds no lock of Python. Python handles signals in its main thread, between two steps of Python code, so
Ctrl-C is seen when libkith calls back to say how far it is. The callback then stops the work, and the exception is raised here,
after the C call has returned.
"""

from typing import Any, Callable, Optional

from ._calls import inside
from ._errors import failure
from ._library import ffi

#: Called now and then with how much is done and how much there is; a true result stops the work.
Progress = Callable[[int, int], object]


class Work:
    """One call of libkith with a callback."""

    def __init__(self, notify: Optional[Callable[..., object]], kind: str = "kith_progress_fn") -> None:
        self._notify = notify
        self._raised: Optional[BaseException] = None
        # `onerror` is for exceptions on the way into and out of `_called`: a signal may come there, too.
        self.callback = ffi.callback(kind, self._called, error=1, onerror=self._failed)

    def _called(self, user: Any, *facts: Any) -> int:
        try:
            return 1 if self._raised is not None or (self._notify is not None and self._notify(*facts)) else 0
        except BaseException as error:
            self._raised = error
            return 1

    def _failed(self, kind: Any, error: BaseException, trace: Any) -> None:
        self._raised = error

    def watch(self, *options: Any) -> None:
        """Let structs of options report to this."""
        for option in options:
            option.progress = self.callback

    def call(self, function: Any, *arguments: Any) -> None:
        """As call() does; what a callback raised comes first."""
        err = ffi.new("kith_error *")
        with inside:
            status = function(*arguments, err)
        if self._raised is not None:
            raise self._raised
        if status:
            raise failure(status, err)
