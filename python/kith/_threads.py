"""How many threads compute."""

from typing import Optional

from ._calls import call
from ._library import lib


def threads(n: Optional[int] = None) -> int:
    """The number of threads that calls from this thread compute with; with n, set it first (0: as many as fit).

    >>> import kith
    >>> before = kith.threads()
    >>> kith.threads(1)
    1
    >>> kith.threads(before) == before
    True
    """
    if n is not None:
        call(lib.kith_threads_set, n)
    value: int = lib.kith_threads()
    return value
