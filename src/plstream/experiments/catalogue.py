"""The experiments by name: what a cell of each is, which methods it compares, and which cannot take part and why."""

from __future__ import annotations

from dataclasses import dataclass

from .accuracy import accuracy_cell, components_cell
from .classifiers import FINAL, QUICK, stops_early
from .higher_order import higher_order_cell
from .methods import METHODS
from .projection import projection_cell
from .protocol import CellFunction
from .selection import SELECTORS, selection_cell
from .settings import Settings
from .streaming import streaming_cell
from .task import Task

TIME = "time"


@dataclass(frozen=True)
class Experiment:
    """An experiment: a cell for each of its methods and each split.

    Attributes
    ----------
    name, title : str
        In files and on the command line; in tables.
    cell : callable or None
        Computes the cells of a method and a split. None for times, which are measured all in turn.
    methods : tuple of str
        The methods, in the order of tables.
    one_split : bool
        Whether one split is all that is wanted.
    classifiers : dict
        The classifier, for two classes and for more.
    """

    name: str
    title: str
    cell: CellFunction | None
    methods: tuple[str, ...]
    one_split: bool = False
    classifiers: dict[bool, str] | None = None

    def why_not(self, method: str, task: Task) -> str | None:
        """Return why a method cannot take part, or None if it can."""
        two = task.n_classes == 2
        if self.name == "selection":
            return "it is for two classes" if method == "inffs-s" and not two else None
        if method == "pls-svd" and two:
            return "with two classes its only component is the first one of PLS"
        if self.name == "higher-order" and two and METHODS[method].bounded:
            return "with two classes it has one component, and nothing is left without it"
        if self.name in {"streaming", TIME} and not METHODS[method].incremental:
            return "it learns all rows at once"
        return None

    def classifier(self, task: Task, settings: Settings) -> str | None:
        """Return what classifies the scores, or the features."""
        if self.classifiers is None:
            return None
        name = self.classifiers[task.n_classes == 2]
        if self.name == "selection" and stops_early(settings, task.n_features):
            return f"{name}, stopped at a tolerance of {settings.early_tolerance:g}"
        return name


_ALL = tuple(name for name in METHODS if name != "sgdpls-steps")
_INCREMENTAL = tuple(name for name in _ALL if name != "pls-svd")
_SHOWN = ("ipls", "sgdpls", "cipls-paper", "cipls-released", "cipls", "incremental-pls", "pls")
_SVM = {True: FINAL[True], False: "linear SVM, one class against the rest"}

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("accuracy", "Accuracy", accuracy_cell, _ALL, classifiers=FINAL),
        Experiment("components", "Accuracy by the number of components", components_cell, _ALL, classifiers=QUICK),
        Experiment("higher-order", "Higher-order components", higher_order_cell, _ALL, classifiers=FINAL),
        Experiment(TIME, "Time to learn one more row", None, (*_INCREMENTAL, "sgdpls-steps"), one_split=True),
        Experiment("streaming", "Accuracy on a stream", streaming_cell, _INCREMENTAL, classifiers=QUICK),
        Experiment("selection", "Feature selection", selection_cell, tuple(SELECTORS), classifiers=_SVM),
        Experiment("projection", "The first two scores", projection_cell, _SHOWN, one_split=True),
    )
}
