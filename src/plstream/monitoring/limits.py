r"""Hotelling's T2 and Q: residuals of rows, their covariance in training rows, and limits for a given probability.

Scores are uncorrelated, and loadings are regressions on them, so the residuals of scaled rows have the covariance

.. math::
    E = S - P \Lambda P^T

with the covariance S of the rows, the loadings P and the variances of the scores. Q is a sum of squared residuals. If
these are normal, its distribution depends only on the traces :math:`\theta_k = \operatorname{tr} E^k`; the first three
suffice in practice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import stats

from .._core.errors import counted
from .._core.schema import Number, stored
from .._core.tiles import dense_tiles
from .._core.types import Float64Array, Rows
from ..estimators.base import PLSBase
from ..solvers.solution import Solution
from ..states import Gram, Moments, Sketch

# Columns of a sketch computed at a time.
_COLUMNS_AT_A_TIME = 1024


@stored()
class Traces(NamedTuple):
    """The traces of a covariance, its square and its cube, in a unit that avoids overflow."""

    first: Annotated[float, Number()]
    second: Annotated[float, Number()]
    third: Annotated[float, Number()]
    unit: Annotated[float, Number(0)] = 1.0
    """The unit of the first trace; its square is that of the second, and so on."""

    def scaled(self, factor: float) -> Traces:
        """Return the traces of a multiple of the covariance."""
        return self._replace(unit=self.unit * factor)

    def feasible(self) -> Traces:
        """Return the nearest traces of a covariance: estimates may have negative eigenvalues."""
        first = max(self.first, np.finfo(float).tiny)
        second = min(max(self.second, 0.0), first**2)
        return Traces(first, second, max(self.third, second**2 / first), self.unit)

    def unbiased(self, dof: float) -> Traces:
        r"""Return estimates of the traces of :math:`\Sigma` from those of a sample covariance.

        Eigenvalues of a sample covariance are more spread out than those of :math:`\Sigma`, so squares are too large.
        The corrections are derived from the moments of the Wishart distribution.
        """
        n, (first, second, third, unit) = dof, self
        # Expectations of tr(S)^3, tr(S) tr(S^2) and tr(S^3) in terms of those of Sigma.
        expectations = [
            [1, 6 / n, 8 / n**2],
            [1 / n, 1 + 1 / n + 4 / n**2, 4 / n + 4 / n**2],
            [1 / n**2, 3 / n + 3 / n**2, 1 + 3 / n + 4 / n**2],
        ]
        cubes = np.linalg.solve(expectations, [first**3, first * second, third])
        return Traces(first, (second - first**2 / n) * n**2 / ((n - 1) * (n + 2)), float(cubes[2]), unit)


def t2_limit(level: float, n_components: int, n_rows: float) -> float:
    r"""Return the limit of T2 for rows that were not used to estimate the mean and covariance of the scores.

    .. math::
        \frac{c (n^2 - 1)}{n (n - c)} F_{c, n - c}
    """
    c, n = n_components, n_rows
    if not c:
        return 0.0
    if n <= c:
        raise ValueError(
            f"T2 of {counted(c, 'component')} requires more than {counted(c, 'row')}, but there are {n:g}: "
            "use more rows."
        )
    return float(c * (n * n - 1) / (n * (n - c)) * stats.f.ppf(level, c, n - c))


def box_limit(level: float, traces: Traces) -> float:
    r"""Return the limit of Q by Box: :math:`g \chi^2_h` with the same mean and variance as Q.

    .. math::
        g = \theta_2 / \theta_1, \quad h = \theta_1^2 / \theta_2

    Examples
    --------
    >>> from plstream.monitoring.limits import Traces, box_limit
    >>> round(box_limit(0.95, Traces(3.0, 3.0, 3.0)), 3)  # Three independent residuals: chi2 with three degrees.
    7.815
    """
    first, second, _, unit = traces.feasible()
    g = second / first
    return float(unit * (g * stats.chi2.ppf(level, first / g) if g > 0 else first))


def jackson_mudholkar_limit(level: float, traces: Traces) -> float:
    r"""Return the limit of Q by Jackson and Mudholkar (1979): a power of Q is nearly normal.

    .. math::
        h_0 = 1 - \frac{2 \theta_1 \theta_3}{3 \theta_2^2}, \quad
        \theta_1 \left( 1 + \frac{z h_0 \sqrt{2 \theta_2}}{\theta_1}
        + \frac{\theta_2 h_0 (h_0 - 1)}{\theta_1^2} \right)^{1 / h_0}

    If residuals are so unequal that this is undefined, Box's limit is returned.
    """
    first, second, third, unit = traces.feasible()
    if not second:
        return unit * first
    z = float(stats.norm.ppf(level))
    # Zero for some spectra, where the power is an exponential.
    h = 1 - 2 * first * third / (3 * second**2) or 1e-12
    step = z * np.sqrt(2 * second) / first + second * (h - 1) / first**2
    return float(unit * first * np.exp(np.log1p(h * step) / h)) if h * step > -1 else box_limit(level, traces)


def pearson_limit(level: float, traces: Traces) -> float:
    r"""Return the limit of Q by Pearson (1959): a multiple of :math:`\chi^2_h`, shifted, with the first three moments.

    .. math::
        h = \theta_2^3 / \theta_3^2, \quad \theta_1 + \frac{\theta_3}{\theta_2} (\chi^2_h - h)
    """
    first, second, third, unit = traces.feasible()
    if not second:
        return unit * first
    h = second**3 / third**2
    return float(unit * (first + third / second * (stats.chi2.ppf(level, h) - h)))


Q_LIMITS = {"pearson": pearson_limit, "box": box_limit, "jackson-mudholkar": jackson_mudholkar_limit}


def residuals_of(solution: Solution, rows: Rows) -> Iterator[tuple[Float64Array, Float64Array]]:
    """Yield the scores and residuals of a few rows at a time; the next residuals overwrite them."""
    k = solution.n_components
    R, P = solution.x_rotations[:, :k], solution.x_loadings[:, :k]
    for _, centred in dense_tiles(rows, solution.x_mean):
        z = np.divide(centred, solution.x_scale, out=centred)
        scores = z @ R
        yield scores, np.subtract(z, scores @ P.T, out=z)


def divisor_of(state: Moments) -> float:
    """Return the divisor of sums of squares for unbiased variances: n - 1, or its equivalent for weighted rows."""
    return max(state.weight - state.typical_weight, 1e-300)


def matrix_of(state: Gram) -> Float64Array:
    """Return the symmetric matrix of a state, which holds its upper triangle."""
    matrix = np.triu(state.upper)
    matrix += np.triu(matrix, 1).T
    return matrix


def score_variances(model: Any) -> tuple[Float64Array, float] | None:
    """Return the variances of a model's scores and the number of rows, or None if unknown."""
    if not isinstance(model, PLSBase):
        return None
    state, solution = model._fitted.current(), model._solution()
    return solution.factors.score_squares[: solution.n_components] / divisor_of(state), state.effective_rows


def residual_traces(solution: Solution, state: Gram | Sketch, *, cube: bool = True) -> Traces:
    """Return the traces of E, E^2 and E^3, relative to the trace of S, from the state that the model was solved from.

    Of the part discarded by a sketch, only column variances are known: it is treated as independent, except for rows
    represented only by an exact solution, which have at least the variances of its last component. Without ``cube``,
    the third trace, which takes a product of square matrices for a Gram matrix, is not computed.
    """
    divisor = divisor_of(state)
    unit = solution.x_total / divisor
    if not unit > 0:
        return Traces(0.0, 0.0, 0.0)
    factor = np.where(state.x_squares > 0, 1 / solution.x_scale, 0.0) / np.sqrt(unit) / np.sqrt(divisor)
    loadings = solution.x_loadings * (np.sqrt(solution.factors.score_squares) / np.sqrt(divisor) / np.sqrt(unit))
    # Multiply one factor at a time: squares of columns may be near the largest float.
    variances = state.x_squares * factor * factor - np.einsum("ij,ij->i", loadings, loadings)
    least = state.variance_resolution / len(factor)
    variances = np.maximum(variances, least)
    if isinstance(state, Gram):
        second, third = _of_matrix(state, factor, loadings, cube=cube)
    else:
        second, third = _of_rows(state, solution, factor, variances)
    return Traces(float(variances.sum()), second, third, unit)


def _of_matrix(state: Gram, factor: Float64Array, loadings: Float64Array, *, cube: bool) -> tuple[float, float]:
    E = matrix_of(state)
    E *= factor
    E *= factor[:, None]
    E -= loadings @ loadings.T
    return float(np.einsum("ij,ij->", E, E)), float(np.einsum("ij,ij->", E @ E, E)) if cube else 0.0


def _of_rows(state: Sketch, solution: Solution, factor: Float64Array, variances: Float64Array) -> tuple[float, float]:
    """Return the traces of the square and the cube of A'A + D, for the residuals A of the rows in a sketch.

    The diagonal D is the remainder of the variances of the columns. With K = AA', these are

        tr K^2 + 2 tr ADA' + tr D^2,  tr K^3 + 3 tr KADA' + 3 tr AD^2A' + tr D^3.
    """
    right = (state.unit * factor)[:, None] * solution.x_rotations
    scores = np.concatenate([piece @ right for piece in state.held.pieces])
    n, second, third = state.n_held, 0.0, 0.0
    least = state.errors.unresolved * float(np.square(state.unit * factor)[factor > 0].mean())
    K, KD = np.zeros((n, n)), np.zeros((n, n))
    for start in range(0, len(factor), _COLUMNS_AT_A_TIME):
        part = slice(start, start + _COLUMNS_AT_A_TIME)
        rows = np.concatenate([piece[:, part] for piece in state.held.pieces]) * (state.unit[part] * factor[part])
        rows -= scores @ solution.x_loadings[part].T
        squares = np.einsum("ij,ij->j", rows, rows)
        D = np.maximum(variances[part] - squares, 0.0)
        # Rows before and after an exact fit vary in the same directions.
        along = np.maximum(D, least)
        K += rows @ rows.T
        KD += (rows * along) @ rows.T
        second += float(D @ along + 2 * squares @ along)
        third += float(D @ along**2 + 3 * squares @ along**2)
    second += float(np.einsum("ij,ij->", K, K))
    return second, third + float(np.einsum("ij,ij->", K @ K + 3 * KD, K))
