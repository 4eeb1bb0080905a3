"""Confidence intervals, paired tests, and exponents of growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

# With fewer pairs, no test is performed.
FEWEST = 5
# Quantile of the normal distribution for 95 % intervals.
_QUANTILE = 1.959964


class Interval(NamedTuple):
    """A mean, and half the width of its confidence interval, NaN for a single value."""

    mean: float
    half_width: float


def interval(values: Sequence[float]) -> Interval:
    """Return the mean with its 95 % confidence interval, by Student's t with n - 1 degrees of freedom.

    Examples
    --------
    >>> from plstream.experiments.inference import interval
    >>> mean, half_width = interval([1.0, 2.0, 3.0])
    >>> round(mean, 3), round(half_width, 3)
    (2.0, 2.484)
    """
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return Interval(float(np.mean(values)) if n else np.nan, np.nan)
    quantile = float(stdtrit(n - 1, 0.975))
    return Interval(float(np.mean(values)), quantile * float(np.std(values, ddof=1)) / n**0.5)


def paired_t_test(first: Sequence[float], second: Sequence[float], overlap: float = 0.0) -> float:
    """Return the p-value of a mean difference; NaN with fewer than two pairs.

    Splits share training rows, so their accuracies are not independent, and a plain t-test rejects too often. Nadeau
    and Bengio (2003) multiply the variance of the mean by 1 + n q, where q is the ratio of test rows to training rows,
    here ``overlap``. 0 gives the plain test.

    Examples
    --------
    >>> from plstream.experiments.inference import paired_t_test
    >>> round(paired_t_test([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.0, 5.0]), 4)
    0.0917
    >>> round(paired_t_test([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.0, 5.0], overlap=1 / 3), 4)
    0.2071
    """
    from scipy.special import stdtr

    differences = np.subtract(first, second)
    n = len(differences)
    if n < 2:
        return float("nan")
    error = float(np.std(differences, ddof=1)) * (1 / n + overlap) ** 0.5
    mean = float(np.mean(differences))
    if error <= 1e-15 * abs(mean):
        # All differences are the same.
        return 1.0 if mean == 0 else 0.0
    return 2 * float(stdtr(n - 1, -abs(mean) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's method; NaN is kept and not counted.

    Examples
    --------
    >>> from plstream.experiments.inference import holm
    >>> holm([0.01, 0.04, float("nan"), 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    values = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected = np.full(len(values), np.nan)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return [float(value) for value in corrected]


class Difference(NamedTuple):
    """A difference with its 95 % confidence interval and p-value."""

    mean: float
    low: float
    high: float
    p: float


def paired_difference(mine: Mapping[int, float], others: Mapping[int, float], overlap: float = 0.0) -> Difference:
    """Return the mean difference over common keys; the rest is NaN if there are too few keys.

    The interval and the p-value are corrected for training rows shared by splits, as in ``paired_t_test``.

    Examples
    --------
    >>> from plstream.experiments.inference import paired_difference
    >>> paired_difference({0: 0.5, 1: 0.75}, {0: 0.5, 2: 0.5})
    Difference(mean=0.0, low=nan, high=nan, p=nan)
    """
    first, second = _both(mine, others)
    mean, half_width = interval([float(a - b) for a, b in zip(first, second, strict=True)])
    if len(first) < FEWEST:
        return Difference(mean, np.nan, np.nan, np.nan)
    half_width *= (1 + len(first) * overlap) ** 0.5
    return Difference(mean, mean - half_width, mean + half_width, paired_t_test(first, second, overlap))


def robust_difference(mine: Mapping[int, float], others: Mapping[int, float]) -> Difference:
    """Return the median of all pairwise means of differences (Hodges and Lehmann), which is robust to outliers.

    The interval and the p-value are those of Wilcoxon's signed-rank test, by its normal approximation.

    Examples
    --------
    >>> from plstream.experiments.inference import robust_difference
    >>> times, others = {i: 1.0 + 0.01 * i for i in range(20)}, {i: 2.0 for i in range(20)}
    >>> times[7] = 100.0
    >>> round(robust_difference(times, others).mean, 3), robust_difference(times, others).high < 0
    (-0.9, True)
    """
    from scipy.special import ndtr

    first, second = _both(mine, others)
    differences = np.subtract(first, second)
    n = len(differences)
    rows, columns = np.triu_indices(n)
    means = np.sort((differences[rows] + differences[columns]) / 2)
    center = float(np.median(means)) if n else np.nan
    if n < FEWEST:
        return Difference(center, np.nan, np.nan, np.nan)
    # Pairs with a mean above zero, plus half of those at zero, add up to the sum of ranks of positive differences.
    expected, deviation = n * (n + 1) / 4, (n * (n + 1) * (2 * n + 1) / 24) ** 0.5
    positive = np.count_nonzero(means > 0) + 0.5 * np.count_nonzero(means == 0)
    outside = max(0, int(expected - _QUANTILE * deviation))
    p = min(1.0, 2 * float(ndtr(-max(0.0, abs(positive - expected) - 0.5) / deviation)))
    return Difference(center, float(means[outside]), float(means[-1 - outside]), p)


def _both(mine: Mapping[int, float], others: Mapping[int, float]) -> tuple[list[float], list[float]]:
    keys = [key for key in mine if key in others]
    return [mine[key] for key in keys], [others[key] for key in keys]


def column_means(cells: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the means of lists of accuracies over cells, in per cent, entry by entry; NaN without values.

    Examples
    --------
    >>> from plstream.experiments.inference import column_means
    >>> column_means([{"accuracy": [0.5, None, None]}, {"accuracy": [0.75, 0.25, None]}])
    [62.5, 25.0, nan]
    """
    columns = zip(*(cell["accuracy"] for cell in cells), strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    return [100 * float(np.mean(values)) if values else np.nan for values in known]


def share_between(values: Any, labels: Any) -> float:
    """Return the share of the variance of values that is between classes.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.inference import share_between
    >>> share_between(np.array([0.0, 2.0, 2.0, 4.0]), np.array([0, 0, 1, 1]))
    0.5
    """
    total = float(((values - values.mean()) ** 2).sum())
    groups = [values[labels == label] for label in np.unique(labels)]
    between = float(sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups))
    return between / total if total > 0 else 0.0


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds over log sizes: 1 if time is proportional to size; NaN for one size.

    Examples
    --------
    >>> from plstream.experiments.inference import exponent
    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else np.nan
