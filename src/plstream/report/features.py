"""The report section about features: importance, loadings and coefficients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._core.types import Array
from ..data.columns import listed
from ..plots import CoefficientsDisplay, LoadingsDisplay, VIPDisplay
from ..plots.features import MOST_LINES, SHOWN_AT_FIRST, FeatureDisplay
from .html import Section
from .model_summary import N_RESPONSES, ModelSummary, drawn_note

_N_FEATURES, _N_MORE_FEATURES = 15, 200
_SPECTRA = " Smooth lines with few peaks suggest chemistry or physics, a jagged line noise and too many components."


def features_part(section: Section, summary: ModelSummary, responses: list[str]) -> None:
    """Fill the section about features: importance, coefficients, loadings, and a table of the top features."""
    n = f"all {len(summary.feature_names):,} features"
    if summary.importance is not None:
        name = summary.importance_name
        vip = VIPDisplay(summary.importance, summary.feature_names, name=name, kept=summary.kept)
        caption = "Scores by which the selector ranks features: higher is better."
        if name == "VIP":
            above = int(np.count_nonzero(summary.importance > 1))
            caption = (
                f"Importance (VIP): the mean of its squares is one, and {above:,} of {len(summary.feature_names):,} "
                "features are above one. These matter most for the target."
            )
        figure = vip.plotly(threshold=1.0 if name == "VIP" else None)
        section.plot({name: figure}, f"{name} of {n}.", caption + _thinned(vip))
    _top(section, summary, responses)
    if summary.coefficients is not None:
        kinds: dict[str, bool | str] = {"Coefficients": False}
        if summary.scale is not None and not np.all(summary.scale == 1):
            kinds = {"Coefficients of scaled features": "features", **kinds}
        coefficients = {
            name: CoefficientsDisplay.from_estimator(summary.given, targets=responses, scaled=scaled, draw=False)
            for name, scaled in kinds.items()
        }
        section.plot(
            {name: display.plotly() for name, display in coefficients.items()},
            f"Coefficients of {n}, one line for each of {listed(responses)}.",
            "Coefficients: the change of a prediction if a feature changes by one (scaled: by one standard "
            f"deviation) and the others do not.{_SPECTRA if coefficients['Coefficients'].axis else ''}"
            f"{_thinned(coefficients['Coefficients'])}{drawn_note(responses)}{_hidden(coefficients)}",
        )
    meanings = {
        "Loadings": "Loadings show how a component appears in the features.",
        "Weights": "Weights show which features define a component.",
    }
    directions = {
        kind: LoadingsDisplay.from_estimator(
            summary.given,
            kind=kind.lower(),
            components=range(1, min(matrix.shape[1], MOST_LINES) + 1),
            draw=False,
        )
        for kind, matrix in (("Loadings", summary.loadings), ("Weights", summary.weights))
        if matrix is not None
    }
    if directions:
        section.plot(
            {name: display.plotly() for name, display in directions.items()},
            f"{' and '.join(directions)} of {n}, one line per component.",
            f"{' '.join(meanings[name] for name in directions)}{_thinned(next(iter(directions.values())))}"
            f"{_hidden(directions)}",
        )


def _hidden(displays: Mapping[str, FeatureDisplay]) -> str:
    """Return how to show hidden lines."""
    n = len(next(iter(displays.values())).values)
    if n < 2:
        return ""
    at_first = f" The first {SHOWN_AT_FIRST} of {n} are shown at first." if n > SHOWN_AT_FIRST else ""
    return f"{at_first} Click on a name above the figure to hide or show it."


def _thinned(display: FeatureDisplay) -> str:
    words = " With so many features, the minimum and maximum of every interval are drawn."
    return words if display.is_thinned else ""


def _top(section: Section, summary: ModelSummary, responses: list[str]) -> None:
    strength = summary.strength
    order = np.argsort(-strength, kind="stable")[:_N_MORE_FEATURES]
    columns: dict[str, Array] = {}
    if summary.importance is not None:
        columns[summary.importance_name] = summary.importance
    if summary.coefficients is not None:
        for name, line in zip(responses, summary.coefficients[:N_RESPONSES], strict=False):
            columns["Coefficient" if len(summary.coefficients) == 1 else f"Coefficient of {name}"] = line
    if not columns and summary.weights is not None:
        columns["Largest weight"] = strength
    scale = getattr(summary.model, "x_scale_", np.ones(1))
    if hasattr(summary.model, "x_mean_"):
        # Centred features have a mean of zero up to rounding.
        mean = summary.model.x_mean_
        columns["Mean"] = np.where(np.abs(mean) < 1e-8 * scale, 0.0, mean)
    if hasattr(summary.model, "x_scale_"):
        columns["Scale"] = scale
    if summary.kept is not None:
        columns["Kept"] = np.where(summary.kept, "yes", "no")
    rows = [
        [summary.feature_names[k], *(f"{c[k]:.4g}" if c.dtype.kind == "f" else str(c[k]) for c in columns.values())]
        for k in order
    ]
    by = f"by {summary.importance_name}" if summary.importance is not None else "by size"
    if summary.coefficients is not None and len(summary.coefficients) > N_RESPONSES:
        by += f", with the coefficients of the first {N_RESPONSES} of {len(summary.coefficients)} responses"
    header = ["Feature", *columns]
    section.table(header, rows[:_N_FEATURES], f"The {min(len(rows), _N_FEATURES)} features that matter most, {by}")
    if len(rows) > _N_FEATURES:
        rest = f"Features {_N_FEATURES + 1} to {len(rows)} of {len(summary.feature_names):,}"
        section.folded(rest).table(header, rows[_N_FEATURES:], f"Further features, {by}")
