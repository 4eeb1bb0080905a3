"""The paper's protocol: components and other tuned values are chosen on a tenth of the training rows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._core.errors import counted
from .._core.types import Array, FloatArray
from ..data import open_source
from ..online.state import ComponentOverflowError
from .classifiers import accuracy, accuracy_in_blocks, classifier_kind
from .methods import METHODS, Projection
from .scratch import IN_MEMORY, Scratch, blocks_of
from .settings import Settings
from .task import Rows, Task

# Bytes of a block of scores.
_BLOCK_BYTES = 64 << 20
# A task is large if the scores of one model per class take more bytes than this.
_LARGE = 2 << 30


def is_large(task: Task, settings: Settings) -> bool:
    """Return whether the scores of one model per class are too large for memory.

    All methods are then trained and tested in blocks.
    """
    models = task.n_classes if task.n_classes > 2 else 1
    return 8 * len(task.X) * models * settings.components > _LARGE


@dataclass(frozen=True)
class Trial:
    """One method on one split: the input of a cell."""

    task: Task
    method: str
    split: int
    settings: Settings
    seed: int
    scratch: Scratch

    @property
    def is_large(self) -> bool:
        """Whether scores are too large for memory."""
        return is_large(self.task, self.settings)

    @property
    def train(self) -> Rows:
        """Training rows, in the order of the stream."""
        return self.task.splits[self.split][0]

    @property
    def test(self) -> Rows:
        """Test rows."""
        return self.task.splits[self.split][1]

    def max_components(self, wanted: int | None = None) -> int:
        """Return the largest number of components of the method, at most ``wanted``, by default the setting."""
        n_classes = len(np.unique(self.task.y[self.train]))
        wanted = self.settings.components if wanted is None else wanted
        return METHODS[self.method].max_components(n_classes, self.task.n_features, wanted)

    def fit(self, n_components: int, rows: Rows | None = None) -> Projection:
        """Return the method trained on rows in order, by default all training rows.

        On overflow, it has fewer components, and ``limited`` gives the reason.
        """
        rows = self.train if rows is None else rows
        classes, limited = np.unique(self.task.y[rows]), ""
        while True:
            projection = Projection(
                METHODS[self.method], n_components, classes, self.seed, self.settings, is_large=self.is_large
            )
            projection.limited = limited
            try:
                self._learn(projection, rows)
            except ComponentOverflowError as error:
                if error.component < 2:
                    raise
                n_components = error.component - 1
                most = counted(n_components, "component")
                limited = f"at most {most}, because number {error.component} is no longer finite"
            else:
                return projection

    def _learn(self, projection: Projection, rows: Rows) -> None:
        """Train a projection, at once or in blocks, resuming from the last checkpoint."""
        method, task, scratch = projection.method, self.task, self.scratch
        if not (method.incremental or self.is_large):
            projection.learn(task.X[rows], task.y[rows])
            return
        name = f"fit-{projection.n_components}-{self.name_of(rows)}"
        found = scratch.load_model(name)
        projection.model = projection.model if found is None else found
        if method.incremental or method.passes:
            # Rows of all passes together.
            n_seen = 0 if found is None else found.n_samples_seen_
            for number in range(n_seen // len(rows), getattr(self.settings, method.passes) if method.passes else 1):
                for block in task.blocks(rows[max(0, n_seen - number * len(rows)) :]):
                    projection.learn_more(task.X[block], task.y[block])
                    if scratch.is_due:
                        scratch.save_model(name, projection.model)
        elif found is None:
            projection.model.fit(open_source(RowsInBlocks(task, rows)))
        if self.is_large:
            scratch.save_model(name, projection.model)

    def scores(self, projection: Projection, rows: Rows) -> FloatArray:
        """Return the scores of some rows."""
        name = f"all-{projection.n_components}-{getattr(projection.model, 'n_samples_seen_', 0)}"
        return self.score_rows(name, rows, lambda part: projection.scores(self.task.X[rows[part]]))

    def score_rows(self, name: str, rows: Rows, function: Callable[[slice], Array]) -> Array:
        """Apply a function to blocks of rows; the result is in a file if it is too large for memory.

        The function gets the positions of a block among the rows. The name distinguishes the files of a cell.
        """
        one = function(slice(0, 1))
        step = self.task.rows_per_block
        if self.is_large:
            step = max(1, min(step, _BLOCK_BYTES // one.nbytes))

        def blocks(start: int = 0) -> Iterator[Array]:
            for first in range(start, len(rows), step):
                yield function(slice(first, min(first + step, len(rows))))

        if not self.is_large or one.nbytes * len(rows) <= IN_MEMORY:
            return np.concatenate([*blocks()])
        return self.scratch.stored(f"{name}-{self.name_of(rows)}", (len(rows), *one.shape[1:]), blocks)

    def blocks(self, S: Array) -> Iterator[Array]:
        """Yield scores all at once, or in blocks if they are too large for memory."""
        if not self.is_large:
            yield S
            return
        for _, block in blocks_of(S, self.task.n_classes):
            yield block.reshape(-1, *S.shape[1:])

    def name_of(self, rows: Rows) -> str:
        """Return a name that identifies some rows and the settings of this trial."""
        return f"{zlib.crc32(repr(self.settings).encode(), zlib.crc32(rows.tobytes())):08x}"

    def accuracy(self, rows: Rows, S: Array, test_rows: Rows, S_test: Array, *, quick: bool = False) -> float:
        """Return the accuracy on test rows of a classifier trained on the scores of some rows."""
        y, settings, seed = self.task.y, self.settings, self.seed
        kind = classifier_kind(len(np.unique(y[rows])), settings, quick=quick)
        if not self.is_large:
            return accuracy(S, y[rows], S_test, y[test_rows], settings=settings, seed=seed, kind=kind)
        return accuracy_in_blocks(
            S, y[rows], S_test, y[test_rows], settings=settings, seed=seed, scratch=self.scratch, kind=kind
        )


class RowsInBlocks:
    """Rows of a task with their labels, in blocks, for methods that read them several times.

    They are in file order, which is faster to read than the order of the stream.
    """

    def __init__(self, task: Task, rows: Rows) -> None:
        self._task, self._rows = task, np.sort(rows)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        for block in self._task.blocks(self._rows):
            yield self._task.X[block], self._task.y[block]


def hold_out(y: Any, rows: Rows, share: float, seed: int, split: int) -> tuple[Rows, Rows]:
    """Split rows into remaining and held-out rows, a share of every class, both in order.

    The result depends on the seed and the split, and is the same for all methods. A class with a single row keeps it.
    """
    random = np.random.default_rng([seed, split])
    labels, is_held = y[rows], np.zeros(len(rows), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        n_held = min(len(members) - 1, max(1, round(share * len(members))))
        is_held[random.choice(members, n_held, replace=False)] = True
    return rows[~is_held], rows[is_held]


class Choice(NamedTuple):
    """The number of components and other values with the highest accuracy on validation rows."""

    # Its settings contain only the chosen value.
    trial: Trial
    n_components: int
    # Accuracies for 1, 2, ... components, None if there is no such model.
    validation: list[float | None]
    # The tuned value for the cell, if any.
    tuned: dict[str, float]


def choose(trial: Trial, least: int = 1) -> Choice:
    """Choose the number of components on validation rows, and then the other tuned value.

    Ties go to the smallest number and to the first value. The other value is tuned with that number of components,
    because all combinations would take several times as long.
    """
    rows = trial.train[: trial.settings.choice_rows]
    left, held = hold_out(trial.task.y, rows, trial.settings.validation, trial.seed, trial.split)
    choice, best, why = None, -1.0, None
    for value, settings in METHODS[trial.method].alternatives(trial.settings).items():
        one, tuned = replace(trial, settings=settings), {} if value is None else {"tuned": value}
        try:
            if choice is None:
                validation = accuracies(one, left, held, least)
                known = [value for value in validation if value is not None]
                if not known:
                    raise ValueError(f"it has fewer than {least} components")
                best = max(known)
                choice = Choice(one, validation.index(best) + 1, validation, tuned)
            else:
                c = choice.n_components
                reached = accuracies(one, left, held, c, c)[c - 1]
                if reached is not None and reached > best:
                    best, choice = reached, choice._replace(trial=one, tuned=tuned)
        except ComponentOverflowError as error:
            # For example if the step is too large; another one may work.
            why = error
    if choice is None:
        assert why is not None
        raise why
    return choice


def accuracies(trial: Trial, rows: Rows, others: Rows, least: int = 1, most: int | None = None) -> list[float | None]:
    """Return the accuracies on other rows for 1, 2, ... components, None if there is no such model.

    Nested methods are trained once.
    """
    found: list[float | None] = [None] * trial.settings.components
    most, nested = trial.max_components(most), METHODS[trial.method].nested
    name = f"choice-{trial.name_of(rows)}"
    known = trial.scratch.load_arrays(name)
    reached = [] if known is None else known["accuracies"].tolist()
    found[least - 1 : least - 1 + len(reached)] = reached
    projection = None
    for c in range(least + len(reached), most + 1):
        if projection is None or not nested:
            projection = trial.fit(most if nested else c, rows)
            S, S_others = trial.scores(projection, rows), trial.scores(projection, others)
        if nested and c > S.shape[2]:
            break
        found[c - 1] = trial.accuracy(rows, S[:, :, :c], others, S_others[:, :, :c], quick=True)
        if trial.is_large:
            trial.scratch.save_arrays(name, accuracies=np.array(found[least - 1 : c]))
            if not nested:
                trial.scratch.remove("*.scores")
    trial.scratch.remove("*.scores")
    return found


def limit(trial: Trial, found: list[float | None]) -> dict[str, str]:
    """Return a note for a cell if the method has fewer components than requested."""
    reached = sum(value is not None for value in found)
    if reached == trial.max_components():
        return {}
    return {"limited": f"at most {counted(reached, 'component')}: with more, numbers are no longer finite"}
