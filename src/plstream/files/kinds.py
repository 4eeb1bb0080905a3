"""Kinds of values that a model file may hold: how each is written, and what is checked of it when it is read.

``check`` looks at the text of the file alone. Arrays are read later, and ``Numbers.check_part`` looks at what is in
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isnan, prod
from numbers import Integral
from typing import Any

import numpy as np

from .._core.types import Array
from .plain import UnfitError, from_json, to_json

# Types of tensors, by their names in safetensors.
TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "BOOL": np.dtype("?"),
}
_NAMES_OF_TYPES: dict[np.dtype[Any], str] = {dtype: name for name, dtype in TYPES.items()}
LARGEST_COUNT = 2**53
# More components than this are no model's; arrays of their size are made when a model is solved.
LARGEST_COMPONENTS = 1 << 20
# Sizes that may be zero: rows that wait, columns of y where there is no y, principal components of IPLS, and components
# that are monitored.
_MAY_BE_ZERO = {"w", "q", "L", "a"}


class MismatchError(ValueError):
    """Something in a tree that is not as it must be. The text says where and what."""


@dataclass
class Tensors:
    """Arrays of a file, by name: those to write, or type and shape of those to read."""

    shapes: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    def add(self, name: str, array: Array) -> None:
        """Add an array to write, which is contiguous."""
        self.arrays[name] = array
        self.shapes[name] = _NAMES_OF_TYPES[array.dtype], array.shape


@dataclass
class Sizes:
    """What the symbols in shapes stand for, in one model; a record may know them by other names."""

    known: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    open: list[tuple[str, int, str]] = field(default_factory=list)

    def renamed(self, names: Mapping[str, str]) -> Sizes:
        """Return the same sizes under other names."""
        inner = {name: self._outer(outer) for name, outer in names.items()}
        return Sizes(self.known, self.names | inner, self.open)

    def require(self, symbol: str, size: int, where: str) -> None:
        """Let a symbol stand for a size; raise MismatchError if it stands for another one."""
        name = self._outer(symbol)
        if not name.isidentifier():
            self.open.append((name, size, where))
            return
        if size < (not _MAY_BE_ZERO & {symbol, name}):
            raise MismatchError(f"{where} has no entries")
        if self.known.setdefault(name, size) != size:
            raise MismatchError(f"{where} has a size of {size} where other parts of the model have {self.known[name]}")

    def settle(self) -> None:
        """Check sums and products such as "c+1" and "q*c", once all symbols are known."""
        for expression, size, where in self.open:
            operator, combine = ("*", prod) if "*" in expression else ("+", sum)
            terms = [int(t) if t.isdecimal() else self.known.get(t, -1) for t in expression.split(operator)]
            if min(terms) < 0 or size != combine(terms):
                raise MismatchError(f"{where} has a size of {size} that other parts of the model do not agree with")

    def _outer(self, symbol: str) -> str:
        return self.names.get(symbol, symbol)


@dataclass
class Stored:
    """An array of the file, which is read after all has been checked."""

    where: str
    """Which is the name of the tensor, too."""
    shape: tuple[int, ...]
    order: str
    kind: Numbers
    contents: Array | None = None
    """As stored, which for order "F" is the transpose."""

    @property
    def array(self) -> Array:
        """The array."""
        assert self.contents is not None
        return self.contents.T if self.order == "F" else self.contents


def require_keys(node: Any, keys: Any, where: str) -> None:
    """Raise MismatchError unless a dictionary has just these keys."""
    if not isinstance(node, dict | set):
        raise MismatchError(f"{where} is not an object with fields")
    for name in sorted({*node} - {*keys}):
        raise MismatchError(f"{where} has {name[:80]!r}, which is not known")
    for name in sorted({*keys} - {*node}):
        raise MismatchError(f"{where} lacks {name!r}")


class Kind:
    """A kind of value."""

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return what stands for the value in JSON; arrays are added to the tensors."""
        raise NotImplementedError

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return what a part of the file stands for; raise MismatchError if that is not of this kind."""
        raise NotImplementedError


class Numbers(Kind):
    """An array of a known type and a shape of numbers, symbols, and None for sizes that are not shared."""

    def __init__(
        self,
        *shape: int | str | None,
        types: tuple[str, ...] = ("F64",),
        least: float = -inf,
        most: float = inf,
        finite: bool = True,
        anything: bool = False,
        any_order: bool = False,
    ) -> None:
        self.shape = shape
        self.types = types
        self.least = least
        self.most = most
        self.finite = finite
        self.anything = anything
        # Compiled loops are compiled for one.
        self.any_order = any_order

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return the array's type, shape and order in memory, on which the last bit of a product can depend."""
        if not isinstance(value, np.ndarray) or value.dtype not in _NAMES_OF_TYPES:
            raise MismatchError(f"{where} is not an array of numbers")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        tensors.add(where, np.ascontiguousarray(value.T if order == "F" else value))
        return {"tensor": where, "type": tensors.shapes[where][0], "shape": list(value.shape), "order": order}

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Stored:
        """Return where to read the array from."""
        require_keys(node, {"tensor", "type", "shape", "order"}, where)
        name, type_name, shape, order = node["tensor"], node["type"], node["shape"], node["order"]
        if type_name not in self.types or order not in ("C", "F") or (order == "F" and not self.any_order):
            raise MismatchError(f"{where} is not an array of type {' or '.join(self.types)}")
        if not isinstance(shape, list) or len(shape) != len(self.shape) or not all(type(n) is int for n in shape):
            raise MismatchError(f"{where} does not have {len(self.shape)} dimension(s)")
        if name != where or tensors.shapes.pop(where, None) != (type_name, tuple(shape[:: -1 if order == "F" else 1])):
            raise MismatchError(f"{where} has no tensor of its type and shape")
        for size, expected in zip(shape, self.shape, strict=True):
            if isinstance(expected, str):
                sizes.require(expected, size, where)
            elif expected is not None and size != expected:
                raise MismatchError(f"{where} has a size of {size} where {expected} is needed")
        return Stored(where, tuple(shape), order, self)

    def check_part(self, part: Array, where: str) -> None:
        """Raise MismatchError if some numbers of the array are out of range; NaN never is in range."""
        if not part.size:
            return
        if part.dtype == bool:
            in_range = part.view(np.uint8).max() <= 1
        else:
            low, high = part.min(), part.max()
            in_range = self.least <= low and high <= self.most and not (self.finite and (low == -inf or high == inf))
        if not in_range and not self.anything:
            raise MismatchError(f"{where} has numbers that it cannot have")


class Plain(Kind):
    """A plain value. Subclasses say which."""

    description = "a plain value"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return True

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return the value in JSON."""
        try:
            return to_json(value)
        except UnfitError as error:
            raise MismatchError(f"{where} {error}") from None

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the value."""
        try:
            value = from_json(node)
        except UnfitError as error:
            raise MismatchError(f"{where} {error}") from None
        if not self.accepts(value):
            raise MismatchError(f"{where} is not {self.description}")
        return value


class Truth(Plain):
    """True or False."""

    description = "true or false"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, bool | np.bool_)


class Number(Plain):
    """A number in a range; NaN only if it need not be finite and has no bound."""

    def __init__(self, least: float = -inf, most: float = inf, *, finite: bool = True) -> None:
        self.least = least
        self.most = most
        self.finite = finite
        self.description = f"a number from {least} to {most}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
            return False
        if isnan(value):
            return not self.finite and self.least == -inf
        return bool(self.least <= value <= self.most and not (self.finite and abs(value) == inf))


class Count(Plain):
    """A whole number in a range, which may be the size of arrays."""

    def __init__(self, least: int = 0, most: int = LARGEST_COUNT, *, size: str | None = None) -> None:
        self.least = least
        self.most = most
        self.size = size
        self.description = f"a whole number from {least} to {most}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        is_whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
        return bool(is_whole and self.least <= value <= self.most)

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the number."""
        value = super().check(node, tensors, sizes, where)
        if self.size is not None:
            sizes.require(self.size, int(value), where)
        return value


class Text(Plain):
    """Text, one of some choices if there are any."""

    longest = 1000

    def __init__(self, *choices: str) -> None:
        self.choices = choices
        self.description = f"one of {', '.join(choices)}" if choices else "a text"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        is_text = isinstance(value, str) and len(value) <= self.longest
        return is_text and (not self.choices or value in self.choices)


class LongText(Text):
    """Text that may hold names of features, which have no bound but that of the header."""

    longest = LARGEST_COUNT


class FloatType(Text):
    """The type of an array."""

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return its name."""
        return np.dtype(value).name

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the type."""
        return np.dtype(super().check(node, tensors, sizes, where))


class Labels(Plain):
    """An array of labels in ascending order."""

    description = "an array of two labels or more in ascending order"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, np.ndarray) and len(value) > 1 and bool((value[:-1] < value[1:]).all())

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the labels, whose number is "k"."""
        labels = super().check(node, tensors, sizes, where)
        sizes.require("k", len(labels), where)
        return labels


class FeatureNames(Plain):
    """Names of the features."""

    description = "an array of names"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, np.ndarray) and value.dtype == object

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the names, one for each feature."""
        names = super().check(node, tensors, sizes, where)
        sizes.require("m", len(names), where)
        return names


class Maybe(Kind):
    """A value of some kind, or None."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return what stands for the value."""
        return None if value is None else self.kind.write(value, tensors, where)

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the value."""
        return None if node is None else self.kind.check(node, tensors, sizes, where)


class Several(Kind):
    """A tuple of values of one kind; ``own`` is a symbol in shapes that each of them has a value of its own for."""

    def __init__(self, kind: Kind, number: int | None = None, *, own: str | None = None) -> None:
        self.kind = kind
        self.number = number
        self.own = own

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return what stands for each."""
        return [self.kind.write(entry, tensors, f"{where}.{i}") for i, entry in enumerate(value)]

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the values."""
        if not isinstance(node, list) or self.number not in {None, len(node)}:
            raise MismatchError(f"{where} is not a list of the right length")
        names = [{} if self.own is None else {self.own: f"{self.own}{i}"} for i in range(len(node))]
        return tuple(
            self.kind.check(entry, tensors, sizes.renamed(names[i]), f"{where}.{i}") for i, entry in enumerate(node)
        )


class Entries(Kind):
    """A dictionary with known keys."""

    def __init__(self, **kinds: Kind) -> None:
        self.kinds = kinds

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return what stands for each entry."""
        require_keys(value, self.kinds.keys(), where)
        return {name: kind.write(value[name], tensors, f"{where}.{name}") for name, kind in self.kinds.items()}

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the entries."""
        require_keys(node, self.kinds.keys(), where)
        return {name: kind.check(node[name], tensors, sizes, f"{where}.{name}") for name, kind in self.kinds.items()}
