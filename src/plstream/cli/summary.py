"""A model in a few words."""

from __future__ import annotations

from typing import Any


def summary(model: Any) -> str:
    """Return what a fitted model is, in one line. It is solved for that."""
    rows, features = model.n_samples_seen_, model.n_features_in_
    text = f"{type(model).__name__}, {model.n_components_} component(s) of {features:,} feature(s), {rows:,} row(s)"
    if hasattr(model, "solver_"):
        text += f", {model.solver_}"
    if hasattr(model, "classes_"):
        text += f", {len(model.classes_)} classes"
    if hasattr(model, "y_explained_variance_ratio_"):
        text += f", explains {model.y_explained_variance_ratio_.sum():.1%} of y"
    return text
