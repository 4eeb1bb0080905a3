"""Cross-validation of a source by a column of groups."""

from __future__ import annotations

import warnings
from contextlib import closing
from typing import Any

from sklearn.base import is_classifier

from .._core.progress import listening, track
from ..data import DataError, Source
from ..rows import validate_source
from .progress import shown


def _n_rows(parts: Any) -> int:
    return len(parts[0])


def fit_by_groups(model: Any, source: Source, classes: Any) -> None:
    """Fit a model that chooses its components, with all rows of a group in one fold.

    Groups come with blocks of rows, because a model asks a source for features, targets and weights alone.
    """
    known: dict[str, Any] = {}
    if is_classifier(model):
        known["classes"] = source.labels() if classes is None and source.rereadable else classes
    n_rows = 0
    records = track(source.records(), "read 1 of 1", source.n_rows, _n_rows)
    with shown(), closing(records), warnings.catch_warnings():
        # Names of features are set in the end.
        warnings.simplefilter("ignore")
        for X, y, *others in records:
            assert X is not None
            columns = dict(zip(source.roles, others, strict=True))
            with listening(None):
                weight = columns.get("weight")
                model.partial_fit(X, y, sample_weight=weight, groups=columns["groups"], **known)
            n_rows += len(X)
    if not n_rows:
        raise DataError(f"{source.name} has no rows.")
    validate_source(model, source, reset=True)
    model._solution()
