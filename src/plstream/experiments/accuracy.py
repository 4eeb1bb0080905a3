"""Accuracy of classifiers of scores: for the number of components that validation picks, and for every number."""

from __future__ import annotations

from .methods import METHODS, fitted, scores_of
from .protocol import Cell, Setting, accuracies, choose_components


def accuracy_cell(setting: Setting) -> list[Cell]:
    """Choose the number of components, learn all training rows, and test once."""
    chosen, validation = choose_components(setting)
    task, train, test = setting.task, setting.train, setting.test
    projection = fitted(METHODS[setting.method], task, train, chosen, setting.seed, setting.settings)
    S, S_test = scores_of(projection, task, train), scores_of(projection, task, test)
    cell: Cell = {
        "n_components": projection.n_components,
        "validation": validation,
        "accuracy": setting.accuracy(train, S, test, S_test),
    }
    return [cell | limit(setting, validation)]


def limit(setting: Setting, found: list[float | None]) -> Cell:
    """Return a note for a cell if the method could not have all the components that were asked for."""
    reached = sum(value is not None for value in found)
    if reached == setting.most_components:
        return {}
    return {"limited": f"at most {reached} component(s): with more, numbers are no longer finite"}


def components_cell(setting: Setting) -> list[Cell]:
    """Test every number of components."""
    found = accuracies(setting, setting.train, setting.test)
    return [{"accuracy": found} | limit(setting, found)]
