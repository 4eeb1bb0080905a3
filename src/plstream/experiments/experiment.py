"""The definition of an experiment: cells to compute, their cost, and the resulting tables, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .methods import METHODS, RELEASED_RIVALS
from .settings import Settings
from .task import Task

if TYPE_CHECKING:
    from .claims import Claim
    from .drawing import CaptionedFigure
    from .plan import CostModel, Part
    from .protocol import Trial
    from .results import Cell, Results, TaskResults
    from .runner import Deadline
    from .tables import Table

# All methods except the one that is only timed.
ALL_REDUCERS = tuple(name for name in METHODS if name != "sgdpls-steps")
REDUCERS = tuple(name for name in ALL_REDUCERS if name not in RELEASED_RIVALS)
STREAMING_REDUCERS = tuple(name for name in REDUCERS if name != "pls-svd")


def why_not(method: str, task: Task) -> str | None:
    """Return why a method cannot be used on a task, or None if it can."""
    if method == "pls-svd" and task.n_classes == 2:
        return "with two classes its only component is the first one of PLS"
    return None


def why_not_streaming(method: str, task: Task) -> str | None:
    """Return why a method cannot be used on a stream, or None if it can."""
    return why_not(method, task) or (None if METHODS[method].incremental else "it learns all rows at once")


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment, defined in its own file in ``paper/``."""

    # Name in files and on the command line; title in tables; and a description in a few sentences.
    name: str
    title: str
    about: str
    # In the order of tables.
    methods: tuple[str, ...]
    # Estimated time of a cell of a method.
    seconds: Callable[[CostModel, str], float]
    # Tables and figures of the results on one task.
    tables: Callable[[TaskResults], Iterable[Table]]
    figures: Callable[[TaskResults], Iterable[CaptionedFigure]]
    # Cells of a trial, that is, of one method on one split; or cells of all parts, if they depend on each other.
    cells: Callable[[Trial], list[Cell]] | None = None
    run: Callable[[Sequence[Part], Results, Deadline], None] | None = None
    # The claims of the paper.
    claims: tuple[Claim, ...] = ()
    # Estimated bytes of a cell of a method; by default those of a model and its scores.
    memory: Callable[[CostModel, str], int] | None = None
    # Seconds needed once, regardless of tasks and methods.
    overhead: float = 0.0
    # Description of the classifier of the scores, or of the features, of a task.
    classifier: Callable[[Task, Settings], str] | None = None
    # Why a method cannot be used on a task, or None.
    why_not: Callable[[str, Task], str | None] = why_not
    # Whether a single split is used.
    one_split: bool = False
    # A table of the results on all tasks, and a sentence about a task for the top of the page.
    summary: Callable[[Sequence[TaskResults]], Table] | None = None
    headline: Callable[[TaskResults], str] | None = None
