"""Conditions on rows, such as ``"year >= 2020 and site in ('A', 'B')"``: comparisons of columns with constants.

A condition is parsed, never evaluated as Python: names of columns, constants, comparisons, ``in``, ``and``, ``or`` and
``not`` are all that it may have.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
    """A condition on rows.

    Attributes
    ----------
    text : str
        The condition as the caller wrote it.
    condition : Comparison or Combination
    columns : dict of str to int
        Numbers of the columns that it names, which are set when the columns of the data are known.
    """

    text: str
    condition: Comparison | Combination
    columns: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, where: Any) -> Where:
        """Parse a text, or a list of tuples (column, sign, value) all of which must hold.

        Examples
        --------
        >>> from plstream.data.where import Where
        >>> sorted(Where.of("year >= 2020 and not site in ('A', 'B')").names())
        ['site', 'year']
        """
        if isinstance(where, Where):
            return where
        if isinstance(where, str):
            return cls(where, _parsed(where))
        try:
            parts = tuple(_checked(str(name), str(sign), value) for name, sign, value in where)
        except (TypeError, ValueError):
            raise TypeError(
                "where= is a condition as text, such as 'year >= 2020', or a list of tuples (column, sign, value)."
            ) from None
        return cls(repr(where), parts[0] if len(parts) == 1 else Combination("and", parts))

    def names(self) -> Iterator[str]:
        """Yield the names of the columns."""
        yield from _names(self.condition)

    def mask(self, columns: Mapping[int, Array]) -> Mask:
        """Return which rows are used, from the values of columns by number."""
        return _mask(self.condition, {name: columns[number] for name, number in self.columns.items()}, self.text)

    def may_hold(self, values: Mapping[str, Array]) -> bool:
        """Return whether rows with these values of some columns may be used."""
        if not set(self.names()) <= values.keys():
            return True
        return bool(_mask(self.condition, values, self.text).any())

    def expression(self, compute: Any) -> Any:
        """Return the same as an expression of Arrow, with which groups of rows are passed over."""
        return _expression(self.condition, compute)


def _checked(name: str, sign: str, value: Any) -> Comparison:
    if sign not in {*_COMPARISONS, "in", "not in"}:
        raise ValueError(sign)
    return Comparison(name, sign, value)


def _parsed(text: str) -> Comparison | Combination:
    if len(text) > _LONGEST:
        raise DataError(f"where= has {len(text):,} characters: use fewer than {_LONGEST:,}.")
    try:
        return _condition(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise DataError(
            f"where={beginning(text)!r} is no condition: compare columns with numbers or text, as in "
            "\"year >= 2020 and site == 'A'\", or pass a list of tuples (column, sign, value)."
        ) from None


def _condition(node: ast.expr) -> Comparison | Combination:
    if isinstance(node, ast.BoolOp):
        return Combination("and" if isinstance(node.op, ast.And) else "or", tuple(map(_condition, node.values)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Combination("not", (_condition(node.operand),))
    if isinstance(node, ast.Name):
        # A column of booleans by itself.
        return Comparison(node.id, "==", True)
    if not isinstance(node, ast.Compare):
        raise ValueError(node)  # noqa: TRY004
    parts = []
    for left, sign, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        parts.append(_comparison(left, sign, right))
    return parts[0] if len(parts) == 1 else Combination("and", tuple(parts))


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


def _names(condition: Comparison | Combination) -> Iterator[str]:
    if isinstance(condition, Comparison):
        yield condition.name
        return
    for part in condition.parts:
        yield from _names(part)


def _mask(condition: Comparison | Combination, columns: Mapping[str, Array], text: str) -> Mask:
    if isinstance(condition, Comparison):
        return _compared(condition, columns[condition.name], text)
    masks = [_mask(part, columns, text) for part in condition.parts]
    if condition.sign == "not":
        return ~masks[0]
    joined: Mask = (np.logical_and if condition.sign == "and" else np.logical_or).reduce(masks)
    return joined


def _compared(condition: Comparison, values: Array, text: str) -> Mask:
    several = condition.sign in {"in", "not in"}
    constants = list(condition.value) if several else [condition.value]
    if any(isinstance(constant, str) != (values.dtype.kind in "SUM") for constant in constants):
        kind = "text" if values.dtype.kind in "SUM" else "numbers"
        raise DataError(f"where={beginning(text)!r} compares column {condition.name!r}, which holds {kind}, wrongly.")
    if values.dtype.kind == "M":
        try:
            constants = [np.datetime64(constant) for constant in constants]
        except ValueError:
            raise DataError(f"where={beginning(text)!r}: dates are written as in '2024-05-01'.") from None
    if several:
        mask = np.isin(values, np.array(constants)) if constants else np.zeros(len(values), bool)
        return ~mask if condition.sign == "not in" else mask
    compared: Mask = np.asarray(_COMPARISONS[condition.sign](values, constants[0]), dtype=bool)
    return compared


def _expression(condition: Comparison | Combination, compute: Any) -> Any:
    if isinstance(condition, Comparison):
        column = compute.field(condition.name)
        if condition.sign in {"in", "not in"}:
            found = column.isin(list(condition.value))
            return ~found if condition.sign == "not in" else found
        return _COMPARISONS[condition.sign](column, condition.value)
    parts = [_expression(part, compute) for part in condition.parts]
    if condition.sign == "not":
        return ~parts[0]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined & part if condition.sign == "and" else joined | part
    return joined
