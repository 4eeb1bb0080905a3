"""Missing values of a stream: each is replaced by the mean of the values observed up to its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from .._core.schema import Numbers, stored
from .._core.tiles import as_dense
from .._core.types import Array, Float64Array, Rows


@stored()
@dataclass(frozen=True)
class ObservedMeans:
    """Means of the values of each feature so far."""

    origin: Annotated[Float64Array, Numbers("m")]
    """The first value, or zero before it."""
    total: Annotated[Float64Array, Numbers("m")]
    """Sum of the differences of all values from it."""
    count: Annotated[Float64Array, Numbers("m", least=0)]
    """Number of values."""

    @classmethod
    def of(cls, n_features: int) -> Self:
        """Return the means of no rows."""
        return cls(*np.zeros((3, n_features)))

    def filled(self, X: Rows, names: Array | None) -> tuple[Rows, Self]:
        """Return rows with missing values replaced, and the updated means.

        A missing value before the first value of its feature is replaced by that value if it is among these rows;
        otherwise ValueError is raised. Apart from this, results are bit-identical for any chunks of rows.
        """
        values: Array = as_dense(X)
        observed = np.isfinite(values)
        is_new = (self.count == 0) & observed.any(axis=0)
        first = values[np.argmax(observed, axis=0), np.arange(values.shape[1])]
        origin = np.where(is_new, first, self.origin)
        with np.errstate(over="ignore", invalid="ignore"):
            differences = np.where(observed, values - origin, 0.0)
            # Row by row, in the same order as for single rows.
            totals = np.add.accumulate(np.concatenate([self.total[None], differences]), axis=0)
        counts = np.add.accumulate(np.concatenate([self.count[None], observed]), axis=0)
        means = type(self)(origin, totals[-1], counts[-1])
        gaps = np.isnan(values)
        if not gaps.any():
            return X, means
        if (counts[-1] == 0).any():
            column = int(np.argmax(counts[-1] == 0))
            raise ValueError(
                f"Feature {column if names is None else repr(str(names[column]))} has had no value so far, so its mean "
                "is unknown: begin with rows that have it, or leave it out."
            )
        filled = np.array(values)
        filled[gaps] = (origin + totals[1:] / np.maximum(counts[1:], 1.0))[gaps]
        return filled, means
