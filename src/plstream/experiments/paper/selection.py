"""Feature selection: a linear SVM of the features ranked best by a method."""

from __future__ import annotations

import hashlib
import time

import numpy as np

from ...selection.base import number_to_keep
from ...selection.graph import rank_graph_bytes, rank_graph_multiplications
from ..claims import Assessment, Claim, compare_with_rivals, mean, no_less
from ..classifiers import feature_classifier, linear_svm, standardised
from ..drawing import CaptionedFigure, Line, describe_lines, draw_lines, drawn_cells, label_lines, stacked
from ..methods import SELECTORS
from ..plan import SVM_BYTES_PER_NUMBER, CostModel
from ..protocol import Trial
from ..results import Cell, TaskResults
from ..tables import Table, format_number, mean_with_interval, table_of
from ..task import Task
from . import Experiment

SHARES = (0.1, 0.15, 0.2, 0.5)
REPORTED: dict[str, dict[str, tuple[float, ...]]] = {
    "LFW": {
        "inffs": (91.92, 91.58, 92.03, 92.23),
        "ilfs": (92.03, 91.67, 92.25, 92.23),
        "inffs-u": (92.08, 91.70, 92.30, 92.15),
        "inffs-s": (91.80, 91.62, 91.62, 92.33),
        "pls-vip": (92.05, 91.67, 92.13, 92.38),
        "cipls-vip": (91.63, 91.55, 91.80, 92.18),
    },
    "YTF": {
        "inffs": (86.64, 86.68, 87.14, 87.30),
        "ilfs": (86.60, 86.94, 86.84, 87.54),
        "inffs-u": (86.36, 86.60, 87.14, 87.16),
        "inffs-s": (86.12, 86.50, 86.80, 87.22),
        "pls-vip": (86.70, 86.82, 87.18, 87.68),
        "cipls-vip": (86.48, 86.92, 87.02, 87.40),
    },
}
"""Table "Comparison of feature selection methods using different percentages of kept features", by SHARES."""

# The paper's CIPLS is not the normalized one, and its ilFS is that of the 2017 article.
_PAPER_NAMES = {"cipls-paper-vip": "cipls-vip", "ilfs-a": "ilfs", "cipls-vip": None, "ilfs": None}

# Methods with a graph of features by ranks.
_BY_RANKS = ("inffs", "inffs-u")
# Bytes of blocks of features.
_BLOCKS = 32 << 20


def cells(trial: Trial) -> list[Cell]:
    """Rank the features on the training rows, and test an SVM of the best shares of them, or of all."""
    task, settings, start = trial.task, trial.settings, time.perf_counter()
    y, y_test = task.y[trial.train], task.y[trial.test]
    raw, raw_test = task.X[trial.train], task.X[trial.test]
    ranks = np.asarray(SELECTORS[trial.method].ranking(raw, y, settings.vip_components))
    X, X_test = standardised(raw, raw_test)
    digest = hashlib.sha256(np.ascontiguousarray(ranks, dtype=np.int64).tobytes()).hexdigest()[:16]
    to_rank, cells = time.perf_counter() - start, []
    for share in (1.0,) if trial.method == "none" else settings.shares:
        start = time.perf_counter()
        kept = ranks <= number_to_keep(share, task.n_features)
        predicted = linear_svm(settings, task.n_features).fit(X[:, kept], y).predict(X_test[:, kept])
        cell: Cell = {
            "share": share,
            "n_kept": int(np.count_nonzero(kept)),
            "accuracy": float(np.mean(predicted == y_test)),
            "ranking": digest,
            "seconds": to_rank + time.perf_counter() - start,
        }
        cells.append(cell)
    return cells


def why_not(method: str, task: Task) -> str | None:
    """Return why a method cannot be used on a task, or None if it can."""
    return "it is for two classes" if method in {"inffs-s", "ilfs-a"} and task.n_classes != 2 else None


def seconds(costs: CostModel, method: str) -> float:
    """Estimate the time of a cell."""
    n, m, k = costs.n, costs.task.n_features, costs.task.n_classes
    if method == "none":
        return costs.classify_features()
    if method == "random":
        rank = 0.0
    elif method.startswith("ilfs"):
        rank = 100.0 * n * m
    elif method in _BY_RANKS:
        rank = rank_graph_multiplications(n, m)
    else:
        rank = 20.0 * n * m * (1 if k == 2 else k)
    return rank / costs.speed + sum(map(costs.classify_features, costs.settings.shares))


def memory(costs: CostModel, method: str) -> int:
    """Estimate the memory of a cell: rows, standardised rows, and a graph of features or an SVM with its copies."""
    n, m = costs.n, costs.task.n_features
    largest = 1.0 if method == "none" else max(costs.settings.shares)
    svm = int(largest * n * m) * (costs.task.X.dtype.itemsize + 8 + SVM_BYTES_PER_NUMBER)
    return 2 * costs.bytes_of_rows + max(svm, rank_graph_bytes(n, m) if method in _BY_RANKS else 0) + _BLOCKS


def tables(found: TaskResults) -> list[Table]:
    """Return accuracies, one column per share of features, next to the paper's."""
    shares = found.settings["shares"]
    reported = REPORTED.get(found.task["paper"] or "", {})

    def row(_: str, cells: list[Cell]) -> list[str]:
        # All features are shown in every column.
        by_share = [[cell["accuracy"] for cell in cells if cell["share"] in {share, 1.0}] for share in shares]
        return [*map(mean_with_interval, by_share)]

    def paper(method: str) -> list[str]:
        theirs = reported.get(_PAPER_NAMES.get(method, method) or "", (None,) * len(SHARES))
        return [*map(format_number, theirs)] if reported else []

    header = [f"{100 * share:g} %" for share in shares]
    header += [f"Paper, {100 * share:g} %" for share in SHARES] if reported else []
    notes = ["Accuracies in % with this share of the features, ranked on the training rows, and with all of them."]
    return [table_of(found, header, row, notes, paper)]


def figures(found: TaskResults) -> list[CaptionedFigure]:
    """Draw accuracies over the share of features, and the paper's in a panel below."""
    lines: dict[str, Line] = {}
    everything = None
    for method, cells in drawn_cells(found).items():
        shares = sorted({cell["share"] for cell in cells})
        means = [
            100 * float(np.mean([cell["accuracy"] for cell in cells if cell["share"] == share])) for share in shares
        ]
        if method == "none":
            everything = means[-1]
        else:
            lines[method] = [100 * share for share in shares], means
    data_set = found.task["paper"]
    # As in the table, under the variants that the paper may have run.
    here = {name: variant for variant, name in _PAPER_NAMES.items()}
    theirs: dict[str, Line] = {
        here.get(method, method): ([100 * share for share in SHARES], [*values])
        for method, values in REPORTED.get(data_set or "", {}).items()
    }
    figure, panels = stacked(2 if theirs else 1, 3.1)
    draw_lines(panels[0], lines, "Features kept, %", "Accuracy here, %" if theirs else "Accuracy, %", everything)
    if theirs:
        draw_lines(panels[1], theirs, "Features kept, %", f"Accuracy in the paper, {data_set}, %")
    ticks = sorted({x for line in (*lines.values(), *theirs.values()) for x in line[0]})
    for axes, shown in zip(panels, (lines, theirs), strict=False):
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        label_lines(axes, shown)
    reading = "Names are in the order of the last points."
    if everything is not None:
        reading += f" The dotted line is the accuracy with all features, {everything:.2f} %."
    return [CaptionedFigure(figure, describe_lines("Accuracy over the share of features kept", lines), reading)]


def _selects_as_well(found: TaskResults) -> Assessment | None:
    values = {
        method: {
            split: 100 * float(np.mean([cell["accuracy"] for cell in cells if cell["split"] == split]))
            for split in dict.fromkeys(cell["split"] for cell in cells)
        }
        for method, cells in found.by_method().items()
    }
    rivals = ["inffs", "ilfs-a", "inffs-u", "inffs-s", "pls-vip"]
    random = [f"A random ranking has {mean(values['random']):.2f} %."] if "random" in values else []
    return compare_with_rivals(
        values,
        rivals,
        lambda difference, _: no_less(difference),
        difference=found.difference,
        variants=("cipls-paper-vip",),
        own="cipls-vip",
        before="On average over shares ",
        after=" ".join(random),
    )


EXPERIMENT = Experiment(
    name="selection",
    title="Feature selection",
    about="Each method ranks the features on the training rows. A linear SVM is then trained on the best features, "
    "without dimensionality reduction.",
    methods=tuple(SELECTORS),
    why_not=why_not,
    cells=cells,
    seconds=seconds,
    memory=memory,
    classifier=feature_classifier,
    tables=tables,
    figures=figures,
    claims=(
        Claim(
            "VIP of CIPLS selects features as well as methods made for it.",
            "In the paper CIPLS + VIP is, on LFW and on average over shares, 0.05 to 0.26 points below the others.",
            _selects_as_well,
        ),
    ),
)
