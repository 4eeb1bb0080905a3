r"""Expected errors of the Gram action of a sketch, from how its compressions have changed it so far.

A compression of n effective rows, which later have a share s of the squares and w of the weight of n' rows, contributes

.. math::
    e^2 s^2 \Big( \frac{1 - 2 w}{n} + \frac{1}{n'} \Big)

to the squared error of the action on a rotation with scores of length one: a rotation estimated from k rows differs
from that of n rows by a random walk, and the expected square of the difference is proportional to
:math:`1/k - 1/n`, or with weights to the term in parentheses. Three sums over the compressions suffice: those of
:math:`e^2 s^2 / n`, :math:`e^2 s^2` and :math:`e^2 s^2 w / n`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, Self

import numpy as np

from .._core.schema import Number, Numbers, stored
from .._core.types import Float64Array


class Totals(NamedTuple):
    """Weight, effective number and sum of squares of some rows."""

    weight: float
    rows: float
    squares: float


@stored()
@dataclass(frozen=True)
class ActionErrors:
    """The sums for each component, relative to the rows of the solution that the last compression preserved."""

    sums: Annotated[Float64Array, Numbers(3, "c")]
    weight: Annotated[float, Number(0)] = 0.0
    rows: Annotated[float, Number(0)] = 0.0
    squares: Annotated[float, Number(0)] = 0.0

    @classmethod
    def none(cls, n_components: int) -> Self:
        """Return zero errors, before any solution."""
        return cls(np.zeros((3, n_components)))

    def at(self, now: Totals) -> Self:
        """Return the sums relative to the present rows, whose solution is preserved from now on."""
        # If the earlier rows are almost forgotten, their share is a rounding error.
        share = min(1.0, self.squares / (now.squares or np.inf))
        return type(self)(self.sums * _powers(share, self.weight / now.weight), *now)

    def after_compression(self, now: Totals, changes: Float64Array, unresolved: Float64Array) -> Self:
        """Return the sums with a compression that changed the action on the rotations of the last solution.

        The change of the action, divided by that of the rotations, predicts future changes, as do the ``unresolved``
        errors of a seed, if they are larger than expected.
        """
        found = self.at(now)
        known = self.weight / now.weight
        walked = (1 - 2 * known) / self.rows + 1 / now.rows if self.rows else 0.0
        if changes.size and walked > 0:
            factors = _terms(now.rows) / now.squares / walked
            n_known, n_found = min(changes.shape[1], found.sums.shape[1]), len(unresolved)
            found.sums[:, :n_found] = np.maximum(found.sums[:, :n_found], factors * unresolved**2)
            found.sums[:, :n_known] += factors * np.square(changes[:, :n_known]).sum(axis=0)
        return found

    def expected(self, now: Totals, n_later: int, forgetting: float) -> Float64Array:
        """Return the expected errors of the action after ``n_later`` more rows."""
        fading = forgetting**n_later
        added = n_later if forgetting == 1.0 else (1 - fading) / (1 - forgetting)
        weight = fading + added / now.rows
        rows_later = weight**2 / (fading**2 / now.rows + added / now.rows**2)
        first, second, third = self.at(now).sums * _powers(fading / weight, fading / weight)
        squares = np.maximum(first + second / rows_later - 2 * third, 0.0)
        return np.sqrt(squares * now.squares)

    def plus(self, squares: Float64Array) -> Self:
        """Return the sums with further squared errors of the first components, of one compression of all rows."""
        sums = self.sums.copy()
        sums[:, : len(squares)] += _terms(self.rows) * squares
        return replace(self, sums=sums)

    def merged(self, other: Self) -> Self:
        """Return the sums of both, relative to the rows with the larger sum of squares."""
        more, less = (other, self) if other.squares > self.squares else (self, other)
        if not less.squares:
            return more
        return replace(
            more, sums=more.sums + less.sums * _powers(less.squares / more.squares, less.weight / more.weight)
        )

    def resized(self, n_components: int) -> Self:
        """Return the sums for another number of components."""
        sums = np.zeros((3, n_components))
        n_known = min(self.sums.shape[1], n_components)
        sums[:, :n_known] = self.sums[:, :n_known]
        return replace(self, sums=sums)


def _terms(rows: float) -> Float64Array:
    """Return the factors of a squared error in the three sums, for a compression of all rows."""
    return np.array([[1 / rows], [1.0], [1 / rows]])


def _powers(squares: float, weight: float) -> Float64Array:
    """Return the factors of the sums if the shares of the squares and of the weight change."""
    return np.array([[squares**2], [squares**2], [squares**2 * weight]])
