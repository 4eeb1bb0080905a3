"""Confidence intervals, paired tests, and exponents of growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.types import Float64Array

# With fewer pairs, no test is performed.
FEWEST = 5
# Quantile of the normal distribution for 95 % intervals.
_QUANTILE = 1.959964
Values = Mapping[int, float]
"""Numbers by split, or by run."""


class Difference(NamedTuple):
    """A difference with its 95 % confidence interval and p-value."""

    mean: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan


def interval(values: Sequence[float] | Float64Array) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % confidence interval, by Student's t; NaN for a single value."""
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return float(np.mean(values)) if n else np.nan, np.nan
    return float(np.mean(values)), float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) / n**0.5


def paired_difference(mine: Values, others: Values, overlap: float = 0.0) -> Difference:
    """Return the mean difference over common keys, by a paired t-test; only the mean if there are too few keys.

    Splits share training rows, so their accuracies are not independent, and a plain t-test rejects too often. Nadeau
    and Bengio (2003) multiply the variance of the mean by 1 + n q, where q is the ratio of test rows to training rows,
    here ``overlap``. 0 gives the plain test.
    """
    from scipy.special import stdtr

    differences = _differences(mine, others)
    n = len(differences)
    mean, half_width = interval(differences)
    if n < FEWEST:
        return Difference(mean)
    half_width *= (1 + n * overlap) ** 0.5
    error = float(np.std(differences, ddof=1)) * (1 / n + overlap) ** 0.5
    # If all differences are the same, there is no error.
    is_same = error <= 1e-15 * abs(mean)
    p = float(mean == 0) if is_same else 2 * float(stdtr(n - 1, -abs(mean) / error))
    return Difference(mean, mean - half_width, mean + half_width, p)


def robust_difference(mine: Values, others: Values) -> Difference:
    """Return the median of all pairwise means of differences (Hodges and Lehmann), which is robust to outliers.

    The interval and the p-value are those of Wilcoxon's signed-rank test, by its normal approximation.
    """
    from scipy.special import ndtr

    differences = _differences(mine, others)
    n = len(differences)
    rows, columns = np.triu_indices(n)
    means = np.sort((differences[rows] + differences[columns]) / 2)
    center = float(np.median(means)) if n else np.nan
    if n < FEWEST:
        return Difference(center)
    # Pairs with a mean above zero, plus half of those at zero, add up to the sum of ranks of positive differences.
    expected, deviation = n * (n + 1) / 4, (n * (n + 1) * (2 * n + 1) / 24) ** 0.5
    positive = np.count_nonzero(means > 0) + 0.5 * np.count_nonzero(means == 0)
    outside = max(0, int(expected - _QUANTILE * deviation))
    p = min(1.0, 2 * float(ndtr(-max(0.0, abs(positive - expected) - 0.5) / deviation)))
    return Difference(center, float(means[outside]), float(means[-1 - outside]), p)


def _differences(mine: Values, others: Values) -> Float64Array:
    return np.array([mine[key] - others[key] for key in mine if key in others], float)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's method; NaN is kept and not counted."""
    values = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected = np.full(len(values), np.nan)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return [float(value) for value in corrected]


def column_means(cells: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the means of lists of accuracies over cells, in per cent, entry by entry; NaN without values."""
    columns = zip(*(cell["accuracy"] for cell in cells), strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    return [100 * float(np.mean(values)) if values else np.nan for values in known]


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds over log sizes: 1 if time is proportional to size; NaN for one size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else np.nan
