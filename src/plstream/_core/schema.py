"""Declarations of the attributes of a class, next to the class: the schema of model files.

A declaration names every attribute with the kind of its value, and rules that relate them:

>>> from plstream._core.schema import Count, Numbers, stored
>>> @stored(
...     {"size": Count(1), "rows": Numbers("w?", "m"), "squares": Numbers("m", least=0)},
...     {"there are no more rows than its size": lambda its: len(its.rows) <= its.size},
... )
... class Reservoir:
...     def __init__(self, size, n_columns): ...

Symbols in shapes are sizes: each has a single value of at least one within an object; ``"w?"`` may be zero. Shapes may
also contain numbers, sums and products such as ``"c+1"`` and ``"q*c"``, and None for any size. A nested object has its
own sizes. ``Object(Factors, m="m", s="q*c")`` relates them to those of the enclosing object.

As for pickle, attributes are those returned by ``__getstate__``, by default all, and are set by ``__setstate__`` if
defined. A named tuple consists of its fields. Parameters of an estimator are declared only if they are not plain
values; its other attributes are either all present or, before it is fitted, all absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isnan
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from .types import Array

Cls = TypeVar("Cls", bound=type)
Rule = Callable[[Any], bool]

LARGEST_COUNT = 2**53
# Allowed for any number of features; components beyond the number of features are zero.
_COMPONENTS_IN_ANY_CASE = 1024
# Arrays computed from a model have at most this multiple of its size, or this many numbers.
_MOST_TIMES = 100
_NUMBERS_IN_ANY_CASE = 1 << 20


def most_components(n_features: int) -> int:
    """Return the maximum number of components for a number of features."""
    return max(n_features, _COMPONENTS_IN_ANY_CASE)


def is_in_proportion(n_numbers: int, its: Any) -> bool:
    """Return whether this many numbers may be computed from an object: loading a small file must not be expensive.

    ``its`` is the argument of a rule.
    """
    return bool(n_numbers <= max(_NUMBERS_IN_ANY_CASE, _MOST_TIMES * its.n_numbers))


class Kind:
    """The kind of value of an attribute."""


class Numbers(Kind):
    """An array of numbers or booleans.

    ``least``, ``most`` and ``finite`` bound the numbers; ``nan`` allows NaN, without bounds. With ``any_order``, the
    array may be in Fortran order: not for compiled loops, which require C order.
    """

    def __init__(
        self,
        *shape: int | str | None,
        dtypes: tuple[str, ...] = ("float64",),
        least: float = -inf,
        most: float = inf,
        finite: bool = True,
        nan: bool = False,
        any_order: bool = False,
    ) -> None:
        self.shape = shape
        self.dtypes = dtypes
        self.range = Number(least, most, finite=finite, nan=nan)
        self.any_order = any_order

    def accepts(self, part: Array) -> bool:
        """Return whether all numbers of a part of the array are in range."""
        if not part.size or self.range.nan:
            return True
        if part.dtype == bool:
            return bool(part.view(np.uint8).max() <= 1)
        return self.range.accepts(part.min().item()) and self.range.accepts(part.max().item())


def solved_numbers(*shape: int | str, least: float = -inf) -> Numbers:
    """Return the kind of an array of a solution, in which extreme units may make numbers infinite."""
    return Numbers(*shape, least=least, finite=False, any_order=True)


class Value(Kind):
    """A plain value: a number, string or None; a tuple, list or dictionary of these; a one-dimensional array."""

    description = "a plain value"
    size: str | None = None
    """The symbol in shapes whose size is the value."""

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return True

    def size_of(self, value: Any) -> int:
        """Return the size that a value represents."""
        return len(value)

    def restored(self, value: Any) -> Any:
        """Return the attribute for a value read from a file."""
        return value


class Boolean(Value):
    """True or False."""

    description = "true or false"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, bool)


class Number(Value):
    """A number in a range."""

    def __init__(self, least: float = -inf, most: float = inf, *, finite: bool = True, nan: bool = False) -> None:
        self.least = least
        self.most = most
        self.finite = finite
        self.nan = nan
        self.description = f"a number from {least} to {most}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        if type(value) not in {int, float}:
            return False
        if self.nan or isnan(value):
            return self.nan
        return bool(self.least <= value <= self.most and not (self.finite and abs(value) == inf))


class Count(Value):
    """An integer in a range, optionally a size in shapes."""

    def __init__(self, least: int = 0, most: int = LARGEST_COUNT, *, size: str | None = None) -> None:
        self.least = least
        self.most = most
        self.size = size
        self.description = f"an integer from {least} to {most}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return type(value) is int and self.least <= value <= self.most

    def size_of(self, value: Any) -> int:
        """Return the number itself."""
        return int(value)


class Text(Value):
    """A string of limited length."""

    description = "a string"

    def __init__(self, longest: int = 1000) -> None:
        self.longest = longest

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, str) and len(value) <= self.longest


class Choice(Value):
    """One of several values."""

    def __init__(self, *choices: Any) -> None:
        self.choices = choices
        self.description = f"{'one of ' if len(choices) > 1 else ''}{', '.join(map(str, choices))}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return any(type(value) is type(choice) and value == choice for choice in self.choices)


class ClassLabels(Value):
    """An array of labels in ascending order, whose number is a size in shapes."""

    description = "an array of at least two labels in ascending order"

    def __init__(self, size: str) -> None:
        self.size = size

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, np.ndarray) and len(value) > 1 and bool((value[:-1] < value[1:]).all())


class FeatureNames(Value):
    """Names of the m features."""

    description = "an array of names"
    size = "m"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, np.ndarray) and value.dtype == object


class OrElse(Kind):
    """A value of some kind, or a string or None with a special meaning."""

    def __init__(self, kind: Kind, other: str | None) -> None:
        self.kind = kind
        self.other = other


class OrNone(OrElse):
    """A value of some kind, or None."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind, None)


class OrMissing(Kind):
    """An optional attribute or entry of some kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind


class Each(Kind):
    """A sequence of any length with entries of one kind, read as a tuple or list."""

    def __init__(self, kind: Kind, container: type = tuple) -> None:
        self.kind = kind
        self.container = container

    def kinds(self, length: int) -> tuple[Kind, ...]:
        """Return the kinds of the given number of entries."""
        return (self.kind,) * length


class Tuple(Kind):
    """A tuple with entries of given kinds."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds = kinds

    def kinds(self, length: int) -> tuple[Kind, ...]:
        """Return the kinds of the entries, whatever their number."""
        return self._kinds


class Entries(Kind):
    """A dictionary with known keys."""

    def __init__(self, **kinds: Kind) -> None:
        self.kinds = kinds


class Object(Kind):
    """An object of one of several declared classes; keywords relate its sizes to the enclosing object.

    ``given`` are attributes restricted beyond the declaration of their class.
    """

    def __init__(self, *classes: type, given: Mapping[str, Kind] | None = None, **sizes: str) -> None:
        self.classes = {cls.__name__: cls for cls in classes}
        self.given = given or {}
        self.sizes = sizes

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class in a file, or None if it is not allowed."""
        return cls.__name__ if self.classes.get(cls.__name__) is cls else None

    def class_of(self, name: Any) -> type | None:
        """Return the class of a name in a file, or None if it is not allowed."""
        return self.classes.get(name) if isinstance(name, str) else None

    @property
    def description(self) -> str:
        """The allowed classes."""
        return f"of the class {' or '.join(self.classes)}"


# Set by scikit-learn's validation of X.
FEATURES: dict[str, Kind] = {
    "n_features_in_": Count(1, size="m"),
    "feature_names_in_": OrMissing(FeatureNames()),
    # Numeric names, which scikit-learn does not keep.
    "feature_axis_": OrMissing(Numbers("m")),
}


@dataclass(frozen=True)
class Schema:
    """The attributes of a class, and its rules: sentences with functions that check them."""

    fields: Mapping[str, Kind]
    rules: Mapping[str, Rule]


_SCHEMAS: dict[type, Schema] = {}


def stored(fields: Mapping[str, Kind], rules: Mapping[str, Rule] | None = None) -> Callable[[Cls], Cls]:
    """Declare the attributes of the objects of a class, in addition to those of a base class.

    A rule is called with an object that has the declared attributes, including those of nested objects, ``sizes``, the
    values of symbols, ``parameters``, those of an estimator, and ``n_numbers``, the number of values in all arrays. It
    is called before any object is created; all attributes are then of the right kind.
    """

    def declare(cls: Cls) -> Cls:
        inherited = next((_SCHEMAS[base] for base in cls.__mro__[1:] if base in _SCHEMAS), Schema({}, {}))
        _SCHEMAS[cls] = Schema({**inherited.fields, **fields}, {**inherited.rules, **(rules or {})})
        return cls

    return declare


def schema_of(cls: type) -> Schema | None:
    """Return the declaration of a class itself, not of a base class, or None."""
    return _SCHEMAS.get(cls)


def declared(*packages: ModuleType, having: str = "__init__") -> tuple[type, ...]:
    """Return the declared public classes of packages that have a given attribute."""
    public = (getattr(package, name) for package in packages for name in package.__all__)
    return tuple(cls for cls in public if isinstance(cls, type) and schema_of(cls) and hasattr(cls, having))
