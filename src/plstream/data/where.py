"""Conditions on rows, such as ``"year >= 2020 and site in ('A', 'B')"``: comparisons of columns with constants.

Conditions are parsed, never run as Python: only names of columns, constants, comparisons, ``in``, ``and``, ``or`` and
``not`` are allowed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial, reduce
from itertools import pairwise
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, beginning
from .._core.types import Array

Mask = NDArray[np.bool_]

Compare: TypeAlias = Callable[[str, str, Any], Any]
"""Compares the column of a name by a sign, such as "<" or "in", with a constant or with several."""

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


@dataclass
class Where:
    """A condition on rows."""

    text: str
    """The condition as written by the caller."""
    evaluate: Callable[[Compare], Any]
    """Combines the results of its comparisons, masks or Arrow expressions."""
    columns: dict[str, int] = field(default_factory=dict)
    """Numbers of its columns, set when the columns of the data are known."""

    @classmethod
    def of(cls, where: Any) -> Where:
        """Parse a string, or a list of tuples (column, sign, value) all of which must hold.

        Examples
        --------
        >>> from plstream.data.where import Where
        >>> Where.of("year >= 2020 and not site in ('A', 'B')").names()
        ['year', 'site']
        """
        if isinstance(where, str):
            return _parse(where)
        try:
            parts = [(str(name), str(sign), _constants(str(sign), value)) for name, sign, value in where]
        except (TypeError, ValueError):
            parts = []
        if not parts or not {sign for _, sign, _ in parts} <= {*_COMPARISONS, "in", "not in"}:
            raise TypeError(
                "where= must be a string such as 'year >= 2020', or a list of tuples (column, sign, value)."
            )
        return cls(repr(where), lambda compare: reduce(operator.and_, [compare(*part) for part in parts]))

    def names(self) -> list[str]:
        """Return the names of the columns."""
        names: dict[str, int] = {}
        self.evaluate(lambda name, _sign, _value: names.setdefault(name, 0))
        return list(names)

    def mask(self, columns: Mapping[int, Array]) -> Mask:
        """Return which rows match, from the values of columns by number."""
        return self._mask({name: columns[number] for name, number in self.columns.items()})

    def may_hold(self, values: Mapping[str, Array]) -> bool:
        """Return whether rows with these values of some columns may match."""
        return not set(self.names()) <= values.keys() or bool(self._mask(values).any())

    def expression(self, compute: Any) -> Any:
        """Return the condition as an Arrow expression, with which row groups are skipped."""

        def compare(name: str, sign: str, value: Any) -> Any:
            column = compute.field(name)
            if sign in {"in", "not in"}:
                found = column.isin(list(value))
                return ~found if sign == "not in" else found
            return _COMPARISONS[sign](column, value)

        return self.evaluate(compare)

    def _mask(self, columns: Mapping[str, Array]) -> Mask:
        mask: Mask = self.evaluate(lambda name, sign, value: self._compare(name, columns[name], sign, value))
        return mask

    def _compare(self, name: str, values: Array, sign: str, value: Any) -> Mask:
        several = sign in {"in", "not in"}
        constants = list(value) if several else [value]
        if any(isinstance(constant, str) != (values.dtype.kind in "SUM") for constant in constants):
            kind, other = ("text", "numbers") if values.dtype.kind in "SUM" else ("numbers", "text")
            raise DataError(
                f"where={beginning(self.text)!r} compares column {name!r}, which holds {kind}, with {other}."
            )
        if values.dtype.kind == "M":
            try:
                constants = [np.datetime64(constant) for constant in constants]
            except ValueError:
                raise DataError(f"where={beginning(self.text)!r}: write dates as in '2024-05-01'.") from None
        if several:
            mask = np.isin(values, np.array(constants)) if constants else np.zeros(len(values), bool)
            return ~mask if sign == "not in" else mask
        compared: Mask = np.asarray(_COMPARISONS[sign](values, constants[0]), dtype=bool)
        return compared


def _parse(text: str) -> Where:
    if len(text) > _LONGEST:
        raise DataError(f"where= has {len(text):,} characters: use fewer than {_LONGEST:,}.")
    try:
        where = Where(text, partial(_evaluate, ast.parse(text.strip(), mode="eval").body))
        # Raises an error for anything but a condition.
        where.names()
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        raise DataError(
            f"where={beginning(text)!r} is not a condition: compare columns with numbers or strings, as in "
            "\"year >= 2020 and site == 'A'\", or pass a list of tuples (column, sign, value)."
        ) from None
    return where


def _evaluate(node: ast.expr, compare: Compare) -> Any:
    """Combine the results of the comparisons in a condition; raise ValueError for anything else."""
    match node:
        case ast.BoolOp():
            combine = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return reduce(combine, [_evaluate(part, compare) for part in node.values])
        case ast.UnaryOp(op=ast.Not()):
            return ~_evaluate(node.operand, compare)
        case ast.Name():
            # A column of booleans.
            return compare(node.id, "==", True)
        case ast.Compare():
            # As in 1 < x < 2.
            pairs = zip(pairwise([node.left, *node.comparators]), node.ops, strict=True)
            return reduce(operator.and_, [compare(*_comparison(*pair, sign)) for pair, sign in pairs])
    raise ValueError(node)


def _comparison(left: ast.expr, right: ast.expr, sign: ast.cmpop) -> tuple[str, str, Any]:
    if isinstance(sign, ast.In | ast.NotIn) and isinstance(left, ast.Name):
        several = "in" if isinstance(sign, ast.In) else "not in"
        return left.id, several, _constants(several, ast.literal_eval(right))
    name = _SIGNS[type(sign)]
    if isinstance(left, ast.Name):
        return left.id, name, _constant(right)
    if isinstance(right, ast.Name):
        return right.id, _MIRRORED.get(name, name), _constant(left)
    raise ValueError(left)


def _constants(sign: str, value: Any) -> Any:
    """Return what a column is compared with, several constants as a tuple; raise ValueError for anything else.

    Dates become strings such as '2024-05-01', which are compared with columns of dates and of strings.
    """
    several = sign in {"in", "not in"}
    constants = tuple(value) if several else (value,)
    if not all(isinstance(constant, Number | str | np.generic | date) for constant in constants):
        raise ValueError(value)
    constants = tuple(
        str(np.datetime64(each)) if isinstance(each, date | np.datetime64) else each for each in constants
    )
    return constants if several else constants[0]


def _constant(node: ast.expr) -> Any:
    value = ast.literal_eval(node)
    if not isinstance(value, bool | int | float | str):
        raise ValueError(value)  # noqa: TRY004
    return value
