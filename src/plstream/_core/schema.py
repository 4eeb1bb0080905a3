"""Declarations of the attributes of a class, next to the class: the schema of model files.

Attributes are annotated with the kind of their values, and rules relate them:

>>> from dataclasses import dataclass
>>> from typing import Annotated
>>> from plstream._core.schema import Count, Numbers, stored
>>> from plstream._core.types import Array, Float64Array
>>> @stored(rules={"there are no more rows than its size": lambda its: len(its.rows) <= its.size})
... @dataclass
... class Reservoir:
...     size: Annotated[int, Count(1)]
...     rows: Annotated[Array, Numbers("w?", "m")]
...     squares: Annotated[Float64Array, Numbers("m", least=0)]

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
from typing import Any, TypeVar, get_type_hints

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
    """A plain value: a number, string or None; a tuple, list or dictionary of these; a one-dimensional array.

    ``accepts`` tells whether a value is of this kind. ``size`` is the symbol in shapes whose size is ``size_of`` the
    value, and ``restored`` returns the attribute for a value read from a file.
    """

    def __init__(
        self,
        description: str = "a plain value",
        accepts: Callable[[Any], bool] = lambda _: True,
        *,
        size: str | None = None,
        size_of: Callable[[Any], int] = len,
        restored: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.description, self.accepts = description, accepts
        self.size, self.size_of, self.restored = size, size_of, restored


class Boolean(Value):
    """True or False."""

    def __init__(self) -> None:
        super().__init__("true or false", lambda value: isinstance(value, bool))


class Number(Value):
    """A number in a range."""

    def __init__(
        self, least: float = -inf, most: float = inf, *, finite: bool = True, nan: bool = False, **others: Any
    ) -> None:
        self.nan = nan

        def accepts(value: Any) -> bool:
            if type(value) not in {int, float}:
                return False
            if nan or isnan(value):
                return nan
            return bool(least <= value <= most and not (finite and abs(value) == inf))

        super().__init__(f"a number from {least} to {most}", accepts, **others)


class Count(Value):
    """An integer in a range, optionally a size in shapes."""

    def __init__(self, least: int = 0, most: int = LARGEST_COUNT, *, size: str | None = None) -> None:
        def accepts(value: Any) -> bool:
            return type(value) is int and least <= value <= most

        super().__init__(f"an integer from {least} to {most}", accepts, size=size, size_of=int)


class Text(Value):
    """A string of limited length."""

    def __init__(self, longest: int = 1000) -> None:
        super().__init__("a string", lambda value: isinstance(value, str) and len(value) <= longest)


class Choice(Value):
    """One of several values."""

    def __init__(self, *choices: Any) -> None:
        def accepts(value: Any) -> bool:
            return any(type(value) is type(choice) and value == choice for choice in choices)

        super().__init__(f"{'one of ' if len(choices) > 1 else ''}{', '.join(map(str, choices))}", accepts)


class ClassLabels(Value):
    """An array of labels in ascending order, whose number is a size in shapes."""

    def __init__(self, size: str) -> None:
        def accepts(value: Any) -> bool:
            return isinstance(value, np.ndarray) and len(value) > 1 and bool((value[:-1] < value[1:]).all())

        super().__init__("an array of at least two labels in ascending order", accepts, size=size)


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


def _are_names(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


# Set by scikit-learn's validation of X.
FEATURES: dict[str, Kind] = {
    "n_features_in_": Count(1, size="m"),
    "feature_names_in_": OrMissing(Value("an array of names", _are_names, size="m")),
    # Numeric names, which scikit-learn does not keep.
    "feature_axis_": OrMissing(Numbers("m")),
}


@dataclass(frozen=True)
class Schema:
    """The attributes of a class, and its rules: sentences with functions that check them."""

    fields: Mapping[str, Kind]
    rules: Mapping[str, Rule]


# What classes were declared with. Annotations are evaluated when they are first needed, not by the import.
_DECLARED: dict[type, tuple[Mapping[str, Kind] | None, Mapping[str, Rule]]] = {}
_SCHEMAS: dict[type, Schema] = {}


def stored(fields: Mapping[str, Kind] | None = None, rules: Mapping[str, Rule] | None = None) -> Callable[[Cls], Cls]:
    """Declare the attributes of the objects of a class, in addition to those of a base class.

    By default these are the annotated ones. ``fields`` are for classes whose attributes are not those of a file, or are
    computed.

    A rule is called with an object that has the declared attributes, including those of nested objects, ``sizes``, the
    values of symbols, ``parameters``, those of an estimator, and ``n_numbers``, the number of values in all arrays. It
    is called before any object is created; all attributes are then of the right kind.
    """

    def declare(cls: Cls) -> Cls:
        _DECLARED[cls] = fields, rules or {}
        return cls

    return declare


def schema_of(cls: type) -> Schema | None:
    """Return the declaration of a class itself, not of a base class, or None."""
    if cls in _DECLARED and cls not in _SCHEMAS:
        fields, rules = _DECLARED[cls]
        own = _annotated(cls) if fields is None else fields
        inherited = next(filter(None, map(schema_of, cls.__mro__[1:])), Schema({}, {}))
        _SCHEMAS[cls] = Schema({**inherited.fields, **own}, {**inherited.rules, **rules})
    return _SCHEMAS.get(cls)


def _annotated(cls: type) -> dict[str, Kind]:
    hints = get_type_hints(cls, include_extras=True)
    metadata = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: kind for name, kinds in metadata.items() for kind in kinds if isinstance(kind, Kind)}


def declared(*packages: ModuleType, having: str = "__init__") -> tuple[type, ...]:
    """Return the declared public classes of packages that have a given attribute."""
    public = (getattr(package, name) for package in packages for name in package.__all__)
    return tuple(cls for cls in public if isinstance(cls, type) and schema_of(cls) and hasattr(cls, having))
