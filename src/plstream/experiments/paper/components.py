"""Accuracy for every number of components."""

from __future__ import annotations

from ..classifiers import quick_classifier
from ..drawing import Picture, drawn_cells, line_chart, line_of
from ..experiment import REDUCERS, Experiment
from ..inference import column_means
from ..plan import CostModel
from ..protocol import Trial, accuracies, limit
from ..results import Cell, TaskResults
from ..tables import Table, format_number, table_of


def cells(trial: Trial) -> list[Cell]:
    """Test every number of components."""
    found = accuracies(trial, trial.train, trial.test)
    return [{"accuracy": found} | limit(trial, found)]


def tables(found: TaskResults) -> list[Table]:
    """Return accuracies, one column per number of components."""
    header = [f"c = {c}" for c in _numbers(found)]
    return [table_of(found, header, lambda _, cells: [*map(format_number, column_means(cells))], ["Accuracies in %."])]


def figures(found: TaskResults) -> list[Picture]:
    """Draw accuracies over the number of components."""
    numbers = _numbers(found)
    lines = {method: line_of(numbers, column_means(cells)) for method, cells in drawn_cells(found).items()}
    reading = "Names are in the order of the last point of each line. Lines end where a method has no more components."
    what = "Accuracy over the number of components"
    return [line_chart(lines, what, reading, xlabel="Components", ticks=numbers)]


def _numbers(found: TaskResults) -> range:
    return range(1, 1 + len(found.cells[0]["accuracy"]) if found.cells else 1)


EXPERIMENT = Experiment(
    name="components",
    title="Accuracy by the number of components",
    about="The same with every number of components, each tested. A method that needs few of them is more compact.",
    methods=REDUCERS,
    cells=cells,
    seconds=CostModel.choose,
    classifier=quick_classifier,
    tables=tables,
    figures=figures,
)
