"""Shared by all estimators: validation of rows, targets and weights, and atomic calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from operator import call
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from .errors import DataError, NonFiniteError, counted
from .schema import most_components
from .types import Array, Float64Array, Rows

_NAMES = "feature_names_in_"
_PLAIN = frozenset({np.ndarray, np.memmap})
Thing = TypeVar("Thing")


@contextmanager
def changed_at_once(*things: Thing) -> Iterator[tuple[Thing, ...]]:
    """Yield copies ("twins") of objects, whose attributes replace those of the objects when the block has completed.

    The change is atomic: after a failure or an interrupt, the objects are either unchanged or completely changed. A
    random generator that is a parameter is copied for the twin, and finally takes the state of the copy. Other
    attributes are shared: the work must replace, not modify them. The twin of a pipeline has twins of its steps, which
    share nothing, because steps of other libraries modify their attributes.

    Examples
    --------
    >>> from plstream import IncrementalPLS
    >>> from plstream._core.validation import changed_at_once
    >>> model = IncrementalPLS(2)
    >>> with changed_at_once(model) as (twin,):
    ...     twin.n_components = 3
    ...     print(model.n_components)
    2
    >>> model.n_components
    3
    """
    twins: dict[int, tuple[Any, Any]] = {}
    yield tuple(map(partial(_add_twin, twins), things))
    for thing, twin in [*twins.values()]:
        if isinstance(thing, Pipeline):
            # A pipeline may have replaced a step with a fitted one.
            for (_, step), (_, fitted) in zip(thing.steps, twin.steps, strict=True):
                if id(step) in twins:
                    twins[id(step)] = step, fitted
    changes = []
    for thing, twin in twins.values():
        random, drawn = vars(thing).get("random_state"), vars(twin).get("random_state")
        if isinstance(random, np.random.RandomState) and isinstance(drawn, np.random.RandomState):
            twin.__dict__["random_state"] = random
            changes.append(partial(random.set_state, drawn.get_state(legacy=False)))
        if isinstance(thing, Pipeline):
            twin.__dict__["steps"] = thing.steps
        changes.append(partial(setattr, thing, "__dict__", twin.__dict__))
    # A single Python instruction: signals are handled only between instructions.
    any(map(call, changes))


def _add_twin(twins: dict[int, tuple[Any, Any]], thing: Any, *, is_step: bool = False) -> Any:
    """Add an object and its steps with their twins; return the twin."""
    if id(thing) in twins:
        return twins[id(thing)][1]
    twin = object.__new__(type(thing))
    twin.__dict__ = vars(thing).copy()
    if is_step and not isinstance(thing, Pipeline):
        learnt = {name: value for name, value in vars(thing).items() if name not in thing.get_params(deep=False)}
        twin.__dict__.update(deepcopy(learnt))
    if isinstance(vars(thing).get("random_state"), np.random.RandomState):
        twin.__dict__["random_state"] = deepcopy(vars(thing)["random_state"])
    twins[id(thing)] = thing, twin
    if isinstance(thing, Pipeline):
        # The last step may be large, and is changed last: if its own calls are atomic, it may share attributes.
        last = len(thing.steps) - 1
        twin.steps = [
            (name, _add_twin(twins, step, is_step=k < last or not _is_ours(step)) if hasattr(step, "fit") else step)
            for k, (name, step) in enumerate(thing.steps)
        ]
    return twin


def _is_ours(thing: Any) -> bool:
    return type(thing).__module__.startswith("plstream.")


def require_components(n_components: int, n_features: int, parameter: str = "n_components") -> None:
    """Raise ValueError if there are far more components than a model with these features can have."""
    most = most_components(n_features)
    if n_components > most:
        raise ValueError(
            f"{parameter}={n_components} is too large for {counted(n_features, 'feature')}: reduce it to {most} or "
            "less."
        )


class NoWeightError(ValueError):
    """All weights are zero."""

    def __init__(self, message: str = "All weights are zero: give at least one row a positive weight.") -> None:
        super().__init__(message)


class Checked(Protocol):
    """Rows that can be searched for non-finite numbers."""

    def require_finite(self) -> None:
        """Raise ValueError with the position of the first such number."""


@contextmanager
def located_errors(source: Checked, model: Any) -> Iterator[None]:
    """Add row, column and advice to errors about non-finite numbers, whose position is unknown inside a block.

    The model knows the column names, and whether it can handle missing values.
    """
    try:
        try:
            yield
        except DataError:
            raise
        except ValueError:
            source.require_finite()
            raise
    except NonFiniteError as error:
        raise error.of_model(model) from None


def names_of_target(y: Any) -> list[str] | None:
    """Return the column names of a data frame, or the name of a series."""
    names = [y.name] if getattr(y, "ndim", 0) == 1 and getattr(y, "name", None) is not None else None
    columns = getattr(y, "columns", names)
    return None if columns is None else [str(name) for name in columns]


def as_numpy(array: Any, name: str) -> Any:
    """Return an array of another library as a NumPy array, without a copy, and anything else unchanged.

    With ``array_api_dispatch``, scikit-learn would not convert it. Masked numbers become NaN.
    """
    if isinstance(array, np.ma.MaskedArray):
        return without_mask(array, name)
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return array
    library = type(array).__module__.partition(".")[0]
    try:
        converted = np.asarray(array)
    except Exception as error:  # noqa: BLE001
        # Each library has its own error for arrays in device memory.
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        raise TypeError(
            f"{name} is an array of {library} that cannot be converted to NumPy: {reason}. Pass a NumPy array."
        ) from None
    if converted.dtype == object:
        raise TypeError(f"{name} is an array of {library} that cannot be converted to NumPy: pass a NumPy array.")
    return converted


def without_mask(array: Any, name: str) -> Any:
    """Return a masked array as a plain one, with NaN for masked numbers, and anything else unchanged.

    NumPy, and so scikit-learn, would use the numbers below the mask.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream._core.validation import without_mask
    >>> without_mask(np.ma.array([1, 2, 3], mask=[False, True, False]), "y")
    array([ 1., nan,  3.])
    """
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return array.data
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has masked entries that are not numbers: leave out such rows.")
    # The smallest type of floats that has all values.
    return np.ma.filled(array.astype(np.result_type(array.dtype, np.float16)), np.nan)


def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Rows:
    """Check the shape, feature names and kind of X; numbers are not copied, converted or checked."""
    model: Any = estimator
    if type(X) in _PLAIN and X.ndim == 2 and X.dtype.kind == "f" and X.size and not hasattr(model, _NAMES):
        # Equivalent to scikit-learn's checks of such an array, which take as long as fitting a small array.
        if reset:
            model.n_features_in_ = X.shape[1]
            vars(model).pop("feature_axis_", None)
        if X.shape[1] == model.n_features_in_:
            return np.asarray(X)
    X = as_numpy(X, "X")
    try:
        rows: Rows = validate_data(
            estimator, X, reset=reset, accept_sparse=("csr", "csc"), dtype="numeric", ensure_all_finite=False
        )
        # A data frame with a categorical column is converted to objects.
        rows = rows.astype(np.float64) if rows.dtype.kind == "O" else rows
    except (TypeError, ValueError):
        _require_numeric_columns(X)
        raise
    if reset:
        _set_axis(model, X)
    return rows.tocsr() if sparse.issparse(rows) else rows


def _set_axis(model: Any, X: Any) -> None:
    """Store numeric column names, such as wavelengths: scikit-learn keeps only names that are strings."""
    vars(model).pop("feature_axis_", None)
    columns = np.asarray(getattr(X, "columns", ()))
    is_axis = columns.dtype.kind in "iuf" and columns.ndim == 1 and columns.size and np.isfinite(columns).all()
    if is_axis and not np.array_equal(columns, np.arange(len(columns))):
        model.feature_axis_ = columns.astype(np.float64)


def _require_numeric_columns(X: Any) -> None:
    """Raise ValueError with the names of all non-numeric columns of a data frame, if any."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    refused = {}
    for j, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=False)):
        try:
            np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[name]).astype(np.float64)
        except (TypeError, ValueError):
            refused[str(name)] = str(dtype)
        else:
            if "date" in str(dtype).lower() or "time" in str(dtype).lower():
                refused[str(name)] = str(dtype)
    if refused:
        kinds = ", ".join(f"{name!r} ({kind})" for name, kind in refused.items())
        raise ValueError(
            f"X has columns that are not numeric, {kinds}: leave them out by X.drop(columns={list(refused)}), or use "
            "plstream.open_source with categorical=, which encodes strings."
        )


def as_one_row(x: Any) -> Any:
    """Return a single row as a two-dimensional array; a pandas Series keeps its names."""
    if hasattr(x, "to_frame") and hasattr(x, "index"):
        return x.to_frame().T
    row = np.asarray(as_numpy(x, "x"))
    if row.ndim != 1:
        raise ValueError(
            f"x must be one row, a one-dimensional array, but has {row.ndim} dimensions: for several rows, use the "
            "method without _one in its name."
        )
    return row[None]


def validate_training_rows(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, *, reset: bool, instead: str
) -> tuple[Rows, Array, Float64Array | None]:
    """Return X, y with its dimensions unchanged, and the weights, all of the same length.

    ``instead`` is the estimator for labels.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: pass the responses as y."
        )
    rows, target = validate_rows(estimator, X, reset=reset), y
    if not (type(y) is np.ndarray and y.dtype.kind == "f" and y.size):
        checks = {"ensure_2d": False, "allow_nd": True, "dtype": None, "ensure_all_finite": False, "input_name": "y"}
        target = require_numbers(check_array(as_numpy(y, "y"), **checks), instead)
    if target.ndim not in {1, 2}:
        raise ValueError(f"y must have one or two dimensions, not {target.ndim}.")
    if rows.shape[0] != len(target):
        check_consistent_length(rows, target)
    return rows, target, validate_weight(sample_weight, rows.shape[0])


def require_numbers(y: Array, instead: str = "IncrementalPLSClassifier") -> Array:
    """Return numeric y, objects as float64, or raise ValueError; ``instead`` names the estimator for labels."""
    if y.dtype.kind in "biuf":
        return y
    try:
        if y.dtype.kind == "O":
            return y.astype(np.float64)
    except ValueError:
        pass
    text = next((str(value) for value in y.flat if isinstance(value, str | bytes)), None)
    if text is None:
        raise ValueError(f"y must hold numbers, not values of type {y.dtype}.")
    raise ValueError(f"y must hold numbers, not strings such as {text!r}: for labels, use {instead}.")


def validate_weight(sample_weight: Any, n_rows: int) -> Float64Array | None:
    if sample_weight is None:
        return None
    weight = as_numpy(sample_weight, "sample_weight")
    try:
        weight = np.asarray(weight, dtype=np.float64)
    except ValueError:
        raise ValueError(
            "sample_weight must be numbers, one weight per row. To name a column of weights, open the data with "
            "plstream.open_source(..., weight=NAME)."
        ) from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one weight per row, not {weight.shape}.")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity: every weight must be a finite number.")
    if (weight < 0).any():
        raise ValueError("sample_weight has negative entries: weights must be zero or more.")
    return weight
