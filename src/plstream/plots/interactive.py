"""Plotly figures as data: traces and layout, with plain strings and few digits. Nothing here imports Plotly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._core.types import Array
from .palette import CLASS_MARKERS, CLASSES

# Digits sufficient for a plot. More would make reports several times as large.
_DIGITS = 6
_LONGEST_TEXT, _LONGEST_TICK = 60, 16
_SYMBOLS = {
    "o": "circle",
    "^": "triangle-up",
    "s": "square",
    "v": "triangle-down",
    "D": "diamond",
    "P": "cross",
    "X": "x",
    "h": "hexagon",
    "<": "triangle-left",
    ">": "triangle-right",
}


class PlotlyFigure(NamedTuple):
    """Traces and layout as in Plotly's JavaScript library.

    Colours are names of the variables in `palette.LIGHT`, such as ``--ink``, and titles of axes are plain strings.
    """

    data: list[dict[str, Any]]
    layout: Mapping[str, Any]


def colour(i: int) -> str:
    """Return the colour of the i-th line or group."""
    return f"--c{i % len(CLASSES)}"


def symbol(i: int) -> str:
    """Return the marker of the i-th line or group, which differs from others of the same colour."""
    return _SYMBOLS[CLASS_MARKERS[(i + i // len(CLASSES)) % len(CLASS_MARKERS)]]


def numbers(values: ArrayLike) -> list[float | None]:
    """Return numbers rounded for a plot, with None for those that are not finite.

    Examples
    --------
    >>> from plstream.plots.interactive import numbers
    >>> numbers([1 / 3, 2e10 / 3, float("nan")])
    [0.333333, 6666670000.0, None]
    """
    array = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in array.tolist()]


def plain(text: object) -> str:
    """Return a string that Plotly shows unchanged: it interprets tags and entities as markup.

    Examples
    --------
    >>> from plstream.plots.interactive import plain
    >>> plain("<b>water & oil</b>")
    '&lt;b&gt;water &amp; oil&lt;/b&gt;'
    """
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())
    return escape(line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…", quote=False)


def tick_labels(names: Iterable[object]) -> list[str]:
    """Return names that fit next to an axis."""
    texts = map(str, names)
    return [plain(text if len(text) <= _LONGEST_TICK else f"{text[: _LONGEST_TICK - 1]}…") for text in texts]


def markers(x: Array, y: Array, rows: Array, hover: str, name: object, marker: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace of points, one per row; the row number is the ``customdata`` of the hover text."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name),
        "x": numbers(x),
        "y": numbers(y),
        "customdata": rows.tolist(),
        "hovertemplate": f"row %{{customdata}}<br>{hover}<extra></extra>",
        "marker": {"size": 6, "opacity": 0.9, **marker},
    }


def dashed(x: ArrayLike, y: ArrayLike, name: str) -> dict[str, Any]:
    """Return the trace of a dashed line, such as a limit; without a name it is not in the legend."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "x": numbers(x),
        "y": numbers(y),
        "hoverinfo": "skip",
        "showlegend": bool(name),
        "line": {"color": "--faint", "dash": "dash", "width": 1.3},
    }


def figure(x: str, y: str, data: Sequence[dict[str, Any]], **axes: Mapping[str, Any]) -> PlotlyFigure:
    """Return a figure with axis titles, further settings of ``xaxis`` and ``yaxis``, and a legend if needed."""
    layout: dict[str, Any] = {
        "xaxis": {"title": plain(x), **axes.get("xaxis", {})},
        "yaxis": {"title": plain(y), **axes.get("yaxis", {})},
        "showlegend": len(data) > 1,
    }
    return PlotlyFigure([*data], layout)


def integer_ticks(n: int) -> dict[str, Any]:
    """Return settings of an axis from 1 to n with ticks at integers."""
    return {"tickmode": "linear", "tick0": 1, "dtick": max(1, -(-n // 12))}
