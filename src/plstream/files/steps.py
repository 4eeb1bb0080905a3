"""Pipelines in files: the supported classes of steps, with their attributes.

Classes of other libraries are imported when a pipeline with such a step is saved or loaded. Only classes listed here
can be imported, whatever a file contains. Steps that call functions (``FunctionTransformer``) are not listed, nor are
steps whose parameters could demand more memory or time than the arrays of a file justify.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator

from .. import estimators, online, selection
from .._core.errors import import_optional
from .._core.schema import (
    FEATURES,
    Boolean,
    Choice,
    Count,
    Each,
    Kind,
    Number,
    Numbers,
    Object,
    OrElse,
    OrMissing,
    OrNone,
    Rule,
    Text,
    Tuple,
    Value,
    declared,
    schema_of,
    stored,
)
from ..estimators import StreamingPipeline


def _as_scalar(value: Any) -> Any:
    """Return a number as scikit-learn expects it, as a NumPy scalar; arrays are unchanged."""
    return np.asarray(value)[()]


_N_ROWS = Number(0, restored=_as_scalar)


def _are_row_counts(value: Any) -> bool:
    """Return whether it is a number of rows, or one per feature, because missing values are not counted."""
    if not isinstance(value, np.ndarray):
        return _N_ROWS.accepts(value)
    return value.ndim == 1 and value.dtype.kind in "iuf" and bool((value >= 0).all())


def _is_for_every_feature(its: Any) -> bool:
    return np.ndim(its.n_samples_seen_) == 0 or len(its.n_samples_seen_) == its.sizes["m"]


# Steps have few or no arrays whose sizes would bound the cost of using them.
_MOST_FEATURES = 1 << 20
_LONGEST_WINDOW = 10_001
_HIGHEST_ORDER = 100

_WINDOW = Count(1, _LONGEST_WINDOW)
_ORDER = Count(0, _HIGHEST_ORDER)
_PLACE = Count(-_MOST_FEATURES, _MOST_FEATURES)
_MODE = Choice("nearest", "constant", "wrap", "mirror", "interp")
_VECTOR = Numbers("m", dtypes=("float64", "float32"))


class _Step(NamedTuple):
    """A class of another library."""

    module: str
    fields: Mapping[str, Kind] = {}
    """Attributes besides names and number of features, and parameters that are used in ``transform``."""
    rules: Mapping[str, Rule] = {}
    """Conditions on the attributes."""


# By name in files.
_STEPS = {
    "sklearn.StandardScaler": _Step(
        "sklearn.preprocessing",
        {
            **dict.fromkeys(("mean_", "var_", "scale_"), OrNone(_VECTOR)),
            "n_samples_seen_": Value(_N_ROWS.description, _are_row_counts, restored=_as_scalar),
        },
        {"rows are counted for all features, or for each": _is_for_every_feature},
    ),
    "sklearn.MinMaxScaler": _Step(
        "sklearn.preprocessing",
        {
            **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _VECTOR),
            "n_samples_seen_": _N_ROWS,
        },
    ),
    "sklearn.MaxAbsScaler": _Step(
        "sklearn.preprocessing", {"scale_": _VECTOR, "max_abs_": _VECTOR, "n_samples_seen_": _N_ROWS}
    ),
    "sklearn.Normalizer": _Step("sklearn.preprocessing"),
    "sklearn.Binarizer": _Step("sklearn.preprocessing"),
    "chemotools.StandardNormalVariate": _Step("chemotools.scatter"),
    "chemotools.MultiplicativeScatterCorrection": _Step(
        "chemotools.scatter",
        {
            "reference_": _VECTOR,
            "weights_": _VECTOR,
            "A_": Numbers("m", 2, any_order=True),
            "pinv_A_": Numbers(2, "m", any_order=True),
        },
    ),
    "chemotools.SavitzkyGolay": _Step(
        "chemotools.derivative", {"window_length_": _WINDOW, "polyorder_": _ORDER, "deriv_": _ORDER, "mode": _MODE}
    ),
    "chemotools.NorrisWilliams": _Step(
        "chemotools.derivative",
        {
            "window_length_": _WINDOW,
            "deriv_": _ORDER,
            "smoothing_kernel_": Numbers("w"),
            "kernel_": Numbers("k"),
            "mode": _MODE,
        },
    ),
    "chemotools.MeanFilter": _Step("chemotools.smooth", {"window_length_": _WINDOW, "mode": _MODE}),
    "chemotools.SavitzkyGolayFilter": _Step(
        "chemotools.smooth",
        {
            "window_length_": _WINDOW,
            "polyorder_": _ORDER,
            "kernel_": Numbers("w"),
            "_half_": _WINDOW,
            "mode": _MODE,
            "axis": Choice(1),
        },
    ),
    "chemotools.LinearCorrection": _Step("chemotools.baseline"),
    "chemotools.ConstantBaselineCorrection": _Step(
        "chemotools.baseline", {"start_index_": _PLACE, "end_index_": _PLACE}
    ),
    "chemotools.PolynomialCorrection": _Step("chemotools.baseline", {"indices_": Value(), "order": _ORDER}),
    "chemotools.SubtractReference": _Step(
        "chemotools.baseline",
        {
            "reference_": OrNone(_VECTOR),
            "start_index_": OrMissing(_PLACE),
            "end_index_": OrMissing(_PLACE),
            "x_axis_": OrMissing(Value()),
        },
    ),
    "chemotools.NormScaler": _Step("chemotools.scale", {"l_norm": Number(1)}),
    "chemotools.MinMaxScaler": _Step("chemotools.scale"),
    "chemotools.PointScaler": _Step("chemotools.scale", {"point_index_": _PLACE}),
    "chemotools.RangeCut": _Step(
        "chemotools.feature_selection",
        {"start_index_": _PLACE, "end_index_": _PLACE, "x_axis_": Value(), "wavenumbers_": Value()},
    ),
    "chemotools.IndexSelector": _Step(
        "chemotools.feature_selection", {"features_index_": Value(), "_is_fitted": Boolean()}
    ),
}


class StepObject(Object):
    """A step of a pipeline: an estimator of this library, or of a class listed above."""

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class in a file, or None if it is not supported."""
        name = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
        return name if self.class_of(name) is cls else super().name_of(cls)

    def class_of(self, name: Any) -> type | None:
        """Return the class of a name in a file, or None if it is not supported."""
        step = _STEPS.get(name) if isinstance(name, str) else None
        if step is None:
            return super().class_of(name)
        library, _, class_name = name.partition(".")
        if library != "sklearn":
            import_optional(library, f"A pipeline with a step of {library}", "spectra")
        cls: type = getattr(import_module(step.module), class_name)
        if schema_of(cls) is None:
            features = {**FEATURES, "n_features_in_": Count(1, _MOST_FEATURES, size="m")}
            stored({**features, **step.fields}, step.rules)(cls)
        return cls

    @property
    def description(self) -> str:
        """The allowed classes."""
        return "of a class that is supported for steps of pipelines in files"


# All estimators except pipelines, which cannot be nested in a file.
MODELS = declared(estimators, online, selection)
# Nor can frozen estimators.
stored({"estimator": StepObject(*(cls for cls in MODELS if cls is not selection.VIPSelector))})(FrozenEstimator)
_STEP = StepObject(*MODELS, FrozenEstimator)
stored(
    {
        "steps": Each(Tuple(Text(), OrNone(OrElse(_STEP, "passthrough"))), list),
        # joblib unpickles files in its cache folder, so a file must not name one.
        "memory": Choice(None),
        "_n_learnt": Count(),
    }
)(StreamingPipeline)
