"""The last step of a pipeline, and the names of its features."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._core.types import Array
from ..data import Source
from ..rows import is_collection


def instead_of(model: Any) -> str:
    """Return what to pass instead of a pipeline, as the end of a sentence; empty if the model is not a pipeline."""
    if not isinstance(model, Pipeline):
        return ""
    return ": pass its last step, model[-1], and rows as the steps before it return them, model[:-1].transform(X)"


def last_step(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the model at the end of a pipeline, and rows as the steps before it return them; others as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring.pipelines import last_step
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model, rows = last_step(make_pipeline(StandardScaler(), IncrementalPLS()).fit(X, X[:, 0]), X)
    >>> model, float(rows.std().round(12))
    (IncrementalPLS(), 1.0)
    """
    if not isinstance(model, Pipeline):
        return model, X
    if X is not None and len(model) > 1:
        if isinstance(X, Source) or is_collection(X):
            raise TypeError(f"The steps of a Pipeline take rows in memory, not {type(X).__name__}{instead_of(model)}.")
        X = model[:-1].transform(X)
    return last_step(model[-1], X)


def feature_names(model: Any) -> Array:
    """Return the names of a model's features, x0, x1 and so on if it knows none; of a pipeline, those of its last step.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring.pipelines import feature_names
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> feature_names(IncrementalPLS(1).fit(X, X[:, 0]))
    array(['x0', 'x1', 'x2'], dtype=object)
    """
    last, _ = last_step(model)
    names = getattr(last, "feature_names_in_", None)
    if names is None and isinstance(model, Pipeline) and len(model) > 1:
        # Steps that return arrays do not pass names on, but may know them. Some do not even know how many there are.
        with suppress(AttributeError, NotImplementedError, ValueError):
            names = np.asarray(model[:-1].get_feature_names_out(), dtype=object)
    if names is None or len(names) != last.n_features_in_:
        names = np.array([f"x{i}" for i in range(last.n_features_in_)], dtype=object)
    return names
