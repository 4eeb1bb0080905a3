"""Names of features, components and responses, and positions of features with numeric names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.types import Array, Float64Array
from ..monitoring.pipelines import feature_names

_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(nm|µm|um|cm-1|cm\^-1|1/cm|Hz|kHz|eV|m/z)?\s*")
_QUANTITIES = {
    **dict.fromkeys(("cm-1", "cm^-1", "1/cm"), "Wavenumber"),
    "Hz": "Frequency",
    "kHz": "Frequency",
    "eV": "Energy",
    "m/z": "Mass to charge",
}


def axis_names(model: Any, x: Any = None) -> Array:
    """Return the names of the features of a model, or those given by the caller."""
    names = feature_names(model)
    if x is None:
        return names
    given: Array = np.asarray(x, dtype=object)
    if given.shape != names.shape:
        raise ValueError(f"x must have one entry for each of the {len(names)} features, not shape {given.shape}.")
    return given


def positions(names: Array) -> tuple[str, Float64Array]:
    """Return the quantity of the numbers in names, "" if they are column numbers or absent, and the positions.

    Examples
    --------
    >>> from plstream.plots.names import positions
    >>> positions(["1100 nm", "1102 nm"])
    ('Wavelength, nm', array([1100., 1102.]))
    >>> positions(["fat", "water"])
    ('', array([0., 1.]))
    """
    matches = [_NUMBER.fullmatch(str(name)) for name in names]
    index = np.arange(len(names), dtype=np.float64)
    if len(names) < 2 or not all(matches):
        return "", index
    values = np.array([float(match[1]) for match in matches if match])
    steps = np.diff(values)
    # Columns named 0, 1, 2 count as unnamed.
    if not ((steps > 0).all() or (steps < 0).all()) or np.array_equal(values, index):
        return "", index
    units = {match[2] for match in matches if match}
    unit = units.pop() if len(units) == 1 else None
    quantity = _QUANTITIES.get(unit or "", "Wavelength")
    return f"{quantity}, {unit}" if unit else quantity, values


def are_numbered(names: Array) -> bool:
    """Return whether names are those of columns without names: 0, 1, 2 or x0, x1, x2."""
    texts = [str(name).removeprefix("x") for name in names]
    return texts == [str(k) for k in range(len(texts))]


def component_columns(components: Sequence[int], n_components: int) -> list[int]:
    """Return the column indices of components counted from one; raise ValueError if there are fewer."""
    for number in components:
        if number not in range(1, n_components + 1):
            raise ValueError(f"components must be from 1 to {n_components}, the number of the model, not {number}.")
    return [int(number) - 1 for number in components]


def weights_of(model: Any) -> Array | None:
    """Return the weights of X, or similar directions, with one column per component, or None."""
    for name in ("x_weights_", "scalings_"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name))
    return np.asarray(model.components_).T if hasattr(model, "components_") else None


def response_names(model: Any, n_responses: int, target_names: Sequence[str] | None = None) -> list[str]:
    """Return names for the rows of the coefficients: classes, the names of the targets if known, or numbers."""
    classes = getattr(model, "classes_", None)
    if classes is not None:
        # With two classes, the only response represents the second.
        return distinct(classes if n_responses == len(classes) else classes[-n_responses:])
    if target_names is None:
        # Names of y in ``fit``.
        target_names = getattr(getattr(getattr(model, "_fitted", None), "head", None), "names", None)
    if target_names is not None and len(target_names) == n_responses:
        return distinct(target_names)
    return ["y"] if n_responses == 1 else [f"y{k}" for k in range(n_responses)]


def distinct(names: Sequence[Any]) -> list[str]:
    """Return unique names, by which lines are identified."""
    texts = [str(name) for name in names]
    return [text if texts.index(text) == k else f"{text} ({k})" for k, text in enumerate(texts)]
