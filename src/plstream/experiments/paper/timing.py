"""Time to learn one more row, and how it grows with rows, features, components and parameters of methods.

The CPU time of one thread is measured. Methods take turns, because other work on the machine may still slow them down.
The time includes computing the directions, where some methods do most of their work.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.progress import listening, track
from ..._core.threads import single_threaded_blas
from ..._core.types import Array
from ...online.state import ComponentOverflowError
from ...report.html import Verdict
from ..claims import Assessment, Claim, above, compare_with_rivals
from ..drawing import STYLES, CaptionedFigure, DotPlot, Line, drawn_cells, label_lines, stacked
from ..inference import Difference, Values, exponent, interval, robust_difference
from ..methods import METHODS, STREAMING_REDUCERS, TITLES, Projection, paper_name, why_not_streaming
from ..plan import CostModel, Part, clock
from ..results import Cell, Results, TaskResults
from ..settings import Settings
from ..tables import NOTHING, Table, format_number, p_values, table_of
from ..task import Task
from . import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COMPLEXITY = {"ccipca": "O(nLm)", "sgdpls": "O(Tcm)", "ipls": "O(nLm + c^2 m)", "cipls": "O(ncm)"}
"""Table "Comparison of incremental dimensionality reduction methods in terms of time complexity"."""
REPORTED = (
    "In the paper's figure of times SGDPLS is the slowest; CIPLS is not statistically different from CCIPCA, the "
    "fastest, and faster than IPLS and SGDPLS."
)
# One size varies at a time; the others have their default values.
GROWTH = {
    "n": (250, 500, 1000, 2000),
    "m": (512, 1024, 2048, 4096, 8192),
    "c": (2, 4, 8, 16),
    "L": (5, 10, 20, 40),
    "T": (1, 10, 100),
}
_SIZES = {"n": "rows n", "m": "features m", "c": "components c", "L": "PCA components L", "T": "steps T"}
# Sizes that apply to a single method, and its setting.
_OF_ONE_METHOD = {"L": ("ipls", "ipls_directions"), "T": ("sgdpls-steps", "steps")}
_USUAL = {"n": 500, "m": 2048, "c": 4}
_REPEATS = 3
# For methods with fewer components than classes.
_CLASSES = 20
_NOT_GROWN = ("incremental-lda",)


def run(parts: Sequence[Part], results: Results, stop: Callable[[], str]) -> None:
    """Measure the times of all methods of each task in turn, and their growth once for all tasks."""
    name, settings, seed = EXPERIMENT.name, results.settings, results.seed
    places = [results.experiment(part.task.name, name) for part in parts]
    grown = next((place for place in places if place.get("growth")), None)
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part, place in zip(parts, places, strict=True):
            task = part.task.name
            known, wanted = {method for method, _ in results.done(task, name)}, set(part.methods)
            place.setdefault("growth", [])
            if reason := stop():
                place["skipped"].update(dict.fromkeys(wanted - known, f"not run, {reason}"))
                continue
            if wanted - known:
                # Methods take turns, so a new one requires measuring all of them again.
                methods = [method for method in EXPERIMENT.methods if method in known | wanted]
                with listening(None):
                    cells, skipped = update_times(part.task, methods, settings, seed)
                place["skipped"].update(skipped)
                place["cells"] = []
                results.add(task, name, cells, EXPERIMENT.methods)
            if grown is None or grown is place:
                known = {cell["method"] for cell in place["growth"]}
                methods = [method for method in part.methods if method not in {*_NOT_GROWN, *known}]
                place["growth"] += growth(methods, settings, seed)
                grown = place
            results.save(now=False)


def update_times(
    task: Task, methods: Sequence[str], settings: Settings, seed: int
) -> tuple[list[Cell], dict[str, str]]:
    """Return the times to learn one more row, for several rows, and the reasons for methods without times."""
    train, c = task.splits[0][0], settings.time_components
    classes = np.unique(task.y[train])
    rows = np.resize(train, settings.warm_rows + 2 + settings.runs)
    warm, more = np.split(rows, [settings.warm_rows])
    projections, skipped = [], {}
    for name in methods:
        method = METHODS[name]
        most = method.max_components(len(classes), task.n_features, c)
        projection = Projection(method, most, classes, seed, settings)
        try:
            projection.learn(task.X[warm], task.y[warm])
        except ComponentOverflowError as error:
            skipped[name] = f"component {error.component} of {most} is no longer finite after a few rows"
        else:
            projections.append(projection)
    cells: list[Cell] = []
    # The first runs may compile functions, and are not counted.
    for run, row in enumerate(more, start=-2):
        X, y = task.X[row : row + 1], task.y[row : row + 1]
        first = run % max(1, len(projections))
        for projection in projections[first:] + projections[:first]:
            start = clock()
            try:
                projection.learn(X, y)
                learnt = clock()
                projection.directions()
            except ComponentOverflowError as error:
                projections.remove(projection)
                skipped[projection.method.name] = f"component {error.component} is no longer finite after some rows"
                continue
            times = {"seconds": clock() - start, "update": learnt - start}
            if run >= 0:
                cells.append({"method": projection.method.name, "run": run, **times})
    return [cell for cell in cells if cell["method"] not in skipped], skipped


def growth(methods: Sequence[str], settings: Settings, seed: int) -> Iterator[Cell]:
    """Yield the times to learn random rows, for one size after the other."""
    random = np.random.default_rng(seed)
    sizes = [(varied, value) for varied, values in GROWTH.items() for value in values]
    for varied, value in track(sizes, "time, by size", len(sizes), lambda _: 1, "sizes"):
        size = {**_USUAL, varied: value}
        rows, y = random.standard_normal((size["n"], size["m"])), np.arange(size["n"]) % _CLASSES
        only, setting = _OF_ONE_METHOD.get(varied, ("", ""))
        changed: dict[str, Any] = {setting: value} if setting else {}
        of_size = replace(settings, **changed)
        # SGDPLS with T steps is measured only over T.
        for name in [name for name in methods if (name == only if only else name != "sgdpls-steps")]:
            labels = y if METHODS[name].bounded else y % 2
            with suppress(ComponentOverflowError):
                times = [_to_learn(name, rows, labels, size["c"], seed, of_size) for _ in range(_REPEATS)]
                yield {"method": name, "varied": varied, "value": value, "seconds": min(times)}


def _to_learn(name: str, X: Array, y: Array, c: int, seed: int, settings: Settings) -> float:
    projection = Projection(METHODS[name], c, np.unique(y), seed, settings)
    with listening(None):
        start = clock()
        projection.learn(X, y)
        projection.directions()
        return clock() - start


def seconds(costs: CostModel, method: str) -> float:
    """Estimate the time of a cell."""
    row, solve = costs.row_and_solve(method)
    return costs.settings.runs * (row + solve) + costs.settings.warm_rows * row


def tables(found: TaskResults) -> list[Table]:
    """Return times with intervals and tests, and the exponents of their growth."""
    values, settings = found.values("seconds", by="run"), found.settings
    like_cipls, like_ccipca = (p_values(values, other, robust_difference) for other in ("cipls", "ccipca"))

    def row(method: str, cells: list[Cell]) -> list[str]:
        times = [1e6 * cell["seconds"] for cell in cells]
        center, half_width = interval(times)
        return [
            f"{np.median(times):,.1f}",
            f"{center:,.1f} ± {half_width:,.1f}",
            f"{np.median([1e6 * cell['update'] for cell in cells]):,.1f}",
            *like_cipls[method],
            *like_ccipca[method],
        ]

    what = f"To learn one more row of {found.task['n_features']:,} features and have the directions, on one thread"
    how = (
        f"medians, and means with 95 % confidence intervals, of {settings['runs']} rows; p by paired t-tests as in the "
        "paper, and by Wilcoxon's signed-rank test, which outliers hardly change, corrected by Holm"
    )
    components = f"{settings['time_components']} components where there are as many; T = {settings['steps']}"
    header = ["Median, µs", "Mean, µs", "to learn, median", "p (= CIPLS norm.)", "robust", "p (= CCIPCA)", "robust"]
    table = table_of(found, header, row, [f"{what}: {how}; {components}.", REPORTED])
    return [table, _growth_table(found)] if found.found.get("growth") else [table]


def _growth_table(found: TaskResults) -> Table:
    header = ["Method", *_SIZES.values(), "Paper"]
    table = Table("Growth of the time to learn", header, task=found.name)
    lines = {varied: _growth_lines(found, varied) for varied in _SIZES}
    for method in dict.fromkeys(cell["method"] for cell in found.found["growth"]):
        slopes = [exponent(*lines[varied].get(method, ([], []))) for varied in _SIZES]
        complexity = COMPLEXITY.get(paper_name(method.removesuffix("-steps")) or "", NOTHING)
        table.rows.append([TITLES[method], *map(format_number, slopes), complexity])
    table.notes.append(
        "Exponents: 1 is proportional, 0 does not depend on it. L is the number of principal components, T that of "
        "steps."
    )
    return table


def _growth_lines(found: TaskResults, varied: str) -> dict[str, Line]:
    """Return sizes and seconds by method, for one varied size."""
    lines: dict[str, Line] = {}
    for cell in found.found["growth"]:
        if cell["varied"] == varied:
            sizes, times = lines.setdefault(cell["method"], ([], []))
            sizes.append(cell["value"])
            times.append(cell["seconds"])
    return lines


def figures(found: TaskResults) -> list[CaptionedFigure]:
    """Draw times with quartiles, and their growth."""
    times = {method: [cell["seconds"] for cell in cells] for method, cells in drawn_cells(found).items()}
    medians = {method: float(np.median(values)) for method, values in times.items()}
    plot = DotPlot([*medians], "Time to learn one more row")
    plot.axes.set_xscale("log")
    for method, center in medians.items():
        plot.bar(method, *(float(np.quantile(times[method], share)) for share in (0.25, 0.75)))
        plot.mark(method, center)
        plot.value(method, format_time(center))
    _time_axis(plot.axes, "x")
    order = sorted(medians, key=lambda method: medians[method])
    description = (
        f"Time to learn one more row, from {format_time(medians[order[0]])} ({TITLES[order[0]]}) to "
        f"{format_time(medians[order[-1]])} ({TITLES[order[-1]]})."
    )
    reading = (
        f"Medians of {found.settings['runs']} rows, and lines from the lower to the upper quartile, on a logarithmic "
        "axis."
    )
    drawn = CaptionedFigure(plot.figure, description, reading)
    return [drawn, _growth_figure(found)] if found.found.get("growth") else [drawn]


_DRAWN = {"n": "Rows, n", "m": "Features, m", "c": "Components, c"}


def _growth_figure(found: TaskResults) -> CaptionedFigure:
    cells = found.found["growth"]
    by_size = {varied: lines for varied in _DRAWN if (lines := _growth_lines(found, varied))}
    figure, panels = stacked(len(by_size), 2.25)
    for axes, (varied, lines) in zip(panels, by_size.items(), strict=True):
        for method, (x, y) in lines.items():
            axes.plot(x, y, **STYLES[method].line)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        values = sorted({value for x, _ in lines.values() for value in x})
        axes.set_xticks(values, [f"{value:,}" for value in values])
        axes.minorticks_off()
        _time_axis(axes, "y")
        axes.tick_params(axis="y", labelsize=8.5)
        axes.set_xlabel(_DRAWN[varied])
        axes.set_title("Time to learn all rows")
        label_lines(axes, lines, {method: f" {exponent(x, y):.2f}" for method, (x, y) in lines.items() if len(x) > 1})
    n_methods = len({cell["method"] for cell in cells if cell["varied"] in _DRAWN})
    description = (
        f"Time to learn random rows by {n_methods} methods, over the numbers of rows, features and components."
    )
    reading = (
        "Both axes are logarithmic. The number behind a name is the slope: 1 if time is proportional, 0 if it does not "
        "depend on the size."
    )
    return CaptionedFigure(figure, description, reading, "growth")


def format_time(seconds: float) -> str:
    """Format a time with its unit."""
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        value = float(f"{seconds / size:.3g}")
        if value < 1000:
            return f"{value:g} {unit}"
    return f"{seconds / 3600:.2g} h"


def _time_axis(axes: Axes, which: str) -> None:
    """Label a logarithmic axis with times and units."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis = getattr(axes, f"{which}axis")
    low, high = getattr(axes, f"get_{which}lim")()
    axis.set_major_locator(FixedLocator(ticks_between(low, high, 4 if which == "x" else 6)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))


# The first digits of ticks in every decade, from the coarsest grid.
_GRIDS = [
    *map(np.array, ([1], [1, 3], [1, 2, 5], [1, 2, 4, 6, 8], [1, 1.5, 2, 3, 4, 5, 7])),
    *(np.arange(1, 10, step) for step in (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)),
]


def ticks_between(low: float, high: float, most: int) -> list[float]:
    """Return at most this many round numbers for a logarithmic axis, with room for a label at each."""
    powers = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    grids = [np.outer(powers, digits).ravel() for digits in _GRIDS]
    inside = [grid[(grid >= low) & (grid <= high)] for grid in grids]
    # Powers of 100, 1,000, ... from the first on.
    inside += [inside[0][::step] for step in range(2, len(powers))]
    room = math.log(high / low) / (most + 1)
    fitting = [ticks for ticks in inside if len(ticks) <= most and (np.diff(np.log(ticks)) >= room).all()]
    return [float(tick) for tick in max(fitting, key=len)]


def _median(values: Values) -> float:
    return float(np.median([*values.values()]))


def _is_fast(found: TaskResults) -> Assessment | None:
    # With more classes, some methods have one model per class, and others one model.
    if found.task["n_classes"] != 2:
        return None
    values = found.values("seconds", by="run", scale=1e6)

    def judge(difference: Difference, rival: str) -> Verdict:
        """Judge whether times are at most a tenth longer than CCIPCA's, or shorter than those of another rival."""
        if rival == "ccipca":
            limit = 0.1 * _median(values[rival])
            return "yes" if difference.high <= limit else "no" if difference.low > 0 else "open"
        is_longer = above(difference)
        # SGDPLS has fewer components, so being faster does not count.
        return "yes" if is_longer == "no" else "open" if rival == "sgdpls-steps" or is_longer == "open" else "no"

    return compare_with_rivals(
        values,
        # The paper's SGDPLS makes T steps with each row.
        ("ccipca", "ipls", "sgdpls-steps"),
        judge,
        difference=robust_difference,
        center=_median,
        words=("slower than", "faster than"),
        verb="takes",
        form="{:,.0f} µs",
        after="SGDPLS has one component, and the others four." if "sgdpls-steps" in values else "",
    )


EXPERIMENT = Experiment(
    name="time",
    title="Time to learn one more row",
    about="Trained models are updated by one more row, and their directions are computed. Methods take turns on one "
    "thread, so that other work on the machine affects all of them.",
    methods=(*STREAMING_REDUCERS, "sgdpls-steps"),
    why_not=why_not_streaming,
    one_split=True,
    run=run,
    seconds=seconds,
    # The growth of times.
    overhead=8.0,
    tables=tables,
    figures=figures,
    claims=(Claim("CIPLS learns a row as fast as CCIPCA, and faster than IPLS and SGDPLS.", REPORTED, _is_fast),),
)
