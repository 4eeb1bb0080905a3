r"""Limits of Hotelling's T2 and of Q that rows of the same distribution exceed with a given probability.

Q is a sum of squares of residuals. If these are normal with covariance :math:`\Sigma`, its distribution depends on the
traces :math:`\theta_k = \operatorname{tr} \Sigma^k` alone, of which the first three are enough in practice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class Traces(NamedTuple):
    """The traces of a covariance and of its square and cube, in a unit that keeps them away from overflow."""

    first: float
    second: float
    third: float
    unit: float = 1.0
    """What one stands for in the first trace: the square of that in the second, and so on."""

    def scaled(self, factor: float) -> Traces:
        """Return the traces of a covariance that is a multiple."""
        return self._replace(unit=self.unit * factor)

    def feasible(self) -> Traces:
        """Return traces that a covariance can have, where estimates are not: eigenvalues are not negative."""
        first = max(self.first, np.finfo(float).tiny)
        second = min(max(self.second, 0.0), first**2)
        return Traces(first, second, max(self.third, second**2 / first), self.unit)

    def unbiased(self, dof: float) -> Traces:
        r"""Return estimates of the traces of :math:`\Sigma`, if these are of a sample covariance.

        Eigenvalues of a sample covariance are spread more than those of :math:`\Sigma`, so that squares are too large.
        The corrections are from the moments of the Wishart distribution.
        """
        n, (first, second, third, unit) = dof, self
        # How the expectations of tr(S)^3, tr(S) tr(S^2) and tr(S^3) depend on the same of Sigma.
        expectations = [
            [1, 6 / n, 8 / n**2],
            [1 / n, 1 + 1 / n + 4 / n**2, 4 / n + 4 / n**2],
            [1 / n**2, 3 / n + 3 / n**2, 1 + 3 / n + 4 / n**2],
        ]
        cubes = np.linalg.solve(expectations, [first**3, first * second, third])
        return Traces(first, (second - first**2 / n) * n**2 / ((n - 1) * (n + 2)), float(cubes[2]), unit)


def t2_limit(level: float, n_components: int, n_rows: float) -> float:
    r"""Return the limit of T2 for rows that the mean and covariance of the scores were not estimated from.

    .. math::
        \frac{c (n^2 - 1)}{n (n - c)} F_{c, n - c}
    """
    c, n = n_components, n_rows
    if not c:
        return 0.0
    if n <= c:
        raise ValueError(f"T2 of {c} component(s) needs more than {c} rows, and there are {n:g}: use more rows.")
    return float(c * (n * n - 1) / (n * (n - c)) * stats.f.ppf(level, c, n - c))


def box_limit(level: float, traces: Traces) -> float:
    r"""Return the limit of Q by Box: :math:`g \chi^2_h` with the mean and the variance that Q has.

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

    Where residuals are so unequal that this is no number, the limit is that by Box.
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
