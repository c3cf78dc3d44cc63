"""What is known of items: a path, a label and values of typed columns."""

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

import numpy as np

from ._errors import Error
from ._images import Path
from ._library import encode, ffi, lib, text

#: A value of a column: None means that there is none.
Value = Union[None, int, float, str]

_TYPES: Dict[type, int] = {int: lib.KITH_VALUE_INT, float: lib.KITH_VALUE_REAL, str: lib.KITH_VALUE_TEXT}
_PYTHON_TYPES = {number: kind for kind, number in _TYPES.items()}


@dataclass(frozen=True)
class Item:
    """What is known of one item."""

    id: int
    path: Optional[str]
    label: Optional[str]
    values: Dict[str, Value]


def type_named(name: str, kind: Type[Any]) -> int:
    """The number of a column's type."""
    if kind not in _TYPES:
        raise TypeError(f"the column {name} has the type {kind!r}; wanted int, float or str")
    return _TYPES[kind]


def new_columns(columns: Optional[Mapping[str, Type[Any]]]) -> Tuple[Any, int, List[Any]]:
    """kith_column[], how many, and what must stay as long as they are used."""
    named = columns or {}
    made = ffi.new("kith_column[]", max(len(named), 1))
    kept: List[Any] = [made]
    for i, (name, kind) in enumerate(named.items()):
        made[i].type = type_named(name, kind)
        kept.append(ffi.new("char[]", encode(name)))
        made[i].name = kept[-1]
    return made, len(named), kept


def columns_of(index: Any) -> Dict[str, type]:
    """The columns of a kith_index."""
    found: Dict[str, type] = {}
    while True:
        column = lib.kith_index_column(index, len(found))
        if column.name == ffi.NULL:
            return found
        found[text(column.name)] = _PYTHON_TYPES[column.type]


def new_items(columns: Mapping[str, type], n: int, paths: Optional[Sequence[Optional[Path]]],
              labels: Optional[Sequence[Optional[str]]], values: Optional[Mapping[str, Sequence[Value]]]) -> Tuple[Any, List[Any]]:
    """kith_index_item[n] for an index with these columns, and what must stay as long as they are used."""
    cells_of = values or {}
    for what, given in [("paths", paths), ("labels", labels), *cells_of.items()]:
        if given is not None and len(given) != n:
            raise ValueError(f"{what} has {len(given)} entries for {n} rows")
    unknown = sorted(set(cells_of) - set(columns))
    if unknown:
        raise Error(f"the index has no column {unknown[0]!r}", "its columns: " + (", ".join(columns) or "none"), "ENOTFOUND")
    items = ffi.new("kith_index_item[]", max(n, 1))
    cells = ffi.new("kith_value[]", max(n * len(columns), 1))
    kept: List[Any] = [cells]

    def word(value: str) -> Any:
        kept.append(ffi.new("char[]", encode(value)))
        return kept[-1]

    for i in range(n):
        path, label = paths[i] if paths is not None else None, labels[i] if labels is not None else None
        items[i].bytes = items[i].mtime_ns = -1
        if path is not None:
            items[i].path = word(os.fspath(path))
        if label is not None:
            items[i].label = word(str(label))
        items[i].values = cells + i * len(columns)
        for k, (name, kind) in enumerate(columns.items()):
            if name in cells_of:
                _put(cells[i * len(columns) + k], kind, cells_of[name][i], name, word)
    return items, kept


def new_values(columns: Mapping[str, type], n: int, values: Mapping[str, Sequence[Value]]) -> Tuple[Any, Any, List[Any]]:
    """Names of columns, kith_value[n, columns], and what must stay as long as they are used."""
    for name, given in values.items():
        if name not in columns:
            raise Error(f"the index has no column {name!r}", "its columns: " + (", ".join(columns) or "none"), "ENOTFOUND")
        if len(given) != n:
            raise ValueError(f"{name} has {len(given)} entries for {n} ids")
    cells = ffi.new("kith_value[]", max(n * len(values), 1))
    kept: List[Any] = [ffi.new("char[]", encode(name)) for name in values]
    names = ffi.new("const char *[]", kept or 1)

    def word(value: str) -> Any:
        kept.append(ffi.new("char[]", encode(value)))
        return kept[-1]

    for k, (name, given) in enumerate(values.items()):
        for i in range(n):
            _put(cells[i * len(values) + k], columns[name], given[i], name, word)
    return names, cells, kept


def item_of(c: Any, columns: Mapping[str, type]) -> Item:
    """A kith_index_item, copied."""
    return Item(c.id, None if c.path == ffi.NULL else text(c.path), None if c.label == ffi.NULL else text(c.label),
                {name: _get(c.values[i]) if c.values != ffi.NULL else None for i, name in enumerate(columns)})


def _put(cell: Any, kind: type, value: Value, name: str, word: Any) -> None:
    """Write a value into a cell of its column."""
    if value is None:
        return
    if kind is str and isinstance(value, str):
        cell.type, cell.text = lib.KITH_VALUE_TEXT, word(value)
    elif kind is int and isinstance(value, (int, np.integer)):
        cell.type, cell.integer = lib.KITH_VALUE_INT, int(value)
    elif kind is float and isinstance(value, (int, float, np.number)):
        cell.type, cell.real = lib.KITH_VALUE_REAL, float(value)
    else:
        raise TypeError(f"the column {name} holds {kind.__name__}; found {value!r}")


def _get(cell: Any) -> Value:
    if cell.type == lib.KITH_VALUE_INT:
        return int(cell.integer)
    if cell.type == lib.KITH_VALUE_REAL:
        return float(cell.real)
    return text(cell.text) if cell.type == lib.KITH_VALUE_TEXT else None
