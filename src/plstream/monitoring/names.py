"""Names of features, as a model knows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array


def feature_names(model: Any) -> Array:
    """Return the names of a model's features, x0, x1 and so on if it knows none.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring.names import feature_names
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> feature_names(IncrementalPLS(1).fit(X, X[:, 0]))
    array(['x0', 'x1', 'x2'], dtype=object)
    """
    names = getattr(model, "feature_names_in_", None)
    return np.array([f"x{i}" for i in range(model.n_features_in_)], dtype=object) if names is None else names
