"""Weights by name, from the Hugging Face hub: kith.pull."""

import os
from dataclasses import dataclass
from typing import Any, List, Optional

from ._calls import call
from ._images import Path
from ._library import encode, ffi, lib, options, text
from ._work import Progress, Work


@dataclass(frozen=True)
class Pulled:
    """Weights in the hub's cache."""

    #: After "hub:" it means these weights: kith.Model("hub:resnet50").
    name: str
    repo: str
    #: The names by which they were fetched, with blanks between them; "" when by the commit alone.
    revision: str
    #: "" and no file: only a part has arrived.
    commit: str
    file: str
    #: The network of kith that they are of; "" when unknown.
    backbone: str
    #: "" when the repository's page has to be read.
    licence: str
    n_bytes: int
    #: Bytes that came over the network now.
    n_fetched: int
    is_unverified: bool


def _given(cache: Optional[Path]) -> Any:
    option = options("kith_pull_options")
    kept = ffi.NULL if cache is None else ffi.new("char[]", encode(os.fspath(cache)))
    option.cache = kept
    return option, kept


def _entries(pulled: Any) -> List[Pulled]:
    entry = ffi.new("kith_pulled_entry *")
    found = []
    for i in range(lib.kith_pulled_count(pulled)):
        lib.kith_pulled_at(pulled, i, entry)
        found.append(Pulled(text(entry.name), text(entry.repo), text(entry.revision), text(entry.commit), text(entry.file),
                            text(entry.backbone), text(entry.licence), entry.bytes, entry.n_fetched, entry.is_unverified))
    lib.kith_pulled_free(pulled)
    return found


def pull(name: str, *, cache: Optional[Path] = None, endpoint: Optional[str] = None, token: Optional[str] = None,
         unverified: bool = False, progress: Optional[Progress] = None) -> Pulled:
    """Fetch weights by name, as `kith pull` does, unless they are in the cache.

    name: ORG/NAME of a repository, or a short name such as resnet50; NAME@REVISION. Without cache, endpoint and token the
    environment decides (HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN). What huggingface_hub fetched is found, and the other way round.
    """
    option, kept = _given(cache)
    words = [None if word is None else ffi.new("char[]", encode(word)) for word in (endpoint, token)]
    option.endpoint, option.token = (ffi.NULL if word is None else word for word in words)
    option.unverified = unverified
    work = Work(progress)
    work.watch(option)
    found = ffi.new("kith_pulled **")
    work.call(lib.kith_pull_run, encode(name), option, found)
    del kept
    return _entries(found[0])[0]


def pulled(*, cache: Optional[Path] = None) -> List[Pulled]:
    """The weights in the cache that kith may be able to read."""
    option, kept = _given(cache)
    found = ffi.new("kith_pulled **")
    call(lib.kith_pull_list, option, found)
    del kept
    return _entries(found[0])


def remove_pulled(name: str, *, cache: Optional[Path] = None) -> int:
    """Remove weights from the cache; NAME@REVISION: that revision alone. Returns the bytes that were freed."""
    option, kept = _given(cache)
    freed = ffi.new("int64_t *")
    call(lib.kith_pull_remove, encode(name), option, freed)
    del kept
    return int(freed[0])
