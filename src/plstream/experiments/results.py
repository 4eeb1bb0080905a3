"""results.json: the source of all tables and figures, rewritten after every cell, so that a run can resume.

::

    {"format": 1, "plstream": version, "seed": 0, "settings": {...}, "environment": {...}, "commands": [...],
     "tasks": {name: {"title", "kind", "paper", "note", "fingerprint", "n_rows", "n_features", "n_classes", "n_splits",
       "experiments": {name: {"settings": {...}, "cells": [{"method", "split", ...}], "skipped": {method: why}}}}}}

The other keys of cells are documented by ``cells`` in the experiment's file in ``paper/``; those of times have "run"
instead of "split", and "growth" beside them. "tuned" is the tuned value of a method, if any. Accuracies are fractions,
None (null) if a method has no such component.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import plstream

from .._core.urls import local_path, redacted
from ..files.container import require_known_format
from ..files.files import replacing
from .inference import Difference, Values, paired_difference
from .settings import Settings
from .task import Task

if TYPE_CHECKING:
    from .paper import Experiment

Cell = dict[str, Any]

FORMAT = 1
FILE = "results.json"
# Seconds between two writes: writing after each of many short cells would take longer than the cells.
_PAUSE = 0.5


class Results:
    """The results in a folder, of one seed and one set of settings; ``force`` discards those of others."""

    def __init__(self, folder: str | os.PathLike[str], seed: int, settings: Settings, *, force: bool = False) -> None:
        self.path = local_path(folder) / FILE
        self.seed, self.settings = seed, settings
        self.data: dict[str, Any] = {
            "format": FORMAT,
            "plstream": plstream.__version__,
            "seed": seed,
            "settings": settings.as_dict(),
            "environment": environment(),
            "commands": [],
            "tasks": {},
        }
        self._written = -_PAUSE
        self._begun: set[str] = set()
        if self.path.exists():
            self._resume(read(self.path), force=force)

    def _resume(self, before: dict[str, Any], *, force: bool) -> None:
        for name in ("seed", "settings"):
            if before.get(name) != self.data[name]:
                if force:
                    return
                raise ValueError(f"{self.path} has results of other {name}: name another folder, or pass --force.")
        self.data["tasks"] = before["tasks"]
        self.data["commands"] = before.get("commands", [])

    def made_by(self, command: str) -> None:
        """Record a command, once, without passwords of URLs."""
        command = redacted(command)
        if command not in self.data["commands"]:
            self.data["commands"].append(command)

    def begin(self, task: Task, *, force: bool = False) -> None:
        """Add a task; raise ValueError if a different one has the same name."""
        known = {
            "title": task.title,
            "kind": task.kind,
            "paper": task.paper,
            "note": task.note,
            "fingerprint": task.fingerprint(),
            "n_rows": len(task.X),
            "n_features": task.n_features,
            "n_classes": task.n_classes,
            "n_splits": len(task.splits),
        }
        if task.name in self._begun:
            raise ValueError(f"There are two data sets named {task.name}: rename one of the files.")
        self._begun.add(task.name)
        if force and self.data["tasks"].get(task.name, known).get("fingerprint") != known["fingerprint"]:
            del self.data["tasks"][task.name]
        found = self.data["tasks"].setdefault(task.name, {**known, "experiments": {}})
        if found.get("fingerprint") != known["fingerprint"]:
            raise ValueError(
                f"{self.path} has results of other data named {task.name}: name another folder, or pass --force."
            )

    def experiment(self, task: str, name: str) -> dict[str, Any]:
        """Return the entry of an experiment on a task."""
        place: dict[str, Any] = self.data["tasks"][task]["experiments"].setdefault(
            name, {"settings": {}, "cells": [], "skipped": {}}
        )
        return place

    @property
    def is_empty(self) -> bool:
        """Whether there are no cells."""
        return not any(place["cells"] for task in self.data["tasks"].values() for place in task["experiments"].values())

    def done(self, task: str, name: str) -> set[tuple[str, int]]:
        """Return the methods and splits (0 for times) that have cells."""
        return {(cell["method"], cell.get("split", 0)) for cell in self.experiment(task, name)["cells"]}

    def add(self, task: str, name: str, cells: list[Cell], order: tuple[str, ...]) -> None:
        """Add cells, sorted by method, split, and run or share."""
        place = self.experiment(task, name)
        place["cells"].extend(cells)
        place["cells"].sort(
            key=lambda cell: (order.index(cell["method"]), cell.get("split", 0), cell.get("run", cell.get("share", 0)))
        )

    def save(self, *, now: bool = True) -> None:
        """Write the file; unless ``now``, at most twice per second."""
        if not now and time.monotonic() - self._written < _PAUSE:
            return
        with replacing(self.path) as file:
            file.write((json.dumps(self.data, indent=1, allow_nan=False) + "\n").encode())
        self._written = time.monotonic()


@dataclass(frozen=True, eq=False)
class TaskResults:
    """The results of an experiment on one task."""

    experiment: Experiment
    name: str
    # The entries of the task and of the experiment in results.json.
    task: dict[str, Any]
    found: dict[str, Any]
    settings: dict[str, Any]

    @property
    def cells(self) -> list[Cell]:
        """All cells."""
        cells: list[Cell] = self.found["cells"]
        return cells

    def difference(self, mine: Values, others: Values) -> Difference:
        """Return the difference of values by split, corrected for training rows shared by splits."""
        n_splits = self.task.get("n_splits", 1)
        return paired_difference(mine, others, overlap=1 / (n_splits - 1) if n_splits > 1 else 0.0)

    def by_method(self) -> dict[str, list[Cell]]:
        """Return the cells by method."""
        groups: dict[str, list[Cell]] = {}
        for cell in self.cells:
            groups.setdefault(cell["method"], []).append(cell)
        return groups

    def values(self, key: str = "accuracy", *, by: str = "split", scale: float = 1.0) -> dict[str, dict[int, float]]:
        """Return the values of a key of the cells, by method and split (or run), times a scale."""
        return {method: {cell[by]: scale * cell[key] for cell in cells} for method, cells in self.by_method().items()}


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a file of results; raise ValueError if it is invalid or of another version."""
    try:
        data = json.loads(Path(path).read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(f"{path} is not a file of results: it is not JSON.") from None
    require_known_format(data, FORMAT, str(path))
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("tasks"), dict):
        raise ValueError(f"{path} is not a file of results of format {FORMAT}.")
    return data


def environment() -> dict[str, Any]:
    """Return the versions and the machine that results depend on."""
    import scipy
    import sklearn

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }
