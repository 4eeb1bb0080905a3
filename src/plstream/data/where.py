"""Conditions on rows, such as ``"year >= 2020 and site in ('A', 'B')"``: comparisons of columns with constants.

Conditions are parsed, never run as Python: only names of columns, constants, comparisons, ``in``, ``and``, ``or`` and
``not`` are allowed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, beginning
from .._core.types import Array

Mask = NDArray[np.bool_]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LONGEST = 10_000


@dataclass(frozen=True)
class Comparison:
    """A column compared with a constant, or with several."""

    name: str
    sign: str
    value: Any


@dataclass(frozen=True)
class Combination:
    """Conditions joined by "and" or "or", or one with "not"."""

    sign: str
    parts: tuple[Any, ...]


@dataclass
class Where:
    """A condition on rows."""

    text: str
    """The condition as written by the caller."""
    condition: Comparison | Combination
    columns: dict[str, int] = field(default_factory=dict)
    """Numbers of its columns, set when the columns of the data are known."""

    @classmethod
    def of(cls, where: Any) -> Where:
        """Parse a string, or a list of tuples (column, sign, value) all of which must hold.

        Examples
        --------
        >>> from plstream.data.where import Where
        >>> sorted(Where.of("year >= 2020 and not site in ('A', 'B')").names())
        ['site', 'year']
        """
        if isinstance(where, Where):
            return where
        if isinstance(where, str):
            return cls(where, _parse(where))
        try:
            parts = tuple(Comparison(str(name), str(sign), value) for name, sign, value in where)
        except (TypeError, ValueError):
            parts = ()
        if not parts or not {part.sign for part in parts} <= {*_COMPARISONS, "in", "not in"}:
            raise TypeError(
                "where= must be a string such as 'year >= 2020', or a list of tuples (column, sign, value)."
            )
        return cls(repr(where), parts[0] if len(parts) == 1 else Combination("and", parts))

    def names(self) -> Iterator[str]:
        """Yield the names of the columns."""
        conditions = [self.condition]
        while conditions:
            condition = conditions.pop(0)
            if isinstance(condition, Comparison):
                yield condition.name
            else:
                conditions = [*condition.parts, *conditions]

    def mask(self, columns: Mapping[int, Array]) -> Mask:
        """Return which rows match, from the values of columns by number."""
        return self._mask({name: columns[number] for name, number in self.columns.items()})

    def may_hold(self, values: Mapping[str, Array]) -> bool:
        """Return whether rows with these values of some columns may match."""
        return not set(self.names()) <= values.keys() or bool(self._mask(values).any())

    def expression(self, compute: Any) -> Any:
        """Return the condition as an Arrow expression, with which row groups are skipped."""
        return _evaluate(self.condition, partial(_arrow_comparison, compute))

    def _mask(self, columns: Mapping[str, Array]) -> Mask:
        mask: Mask = _evaluate(self.condition, lambda each: _compare(each, columns[each.name], self.text))
        return mask


def _evaluate(condition: Comparison | Combination, compare: Callable[[Comparison], Any]) -> Any:
    """Combine the results of ``compare``, masks or Arrow expressions."""
    if isinstance(condition, Comparison):
        return compare(condition)
    parts = [_evaluate(part, compare) for part in condition.parts]
    if condition.sign == "not":
        return ~parts[0]
    return reduce(operator.and_ if condition.sign == "and" else operator.or_, parts)


def _compare(condition: Comparison, values: Array, text: str) -> Mask:
    several = condition.sign in {"in", "not in"}
    constants = list(condition.value) if several else [condition.value]
    if any(isinstance(constant, str) != (values.dtype.kind in "SUM") for constant in constants):
        kind, other = ("text", "numbers") if values.dtype.kind in "SUM" else ("numbers", "text")
        raise DataError(
            f"where={beginning(text)!r} compares column {condition.name!r}, which holds {kind}, with {other}."
        )
    if values.dtype.kind == "M":
        try:
            constants = [np.datetime64(constant) for constant in constants]
        except ValueError:
            raise DataError(f"where={beginning(text)!r}: write dates as in '2024-05-01'.") from None
    if several:
        mask = np.isin(values, np.array(constants)) if constants else np.zeros(len(values), bool)
        return ~mask if condition.sign == "not in" else mask
    compared: Mask = np.asarray(_COMPARISONS[condition.sign](values, constants[0]), dtype=bool)
    return compared


def _arrow_comparison(compute: Any, condition: Comparison) -> Any:
    column = compute.field(condition.name)
    if condition.sign in {"in", "not in"}:
        found = column.isin(list(condition.value))
        return ~found if condition.sign == "not in" else found
    return _COMPARISONS[condition.sign](column, condition.value)


def _parse(text: str) -> Comparison | Combination:
    if len(text) > _LONGEST:
        raise DataError(f"where= has {len(text):,} characters: use fewer than {_LONGEST:,}.")
    try:
        return _condition(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        raise DataError(
            f"where={beginning(text)!r} is not a condition: compare columns with numbers or strings, as in "
            "\"year >= 2020 and site == 'A'\", or pass a list of tuples (column, sign, value)."
        ) from None


def _condition(node: ast.expr) -> Comparison | Combination:
    if isinstance(node, ast.BoolOp):
        return Combination("and" if isinstance(node.op, ast.And) else "or", tuple(map(_condition, node.values)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Combination("not", (_condition(node.operand),))
    if isinstance(node, ast.Name):
        # A column of booleans.
        return Comparison(node.id, "==", True)
    if not isinstance(node, ast.Compare):
        raise ValueError(node)  # noqa: TRY004
    # As in 1 < x < 2.
    parts = tuple(map(_comparison, [node.left, *node.comparators], node.ops, node.comparators))
    return parts[0] if len(parts) == 1 else Combination("and", parts)


def _comparison(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Comparison:
    if isinstance(sign, ast.In | ast.NotIn) and isinstance(left, ast.Name):
        values = ast.literal_eval(right)
        return Comparison(left.id, "in" if isinstance(sign, ast.In) else "not in", tuple(values))
    name = _SIGNS[type(sign)]
    if isinstance(left, ast.Name):
        return Comparison(left.id, name, _constant(right))
    if isinstance(right, ast.Name):
        return Comparison(right.id, _MIRRORED.get(name, name), _constant(left))
    raise ValueError(left)


def _constant(node: ast.expr) -> Any:
    value = ast.literal_eval(node)
    if not isinstance(value, bool | int | float | str):
        raise ValueError(value)  # noqa: TRY004
    return value
