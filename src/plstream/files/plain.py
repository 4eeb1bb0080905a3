"""Bit-exact conversion of numbers, strings, tuples, labels and random states to strict JSON and back.

JSON values are written unchanged. Everything else is an object with one key that names its type: ``{"float": "inf"}``,
``{"tuple": [1, 2]}``, ``{"dict": [["no", 1], ["yes", 2]]}``, ``{"array": "<U3", "values": ["no", "yes"]}``. NumPy
scalars are written as plain numbers: small integer types would overflow in sums, and loops would be compiled for each
type.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.types import Array

# Maximum number of characters of all labels of an array, or of numbers.
_LARGEST_ARRAY = 1 << 24
_DEEPEST = 4
# Maximum memory of a string array, and per character if that is more.
_LEAST_BOUND = 1 << 20
_MOST_BYTES_A_LETTER = 256
_SCALARS = {"bool", "float16", "float32", "float64"} | {f"{sign}int{8 << i}" for sign in ("", "u") for i in range(4)}
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_ARRAY_TYPE = re.compile(r"[<>|](?:b1|[iu][1248]|f[248]|[US]\d{1,7})", re.ASCII)
# State of RandomState: this many 32-bit numbers, and a position.
_TWISTER_LENGTH = 624


class MismatchError(ValueError):
    """Content that a model file cannot hold. Messages of this module complete the location of a value."""


def to_json(value: Any) -> Any:
    """Return the JSON representation of a value; raise MismatchError if it has none."""
    return _array_to_json(value) if isinstance(value, np.ndarray) else _to_json(value, _DEEPEST)


def from_json(node: Any) -> Any:
    """Return the value of a part of a file; raise MismatchError if it is invalid."""
    is_array = isinstance(node, dict) and node.keys() == {"array", "values"}
    return _array_from_json(node) if is_array else _from_json(node, _DEEPEST)


def _to_json(value: Any, levels: int) -> Any:
    """Return the representation of a value that is not an array, nested at most ``levels`` deep."""
    if type(value) in {tuple, list, dict} and levels:
        return {type(value).__name__: _entries_to_json(value, levels - 1)}
    if type(value) is np.random.RandomState:
        return _random_to_json(value)
    if isinstance(value, np.dtype) and value.name in _SCALARS:
        return {"dtype": value.name}
    if isinstance(value, np.generic) and value.dtype.name in _SCALARS:
        value = value.item()
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if not _is_json(value):
        raise MismatchError(f"is of type {type(value).__name__}")
    return str(value) if isinstance(value, str) else value


def _entries_to_json(value: Any, levels: int) -> Any:
    if isinstance(value, dict):
        pairs = [[_to_json(entry, 0) for entry in pair] for pair in value.items()]
        # Equal dictionaries are written identically.
        return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
    return [_to_json(entry, levels) for entry in value]


def _from_json(node: Any, levels: int) -> Any:
    """Return a value that is not an array, nested at most ``levels`` deep."""
    if _is_json(node):
        return node
    keys = frozenset(node) if isinstance(node, dict) else frozenset()
    if levels and keys in ({"tuple"}, {"list"}, {"dict"}):
        return _entries_from_json(node, levels - 1)
    if keys not in _READERS:
        raise MismatchError("is not a value that a model file may hold")
    return _READERS[keys](node)


def _entries_from_json(node: dict[str, Any], levels: int) -> Any:
    ((kind, entries),) = node.items()
    if not isinstance(entries, list):
        raise MismatchError(f"is not a {kind}")
    if kind == "dict":
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in entries):
            raise MismatchError("is not a dict")
        return {_from_json(key, 0): _from_json(value, 0) for key, value in entries}
    values = [_from_json(entry, levels) for entry in entries]
    return values if kind == "list" else tuple(values)


def _is_json(value: Any) -> bool:
    """Return whether a value has a JSON type."""
    if type(value) is int:
        return -(2**63) <= value < 2**64
    return (
        value is None
        or isinstance(value, str)
        or type(value) is bool
        or (type(value) is float and math.isfinite(value))
    )


def _array_to_json(array: Array) -> Any:
    if array.ndim == 1 and array.dtype == object and all(isinstance(entry, str) for entry in array):
        return {"array": "object", "values": [str(entry) for entry in array]}
    if array.ndim != 1 or not _ARRAY_TYPE.fullmatch(array.dtype.str):
        raise MismatchError(f"is an array of type {array.dtype} and {array.ndim} dimensions")
    entries = [entry.decode("latin-1") if isinstance(entry, bytes) else entry for entry in array.tolist()]
    _require_size(array.dtype, entries)
    return {"array": array.dtype.str, "values": [_to_json(entry, 0) for entry in entries]}


def _array_from_json(node: dict[str, Any]) -> Array:
    type_name, values = node["array"], node["values"]
    if not isinstance(type_name, str) or not isinstance(values, list):
        raise MismatchError("is not an array")
    if type_name == "object":
        if not all(isinstance(entry, str) for entry in values):
            raise MismatchError("is an array of objects that are not strings")
        text: Array = np.array(values, dtype=object)
        return text
    try:
        dtype = np.dtype(type_name) if _ARRAY_TYPE.fullmatch(type_name) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None:
        raise MismatchError("is an array of an unknown type")
    entries = [_from_json(value, 0) for value in values]
    _require_size(dtype, entries)
    try:
        if dtype.kind == "S":
            entries = [entry.encode("latin-1") for entry in entries]
        # NumPy 1 only warns about integers that do not fit.
        is_in_range = dtype.kind not in "iu" or all(np.iinfo(dtype).min <= n <= np.iinfo(dtype).max for n in entries)
        with np.errstate(over="ignore"):
            array: Array = np.array(entries if is_in_range else [], dtype=dtype)
        is_same = json.dumps(_array_to_json(array), sort_keys=True) == json.dumps(node, sort_keys=True)
    except (AttributeError, OverflowError, TypeError, ValueError):
        is_same = False
    if not is_same:
        # Entries of another type, truncated or rounded ones were not written by to_json.
        raise MismatchError(f"has entries that do not fit type {type_name}")
    return array


def _float_from_json(node: dict[str, Any]) -> float:
    if not isinstance(node["float"], str) or node["float"] not in _NOT_FINITE:
        raise MismatchError("is not a number")
    return _NOT_FINITE[node["float"]]


def _dtype_from_json(node: dict[str, Any]) -> np.dtype[Any]:
    if not isinstance(node["dtype"], str) or node["dtype"] not in _SCALARS:
        raise MismatchError("is a number of an unknown type")
    return np.dtype(node["dtype"])


def _require_size(dtype: np.dtype[Any], entries: list[Any]) -> None:
    """Raise MismatchError for an array of far more memory than its entries: a small file must not fill the memory."""
    n_bytes = dtype.itemsize * len(entries)
    if n_bytes > 4 * _LARGEST_ARRAY:
        raise MismatchError("is an array that is too large")
    text = sum(len(entry) for entry in entries if isinstance(entry, str))
    if dtype.kind in "US" and n_bytes > max(_LEAST_BOUND, _MOST_BYTES_A_LETTER * text):
        raise MismatchError("is an array of strings whose declared length is far more than that of its entries")


def _random_to_json(random: np.random.RandomState) -> Any:
    state: Any = random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise MismatchError(f"is a RandomState of {state['bit_generator']}, not MT19937")
    return {
        "random_state": state["state"]["key"].tolist(),
        "position": int(state["state"]["pos"]),
        "has_gauss": int(state["has_gauss"]),
        "gauss": _to_json(float(state["gauss"]), 0),
    }


def _random_from_json(node: dict[str, Any]) -> np.random.RandomState:
    key, position, has_gauss, gauss = (node[name] for name in ("random_state", "position", "has_gauss", "gauss"))
    is_key = isinstance(key, list) and len(key) == _TWISTER_LENGTH
    if not is_key or not all(type(word) is int and 0 <= word < 2**32 for word in key):
        raise MismatchError("is not the state of a random generator")
    # A larger position would read memory outside the generator.
    if not (type(position) is int and 0 <= position <= _TWISTER_LENGTH):
        raise MismatchError("is not the state of a random generator")
    if not (type(has_gauss) is int and has_gauss in {0, 1} and type(gauss) is float and math.isfinite(gauss)):
        raise MismatchError("is not the state of a random generator")
    random = np.random.RandomState(0)
    random.set_state(("MT19937", np.array(key, dtype=np.uint32), position, has_gauss, gauss))
    return random


_READERS: dict[frozenset[str], Callable[[dict[str, Any]], Any]] = {
    frozenset({"float"}): _float_from_json,
    frozenset({"dtype"}): _dtype_from_json,
    frozenset({"random_state", "position", "has_gauss", "gauss"}): _random_from_json,
}
