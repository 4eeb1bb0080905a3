"""The style of figures: one colour and marker per method, labels next to lines, and files without dates.

Figures have the width of a text column and of a phone in portrait orientation, so the text is legible on both. Colours
are safe for colour-blind readers, and visible on white and on black backgrounds (see the tests). Our own methods are
drawn thicker, and PLS, the reference, in the colour of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.palette import FAINT, GRID, INK, PAPER
from .methods import TITLES
from .results import Cell, TaskResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line = tuple[list[float], list[float]]
WIDTH = 4.7
DPI = 200
_LINE = 0.185
"""Height of a line of text, in inches."""


@dataclass(frozen=True)
class Style:
    """The style of a method."""

    colour: str
    marker: str
    dashes: str = "-"
    own: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """Options of a line with markers."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.dashes,
            "linewidth": 2.6 if self.own else 1.2,
            # The reference is drawn on top, because it may coincide with others.
            "zorder": 4 if self.own else 5 if self.colour == INK else 3,
            **self.mark,
        }

    @property
    def mark(self) -> dict[str, Any]:
        """Options of a marker."""
        size = 7.0 if self.own else 5.0
        size *= 1.5 if self.marker == "*" else 1
        return {"markersize": size, "markeredgecolor": PAPER, "markeredgewidth": 0.6}


STYLES = {
    "ccipca": Style("#726440", "v"),
    "sgdpls": Style("#1d7168", "^"),
    "sgdpls-steps": Style("#1d7168", "<", ":"),
    "ipls": Style("#a39b60", "s"),
    "olpls": Style("#614cff", "P"),
    "sgdpls-released": Style("#1d7168", "v", ":"),
    "ipls-released": Style("#a39b60", "h", ":"),
    "olpls-released": Style("#614cff", "p", ":"),
    "incremental-lda": Style("#30698c", "X"),
    "cipls-paper": Style("#3aa2d5", "D", "--"),
    "cipls-released": Style("#0faaac", "h", ":"),
    "cipls": Style("#0460bd", "o", own=True),
    "incremental-pls": Style("#d88700", "*", own=True),
    "pls": Style(INK, "d", "--"),
    "pls-svd": Style("#9f480a", "p", "-."),
}
# Selectors have the style of their model.
STYLES |= {
    "inffs": STYLES["ccipca"],
    "ilfs": STYLES["sgdpls"],
    "ilfs-a": STYLES["sgdpls-released"],
    "inffs-u": STYLES["ipls"],
    "inffs-s": STYLES["olpls"],
    "pls-vip": STYLES["pls"],
    "cipls-paper-vip": STYLES["cipls-paper"],
    "cipls-vip": STYLES["cipls"],
    "incremental-pls-vip": STYLES["incremental-pls"],
    "random": STYLES["incremental-lda"],
    "none": Style(FAINT, "", ":"),
}
_CONTEXT = {
    "font.size": 9.5,
    "font.family": "sans-serif",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    # Text is not converted to paths; ids of shapes depend only on the shapes.
    "svg.fonttype": "none",
    "svg.hashsalt": "plstream",
}


def style() -> AbstractContextManager[None]:
    """Return a context in which figures are drawn in this style, regardless of global settings."""
    # Unlike pyplot, this opens no windows and keeps no figures.
    from matplotlib.style import context

    return context(["default", _CONTEXT])


def new_figure(height: float) -> Figure:
    """Return an empty figure of the common width."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height))


@dataclass(frozen=True)
class CaptionedFigure:
    """A figure with its description.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure itself.
    description : str
        Alternative text.
    reading : str
        How to read it.
    kind : str
        Distinguishes it from the first figure of the experiment.
    name : str
        Name of its files.
    experiment, task : str
        Experiment and task shown.
    """

    figure: Figure
    description: str
    reading: str
    kind: str = ""
    name: str = ""
    experiment: str = ""
    task: str = ""

    def as_bytes(self, kind: str) -> bytes:
        """Return the file as "png" or "svg", with the same bytes for the same figure."""
        metadata = {"png": {"Software": None}, "svg": dict.fromkeys(("Date", "Creator", "Format", "Type"))}[kind]
        file = BytesIO()
        with style():
            self.figure.savefig(file, format=kind, dpi=DPI, metadata=metadata)
        return file.getvalue()


def drawn_cells(found: TaskResults) -> dict[str, list[Cell]]:
    """Return the cells of each method, in the order of figures."""
    by_method = found.by_method()
    return {method: by_method[method] for method in STYLES if method in by_method}


def short_title(method: str) -> str:
    """Return a title that fits next to a line."""
    title = TITLES[method].replace(" (one pass)", "").replace("(normalized) ", "").replace("Algorithm 1", "Alg. 1")
    return title.replace("released code", "released")


class DotPlot:
    """Axes with one line of text per method, with marks, and a number at its end."""

    def __init__(self, methods: Sequence[str], xlabel: str, above: float = 0) -> None:
        # Lines for the axis below, and for the legend above.
        height = _LINE * (1.45 * len(methods) + 3.2 + above)
        self.figure = new_figure(height)
        bottom, top = 2.8 * _LINE / height, (0.4 + above) * _LINE / height
        self.axes: Axes = self.figure.add_axes((0.335, bottom, 0.51, 1 - bottom - top))
        # The position of each method.
        self.places = {method: place for place, method in enumerate(methods)}
        self.axes.set_yticks(range(len(methods)), [*map(short_title, methods)])
        for label, method in zip(self.axes.get_yticklabels(), methods, strict=True):
            label.set_fontweight("bold" if STYLES[method].own else "normal")
        self.axes.set_ylim(len(methods) - 0.45, -0.55)
        self.axes.tick_params(axis="y", length=0)
        self.axes.grid(visible=False, axis="y")
        self.axes.spines["left"].set_visible(False)
        self.axes.set_xlabel(xlabel)

    def value(self, method: str, text: str) -> None:
        """Write a value at the end of a line."""
        self.axes.text(
            1.03,
            self.places[method],
            text,
            transform=self.axes.get_yaxis_transform(),
            va="center_baseline",
            fontweight="bold" if STYLES[method].own else "normal",
        )

    def mark(self, method: str, value: float) -> None:
        """Draw a value."""
        look = STYLES[method].line
        look |= {"linestyle": "", "markersize": 1.3 * look["markersize"]}
        self.axes.plot([value], [self.places[method]], **look)

    def bar(self, method: str, low: float, high: float) -> None:
        """Draw an interval."""
        own = STYLES[method].own
        self.axes.plot(
            [low, high],
            [self.places[method]] * 2,
            color=STYLES[method].colour,
            linewidth=2.6 if own else 1.5,
            solid_capstyle="butt",
            zorder=2,
        )

    def legend(self) -> None:
        """Explain the marks above the axes, in two columns."""
        self.axes.legend(
            loc="lower right",
            bbox_to_anchor=(1.25, 1.0),
            ncols=2,
            frameon=False,
            handletextpad=0.2,
            columnspacing=1.0,
            borderaxespad=0.2,
            fontsize=9,
        )


def stacked(n: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with stacked panels, and room for labels to the right of each."""
    total = n * height
    figure = new_figure(total)
    bottom, top = 2.6 * _LINE, 1.5 * _LINE
    axes = [
        figure.add_axes((0.12, (total - (i + 1) * height + bottom) / total, 0.455, (height - bottom - top) / total))
        for i in range(n)
    ]
    return figure, axes


def label_lines(axes: Axes, lines: Mapping[str, Line], suffixes: Mapping[str, str] | None = None) -> None:
    """Write the names of lines to their right, in the order of their ends, each next to its marker.

    Lines that end at the edge of the axes are connected to their names, which may have suffixes.
    """
    # The positions of labels depend on the axes, which must not change from here on.
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    transform, inverse = axes.transData, axes.transAxes.inverted()
    last = max((x[-1] for x, _ in lines.values()), default=0.0)
    ends = {name: inverse.transform(transform.transform((x[-1], y[-1])))[1] for name, (x, y) in lines.items()}
    # A line may end below the axes, but its name is inside.
    ends = {name: max(0.0, end) for name, end in ends.items()}
    order = sorted(ends, key=lambda name: (ends[name], lines[name][1][-1]))
    gap = 0.93 * _LINE * axes.figure.dpi / axes.bbox.height
    places = spread([ends[name] for name in order], gap, 0.0, 1.0)
    for name, place in zip(order, places, strict=True):
        look = STYLES[name]
        x = lines[name][0][-1]
        options: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        if x == last:
            edge = inverse.transform(transform.transform((x, lines[name][1][-1])))
            axes.plot([edge[0] + 0.015, 1.07], [ends[name], place], color=look.colour, linewidth=0.6, **options)
        axes.plot([1.105], [place], color=look.colour, marker=look.marker, linestyle="", **look.mark, **options)
        weight = "bold" if look.own else "normal"
        text = short_title(name) + (suffixes or {}).get(name, "")
        axes.text(1.15, place, text, va="center_baseline", fontsize=8.5, fontweight=weight, **options)


def draw_lines(
    axes: Axes, lines: Mapping[str, Line], xlabel: str, title: str, level: float | None = None, markers_every: int = 1
) -> None:
    """Draw the lines of methods, and a dotted one at a level."""
    for i, (method, (x, y)) in enumerate(lines.items()):
        # Offsets keep the markers of neighbouring lines apart.
        axes.plot(x, y, markevery=(i % markers_every, markers_every), **STYLES[method].line)
    if level is not None:
        axes.axhline(level, color=FAINT, linestyle=":", linewidth=1.5)
    axes.set_xlabel(xlabel)
    axes.set_title(title)


def line_of(x: Sequence[float], y: Sequence[float]) -> Line:
    """Return the points of a line whose value is not NaN."""
    both = [(a, b) for a, b in zip(x, y, strict=True) if not np.isnan(b)]
    return [a for a, _ in both], [b for _, b in both]


def line_chart(
    lines: Mapping[str, Line],
    what: str,
    reading: str,
    *,
    xlabel: str,
    ticks: Sequence[float] | None = None,
    markers_every: int = 1,
    logarithmic: bool = False,
) -> CaptionedFigure:
    """Draw the accuracies of methods in per cent, with one marker per given number of points."""
    figure, (axes,) = stacked(1, 3.7)
    shown = {method: line for method, line in lines.items() if line[0]}
    draw_lines(axes, shown, xlabel, "Accuracy, %", markers_every=markers_every)
    if logarithmic:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if ticks is not None:
        axes.set_xticks(ticks)
    values = [value for _, y in shown.values() for value in y]
    bottom = axes.get_ylim()[0]
    if values and max(values) > (low := float(np.quantile(values, 0.1))):
        # Omit a few points so low that all other lines would coincide.
        bottom = max(bottom, low - 3 * (max(values) - low))
    axes.set_ylim(bottom=bottom)
    label_lines(axes, shown)
    below = [f"{TITLES[method]} ({min(y):.2f} %)" for method, (_, y) in shown.items() if min(y) < bottom]
    reading += f" Lowest points below the axis: {', '.join(below)}." if below else ""
    return CaptionedFigure(figure, describe_lines(what, lines), reading)


def describe_lines(what: str, lines: Mapping[str, Line]) -> str:
    """Return a sentence about the ends of lines."""
    ends = {method: y[-1] for method, (x, y) in lines.items() if x}
    if not ends:
        return f"{what}: there are no points."
    best, least = max(ends, key=lambda method: ends[method]), min(ends, key=lambda method: ends[method])
    return (
        f"{what}, for {len(ends)} methods. Lines end between {ends[least]:.2f} % ({TITLES[least]}) and "
        f"{ends[best]:.2f} % ({TITLES[best]})."
    )


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions in the same order, at least a gap apart, and as close as possible to those given.

    They lie between low and high if there is room; otherwise they exceed both equally.
    """
    from sklearn.isotonic import isotonic_regression

    # After subtracting the gaps, positions only need to be sorted.
    n, shifts = len(places), np.arange(len(places)) * gap
    room = high - low - (n - 1) * gap
    bounds = (low, low + room) if room >= 0 else (low + room / 2, low + room / 2)
    sorted_places = isotonic_regression(np.asarray(places, float) - shifts) if n else shifts
    return [float(place) for place in np.clip(sorted_places, *bounds) + shifts]
