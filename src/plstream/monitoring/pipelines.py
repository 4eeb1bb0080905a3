"""The last step of a pipeline, its rows, and the names of its features."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._core.types import Array
from ..data import Source
from ..estimators import StreamingPipeline
from ..rows import is_collection


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline; other models unchanged."""
    return last_step(model[-1]) if isinstance(model, Pipeline) else model


def rows_for_last_step(model: Any, X: Any) -> Any:
    """Return rows as transformed by the steps before the last one of a pipeline; those of other models unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring.pipelines import last_step, rows_for_last_step
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> pipeline = make_pipeline(StandardScaler(), IncrementalPLS()).fit(X, X[:, 0])
    >>> last_step(pipeline), float(rows_for_last_step(pipeline, X).std().round(12))
    (IncrementalPLS(), 1.0)
    """
    if not isinstance(model, Pipeline):
        return X
    if len(model) > 1:
        in_blocks = isinstance(X, Source) or is_collection(X)
        if in_blocks and not isinstance(model, StreamingPipeline):
            raise TypeError(
                f"The steps of a Pipeline take rows in memory, not {type(X).__name__}: use a StreamingPipeline."
            )
        X = model._treated(X) if in_blocks else model[:-1].transform(X)
    return rows_for_last_step(model[-1], X)


def snapshot(model: Any) -> Any:
    """Return an independent copy of a pipeline; other models unchanged."""
    if not isinstance(model, Pipeline):
        return model
    taken = copy(model)
    taken.steps = [(name, copy(snapshot(step))) for name, step in model.steps]
    return taken


def last_record(model: Any) -> Any:
    """Return the last step of a model, or the model itself, as seen by a rule for its file."""
    return model.parameters["steps"][-1][1] if model.cls is StreamingPipeline else model


def feature_names(model: Any) -> Array:
    """Return the feature names of a model or of a pipeline's last step; x0, x1 and so on if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring.pipelines import feature_names
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> feature_names(IncrementalPLS(1).fit(X, X[:, 0]))
    array(['x0', 'x1', 'x2'], dtype=object)
    """
    last = last_step(model)
    names = getattr(last, "feature_names_in_", None)
    if names is None and hasattr(last, "feature_axis_"):
        names = np.array([f"{value:.10g}" for value in last.feature_axis_], dtype=object)
    if names is None and isinstance(model, Pipeline) and len(model) > 1:
        # Steps that return arrays do not pass names on, but may know them. Some do not even know the number.
        with suppress(AttributeError, NotImplementedError, ValueError):
            names = np.asarray(model[:-1].get_feature_names_out(), dtype=object)
    if names is None or len(names) != last.n_features_in_:
        names = np.array([f"x{i}" for i in range(last.n_features_in_)], dtype=object)
    return names
