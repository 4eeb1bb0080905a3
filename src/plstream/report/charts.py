"""The figures of a model's page, as Plotly draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.types import Array, Float64Array
from ..monitoring.limits import t2_limit
from ..plots._many import thin
from .applied import Applied
from .html import LIGHT_COLOURS
from .interactive import View, label, numbers
from .traits import Features

# Points of all lines of a figure together: many times what a screen has pixels.
_POINTS = 16_000
# Lines of a figure, of which some are shown at first. One can ask for the others by a click on their names.
N_LINES = 10
_N_SHOWN = 3
# Features that are few enough to have their names on the axis.
_FEW = 30
_LONGEST_TICK = 16
_MOST_CLASSES = 20
_SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "triangle-down", "star")
_OTHERS = "others"
_SCALE = [[0, "--s0"], [0.5, "--s1"], [1, "--s2"]]
# Share of the rows inside the ellipse of scores.
ELLIPSE_LEVEL = 0.95
# Beyond so many times the limit, the rest would be squeezed into a corner.
_LOGARITHMIC_BEYOND = 20.0


def colour(i: int) -> str:
    """Return the colour of the i-th of several things."""
    return f"--c{i % len(LIGHT_COLOURS)}"


def n_bins(n_lines: int) -> int:
    """Return into how many bins features are divided, of which the extremes are drawn."""
    return max(1, _POINTS // (2 * n_lines))


def feature_view(
    name: str,
    features: Features,
    lines: Mapping[str, Float64Array],
    *,
    marked: Float64Array | None = None,
    threshold: tuple[float, str] | None = None,
) -> View:
    """Return values of all features, as lines or, if there are few features, as bars.

    Parameters
    ----------
    name : str
        Of the view, and of the values.
    features : Features
        Where they are.
    lines : mapping of str to ndarray of shape (n_features,)
        Values by the name of the line.
    marked : ndarray of shape (n_features,), default=None
        Which features of the first line stand out.
    threshold : tuple of float and str, default=None
        A level to compare with, and its name.
    """
    bars = len(features) <= _FEW and not features.axis
    bins = n_bins(len(lines))
    data = [_line(features, values, key, i, bins, bars=bars) for i, (key, values) in enumerate(lines.items())]
    if marked is not None:
        at = np.flatnonzero(marked)
        at = at if len(at) <= _POINTS else at[np.argsort(-next(iter(lines.values()))[at])[:_POINTS]]
        data.append(_marks(features, next(iter(lines.values())), at))
    ends = [-0.5, len(features) - 0.5] if bars else [features.positions[0], features.positions[-1]]
    if threshold is not None:
        data.append(_dashed(ends, [threshold[0]] * 2, threshold[1]))
    xaxis: dict[str, Any] = {"title": "" if bars else features.axis or "Number of the feature"}
    if bars:
        xaxis |= {
            "tickvals": list(range(len(features))),
            "ticktext": [label(_short(text)) for text in features.names],
            "tickangle": -45 if max(map(len, features.names)) > 3 else 0,
        }
    elif ends[0] > ends[1]:
        xaxis["autorange"] = "reversed"
    return View(name, data, {"xaxis": xaxis, "yaxis": {"title": name}, "showlegend": len(data) > 1})


def _short(text: str) -> str:
    """Return text that fits beside an axis."""
    return text if len(text) <= _LONGEST_TICK else f"{text[: _LONGEST_TICK - 1]}…"


def _line(features: Features, values: Float64Array, name: str, i: int, bins: int, *, bars: bool) -> dict[str, Any]:
    at, _ = thin(np.arange(len(values)), values, bins)
    trace: dict[str, Any] = {
        "name": label(name),
        "x": numbers(features.positions[at]),
        "y": numbers(values[at]),
        "text": [label(features.names[k]) for k in at],
        "hovertemplate": "%{text}<br>%{y:.4g}",
        "textposition": "none",
        "visible": True if i < _N_SHOWN else "legendonly",
    }
    if bars:
        return trace | {"type": "bar", "marker": {"color": colour(i)}}
    del trace["textposition"]
    return trace | {"type": "scatter", "mode": "lines", "line": {"color": colour(i), "width": 1.6}}


def _marks(features: Features, values: Float64Array, at: Array) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "kept",
        "x": numbers(features.positions[at]),
        "y": numbers(values[at]),
        "text": [label(features.names[k]) for k in at],
        "hovertemplate": "%{text}<br>%{y:.4g}",
        "marker": {"color": colour(1), "size": 5},
    }


def _dashed(x: ArrayLike, y: ArrayLike, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name),
        "x": numbers(x),
        "y": numbers(y),
        "hoverinfo": "skip",
        "line": {"color": "--faint", "dash": "dash", "width": 1.3},
    }


def score_views(found: Applied, responses: Sequence[str]) -> list[View]:
    """Return the scores of sampled rows, one view for each pair of the first components."""
    scores, rows = found.sample["scores"], found.sample["row"]
    if scores.shape[1] == 1:
        data = _points(found, rows, scores[:, 0], "row", "component 1", responses)
        return [View("Component 1", data, _axes("Number of the row", "Scores of component 1", data))]
    views = []
    for i, k in sorted(combinations(range(scores.shape[1]), 2), key=lambda pair: pair[1]):
        first, second = f"component {i + 1}", f"component {k + 1}"
        data = _points(found, scores[:, i], scores[:, k], first, second, responses)
        data += _ellipse(found, [i, k])
        views.append(
            View(f"Components {i + 1} and {k + 1}", data, _axes(f"Scores of {first}", f"Scores of {second}", data))
        )
    return views


def _axes(x: str, y: str, data: Sequence[Any]) -> dict[str, Any]:
    return {"xaxis": {"title": x}, "yaxis": {"title": y}, "showlegend": len(data) > 1}


def _ellipse(found: Applied, pair: list[int]) -> list[dict[str, Any]]:
    """Return the ellipse that holds most rows, if there are enough to know it."""
    moments = found.moments
    n = moments.n_rows
    if n <= 3:
        return []
    square = moments.upper[np.ix_(pair, pair)] / (n - 1)
    covariance = np.triu(square) + np.triu(square, 1).T
    lengths, directions = np.linalg.eigh(covariance)
    if not lengths[0] > 0:
        return []
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(t2_limit(ELLIPSE_LEVEL, 2, n))
    line = circle * np.sqrt(lengths) @ directions.T + moments.x_mean[pair]
    return [_dashed(line[:, 0], line[:, 1], f"{ELLIPSE_LEVEL:.0%} of rows")]


def _points(
    found: Applied, x: Array, y: Array, x_name: str, y_name: str, responses: Sequence[str]
) -> list[dict[str, Any]]:
    """Return points for sampled rows, coloured by label or value."""
    hover = f"row %{{customdata}}<br>{x_name} %{{x:.4g}}<br>{y_name} %{{y:.4g}}"
    target = found.sample.get("y")
    if target is None:
        return [_scatter(x, y, found.sample["row"], hover, "rows", {"color": colour(0)})]
    if not found.labels:
        values = np.asarray(target, dtype=np.float64).reshape(len(target), -1)[:, 0]
        name = label(responses[0])
        bar = {"title": {"text": name, "side": "right"}, "thickness": 12, "outlinewidth": 0}
        marker = {"color": numbers(values), "colorscale": _SCALE, "showscale": True, "colorbar": bar}
        # Not as part of the template, in which a name might stand for something else.
        hover += "<br>%{meta} %{marker.color:.4g}"
        return [_scatter(x, y, found.sample["row"], hover, "rows", marker) | {"meta": name, "showlegend": False}]
    labels, index = _labels(target)
    return [
        _scatter(
            x[index == i],
            y[index == i],
            found.sample["row"][index == i],
            f"{hover}<br>%{{fullData.name}}",
            name,
            {"color": "--faint" if name is _OTHERS else colour(i), "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
        )
        for i, name in enumerate(labels)
    ]


def _labels(target: Array) -> tuple[list[str], Array]:
    """Return the labels that have a colour, and which of them each row has; the rarest of many have one in common."""
    known, index, counts = np.unique(np.reshape(target, -1), return_inverse=True, return_counts=True)
    names = [str(name) for name in known.tolist()]
    if len(names) <= _MOST_CLASSES:
        return names, index
    common = np.sort(np.argsort(-counts, kind="stable")[: _MOST_CLASSES - 1])
    place = np.full(len(names), len(common))
    place[common] = np.arange(len(common))
    return [*(names[k] for k in common), _OTHERS], place[index]


def _scatter(x: Array, y: Array, rows: Array, hover: str, name: str, marker: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "x": numbers(x),
        "y": numbers(y),
        "customdata": rows.tolist(),
        "hovertemplate": f"{hover}<extra></extra>",
        "marker": {"size": 6, "opacity": 0.8, **marker},
    }


def predicted_views(found: Applied, responses: Sequence[str]) -> list[View]:
    """Return predicted against true values, one view for each response."""
    true, guess = (
        np.asarray(found.sample[name], dtype=np.float64).reshape(len(found.sample[name]), -1)
        for name in ("y", "predicted")
    )
    views = []
    for k, name in enumerate(responses[:N_LINES]):
        x, y = true[:, k], guess[:, k]
        low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
        error = numbers(y - x)
        points = _scatter(
            x,
            y,
            found.sample["row"],
            "row %{customdata}<br>measured %{x:.4g}<br>predicted %{y:.4g}<br>error %{text}",
            "rows",
            {"color": colour(0)},
        )
        points["text"] = ["" if e is None else f"{e:.4g}" for e in error]
        data = [points, _dashed([low, high], [low, high], "as measured")]
        views.append(View(name, data, _axes(f"Measured {label(name)}", f"Predicted {label(name)}", data)))
    return views


def confusion_view(names: Sequence[str], counts: Array) -> View:
    """Return how many rows of each label were given which label."""
    shown = [label(_short(name)) for name in names]
    # Shares of the rows of a label: else common ones would outshine the others.
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    positions = list(range(len(names)))
    axis = {"tickvals": positions, "ticktext": shown}
    data = {
        "type": "heatmap",
        "x": positions,
        "y": positions,
        "z": [numbers(row) for row in shares],
        "text": counts.tolist(),
        "texttemplate": "%{text}" if len(names) <= _MOST_CLASSES else "",
        "customdata": [[[label(true), label(guess)] for guess in names] for true in names],
        "hovertemplate": "true %{customdata[0]}<br>predicted %{customdata[1]}<br>"
        "%{text} rows, %{z:.1%} of that label<extra></extra>",
        "colorscale": [[0, "--paper"], [1, "--c0"]],
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
    return View(
        "Confusions",
        [data],
        {"xaxis": {"title": "Predicted", **axis}, "yaxis": {"title": "True", "autorange": "reversed", **axis}},
    )


def t2_q_view(found: Applied) -> View:
    """Return T2 and Q of sampled rows and of the most unusual ones, with their limits."""
    assert found.monitor is not None
    t2_line, q_line = found.monitor.t2_limit_, found.monitor.q_limit_
    sample, unusual = found.sample, found.unusual
    extra = ~np.isin(unusual["row"], sample["row"])
    rows, t2, q = (np.concatenate([sample[name], unusual[name][extra]]) for name in ("row", "t2", "q"))
    alarm = (t2 > t2_line) | (q > q_line)
    hover = "row %{customdata}<br>T2 %{x:.4g}<br>Q %{y:.4g}"
    data = [
        _scatter(t2[which], q[which], rows[which], hover, name, {"color": tone, "symbol": symbol})
        for which, name, tone, symbol in (
            (~alarm, "within limits", colour(0), "circle"),
            (alarm, "beyond a limit", "--no", "diamond"),
        )
        if which.any()
    ]
    layout = _axes("T2, within the model", "Q, distance to the model", data) | {"showlegend": True}
    for axis, values, line in (("xaxis", t2, t2_line), ("yaxis", q, q_line)):
        if values.min() > 0 and values.max() > _LOGARITHMIC_BEYOND * line > 0:
            layout[axis] = layout[axis] | {"type": "log", "dtick": 1}
    low_t2, high_t2 = _span(t2, t2_line)
    low_q, high_q = _span(q, q_line)
    data += [
        _dashed([t2_line, t2_line], [low_q, high_q], f"limits, {found.monitor.level:.0%}"),
        _dashed([low_t2, high_t2], [q_line, q_line], "") | {"showlegend": False},
    ]
    return View("T2 and Q", data, layout)


def _span(values: Array, limit: float) -> tuple[float, float]:
    return float(values.min()), float(max(values.max(), limit))


def explained_view(shares: Mapping[str, Float64Array]) -> View:
    """Return the share of variance that each component explains, and that of all up to it."""
    data: list[dict[str, Any]] = []
    for i, (name, share) in enumerate(shares.items()):
        x = list(range(1, len(share) + 1))
        hover = "component %{x}<br>%{y:.2%}"
        bar = {"type": "bar", "name": label(name), "x": x, "y": numbers(share), "hovertemplate": hover}
        line = {"type": "scatter", "mode": "lines+markers", "name": label(f"{name}, all up to it"), "x": x}
        data += [
            bar | {"marker": {"color": colour(i), "opacity": 0.6}},
            line | {"y": numbers(np.cumsum(share)), "hovertemplate": hover, "line": {"color": colour(i)}},
        ]
    layout = _axes("Component", "Share of the variance", data)
    layout["xaxis"] |= _whole(max(map(len, shares.values())))
    layout["yaxis"] |= {"tickformat": ".0%", "rangemode": "tozero"}
    return View("Explained variance", data, layout)


def _whole(n: int) -> dict[str, Any]:
    """Return ticks at whole numbers."""
    return {"tickmode": "linear", "tick0": 1, "dtick": max(1, -(-n // 12))}


def validation_view(results: Mapping[str, Array], chosen: int) -> View:
    """Return cross-validated scores by the number of components."""
    x = np.asarray(results["n_components"])
    mean = np.asarray(results["mean_test_score"], dtype=np.float64)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "cross-validated",
        "x": x.tolist(),
        "y": numbers(mean),
        "hovertemplate": "%{x} component(s)<br>score %{y:.4g}",
        "line": {"color": colour(0)},
    }
    if "se_test_score" in results:
        trace["error_y"] = {"type": "data", "array": numbers(results["se_test_score"]), "color": "--faint"}
    at = x == chosen
    best = {
        "type": "scatter",
        "mode": "markers",
        "name": "chosen",
        "x": x[at].tolist(),
        "y": numbers(mean[at]),
        "hovertemplate": "chosen: %{x} component(s)<br>score %{y:.4g}",
        "marker": {"color": colour(1), "size": 12, "symbol": "star"},
    }
    layout = _axes("Number of components", "Score of rows held out", [trace, best])
    layout["xaxis"] |= _whole(len(x))
    return View("Cross-validation", [trace, best], layout)
