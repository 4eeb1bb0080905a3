"""Accuracy for every number of components."""

from __future__ import annotations

from ..classifiers import quick_classifier
from ..drawing import CaptionedFigure, drawn_cells, line_chart, line_of
from ..inference import column_means
from ..methods import METHODS, REDUCERS, why_not
from ..plan import CostModel
from ..protocol import Trial, accuracies, limit
from ..results import Cell, TaskResults
from ..tables import Table, format_number, table_of
from . import Experiment


def cells(trial: Trial) -> list[Cell]:
    """Test every number of components."""
    found = accuracies(trial, trial.train, trial.test)
    return [{"accuracy": found} | limit(trial, found)]


def tables(found: TaskResults) -> list[Table]:
    """Return accuracies, one column per number of components, and the number of scores per component."""
    several = found.task["n_classes"] > 2

    def row(method: str, cells: list[Cell]) -> list[str]:
        return [*[str(_scores_per_component(found, method))] * several, *map(format_number, column_means(cells))]

    header = [*["Scores per component"] * several, *(f"c = {c}" for c in _numbers(found))]
    return [table_of(found, header, row, ["Accuracies in %."])]


def figures(found: TaskResults) -> list[CaptionedFigure]:
    """Draw accuracies over the number of components, or of scores if there are more than two classes."""
    numbers, lines = _numbers(found), {}
    for method, cells in drawn_cells(found).items():
        each = _scores_per_component(found, method)
        lines[method] = line_of([each * c for c in numbers], column_means(cells))
    reading = "Names are in the order of the last point of each line. Lines end where a method has no more components."
    if found.task["n_classes"] == 2:
        return [
            line_chart(lines, "Accuracy over the number of components", reading, xlabel="Components", ticks=numbers)
        ]
    reading += (
        f" Methods with a model for each class have {found.task['n_classes']} scores per component, others one: "
        "compare points one above the other."
    )
    most = max((x[-1] for x, _ in lines.values() if x), default=1)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000) if tick <= most]
    what = "Accuracy over the number of scores"
    return [line_chart(lines, what, reading, xlabel="Scores", ticks=ticks, logarithmic=True)]


def _scores_per_component(found: TaskResults, method: str) -> int:
    return METHODS[method].n_models(found.task["n_classes"])


def _numbers(found: TaskResults) -> range:
    return range(1, 1 + len(found.cells[0]["accuracy"]) if found.cells else 1)


EXPERIMENT = Experiment(
    name="components",
    title="Accuracy by the number of components",
    about="The same for every number of components. With more than two classes, some methods have one model per class, "
    "and therefore one score per class and component: compare them at equal numbers of scores.",
    methods=REDUCERS,
    why_not=why_not,
    cells=cells,
    seconds=CostModel.choose,
    classifier=quick_classifier,
    tables=tables,
    figures=figures,
)
