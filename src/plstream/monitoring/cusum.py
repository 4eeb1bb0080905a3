"""Cusum: the cumulative sum of the deviations of values from the mean of earlier values."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from scipy import special

from .._core.schema import Boolean, Count, Number, Numbers, stored

# Values needed before the first decision.
WARM_UP = 10
# Values this far off are not added to the usual values.
_UNUSUAL = 3.0
# Standard deviations above the mean that do not yet count towards an alarm.
_SLACK = 0.5
# Larger deviations are clipped, because their probabilities underflow.
_LARGEST = 30.0
_LARGEST_CORRELATION = 0.95


@stored(
    rules={
        "there are no more usual values than its size": lambda its: len(its.usual) <= its.size,
        "values have weights": lambda its: bool((its.usual[:, 1] > 0).all()),
    }
)
@dataclass
class Cusum:
    """A cumulative sum (CUSUM) of the excess of values over the usual ones, in standard deviations.

    Examples
    --------
    >>> from plstream.monitoring.cusum import Cusum
    >>> cusum = Cusum(30)
    >>> [cusum.add(value, 1.0, threshold=10.0) for value in [1.0, 1.1, 0.9, 1.2, 0.8] * 4 + [1.0, 4.0]][-2:]
    [False, True]
    """

    size: Annotated[int, Count(WARM_UP)]
    """Number of values that define what is usual."""
    fixed: Annotated[bool, Boolean()] = False
    """Whether these are the first values instead of the last ones. A fixed sum adds no usual values while it is high,
    and raises no further alarm until it is back at zero."""
    least: Annotated[float, Number(0)] = 1e-4
    """The minimum variance of a value of weight one, needed if all values are equal. The default is for logarithms,
    where one percent is little."""
    usual: Annotated[deque[tuple[float, float]], Numbers(None, 2)] = field(default_factory=deque)
    """The usual values and their weights."""
    total: Annotated[float, Number(0)] = 0.0
    n_rising: Annotated[int, Count()] = 0
    """Number of values since the sum was last zero."""
    raised: Annotated[bool, Boolean()] = False
    """Whether the sum is fixed and has not been back at zero since an alarm."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "usual": np.array(self.usual).reshape(-1, 2)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, usual=deque(map(tuple, state["usual"].tolist())))

    def copy(self) -> Cusum:
        """Return an independent copy."""
        return replace(self, usual=self.usual.copy())

    @property
    def is_ready(self) -> bool:
        """Whether there are enough values to judge others."""
        return len(self.usual) >= WARM_UP

    @property
    def mean(self) -> float:
        """The weighted mean of the usual values."""
        values, weights = np.array(self.usual).T
        return float(weights @ values / weights.sum())

    def add(self, value: float, weight: float, threshold: float) -> bool:
        """Add a value, with variance inversely proportional to its weight, and return whether it raises an alarm.

        It does if the sum exceeds the threshold, or if the value alone exceeds half of it, because a model that has
        learnt from it may find the following values usual.
        """
        z, step = self._deviations(value, weight) if self.is_ready else (0.0, 0.0)
        is_jump = z > threshold / 2
        # A jump must not count as usual, because it would hide the following values; nor must a slow rise, for a fixed
        # sum. The sum before this value decides, so that high usual values count as much as low ones.
        if z < _UNUSUAL and not (self.fixed and self.total > threshold / 2):
            if len(self.usual) < self.size or not self.fixed:
                self.usual.append((float(value), float(weight)))
            if len(self.usual) > self.size:
                self.usual.popleft()
        self.total = max(0.0, self.total + step - _SLACK)
        self.n_rising = (0 if is_jump else self.n_rising) + 1 if self.total else 0
        if self.raised:
            self.hold(threshold)
            return False
        alarm = is_jump or self.total > threshold
        if alarm and self.fixed:
            self.total, self.raised = threshold, True
        return alarm

    def hold(self, threshold: float) -> None:
        """Raise no further alarm until the sum, which is at most the threshold, is back at zero."""
        self.total = min(self.total, threshold)
        self.raised = self.total > 0

    def _deviations(self, value: float, weight: float) -> tuple[float, float]:
        """Return the excess of a value over the usual ones, by itself and as a term of the sum."""
        values, weights = np.array(self.usual).T
        n, centred = len(values), values - self.mean
        variance = weights @ centred**2 / (n - 1)
        t = float(value - self.mean) / np.sqrt(max(variance, self.least) * (1 / weight + 1 / weights.sum()))
        # Sums of autocorrelated values vary more, by (1 + r) / (1 - r) for a first-order process.
        # Only the excess over a standard error counts, because the estimate of r is not zero for independent values.
        r = centred[1:] @ centred[:-1] / max(centred @ centred, np.finfo(float).tiny) - 1 / np.sqrt(n)
        r = float(np.clip(r, 0.0, _LARGEST_CORRELATION))
        return _normal(t, n - 1), _normal(t * np.sqrt((1 - r) / (1 + r)), n - 1)


def _normal(t: float, dof: int) -> float:
    """Return the normal deviate with the same tail probability as a Student's t deviate.

    With few values, the standard deviation is uncertain, and the two differ considerably.
    """
    z = -float(special.ndtri(special.stdtr(dof, -abs(t))))
    return float(np.copysign(min(z, _LARGEST), t))
