"""Means with confidence intervals, paired t-tests, and exponents of growth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of seconds over sizes in logarithms: 1 if time is proportional to size; NaN of fewer than two.

    Examples
    --------
    >>> from plstream.experiments.inference import exponent
    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else np.nan
