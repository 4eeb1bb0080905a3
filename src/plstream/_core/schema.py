"""What a class is made of, declared beside the class: all that a model file needs to know of it.

A declaration names every attribute with the kind of its value, and says what must hold between them:

>>> from plstream._core.schema import Count, Numbers, stored
>>> @stored(
...     {"size": Count(1), "rows": Numbers("w?", "m"), "squares": Numbers("m", least=0)},
...     {"there are no more rows than its size": lambda its: len(its.rows) <= its.size},
... )
... class Reservoir:
...     def __init__(self, size, n_columns): ...

Symbols in shapes are sizes: within an object, each has one value, of one or more; ``"w?"`` may be zero. Shapes may also
have numbers, sums and products such as ``"c+1"`` and ``"q*c"``, and None for a size that nothing depends on. Sizes of
an object inside are its own. ``Object(Factors, m="m", s="q*c")`` says what they are in the object around it.

Attributes are those that ``__getstate__`` returns, by default all there are, and are set by ``__setstate__`` if there
is one: as for pickle. A named tuple is made of its fields. Parameters of an estimator are declared only if they are
more than plain values, and its other attributes are all there or, before it is fitted, none.
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
# Of a model with fewer features. There are at most as many components as features, and all others are zero.
_COMPONENTS_IN_ANY_CASE = 1024
# What is made of a model when it is used has at most so many times its numbers, or so many.
_MOST_TIMES = 100
_NUMBERS_IN_ANY_CASE = 1 << 20


def most_components(n_features: int) -> int:
    """Return the largest number of components of a model of so many features."""
    return max(n_features, _COMPONENTS_IN_ANY_CASE)


def is_in_proportion(n_numbers: int, its: Any) -> bool:
    """Return whether so many numbers may be made of an object when it is used: a small file must not cost much.

    ``its`` is what a rule is called with.
    """
    return bool(n_numbers <= max(_NUMBERS_IN_ANY_CASE, _MOST_TIMES * its.n_numbers))


class Kind:
    """What an attribute holds."""


class Numbers(Kind):
    """An array of numbers or booleans.

    ``least``, ``most`` and ``finite`` bound the numbers, of which none is NaN unless ``nan`` is set; then they have no
    bounds. With ``any_order`` it may be in Fortran's order, too: not what a compiled loop reads, which takes one.
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
    """Return the kind of an array of a solution: where units are extreme, some numbers are infinite."""
    return Numbers(*shape, least=least, finite=False, any_order=True)


class Value(Kind):
    """Any plain value: a number, string or None, a tuple, list or dictionary of such, a one-dimensional array."""

    description = "a plain value"
    size: str | None = None
    """The symbol in shapes that the value is the size of."""

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return True

    def size_of(self, value: Any) -> int:
        """Return the size that a value stands for."""
        return len(value)

    def restored(self, value: Any) -> Any:
        """Return a value that was read as the attribute holds it."""
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
    """An integer in a range, which may be a size in shapes."""

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
    """A string, bounded unless it may hold names of features."""

    description = "a string"

    def __init__(self, longest: int = 1000) -> None:
        self.longest = longest

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, str) and len(value) <= self.longest


class Choice(Value):
    """One of some values."""

    def __init__(self, *choices: Any) -> None:
        self.choices = choices
        self.description = f"one of {', '.join(map(str, choices))}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return any(type(value) is type(choice) and value == choice for choice in self.choices)


class ClassLabels(Value):
    """An array of labels in ascending order, whose number is a size in shapes."""

    description = "an array of two labels or more in ascending order"

    def __init__(self, size: str) -> None:
        self.size = size

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, np.ndarray) and len(value) > 1 and bool((value[:-1] < value[1:]).all())


class FeatureNames(Value):
    """Names of the features, m of them."""

    description = "an array of names"
    size = "m"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return isinstance(value, np.ndarray) and value.dtype == object


class OrElse(Kind):
    """A value of some kind, or a string or None that stands for something else."""

    def __init__(self, kind: Kind, other: str | None) -> None:
        self.kind = kind
        self.other = other


class OrNone(OrElse):
    """A value of some kind, or None."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind, None)


class OrMissing(Kind):
    """A value of some kind, of an attribute or entry that need not be there."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind


class Each(Kind):
    """A sequence of any length, all of one kind; it is read as a tuple, or as a list."""

    def __init__(self, kind: Kind, container: type = tuple) -> None:
        self.kind = kind
        self.container = container

    def kinds(self, length: int) -> tuple[Kind, ...]:
        """Return the kinds of so many entries."""
        return (self.kind,) * length


class Tuple(Kind):
    """A tuple with an entry of each of some kinds."""

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
    """An object of one of some classes that are declared; keywords say what its sizes are in the object around it.

    ``given`` are attributes of which more is known here than their class declares.
    """

    def __init__(self, *classes: type, given: Mapping[str, Kind] | None = None, **sizes: str) -> None:
        self.classes = {cls.__name__: cls for cls in classes}
        self.given = given or {}
        self.sizes = sizes

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class in a file, or None if it may not be there."""
        return cls.__name__ if self.classes.get(cls.__name__) is cls else None

    def class_of(self, name: Any) -> type | None:
        """Return the class of a name in a file, or None if it may not be there."""
        return self.classes.get(name) if isinstance(name, str) else None

    @property
    def description(self) -> str:
        """Which classes there may be."""
        return f"of the class {' or '.join(self.classes)}"


# What scikit-learn sets when X is validated.
FEATURES: dict[str, Kind] = {"n_features_in_": Count(1, size="m"), "feature_names_in_": OrMissing(FeatureNames())}


@dataclass(frozen=True)
class Schema:
    """The attributes of a class, and rules that they obey: sentences, with functions that say whether they hold."""

    fields: Mapping[str, Kind]
    rules: Mapping[str, Rule]


_SCHEMAS: dict[type, Schema] = {}


def stored(fields: Mapping[str, Kind], rules: Mapping[str, Rule] | None = None) -> Callable[[Cls], Cls]:
    """Declare what the objects of a class are made of, in addition to what a base class declares.

    A rule is called with something that has the attributes of the object, and those of objects inside likewise, and
    besides ``sizes``, what symbols stand for, ``parameters``, those of an estimator, and ``n_numbers``, the numbers in
    all arrays. It is called before any object is made, with all attributes of the right kind.
    """

    def declare(cls: Cls) -> Cls:
        inherited = next((_SCHEMAS[base] for base in cls.__mro__[1:] if base in _SCHEMAS), Schema({}, {}))
        _SCHEMAS[cls] = Schema({**inherited.fields, **fields}, {**inherited.rules, **(rules or {})})
        return cls

    return declare


def schema_of(cls: type) -> Schema | None:
    """Return the declaration of a class, or None: not that of a base class."""
    return _SCHEMAS.get(cls)


def declared(*packages: ModuleType, having: str = "__init__") -> tuple[type, ...]:
    """Return the public classes of packages that are declared, and have an attribute."""
    public = (getattr(package, name) for package in packages for name in package.__all__)
    return tuple(cls for cls in public if isinstance(cls, type) and schema_of(cls) and hasattr(cls, having))
