"""Steps of a pipeline before the model: what each learns from rows, and their composition."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import _get_feature_names, validate_data

from .._core.types import Array

# Classes that transform each row independently and learn only the number of columns: those of chemotools, and those
# of scikit-learn without the tag requires_fit=False.
_ROW_BY_ROW = {
    "chemotools": frozenset(
        {
            "BandScaler",
            "ConstantBaselineCorrection",
            "CubicSplineCorrection",
            "IndexSelector",
            "IntensityConversion",
            "LinearCorrection",
            "MeanFilter",
            "MedianFilter",
            "MinMaxScaler",
            "ModifiedSincFilter",
            "NonNegative",
            "NormScaler",
            "NorrisWilliams",
            "PointScaler",
            "PolynomialCorrection",
            "RangeCut",
            "RobustNormalVariate",
            "RubberbandCorrection",
            "SavitzkyGolay",
            "SavitzkyGolayFilter",
            "StandardNormalVariate",
            "SubtractReference",
            "WhittakerSmooth",
            "XAxisInterpolator",
        }
    ),
    "sklearn": frozenset({"PolynomialFeatures"}),
}
# Classes of chemotools that learn only the mean of the rows: a fit to the mean equals a fit to the rows.
_BY_MEAN = frozenset({"MultiplicativeScatterCorrection", "ExtendedMultiplicativeScatterCorrection"})


class Learns(Enum):
    """What a step learns from rows, which determines how to fit it to rows in blocks."""

    NOTHING = "nothing: it processes one row at a time, or is frozen"
    IN_PARTS = "by partial_fit"
    MEAN = "the mean of the rows"
    AS_A_WHOLE = "by fit alone"

    @classmethod
    def of(cls, step: Any) -> Learns:
        """Return what a step learns."""
        library, name = type(step).__module__.partition(".")[0], type(step).__name__
        if isinstance(step, FrozenEstimator) or name in _ROW_BY_ROW.get(library, ()):
            return cls.NOTHING
        if library == "chemotools" and name in _BY_MEAN:
            if step.reference is not None:
                return cls.NOTHING
            return cls.MEAN if step.method == "mean" else cls.AS_A_WHOLE
        if hasattr(step, "partial_fit"):
            return cls.IN_PARTS
        return cls.AS_A_WHOLE if get_tags(step).requires_fit else cls.NOTHING


def require_parts(name: str, step: Any) -> None:
    """Raise ValueError for a step that can only be fitted to all rows in memory."""
    if Learns.of(step) is Learns.AS_A_WHOLE:
        raise ValueError(
            f"Step {name!r} ({type(step).__name__}) has no partial_fit, so it cannot learn from rows in blocks: fit "
            "it to rows in memory, and put it in a FrozenEstimator."
        )


def is_fitted(step: Any) -> bool:
    """Return whether a step has learnt the number of columns, or is frozen."""
    return isinstance(step, FrozenEstimator) or hasattr(step, "n_features_in_")


def learn(step: Any, rows: Any, y: Any, n_before: int) -> None:
    """Update a step with rows, after ``n_before`` earlier ones."""
    match Learns.of(step):
        case Learns.IN_PARTS:
            step.partial_fit(rows, y)
        case Learns.MEAN:
            _learn_mean(step, rows, n_before)
        case _:
            step.fit(rows, y)


def _learn_mean(step: Any, rows: Any, n_before: int) -> None:
    """Fit a step whose reference is the mean spectrum to the mean of all rows so far."""
    names = _get_feature_names(rows)
    values = check_array(rows, dtype=np.float64)
    mean = values.mean(axis=0)
    if n_before:
        validate_data(step, rows, reset=False, skip_check_array=True)
        mean = step.reference_ + (mean - step.reference_) * (len(values) / (n_before + len(values)))
    step.fit(mean[None])
    if names is not None:
        step.feature_names_in_ = names


def ramp(n_columns: int, dtype: Any = np.float64) -> Array:
    """Return a row that is neither zero nor constant, to probe the output of steps."""
    row = np.linspace(1.0, 2.0, n_columns)[None]
    return row.astype(dtype if np.dtype(dtype).kind == "f" else np.float64)


@dataclass(frozen=True)
class Treatment:
    """Fitted steps as a function of arrays. Later training of the steps does not change it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from plstream.estimators.steps import Treatment
    >>> X = np.array([[3.0, 4.0], [0.0, 2.0]])
    >>> Treatment.of([Normalizer().fit(X), StandardScaler(with_std=False).fit(X)])(X).round(1)
    array([[-0.9, -2.2],
           [-1.5, -2. ]])
    """

    steps: tuple[Any, ...]
    """Copies of the steps, without feature names, that return arrays."""

    @classmethod
    def of(cls, steps: Sequence[Any]) -> Treatment:
        """Return the function of the current steps."""
        return cls(tuple(map(_nameless, steps)))

    def __call__(self, rows: Any) -> Array:
        """Return rows transformed by all steps."""
        for step in self.steps:
            rows = step.transform(rows)
        return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _nameless(step: Any) -> Any:
    """Return a copy of a step that takes and returns arrays, without a warning."""
    twin = copy(step)
    for name in ("feature_names_in_", "_sklearn_output_config"):
        vars(twin).pop(name, None)
    if isinstance(step, FrozenEstimator):
        twin.estimator = _nameless(step.estimator)
    elif isinstance(step, Pipeline):
        twin.steps = [(name, _nameless(inner) if hasattr(inner, "fit") else inner) for name, inner in step.steps]
    return twin


def are_equal(first: Any, second: Any) -> bool:
    """Return whether two steps, or values of their attributes, are equal."""
    if type(first) is not type(second):
        return False
    match first:
        case BaseEstimator():
            return are_equal(vars(first), vars(second))
        case dict():
            return first.keys() == second.keys() and all(are_equal(first[key], second[key]) for key in first)
        case list() | tuple():
            return len(first) == len(second) and all(map(are_equal, first, second))
        case np.ndarray():
            return np.array_equal(first, second)
    # NaN is not equal to itself.
    return first is second or bool(first == second)
