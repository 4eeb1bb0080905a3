"""Conversion of objects to a JSON document with arrays and back, as their classes declare (``_core/schema.py``).

Reading has three steps. ``CheckedDocument`` validates every field, type and shape in the document. Then the arrays are
read, and its ``check_rules`` validates relations between fields. Only then does ``build`` create objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator

from .._core.errors import counted
from .._core.schema import (
    Choice,
    Each,
    Entries,
    Kind,
    Numbers,
    Object,
    OrElse,
    OrMissing,
    OrNone,
    Schema,
    Tuple,
    Value,
    schema_of,
)
from .._core.types import Array
from .plain import MismatchError, from_json, to_json

# Types of arrays, by their names in safetensors.
TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "BOOL": np.dtype("?"),
}
TYPE_NAMES: dict[np.dtype[Any], str] = {dtype: name for name, dtype in TYPES.items()}
_OUTPUT = OrNone(Choice("default", "pandas", "polars"))


@dataclass
class StoredArray:
    """An array of the file, read after the document has been checked."""

    where: str
    """Its location in the document, which is also its name in the file."""
    kind: Numbers
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    contents: Array | None = None
    """The stored array: for order "F", the transpose."""

    @property
    def array(self) -> Array:
        """The array."""
        assert self.contents is not None
        return self.contents.T if self.order == "F" else self.contents

    def check_part(self, part: Array) -> None:
        """Raise MismatchError if numbers of the array are out of range."""
        if not self.kind.accepts(part):
            raise MismatchError(f"{self.where} has values out of range")


@dataclass
class Record:
    """An object that has been checked but not created. Its fields mirror the attributes of the object."""

    cls: Any
    where: str
    sizes: dict[str, int]
    fields: dict[str, Any] | None
    parameters: dict[str, Any] = field(default_factory=dict)
    output: str | None = None
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            value = (self.fields or {})[name]
        except KeyError:
            raise AttributeError(name) from None
        return value.array if isinstance(value, StoredArray) else value

    @property
    def n_numbers(self) -> int:
        """Number of values in all arrays of the object, including nested objects."""
        return _n_numbers(self.fields) + _n_numbers(self.parameters)


def _n_numbers(part: Any) -> int:
    match part:
        case StoredArray():
            return prod(part.shape)
        case Record():
            return part.n_numbers
        case tuple() | list() | dict():
            return sum(map(_n_numbers, part.values() if isinstance(part, dict) else part))
    return 0


def require_keys(node: Any, keys: Any, where: str) -> None:
    """Raise MismatchError unless a dictionary has exactly these keys."""
    if not isinstance(node, dict):
        raise MismatchError(f"{where} is not an object with fields")
    for name in sorted({*node} - {*keys}):
        raise MismatchError(f"{where} has an unknown field, {name[:80]!r}")
    for name in sorted({*keys} - {*node}):
        raise MismatchError(f"{where} lacks {name!r}")


def encode(kind: Kind, value: Any, where: str, arrays: dict[str, Array]) -> Any:
    """Return the JSON representation of a value, and add its arrays; raise MismatchError if it has none."""
    match kind:
        case OrElse() | OrMissing():
            return value if _is_other(kind, value) else encode(kind.kind, value, where, arrays)
        case Numbers():
            return _encode_array(value, where, arrays)
        case Each() | Tuple():
            kinds = enumerate(zip(kind.kinds(len(value)), value, strict=True))
            return [encode(inner, entry, f"{where}.{i}", arrays) for i, (inner, entry) in kinds]
        case Entries():
            return _encode_fields(kind.kinds, value, where, arrays)
        case Object():
            return _encode_object(kind, value, where, arrays)
    try:
        return to_json(value)
    except MismatchError as error:
        raise MismatchError(f"{where} {error}") from None


def _is_other(kind: OrElse | OrMissing, value: Any) -> bool:
    """Return whether a value, or its JSON representation, is the default, which needs no encoding."""
    return isinstance(kind, OrElse) and type(value) is type(kind.other) and value == kind.other


def _encode_array(value: Any, where: str, arrays: dict[str, Array]) -> Any:
    """Return the array's type, shape and memory order, which can affect the last bit of a product."""
    if not isinstance(value, np.ndarray) or value.dtype not in TYPE_NAMES:
        raise MismatchError(f"{where} is not an array of numbers")
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    arrays[where] = np.ascontiguousarray(value.T if order == "F" else value)
    return {"tensor": where, "type": TYPE_NAMES[value.dtype], "shape": list(value.shape), "order": order}


def _encode_object(kind: Object, value: Any, where: str, arrays: dict[str, Array]) -> Any:
    cls = type(value)
    name = kind.name_of(cls)
    if name is None:
        raise MismatchError(f"{where} is of the class {cls.__qualname__}")
    kinds_of_parameters, kinds = _kinds_of(cls, kind)
    node: dict[str, Any] = {"class": name}
    if issubclass(cls, BaseEstimator):
        fields = dict(vars(value))
        parameters = {name: fields.pop(name) for name in kinds_of_parameters}
        node["parameters"] = _encode_fields(kinds_of_parameters, parameters, where, arrays)
        node["output"] = fields.pop("_sklearn_output_config", {}).get("transform")
        if "_metadata_request" in fields:
            node["requests"] = fields.pop("_metadata_request")._serialize()
    else:
        fields = value._asdict() if issubclass(cls, tuple) else dict(value.__getstate__())
    is_unfitted = issubclass(cls, BaseEstimator) and not fields
    node["fields"] = None if is_unfitted else _encode_fields(kinds, fields, where, arrays)
    return node


def _encode_fields(kinds: Mapping[str, Kind], fields: dict[str, Any], where: str, arrays: dict[str, Array]) -> Any:
    _require_fields(kinds, fields, where)
    return {
        name: encode(kind, fields[name], f"{where}.{name}", arrays) for name, kind in kinds.items() if name in fields
    }


def _require_fields(kinds: Mapping[str, Kind], fields: Any, where: str) -> None:
    if not isinstance(fields, dict):
        raise MismatchError(f"{where} has no fields")
    require_keys(fields, [name for name in kinds if name in fields or not isinstance(kinds[name], OrMissing)], where)


def _declared(cls: type) -> Schema:
    schema = schema_of(cls)
    assert schema is not None, cls
    return schema


def _kinds_of(cls: Any, kind: Object) -> tuple[dict[str, Kind], dict[str, Kind]]:
    """Return the kinds of the parameters of an estimator, and those of all other attributes."""
    declared = _declared(cls).fields
    names = cls._get_param_names() if issubclass(cls, BaseEstimator) else []
    parameters = {name: declared.get(name, Value()) for name in names}
    return parameters, {name: kind.given.get(name, declared[name]) for name in declared if name not in parameters}


class CheckedDocument:
    """The contents of a document: a ``tree`` for :func:`build`, and the ``arrays`` that it names, in its order.

    ``shapes`` are the types and shapes of the arrays that the file has. Raises MismatchError if the document does not
    match the kind, or does not name all of these arrays.
    """

    def __init__(self, kind: Kind, node: Any, where: str, shapes: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        self.arrays: list[StoredArray] = []
        self._records: list[Record] = []
        self._shapes = dict(shapes)
        self.tree = self._check(kind, node, where, _Sizes())
        if self._shapes:
            raise MismatchError("the file has an array that is not part of the model")

    def _check(self, kind: Kind, node: Any, where: str, sizes: _Sizes) -> Any:
        """Return the value of a part of the document."""
        match kind:
            case OrElse() | OrMissing():
                return node if _is_other(kind, node) else self._check(kind.kind, node, where, sizes)
            case Numbers():
                return self._check_array(kind, node, where, sizes)
            case Each() | Tuple():
                if not isinstance(node, list) or len(kind.kinds(len(node))) != len(node):
                    raise MismatchError(f"{where} is not a list, or has the wrong length")
                kinds = enumerate(zip(kind.kinds(len(node)), node, strict=True))
                checked = (self._check(inner, entry, f"{where}.{i}", sizes) for i, (inner, entry) in kinds)
                return (kind.container if isinstance(kind, Each) else tuple)(checked)
            case Entries():
                return self._check_fields(kind.kinds, node, where, sizes)
            case Object():
                return self._check_object(kind, node, where, sizes)
        assert isinstance(kind, Value)
        try:
            value = from_json(node)
        except MismatchError as error:
            raise MismatchError(f"{where} {error}") from None
        if not kind.accepts(value):
            raise MismatchError(f"{where} is not {kind.description}")
        if kind.size is not None:
            sizes.require(kind.size, kind.size_of(value), where)
        return kind.restored(value)

    def check_rules(self) -> None:
        """Raise MismatchError if fields are inconsistent, after the arrays have been read."""
        for record in self._records:
            for sentence, holds in _declared(record.cls).rules.items():
                if record.fields is not None and not holds(record):
                    raise MismatchError(f"{record.where} breaks a rule: {sentence}")

    def _check_array(self, kind: Numbers, node: Any, where: str, sizes: _Sizes) -> StoredArray:
        require_keys(node, {"tensor", "type", "shape", "order"}, where)
        name, type_name, shape, order = node["tensor"], node["type"], node["shape"], node["order"]
        types = [TYPE_NAMES[np.dtype(dtype)] for dtype in kind.dtypes]
        if type_name not in types or order not in ("C", "F") or (order == "F" and not kind.any_order):
            raise MismatchError(f"{where} is not an array of type {' or '.join(types)}")
        if not isinstance(shape, list) or len(shape) != len(kind.shape) or not all(type(n) is int for n in shape):
            raise MismatchError(f"{where} does not have {counted(len(kind.shape), 'dimension')}")
        if name != where or self._shapes.pop(where, None) != (type_name, tuple(shape[:: -1 if order == "F" else 1])):
            raise MismatchError(f"{where} has no tensor with its name, type and shape")
        for size, expected in zip(shape, kind.shape, strict=True):
            if isinstance(expected, str):
                sizes.require(expected, size, where)
            elif expected is not None and size != expected:
                raise MismatchError(f"{where} has a size of {size}, but {expected} is required")
        self.arrays.append(StoredArray(where, kind, TYPES[type_name], tuple(shape), order))
        return self.arrays[-1]

    def _check_object(self, kind: Object, node: Any, where: str, outer: _Sizes) -> Record:
        cls = kind.class_of(node.get("class")) if isinstance(node, dict) else None
        if cls is None:
            raise MismatchError(f"{where} is not {kind.description}")
        sizes = _Sizes()
        record = Record(cls, where, sizes.known, None)
        parameters, kinds = _kinds_of(cls, kind)
        if issubclass(cls, BaseEstimator):
            record.requests = _check_requests(cls, node.get("requests"), where)
            require_keys(node, {"class", "parameters", "output", "fields", *({"requests"} & {*node})}, where)
            record.parameters = self._check_fields(parameters, node["parameters"], where, _Sizes())
            record.output = self._check(_OUTPUT, node["output"], f"{where}.output", _Sizes())
        else:
            require_keys(node, {"class", "fields"}, where)
        if node["fields"] is not None or not issubclass(cls, BaseEstimator):
            record.fields = self._check_fields(kinds, node["fields"], where, sizes)
        sizes.settle()
        for symbol, expression in kind.sizes.items():
            if symbol in sizes.known:
                outer.require(expression, sizes.known[symbol], where)
        self._records.append(record)
        return record

    def _check_fields(self, kinds: Mapping[str, Kind], node: Any, where: str, sizes: _Sizes) -> dict[str, Any]:
        _require_fields(kinds, node, where)
        return {name: self._check(kinds[name], part, f"{where}.{name}", sizes) for name, part in node.items()}


class _Sizes:
    """The sizes of the symbols in shapes, for one object."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self._open: list[tuple[str, int, str]] = []

    def require(self, expression: str, size: int, where: str) -> None:
        """Bind a symbol to a size; raise MismatchError if it is bound to another one."""
        symbol = expression.removesuffix("?")
        if not symbol.isidentifier():
            self._open.append((symbol, size, where))
            return
        if not size and symbol == expression:
            raise MismatchError(f"{where} has no entries")
        if self.known.setdefault(symbol, size) != size:
            raise MismatchError(f"{where} has a size of {size}, but other parts of the model have {self.known[symbol]}")

    def settle(self) -> None:
        """Check sums and products, now that all symbols are bound."""
        for expression, size, where in self._open:
            operator, combine = ("*", prod) if "*" in expression else ("+", sum)
            terms = [int(t) if t.isdecimal() else self.known.get(t, -1) for t in expression.split(operator)]
            if min(terms) < 0 or size != combine(terms):
                raise MismatchError(f"{where} has a size of {size}, which contradicts other parts of the model")


def _check_requests(cls: Any, requests: Any, where: str) -> dict[str, dict[str, Any]]:
    """Return the metadata requests of an estimator, if the file has any."""
    if requests is None:
        return {}
    try:
        _set_requests(cls(), requests)
    except (AttributeError, TypeError, ValueError):
        raise MismatchError(f"{where} requests unknown metadata") from None
    return dict(requests)


def _set_requests(model: Any, requests: dict[str, dict[str, Any]]) -> None:
    with config_context(enable_metadata_routing=True):
        for method, asked in requests.items():
            if asked:
                getattr(model, f"set_{method}_request")(**asked)


def build(tree: Any) -> Any:
    """Return the object of a part of a document, after all checks."""
    match tree:
        case StoredArray():
            return tree.array
        case Record():
            return _build_object(tree)
        case tuple() | list():
            return type(tree)(build(part) for part in tree)
        case dict():
            return {name: build(part) for name, part in tree.items()}
    return tree


def _build_object(record: Record) -> Any:
    cls, fields = record.cls, build(record.fields or {})
    if issubclass(cls, tuple):
        return cls(**fields)
    if issubclass(cls, BaseEstimator):
        made = cls(**build(record.parameters))
        if record.output is not None:
            vars(made)["_sklearn_output_config"] = {"transform": record.output}
        _set_requests(made, record.requests)
        vars(made).update(fields)
        return made
    made = cls.__new__(cls)
    getattr(made, "__setstate__", vars(made).update)(fields)
    return made
