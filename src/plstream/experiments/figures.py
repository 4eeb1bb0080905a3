"""Figures of results.json: as in the paper, and with the same numbers as the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.palette import CLASS_MARKERS, CLASSES, FAINT, GRID, INK, PAPER
from . import drawing, paper
from .catalogue import EXPERIMENTS
from .drawing import STYLES, Rows
from .inference import exponent, interval
from .methods import METHODS
from .tables import TITLES, Result, found_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Picture:
    """A figure, and what there is to say about it.

    Attributes
    ----------
    name : str
        Of its files.
    experiment, task : str
        What it shows.
    description : str
        For those who do not see it.
    reading : str
        How to read it.
    figure : matplotlib.figure.Figure
        The figure itself.
    """

    name: str
    experiment: str
    task: str
    description: str
    reading: str
    figure: Figure

    def as_bytes(self, kind: str) -> bytes:
        """Return its file, "png" or "svg"."""
        return drawing.as_bytes(self.figure, kind)


def pictures_of(results: Result, experiment: str | None = None) -> Iterator[Picture]:
    """Yield the figures of one experiment, or of all, in the order of the paper.

    Parameters
    ----------
    results : dict
        The content of results.json.
    experiment : str, default=None
        Its name.

    Yields
    ------
    picture : Picture
        Experiments without any cell have none.
    """
    used: set[str] = set()
    for name in EXPERIMENTS:
        if experiment not in {None, name}:
            continue
        for task_name, task, found in found_of(results, name):
            if not found["cells"]:
                continue
            with drawing.style():
                for kind, figure, description, reading in _DRAWN[name](results, task, found):
                    file = _new_name(f"{name}-{kind}-{task_name}" if kind else f"{name}-{task_name}", used)
                    yield Picture(file, name, task_name, f"{description} The table has the numbers.", reading, figure)


Drawn = Iterator[tuple[str, "Figure", str, str]]


def _accuracy(_: Result, task: Result, found: Result) -> Drawn:
    means = {
        method: interval([100 * cell["accuracy"] for cell in cells]) for method, cells in _by_method(found).items()
    }
    reported = {method: paper.accuracy(method, task["paper"]) for method in means}
    theirs = any(value is not None for value in reported.values())
    rows = Rows([*means], [*map(_short, means)], "Accuracy, %", above=1.2 if theirs else 0)
    for method, (mean, half_width) in means.items():
        if not np.isnan(half_width):
            rows.bar(method, max(0.0, mean - half_width), min(100.0, mean + half_width))
        value = reported[method]
        if value is not None:
            _reported_mark(rows.axes, value, rows.place(method) + 0.27)
        rows.mark(method, mean)
        rows.value(method, f"{mean:.2f}")
    if theirs:
        rows.axes.plot([], [], marker="o", color=FAINT, linestyle="", label="here")
        rows.axes.plot([], [], label="the paper, on " + str(task["paper"]), **_REPORTED)
        _legend_above(rows.axes, 2)
    best = max(means, key=lambda method: means[method].mean)
    least = min(means, key=lambda method: means[method].mean)
    description = (
        f"Accuracies of {len(means)} methods with 95 % confidence intervals, from {means[least].mean:.2f} % "
        f"({TITLES[least]}) to {means[best].mean:.2f} % ({TITLES[best]})."
    )
    known = [half_width for _, half_width in means.values() if not np.isnan(half_width)]
    reading = (
        "Each mark is a mean over splits, and the line through it its 95 % confidence interval."
        if known
        else "There is one split, and so no confidence interval."
    )
    if theirs:
        reading += " The grey mark below it is what the paper reports, with its interval where there is one."
    yield "", rows.figure, description, reading


_REPORTED: dict[str, Any] = {
    "marker": "D",
    "markersize": 4,
    "color": FAINT,
    "markerfacecolor": PAPER,
    "linestyle": "",
}


def _reported_mark(axes: Axes, value: paper.Reported, place: float) -> None:
    if value.interval is not None:
        axes.plot(value.interval, [place, place], color=FAINT, linewidth=0.9)
    axes.plot([value.accuracy], [place], **_REPORTED)


def _components(_: Result, __: Result, found: Result) -> Drawn:
    lines = {
        method: _without_gaps(range(1, 1 + len(cells[0]["accuracy"])), _column_means(cells))
        for method, cells in _by_method(found).items()
    }
    figure = _lines_figure(lines, "Components", ticks=range(1, 1 + len(found["cells"][0]["accuracy"])))
    reading = "Names are in the order of the last point of each line. Lines end where a method has no more components."
    yield "", figure, _described("Accuracy over the number of components", lines), reading + _below(figure, lines)


_KINDS = {
    "accuracy_all": ("all scores", "o", 7.0, True),
    "accuracy": ("without the first", "o", 7.0, False),
    "accuracy_residual": ("and regressed out", "|", 9.0, True),
    "accuracy_without_first": ("and projected out", "x", 6.0, True),
}


def _kind_mark(marker: str, size: float, colour: str, filled: bool) -> dict[str, Any]:  # noqa: FBT001
    face = colour if filled else PAPER
    return {
        "marker": marker,
        "markersize": size,
        "color": colour,
        "markerfacecolor": face,
        "markeredgewidth": 1.5,
        "linestyle": "",
    }


def _higher_order(_: Result, _task: Result, found: Result) -> Drawn:
    by_method = _by_method(found)
    means = {
        method: {kind: 100 * float(np.mean([cell[kind] for cell in cells])) for kind in _KINDS}
        for method, cells in by_method.items()
    }
    rows = Rows([*means], [*map(_short, means)], "Accuracy, %", above=2.3)
    for method, values in means.items():
        place, colour = rows.place(method), STYLES[method].colour
        rows.axes.plot([min(values.values()), max(values.values())], [place] * 2, color=GRID, linewidth=3, zorder=1)
        for kind, (__, marker, size, filled) in _KINDS.items():
            rows.axes.plot([values[kind]], [place], **_kind_mark(marker, size, colour, filled))
        rows.value(method, f"{values['accuracy']:.2f}")
    for label, marker, size, filled in _KINDS.values():
        rows.axes.plot([], [], label=label, **_kind_mark(marker, size, INK, filled))
    _legend_above(rows.axes, 2)
    losses = {method: values["accuracy_all"] - values["accuracy"] for method, values in means.items()}
    most, least = max(losses, key=lambda method: losses[method]), min(losses, key=lambda method: losses[method])
    description = (
        f"Accuracies of {len(means)} methods with all scores and without the first. {TITLES[most]} loses most, "
        f"{losses[most]:.2f} points, and {TITLES[least]} least, {losses[least]:.2f}."
    )
    reading = (
        "The open circle, and the number, is the accuracy without the first score. If the two other marks are far to "
        "its left, what was left without the first score was mostly a copy of it."
    )
    yield "", rows.figure, description, reading


def _time(results: Result, _: Result, found: Result) -> Drawn:
    means = {method: interval([cell["seconds"] for cell in cells]) for method, cells in _by_method(found).items()}
    rows = Rows([*means], [*map(_short, means)], "Time to learn one more row")
    rows.axes.set_xscale("log")
    least = min(mean for mean, _ in means.values())
    for method, (mean, half_width) in means.items():
        if not np.isnan(half_width):
            # An interval may reach below zero, where there are no logarithms.
            rows.bar(method, max(mean - half_width, least / 10), mean + half_width)
        rows.mark(method, mean)
        rows.value(method, in_time(mean))
    _in_times(rows.axes, "x")
    order = sorted(means, key=lambda method: means[method].mean)
    description = (
        f"Time to learn one more row, from {in_time(means[order[0]].mean)} ({TITLES[order[0]]}) to "
        f"{in_time(means[order[-1]].mean)} ({TITLES[order[-1]]})."
    )
    reading = (
        f"Means of {results['settings']['runs']} rows with 95 % confidence intervals. Every step to the next power of "
        "ten is ten times as long."
    )
    yield "", rows.figure, description, reading
    if found.get("growth"):
        yield "growth", *_growth(found["growth"])


_VARIED = {"n": "Rows, n", "m": "Features, m", "c": "Components, c"}


def _growth(cells: Sequence[Result]) -> tuple[Figure, str, str]:
    varied = [name for name in _VARIED if any(cell["varied"] == name for cell in cells)]
    figure, panels = drawing.stacked(len(varied), 2.25)
    for axes, name in zip(panels, varied, strict=True):
        lines: dict[str, Line] = {}
        for method in dict.fromkeys(cell["method"] for cell in cells if cell["varied"] == name):
            mine = sorted(
                (cell["value"], cell["seconds"]) for cell in cells if (cell["method"], cell["varied"]) == (method, name)
            )
            lines[method] = [value for value, _ in mine], [time for _, time in mine]
        for method, (x, y) in lines.items():
            axes.plot(x, y, **STYLES[method].line)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        values = sorted({cell["value"] for cell in cells if cell["varied"] == name})
        axes.set_xticks(values, [f"{value:,}" for value in values])
        axes.minorticks_off()
        _in_times(axes, "y")
        axes.tick_params(axis="y", labelsize=8.5)
        axes.set_xlabel(_VARIED[name])
        axes.set_title("Time to learn all rows")
        slopes = {
            method: f" {exponent(x, y):.2f}" if len(x) > 1 and len(set(x)) > 1 else ""
            for method, (x, y) in lines.items()
        }
        drawing.label_lines(axes, lines, {method: _short(method) + slopes[method] for method in lines})
    methods = {cell["method"] for cell in cells}
    description = (
        f"Time to learn random rows by {len(methods)} methods, over the numbers of rows, features and components."
    )
    reading = (
        "Both axes are logarithmic. The number behind a name is the slope: 1 if time is proportional, 0 if it does not "
        "depend on the size."
    )
    return figure, description, reading


def _streaming(_: Result, __: Result, found: Result) -> Drawn:
    lines = {}
    for method, cells in _by_method(found).items():
        seen = np.mean([cell["n_seen"] for cell in cells], axis=0)
        lines[method] = _without_gaps(seen.tolist(), _column_means(cells))
    figure = _lines_figure(lines, "Rows learnt", markers_every=4)
    reading = "Each point is the accuracy on test rows after one more block. Names are in the order of the last points."
    yield "", figure, _described("Accuracy after each block of a stream", lines), reading + _below(figure, lines)


def _selection(_: Result, task: Result, found: Result) -> Drawn:
    lines, everything = {}, None
    for method, cells in _by_method(found).items():
        shares = sorted({cell["share"] for cell in cells})
        means = [
            100 * float(np.mean([cell["accuracy"] for cell in cells if cell["share"] == share])) for share in shares
        ]
        if method == "none":
            everything = means[-1]
        else:
            lines[method] = [100 * share for share in shares], means
    reported = paper.SELECTION.get(task["paper"] or "", {})
    theirs: dict[str, Line] = {
        method: ([100 * share for share in paper.SHARES], [*values]) for method, values in reported.items()
    }
    figure, panels = drawing.stacked(2 if theirs else 1, 3.1)
    _draw_lines(panels[0], lines, "Features kept, %", "Accuracy, %", everything)
    if theirs:
        panels[0].set_title("Accuracy here, %")
        _draw_lines(panels[1], theirs, "Features kept, %", f"Accuracy in the paper, {task['paper']}, %")
    ticks = sorted({x for line in (*lines.values(), *theirs.values()) for x in line[0]})
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    for axes, shown in zip(panels, (lines, theirs), strict=False):
        drawing.label_lines(axes, shown, {method: _short(method) for method in shown})
    reading = "Names are in the order of the last points."
    if everything is not None:
        reading += f" The dotted line is the accuracy with all features, {everything:.2f} %."
    yield "", figure, _described("Accuracy over the share of features kept", lines), reading


def _projection(_: Result, task: Result, found: Result) -> Drawn:
    cells = {method: cells[0] for method, cells in _by_method(found).items()}
    classes = sorted({label for cell in cells.values() for label in cell["labels"]})
    side_by_side = [method for method in cells if METHODS[method].n_models(task["n_classes"]) > 1]
    height = 2.15 * -(-len(cells) // 2) + 0.5
    figure = drawing.new_figure(height)
    for i, (method, cell) in enumerate(cells.items()):
        left, bottom = 0.05 + 0.5 * (i % 2), 1 - (0.5 + 2.15 * (i // 2) + 1.75) / height
        axes = figure.add_axes((left, bottom, 0.43, 1.62 / height))
        scores, labels = np.array(cell["scores"], dtype=float).reshape(-1, 2), np.array(cell["labels"])
        for k, label in enumerate(classes):
            points = scores[labels == label]
            axes.plot(
                *points.T,
                marker=CLASS_MARKERS[k % 10],
                color=CLASSES[k % 10],
                linestyle="",
                markersize=3.2,
                markeredgewidth=0,
                alpha=0.75,
            )
        axes.set_title(_short(method), fontsize=9.5, color=INK)
        # Scores have no unit, and each method has its own scale.
        axes.set_xticks([])
        axes.set_yticks([])
        names = ("first class", "second class") if method in side_by_side else ("first score", "second score")
        axes.set_xlabel(names[0], fontsize=8.5, labelpad=2)
        axes.set_ylabel(names[1], fontsize=8.5, labelpad=2)
        if len(scores) and not scores[:, 1].any():
            axes.text(0.5, 0.9, "has one component", transform=axes.transAxes, ha="center", fontsize=8.5, color=FAINT)
    is_pair = task["kind"] == "verification"
    kinds = ["different", "the same"] if is_pair and len(classes) == 2 else [str(label) for label in classes[:10]]
    _class_legend(figure, kinds, height)
    description = (
        f"The first two scores of {max(len(cell['labels']) for cell in cells.values())} test rows of {len(classes)} "
        f"classes, by {len(cells)} methods: {', '.join(TITLES[method] for method in cells)}."
    )
    reading = "Each point is a test row, and its colour the class. Classes are apart along a score if colours are."
    if side_by_side:
        reading += " Where every class has a model of its own, these are the first scores of the first two classes."
    yield "", figure, description, reading


def _class_legend(figure: Figure, names: Sequence[str], height: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker=CLASS_MARKERS[k], color=CLASSES[k], linestyle="", markersize=5) for k in range(len(names))
    ]
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(0.02, 1 - 0.02 / height),
        ncols=len(names),
        frameon=False,
        handletextpad=0.1,
        columnspacing=0.9,
        fontsize=9,
    )


_DRAWN: dict[str, Callable[[Result, Result, Result], Drawn]] = {
    "accuracy": _accuracy,
    "components": _components,
    "higher-order": _higher_order,
    "time": _time,
    "streaming": _streaming,
    "selection": _selection,
    "projection": _projection,
}


def _by_method(found: Result) -> dict[str, list[Result]]:
    """Return the cells of each method that there are figures of, in the order that they have."""
    by_method: dict[str, list[Result]] = {}
    for cell in found["cells"]:
        by_method.setdefault(cell["method"], []).append(cell)
    return {method: by_method[method] for method in STYLES if method in by_method}


def _column_means(cells: Sequence[Result]) -> list[float]:
    """Return means of accuracies over cells in per cent, entry by entry, NaN where there is none."""
    columns = zip(*(cell["accuracy"] for cell in cells), strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    return [100 * float(np.mean(values)) if values else np.nan for values in known]


def _without_gaps(x: Sequence[float], y: Sequence[float]) -> Line:
    """Return the points that there are."""
    both = [(a, b) for a, b in zip(x, y, strict=True) if not np.isnan(b)]
    return [a for a, _ in both], [b for _, b in both]


def _lines_figure(
    lines: dict[str, Line], xlabel: str, ticks: Sequence[float] | None = None, markers_every: int = 1
) -> Figure:
    figure, (axes,) = drawing.stacked(1, 3.7)
    drawn = {method: line for method, line in lines.items() if line[0]}
    _draw_lines(axes, drawn, xlabel, "Accuracy, %", markers_every=markers_every)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if ticks is not None:
        axes.set_xticks(ticks)
    axes.set_ylim(bottom=_lowest_shown(drawn, axes.get_ylim()[0]))
    drawing.label_lines(axes, drawn, {method: _short(method) for method in drawn})
    return figure


def _lowest_shown(lines: Mapping[str, Line], lowest: float) -> float:
    """Return where the axis begins: above a few points that are so low that all others would be one line."""
    values = [value for _, y in lines.values() for value in y]
    if not values:
        return lowest
    low, high = float(np.quantile(values, 0.1)), max(values)
    return max(lowest, low - 3 * (high - low)) if high > low else lowest


def _below(figure: Figure, lines: Mapping[str, Line]) -> str:
    """Return which lines begin or dip below the axis, as there may be few such points."""
    bottom = figure.axes[0].get_ylim()[0]
    low = [f"{TITLES[method]} ({min(y):.2f} %)" for method, (_, y) in lines.items() if y and min(y) < bottom]
    return f" Lowest points below the axis: {', '.join(low)}." if low else ""


def _draw_lines(
    axes: Axes, lines: dict[str, Line], xlabel: str, title: str, level: float | None = None, markers_every: int = 1
) -> None:
    for i, (method, (x, y)) in enumerate(lines.items()):
        # Each begins elsewhere, so that markers of lines that are close are not all at the same places.
        axes.plot(x, y, markevery=(i % markers_every, markers_every), **STYLES[method].line)
    if level is not None:
        axes.axhline(level, color=FAINT, linestyle=":", linewidth=1.5)
    axes.set_xlabel(xlabel)
    axes.set_title(title)


def _legend_above(axes: Axes, columns: int) -> None:
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.25, 1.0),
        ncols=columns,
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.0,
        borderaxespad=0.2,
        fontsize=9,
    )


def in_time(seconds: float) -> str:
    """Return a time in a few digits, with its unit.

    Examples
    --------
    >>> from plstream.experiments.figures import in_time
    >>> in_time(2.5e-6), in_time(0.0123), in_time(0.9996), in_time(9000)
    ('2.5 µs', '12.3 ms', '1 s', '2.5 h')
    """
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        value = float(f"{seconds / size:.3g}")
        if value < 1000:
            return f"{value:g} {unit}"
    return f"{seconds / 3600:.2g} h"


def _in_times(axes: Axes, which: str) -> None:
    """Have times with units on a logarithmic axis, at 1, 2 and 5 if it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis = getattr(axes, f"{which}axis")
    low, high = getattr(axes, f"get_{which}lim")()
    decades = np.log10(high / low)
    steps = (1.0, 2.0, 5.0) if decades < 1.3 else (1.0, 3.0) if decades < (2.2 if which == "x" else 3) else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=4 if which == "x" else 6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: in_time(value)))


def _described(what: str, lines: dict[str, Line]) -> str:
    ends = {method: y[-1] for method, (x, y) in lines.items() if x}
    if not ends:
        return f"{what}: there are no points."
    best, least = max(ends, key=lambda method: ends[method]), min(ends, key=lambda method: ends[method])
    return (
        f"{what}, for {len(ends)} methods. Lines end between {ends[least]:.2f} % ({TITLES[least]}) and "
        f"{ends[best]:.2f} % ({TITLES[best]})."
    )


def _short(method: str) -> str:
    """Return a title that fits beside a line."""
    title = TITLES[method].replace(" (one pass)", "").replace("(normalized) ", "").replace("Algorithm 1", "Alg. 1")
    return title.replace("released code", "released")


def _new_name(text: str, used: set[str]) -> str:
    """Return a name of a file, of letters and digits alone, that no other has."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80]
    name, number = plain, 1
    while name in used:
        number += 1
        name = f"{plain}-{number}"
    used.add(name)
    return name
