"""Names of features, as a model knows them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._core.types import Array
from .pipelines import last_step


def feature_names(model: Any) -> Array:
    """Return the names of a model's features, x0, x1 and so on if it knows none; of a pipeline, those of its last step.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring.names import feature_names
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> feature_names(IncrementalPLS(1).fit(X, X[:, 0]))
    array(['x0', 'x1', 'x2'], dtype=object)
    """
    last, _ = last_step(model)
    names = getattr(last, "feature_names_in_", None)
    if names is None and isinstance(model, Pipeline) and len(model) > 1:
        # Steps that return arrays do not pass names on, but may know them. Some do not even say how many there are.
        with suppress(AttributeError, NotImplementedError, ValueError):
            names = np.asarray(model[:-1].get_feature_names_out(), dtype=object)
    if names is None or len(names) != last.n_features_in_:
        names = np.array([f"x{i}" for i in range(last.n_features_in_)], dtype=object)
    return names
