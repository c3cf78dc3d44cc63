"""python3 -m kith ARGUMENT…: the program kith."""

import os
import sys

from ._library import program


def main() -> None:
    """Become the program."""
    path = program()
    try:
        os.execvp(path, [path] + sys.argv[1:])
    except OSError as error:
        sys.exit(f"kith: the program cannot be started: {path}: {error.strerror} "
                 "(say where it is with KITH_PROGRAM=/path/to/kith)")


if __name__ == "__main__":
    main()
