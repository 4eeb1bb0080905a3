"""Means with confidence intervals, paired differences and t-tests, and exponents of growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

# With fewer pairs nothing is tested.
FEWEST = 5


class Interval(NamedTuple):
    """A mean, and half the width of its confidence interval, NaN if there is only one value."""

    mean: float
    half_width: float


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean with its confidence interval, by Student's t with n - 1 degrees of freedom.

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
    quantile = float(stdtrit(n - 1, 0.5 + confidence / 2))
    return Interval(float(np.mean(values)), quantile * float(np.std(values, ddof=1)) / n**0.5)


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the probability of so large a mean difference if there were none; NaN with fewer than two pairs.

    Examples
    --------
    >>> from plstream.experiments.inference import paired_t_test
    >>> round(paired_t_test([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.0, 5.0]), 4)
    0.0917
    """
    from scipy.special import stdtr

    differences = np.subtract(first, second)
    n = len(differences)
    if n < 2:
        return float("nan")
    error = float(np.std(differences, ddof=1)) / n**0.5
    mean = float(np.mean(differences))
    if error <= 1e-15 * abs(mean):
        # All differences are the same.
        return 1.0 if mean == 0 else 0.0
    return 2 * float(stdtr(n - 1, -abs(mean) / error))


class Difference(NamedTuple):
    """A mean difference with its 95 % confidence interval, and its probability if there were none."""

    mean: float
    low: float
    high: float
    p: float


def paired_difference(mine: Mapping[int, float], others: Mapping[int, float]) -> Difference:
    """Return the difference for the keys that both have; all but its mean is NaN if these are too few.

    Examples
    --------
    >>> from plstream.experiments.inference import paired_difference
    >>> paired_difference({0: 0.5, 1: 0.75}, {0: 0.5, 2: 0.5})
    Difference(mean=0.0, low=nan, high=nan, p=nan)
    """
    both = [key for key in mine if key in others]
    first, second = [mine[key] for key in both], [others[key] for key in both]
    mean, half_width = interval([float(a - b) for a, b in zip(first, second, strict=True)])
    if len(both) < FEWEST:
        return Difference(mean, np.nan, np.nan, np.nan)
    return Difference(mean, mean - half_width, mean + half_width, paired_t_test(first, second))


def column_means(cells: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the means of lists of accuracies over cells, in per cent, entry by entry; NaN where there are none.

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
    """Return the slope of seconds over sizes in logarithms: 1 if time is proportional to size; NaN of fewer than two.

    Examples
    --------
    >>> from plstream.experiments.inference import exponent
    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else np.nan
