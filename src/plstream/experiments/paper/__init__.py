"""The experiments of the CIPLS paper, one file each: cells, cost, tables, figures and claims.

A. Jordao, M. Lie, V. H. C. de Melo and W. R. Schwartz, "Covariance-free Partial Least Squares: An Incremental
Dimensionality Reduction Method", IEEE Winter Conference on Applications of Computer Vision, 2021. Reported accuracies
are in per cent, None where the paper has a dash. Its figures are images without numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..claims import Claim
    from ..drawing import CaptionedFigure
    from ..plan import CostModel, Part
    from ..protocol import Trial
    from ..results import Cell, Results, TaskResults
    from ..settings import Settings
    from ..tables import Table
    from ..task import Task

MODULES = {
    "accuracy": "accuracy",
    "components": "components",
    "higher-order": "higher_order",
    "time": "timing",
    "streaming": "streaming",
    "selection": "selection",
    "projection": "projection",
}
"""The module of each experiment, by name, in the order of the paper. Imported on demand, because this is slow."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment, defined in its own file: cells to compute, their cost, and the tables, figures and claims."""

    # Name in files and on the command line; title in tables; and a description in a few sentences.
    name: str
    title: str
    about: str
    # In the order of tables; and why one of them cannot be used on a task, or None.
    methods: tuple[str, ...]
    why_not: Callable[[str, Task], str | None]
    # Estimated time of a cell of a method.
    seconds: Callable[[CostModel, str], float]
    # Tables and figures of the results on one task.
    tables: Callable[[TaskResults], Iterable[Table]]
    figures: Callable[[TaskResults], Iterable[CaptionedFigure]]
    # Cells of a trial, that is, of one method on one split; or cells of all parts, if they depend on each other.
    cells: Callable[[Trial], list[Cell]] | None = None
    run: Callable[[Sequence[Part], Results, Callable[[], str]], None] | None = None
    # The claims of the paper.
    claims: tuple[Claim, ...] = ()
    # Estimated bytes of a cell of a method; by default those of a model and its scores.
    memory: Callable[[CostModel, str], int] | None = None
    # Seconds needed once, regardless of tasks and methods.
    overhead: float = 0.0
    # Description of the classifier of the scores, or of the features, of a task.
    classifier: Callable[[Task, Settings], str] | None = None
    # Whether a single split is used.
    one_split: bool = False
    # A table of the results on all tasks, and a sentence about a task for the top of the page.
    summary: Callable[[Sequence[TaskResults]], Table] | None = None
    headline: Callable[[TaskResults], str] | None = None


@cache
def experiments() -> dict[str, Experiment]:
    """Return the experiments by name, in the order of the paper.

    Examples
    --------
    >>> from plstream.experiments.paper import experiments
    >>> experiments()["time"].title
    'Time to learn one more row'
    """
    return {name: import_module(f"{__name__}.{file}").EXPERIMENT for name, file in MODULES.items()}
