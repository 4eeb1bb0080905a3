"""Scatter plots of the first two scores of test rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._core.types import Array
from ...plots.palette import CLASS_MARKERS, CLASSES, FAINT, INK
from ..claims import Assessment, Claim, assess
from ..drawing import CaptionedFigure, drawn_cells, new_figure, short_title
from ..methods import METHODS, PAPER_VARIANTS, TITLES, why_not
from ..plan import CostModel
from ..protocol import Trial
from ..results import Cell, TaskResults
from ..tables import Table, table_of
from . import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REPORTED = (
    "In the paper's figure classes are apart along the first component only for IPLS and SGDPLS, and along both for "
    "CIPLS."
)
_PER_CLASS = "With one model per class, these are the first scores of the first two classes."
# Below this share of variance between classes, colours can hardly be distinguished.
_APART = 0.1


def cells(trial: Trial) -> list[Cell]:
    """Project test rows on two components, or on the first ones of two classes with one model per class."""
    projection = trial.fit(trial.max_components(2))
    random = np.random.default_rng([trial.seed, trial.split])
    rows = random.permutation(trial.test)[: trial.settings.points]
    S = trial.scores(projection, rows)
    pair = S[:, :2, 0] if projection.n_models > 1 else S[:, 0, :2]
    scores = np.zeros((len(rows), 2))
    # A single component leaves zeros in the second column.
    scores[:, : pair.shape[1]] = pair
    # More digits would not be visible.
    return [{"scores": [[float(f"{t:.6g}") for t in row] for row in scores], "labels": trial.task.y[rows].tolist()}]


def tables(found: TaskResults) -> list[Table]:
    """Return the separation of classes along each score."""

    def row(_: str, cells: list[Cell]) -> list[str]:
        return [str(len(cells[0]["labels"])), *(f"{share:.3f}" for share in _shares_between(cells[0]))]

    notes = ["Shares of the variance of scores that are between classes, for test rows.", REPORTED]
    if found.task["n_classes"] > 2:
        notes.append(_PER_CLASS)
    return [table_of(found, ["Points", "First score", "Second score"], row, notes)]


def _shares_between(cell: Cell) -> list[float]:
    """Return the share of the variance between classes, for each score."""
    scores, labels = np.array(cell["scores"]), np.array(cell["labels"])
    shares = []
    for values in scores.T:
        total = float(((values - values.mean()) ** 2).sum())
        groups = [values[labels == label] for label in np.unique(labels)]
        between = float(sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups))
        shares.append(between / total if total > 0 else 0.0)
    return shares


def figures(found: TaskResults) -> list[CaptionedFigure]:
    """Draw the scores of test rows, one panel per method."""
    task, cells = found.task, {method: cells[0] for method, cells in drawn_cells(found).items()}
    classes = sorted({label for cell in cells.values() for label in cell["labels"]})
    per_class = {method for method in cells if METHODS[method].n_models(task["n_classes"]) > 1}
    height = 2.15 * -(-len(cells) // 2) + 0.5
    figure = new_figure(height)
    for i, (method, cell) in enumerate(cells.items()):
        left, bottom = 0.05 + 0.5 * (i % 2), 1 - (0.5 + 2.15 * (i // 2) + 1.75) / height
        axes = figure.add_axes((left, bottom, 0.43, 1.62 / height))
        _draw_scores(axes, cell, classes)
        axes.set_title(short_title(method), fontsize=9.5, color=INK)
        kind = "class" if method in per_class else "score"
        axes.set_xlabel(f"first {kind}", fontsize=8.5, labelpad=2)
        axes.set_ylabel(f"second {kind}", fontsize=8.5, labelpad=2)
    is_pair = task["kind"] == "verification" and len(classes) == 2
    _class_legend(figure, ["different", "the same"] if is_pair else [str(label) for label in classes[:10]], height)
    description = (
        f"The first two scores of {max(len(cell['labels']) for cell in cells.values())} test rows of {len(classes)} "
        f"classes, by {len(cells)} methods: {', '.join(TITLES[method] for method in cells)}."
    )
    reading = "Each point is a test row, and its colour the class. Classes are apart along a score if colours are."
    if per_class:
        reading += f" {_PER_CLASS}"
    return [CaptionedFigure(figure, description, reading)]


def _draw_scores(axes: Axes, cell: Cell, classes: list[int]) -> None:
    scores, labels = np.array(cell["scores"], dtype=float).reshape(-1, 2), np.array(cell["labels"])
    for k, label in enumerate(classes):
        axes.plot(
            *scores[labels == label].T,
            marker=CLASS_MARKERS[k % 10],
            color=CLASSES[k % 10],
            linestyle="",
            markersize=3.2,
            markeredgewidth=0,
            alpha=0.75,
        )
    # Scores have no unit, and each method has its own scale.
    axes.set_xticks([])
    axes.set_yticks([])
    if len(scores) and not scores[:, 1].any():
        axes.text(0.5, 0.9, "has one component", transform=axes.transAxes, ha="center", fontsize=8.5, color=FAINT)


def _class_legend(figure: Figure, names: list[str], height: float) -> None:
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


def _classes_are_apart(found: TaskResults) -> Assessment | None:
    cells = {cell["method"]: cell for cell in found.cells}
    # With more classes, the axes of some methods are models of single classes.
    if found.task["n_classes"] != 2 or "ipls" not in cells:
        return None
    shares = {method: _shares_between(cell) for method, cell in cells.items()}
    sentences = {
        m: f"{TITLES[m]}: {100 * first:.0f} % and {100 * second:.0f} %" for m, (first, second) in shares.items()
    }
    # SGDPLS has only one component for two classes, and is not judged.
    only_first = shares["ipls"][1] < _APART <= shares["ipls"][0]
    looks: list[Assessment] = []
    for variant in PAPER_VARIANTS:
        if variant in cells:
            correlation = _correlation(*np.array(cells[variant]["scores"]).T)
            text = f"{sentences[variant]}; the two scores have a correlation of {correlation:.3f}."
            looks.append(("yes" if only_first and min(shares[variant]) >= _APART else "no", text))
    before = "Shares of the variance between classes, for the first and the second score, in one split."
    return assess(looks, before, f"{sentences['ipls']}. SGDPLS has one component for two classes.")


def _correlation(first: Array, second: Array) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return abs(float(first @ second)) / size if size else 0.0


EXPERIMENT = Experiment(
    name="projection",
    title="The first two scores",
    about="Models of two components are trained on one split. The points are the scores of its test rows.",
    methods=("ipls", "sgdpls", "cipls-paper", "cipls-released", "cipls", "incremental-pls", "pls"),
    why_not=why_not,
    one_split=True,
    cells=cells,
    seconds=CostModel.fit,
    tables=tables,
    figures=figures,
    claims=(
        Claim(
            "Classes are apart along both scores of CIPLS, and only along the first of IPLS.",
            REPORTED,
            _classes_are_apart,
        ),
    ),
)
