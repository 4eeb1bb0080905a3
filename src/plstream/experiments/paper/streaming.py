"""Accuracy on a stream: rows arrive in blocks, and the model is trained and tested after each block."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..claims import Assessment, Claim, compare_with_rivals, rivals_among
from ..classifiers import quick_classifier
from ..drawing import CaptionedFigure, drawn_cells, line_chart, line_of
from ..inference import column_means
from ..methods import METHODS, STREAMING_REDUCERS, Projection, why_not_streaming
from ..plan import CostModel
from ..protocol import Trial, choose
from ..results import Cell, TaskResults
from ..tables import NOTHING, Table, components_and_scores, components_header, format_number, table_of
from . import Experiment

REPORTED = (
    "In the paper's figures CIPLS is ahead of all other incremental methods from the sixth block on for LFW, and for "
    "all blocks of YTF."
)
_FIRST_BLOCKS = 5


def cells(trial: Trial) -> list[Cell]:
    """Train block by block, using each row once, and test a classifier of all rows so far after each block."""
    choice = choose(trial)
    trial, n_components = choice.trial, choice.n_components
    task, train, test, settings = trial.task, trial.train, trial.test, trial.settings
    projection = Projection(METHODS[trial.method], n_components, np.unique(task.y[train]), trial.seed, settings)
    ends = np.linspace(0, len(train), settings.blocks + 1).astype(int)
    found: list[float | None] = []
    for start, end in pairwise(ends):
        for block in task.blocks(train[start:end]):
            projection.learn(task.X[block], task.y[block])
        seen = train[:end]
        if len(np.unique(task.y[seen])) < 2:
            found.append(None)
            continue
        S, S_test = trial.scores(projection, seen), trial.scores(projection, test)
        found.append(trial.accuracy(seen, S, test, S_test, quick=True))
    return [{"n_components": n_components, "n_seen": ends[1:].tolist(), "accuracy": found, **choice.tuned}]


def seconds(costs: CostModel, method: str) -> float:
    """Estimate the time of a cell."""
    # All rows so far are projected again for each classifier, which takes about as long as training it.
    blocks = 2 * costs.settings.blocks * costs.classify(method, quick=True, n=costs.n / 2)
    return costs.choose(method) + costs.fit(method) + blocks


def tables(found: TaskResults) -> list[Table]:
    """Return accuracies after some of the blocks, and the mean over all blocks."""
    blocks = len(found.cells[0]["accuracy"]) if found.cells else 0
    shown = sorted({0, blocks // 4, blocks // 2, 3 * blocks // 4, blocks - 1} if blocks else set())

    def row(method: str, cells: list[Cell]) -> list[str]:
        means = column_means(cells)
        known = [value for cell in cells for value in cell["accuracy"] if value is not None]
        mean = format_number(100 * float(np.mean(known))) if known else NOTHING
        return [*components_and_scores(found, method, cells), *(format_number(means[block]) for block in shown), mean]

    header = [*components_header(found), *(f"{block + 1} of {blocks}" for block in shown), "Mean"]
    notes = ["Accuracies in % after some of the blocks, and the mean over all blocks.", REPORTED]
    return [table_of(found, header, row, notes)]


def figures(found: TaskResults) -> list[CaptionedFigure]:
    """Draw accuracies over the number of training rows so far."""
    lines = {}
    for method, cells in drawn_cells(found).items():
        seen = np.mean([cell["n_seen"] for cell in cells], axis=0)
        lines[method] = line_of(seen.tolist(), column_means(cells))
    what = "Accuracy after each block of a stream"
    reading = "Each point is the accuracy on test rows after one more block. Names are in the order of the last points."
    return [line_chart(lines, what, reading, xlabel="Rows learnt", markers_every=4)]


def _is_ahead(found: TaskResults) -> Assessment | None:
    values: dict[str, dict[int, float]] = {}
    for cell in found.cells:
        later = [value for value in cell["accuracy"][_FIRST_BLOCKS:] if value is not None]
        if later:
            values.setdefault(cell["method"], {})[cell["split"]] = 100 * float(np.mean(later))
    before = "On average over blocks from the sixth on, "
    return compare_with_rivals(values, rivals_among(values), difference=found.difference, before=before)


EXPERIMENT = Experiment(
    name="streaming",
    title="Accuracy on a stream",
    about="Training rows arrive in blocks, and no method sees a row twice. After each block, a classifier is trained "
    "on the scores of all rows so far, and tested.",
    methods=STREAMING_REDUCERS,
    why_not=why_not_streaming,
    cells=cells,
    seconds=seconds,
    classifier=quick_classifier,
    tables=tables,
    figures=figures,
    claims=(Claim("On a stream CIPLS is ahead of the others from the sixth block on.", REPORTED, _is_ahead),),
)
