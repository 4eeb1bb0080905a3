"""Records of batches of a stream, measured with a model."""

from __future__ import annotations

from typing import NamedTuple

from .._core.schema import LARGEST_COUNT, Choice, Count, Each, Kind, Number, Object, OrNone, Text, stored
from ..estimators._solution import Solution
from ..states import Moments

WATCHED = ("error", "outside", "shift")
_MEASURED: dict[str, Kind] = {
    "error": Number(nan=True),
    "outside": Number(nan=True),
    "shift": Number(nan=True),
    "shifted_feature": Text(LARGEST_COUNT),
}


@stored(_MEASURED)
class Measured(NamedTuple):
    """Statistics of a batch, given a model."""

    error: float
    """Root mean squared error of predictions, in standard deviations of y; for a classifier the error rate."""
    outside: float
    """Mean of Q, the part of the rows that the model does not represent, relative to that of its training rows."""
    shift: float
    """Largest difference of a feature's mean from that of the training rows, in standard deviations of the feature."""
    shifted_feature: str
    """The feature with this difference."""


@stored(
    {
        "n_rows": Count(),
        "n_seen": Count(),
        **_MEASURED,
        "angle": Number(nan=True),
        "retained_variance": Number(nan=True),
        "reference": OrNone(Object(Measured)),
        "alarms": Each(Choice(*WATCHED)),
        "reasons": Each(Text(LARGEST_COUNT)),
    }
)
class Batch(NamedTuple):
    """The record of a batch, measured before the model learns the batch."""

    n_rows: int
    """Number of rows in the batch."""
    n_seen: int
    """Number of rows before it."""
    error: float
    """Root mean squared error of predictions, in standard deviations of y; for a classifier the error rate."""
    outside: float
    """Mean of Q, the part of the rows that the model does not represent, relative to that of earlier rows."""
    shift: float
    """Largest difference of a feature's mean from that of all earlier rows, in standard deviations of the feature."""
    shifted_feature: str
    """The feature with this difference."""
    angle: float
    """Largest angle, in degrees, between the subspace of the components and that after ten batches."""
    retained_variance: float
    """Share of the variance of X that the state of the model retains."""
    reference: Measured | None
    """Error, outside, shift and shifted feature measured with the reference, if there is one."""
    alarms: tuple[str, ...]
    """Which of error, outside and shift have risen."""
    reasons: tuple[str, ...]
    """For each of them, a sentence: what has risen, by how much and since when."""


@stored({"solution": Object(Solution, m="m"), "moments": Object(Moments, m="m", q="v?"), "n_batches": Count()})
class Snapshot(NamedTuple):
    """A solved model, and the moments of its training samples."""

    solution: Solution
    moments: Moments
    n_batches: int
    """Number of batches before."""
