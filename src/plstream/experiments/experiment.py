"""What an experiment is: cells to compute, their cost, and the tables, figures and claims that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .methods import METHODS
from .settings import Settings
from .task import Task

if TYPE_CHECKING:
    from .claims import Claim
    from .drawing import Drawn
    from .plan import CostModel, Part
    from .protocol import Trial
    from .results import Cell, Results, TaskResults
    from .runner import Deadline
    from .tables import Table

REDUCERS = tuple(name for name in METHODS if name != "sgdpls-steps")
"""Methods that reduce the dimension, without the one that is only timed."""
STREAMING_REDUCERS = tuple(name for name in REDUCERS if name != "pls-svd")


def why_not(method: str, task: Task) -> str | None:
    """Return why a method cannot take part in any experiment on a task, or None if it can."""
    if method == "pls-svd" and task.n_classes == 2:
        return "with two classes its only component is the first one of PLS"
    return None


def why_not_streaming(method: str, task: Task) -> str | None:
    """Return why a method cannot take part where rows come one after another, or None if it can."""
    return why_not(method, task) or (None if METHODS[method].incremental else "it learns all rows at once")


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment, each in a file of its own in ``paper/``.

    Attributes
    ----------
    name, title, about : str
        In files and on the command line; in tables; and what is done, in a few sentences.
    methods : tuple of str
        The methods, in the order of tables.
    seconds : callable
        Estimates how long a cell of a method takes.
    tables, figures : callable
        Make tables and figures of the results on one task.
    cells : callable, default=None
        Computes the cells of a trial: of one method on one split. None if ``run`` does.
    run : callable, default=None
        Computes the cells of all parts where they are not independent of each other, one process alone.
    claims : tuple of Claim, default=()
        What the paper claims.
    memory : callable, default=None
        Estimates how many bytes a cell of a method takes. By default those of a projection.
    overhead : float, default=0
        Seconds that it takes once, whatever the tasks and methods.
    classifier : callable, default=None
        Describes what classifies the scores, or the features, of a task.
    why_not : callable
        Returns why a method cannot take part on a task, or None.
    one_split : bool, default=False
        Whether a single split is used.
    summary : callable, default=None
        Makes a table of the results on all tasks.
    headline : callable, default=None
        Returns a sentence about the results on a task for the beginning of the page.
    """

    name: str
    title: str
    about: str
    methods: tuple[str, ...]
    seconds: Callable[[CostModel, str], float]
    tables: Callable[[TaskResults], Iterable[Table]]
    figures: Callable[[TaskResults], Iterable[Drawn]]
    cells: Callable[[Trial], list[Cell]] | None = None
    run: Callable[[Sequence[Part], Results, Deadline], None] | None = None
    claims: tuple[Claim, ...] = ()
    memory: Callable[[CostModel, str], int] | None = None
    overhead: float = 0.0
    classifier: Callable[[Task, Settings], str] | None = None
    why_not: Callable[[str, Task], str | None] = why_not
    one_split: bool = False
    summary: Callable[[Sequence[TaskResults]], Table] | None = None
    headline: Callable[[TaskResults], str] | None = None
