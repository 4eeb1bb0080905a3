"""Models at the end of scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def instead_of(model: Any) -> str:
    """Return what to pass in place of a pipeline, as the end of a sentence; nothing for what is none."""
    if not isinstance(model, Pipeline):
        return ""
    return ": pass its last step, model[-1], and rows as the steps before it return them, model[:-1].transform(X)"
