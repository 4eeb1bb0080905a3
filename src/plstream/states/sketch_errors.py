r"""Expected errors of a sketch: of its Gram action, from how compressions have changed it so far, and of its solution.

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
from math import sqrt
from typing import Annotated, NamedTuple, Self

import numpy as np
from scipy import linalg

from .._core.schema import Number, Numbers, Object, stored
from .._core.types import Float64Array, FloatArray
from ..pls import Factors
from .held_rows import inner_products

# Estimated errors of a state that starts from a solution are multiplied by this: on five real data sets in five orders,
# true errors were up to 2.4 times the estimates.
SEED_SAFETY = 2.5


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


@stored()
@dataclass(frozen=True)
class SketchErrors:
    """The expected errors of a sketch, and the solution that its last compression preserved."""

    rotations: Annotated[Float64Array, Numbers(None, "m", any_order=True)]
    """The rotations of this solution, as rows, with scores of length one, in units."""
    action: Annotated[ActionErrors, Object(ActionErrors, c="c")]
    """Expected errors of the action on each rotation, relative to the rows of this solution."""
    of_subspace: Annotated[Float64Array, Numbers(None, least=0)]
    """Estimated sine of the angle to the exact solution, for each number of components, until the next compression."""
    unresolved: Annotated[float, Number(0)]
    """Approximately the largest sum of squares, in units, of rows known only by their solution, in directions outside
    it."""

    @classmethod
    def none(cls, n_columns: int, n_components: int) -> Self:
        """Return zero errors, before any solution."""
        return cls(np.zeros((0, n_columns)), ActionErrors.none(n_components), np.zeros(0), 0.0)

    def preserving(self, R: Float64Array, totals: Totals) -> Self:
        """Return the errors relative to another solution, with the rotations R, of the present rows."""
        return replace(self, rotations=R.T, action=self.action.at(totals))

    def scaled(self, ratio: Float64Array, change: float) -> Self:
        """Return the errors for columns multiplied by a ratio, whose squares change by a factor on average."""
        return replace(
            self,
            rotations=np.divide(self.rotations, ratio, out=np.zeros_like(self.rotations), where=ratio > 0),
            action=replace(self.action, squares=self.action.squares * change),
            unresolved=self.unresolved * change,
        )

    def has_more_than(self, other: Self) -> bool:
        """Return whether the solution is that of rows with a larger sum of squares."""
        return self.action.squares > other.action.squares

    def merged(self, other: Self) -> Self:
        """Return the errors of both, and the solution of more rows."""
        return replace(
            self,
            rotations=other.rotations if other.has_more_than(self) else self.rotations,
            action=self.action.merged(other.action),
            unresolved=self.unresolved + other.unresolved,
        )

    def of_one_compression(self) -> Self:
        """Return the errors as if all of them were due to one compression."""
        sums = np.zeros_like(self.action.sums)
        return replace(self, action=replace(self.action, sums=sums).plus(self.action.sums[1]))

    def shrunk(self, factor: float) -> Self:
        """Return the errors after the weights of all rows have been multiplied by a factor."""
        return replace(self, action=replace(self.action, weight=self.action.weight * factor))

    def resized(self, n_components: int) -> Self:
        """Return the errors for another number of components."""
        return replace(self, action=self.action.resized(n_components))


def errors_of_loss(solution: Factors, totals: Totals, lost: float, largest: float, n_varying: int) -> Float64Array:
    r"""Estimate the squared errors due to a loss that was not measured, for each component of a solution.

    Sampling errors of the covariance with the residual y, of squares :math:`y_i^2`, have the covariance of the rows.
    Divided by :math:`q_i \tau_i^{3/2}`, they are the change of the i-th rotation, with scores of length one. The lost
    part has the trace :math:`\theta`, the mean variance :math:`\rho` and the largest :math:`\lambda`, and the diagonal
    that replaces it is off by :math:`\lambda - \rho` and the sampling error of n rows. The error of its action on the
    change of the rotations is about

    .. math::
        e_i^2 = \theta \left( (\lambda - \rho)^2 + \rho^2 \frac{4 m}{n} \right) \frac{y_i^2}{q_i^2 \tau_i^3} .

    ``lost`` is the trace, ``largest`` the largest variance, and ``n_varying`` the number of columns that vary.
    """
    c, tau = solution.n_components, solution.score_squares
    loads = solution.y_loadings[:, :c]
    squares = np.square(loads).sum(axis=0)
    left = 1.0 - np.cumsum(loads**2 * tau[:c], axis=1) + loads**2 * tau[:c]
    # For the combination of responses predicted by the component.
    y_left = np.maximum((loads**2 * left).sum(axis=0) / squares, 0.0)
    n_columns = max(1, n_varying - c)
    mean = lost / n_columns
    off = max(largest - mean, 0.0) ** 2 + 4 * mean**2 * n_columns / totals.rows
    expected: Float64Array = lost * off / totals.squares * y_left / (squares * tau[:c] ** 3)
    return expected


def errors_of_seed(
    errors: SketchErrors, pieces: tuple[FloatArray, ...], R: Float64Array, weight: float, lost: float, n_varying: int
) -> Float64Array:
    r"""Estimate the errors of the action on rotations R from their distance to those of the seed, the first piece.

    The residual E of the rows of the seed vanishes on its rotations. If D is the part of R orthogonal to these, the
    error is :math:`(E^T E - \operatorname{diag}(\rho)) D`. With the eigenvalues :math:`\lambda_j` of :math:`E^T E`, and
    D due to sampling errors, its expected length is about :math:`\|D\|` times the root of
    :math:`\sum_j (\lambda_j - \rho)^3 / \sum_j \lambda_j`. The eigenvalues are those of the residuals of the k rows
    since, scaled to the weight of the rows of the seed. For m columns of equal variance :math:`\rho`, they reach
    :math:`\rho (1 + (m / k)^{1/2})^2` (Marchenko and Pastur), so only the excess counts. If a single eigenvalue
    dominates, its standard error is :math:`\lambda (2 / k)^{1/2}`, and two of these are added.

    ``weight`` is that of all rows; for ``lost`` and ``n_varying`` see :func:`errors_of_loss`.
    """
    weight_since = weight - errors.action.weight
    if weight_since <= 0:
        return np.zeros(R.shape[1])
    seed, *later = pieces
    known = errors.rotations.T
    residuals = tuple(piece - (piece @ known.astype(piece.dtype)) @ seed for piece in later)
    squares = np.maximum(np.linalg.eigvalsh(inner_products(residuals)), 0.0) * errors.action.weight / weight_since
    k, n_columns = len(squares), max(1, n_varying - known.shape[1])
    above = np.maximum(squares - squares.sum() / n_columns * (1 + sqrt(n_columns / k)) ** 2, 0.0)
    length = sqrt((above**3).sum() / (squares.sum() or 1.0)) * (1 + 2 * sqrt(2 / k))
    length = min(max(errors.unresolved - lost / n_columns, length), lost)
    basis = linalg.qr(known, mode="economic", check_finite=False)[0]
    distances: Float64Array = np.linalg.norm(R - basis @ (basis.T @ R), axis=0)
    return SEED_SAFETY * length * distances


def _terms(rows: float) -> Float64Array:
    """Return the factors of a squared error in the three sums, for a compression of all rows."""
    return np.array([[1 / rows], [1.0], [1 / rows]])


def _powers(squares: float, weight: float) -> Float64Array:
    """Return the factors of the sums if the shares of the squares and of the weight change."""
    return np.array([[squares**2], [squares**2], [squares**2 * weight]])
