"""``fit_source``: fits that go on where they were interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

import plstream

from .._core.progress import Step, also_listening, listening, track
from .._core.types import Array
from .._core.validation import changed_at_once
from ..data import DataError, Source
from ..estimators._base import PLSBase
from ..estimators.training import Settings
from ..selection import VIPSelector
from ..solvers import Journal, JournalError
from .checkpoints import Checkpoint, CheckpointError, CheckpointFolder
from .modelfile import require_ours

Model = TypeVar("Model")

# What ``set_output`` has set, which may differ from one call to the next.
_OUTPUT = "_sklearn_output_config"


class Stopped(Exception):  # noqa: N818
    """A fit was stopped as asked, after a last checkpoint if it has a folder for such. The model is as it was."""


def fit_source(
    model: Model,
    source: Source,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every_rows: int | None = None,
    every_seconds: float | None = 30.0,
    one_pass: bool = False,
    classes: Any = None,
    on_block: Callable[[Any, Array, Array | None], None] | None = None,
    on_fitted: Callable[[Any], None] | None = None,
    on_stopped: Callable[[Any], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Model:
    """Fit a model to a source, with checkpoints: if the process is killed, the same call goes on where it was.

    The result is that of ``model.fit(source)`` to the last bit, with and without checkpoints, and however often the fit
    was killed. If it fails or is stopped, the model is as it was.

    Parameters
    ----------
    model : estimator
        Any estimator of this library that learns from sources. What it has learnt before is forgotten.
    source : Source
        The rows, see :func:`plstream.open_source`.
    checkpoint : str or path-like, default=None
        A folder for this fit alone, made if there is none. When the fit is complete its checkpoints are removed, and
        the folder stays. By default there are no checkpoints.
    every_rows : int, default=None
        Rows after which the next checkpoint is written, at the end of a block.
    every_seconds : float, default=30.0
        Seconds after which the next one is written, whichever comes first. More if the model is so large that writing
        would take more than a tenth of the time. None for rows alone.
    one_pass : bool, default=False
        Whether IncrementalPLS or IncrementalPLSClassifier with ``solver="auto"`` is to read the data once, as by
        ``partial_fit``.
    classes : array-like of shape (n_classes,), default=None
        All labels that will ever come, for models that learn labels. By default those of the source, or of its first
        block if it can be read only once.
    on_block : callable, default=None
        Called with the model, X and y before a model that reads the data once learns from a block of rows, to test it
        on these. The model is not fitted yet when the first one comes.
    on_fitted : callable, default=None
        Called with the fitted model, a copy of ``model`` that is to replace it, before its checkpoints are removed: to
        save it, so that there is no moment at which all is lost.
    on_stopped : callable, default=None
        Called with the model so far when it is stopped, if it learns in one read.
    stop : callable, default=None
        Asked after each block, and while a pipe is silent, whether to stop: if so, a last checkpoint is written, and
        ``Stopped`` is raised.

    Returns
    -------
    model : estimator
        The model, fitted.

    Raises
    ------
    CheckpointError
        If the checkpoint is one of other data or parameters, or the folder is in use by another process.
    Stopped
        If ``stop`` said so.

    Notes
    -----
    Models that learn in one read are in the checkpoint as :func:`save` writes them, with the number of rows. An exact
    fit of IncrementalPLS reads the data several times: its checkpoint holds what each read has come to, and the sums of
    the read under way. Data of up to 32 MiB is simply read again. What is slow to read is copied once more to a
    temporary file. What can be read only once, a pipe, may come again from its first row, and then rows that were
    learnt are skipped, or else go on with other rows, which are all learnt: the first rows tell which of the two it is.
    Blocks of a pipe end when it is silent for a second, so results are the same to rounding there.

    If a checkpoint cannot be written, as when the disk is full, there is a warning and the fit goes on; the checkpoint
    before is still there. Only if the last one before ``Stopped`` cannot be written, OSError is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream import CIPLS, open_source
    >>> from plstream.files import Stopped, fit_source
    >>> X = np.random.default_rng(0).normal(size=(1000, 40))
    >>> source = open_source(X, target=X[:, 0] - X[:, 1], batch_size=100)
    >>> answers = iter([False, False, True])
    >>> with TemporaryDirectory() as folder:
    ...     try:
    ...         fit_source(CIPLS(), source, checkpoint=folder, stop=lambda: next(answers))
    ...     except Stopped as stopped:
    ...         print(stopped)
    ...     model = fit_source(CIPLS(), source, checkpoint=folder)
    The fit was stopped: the same call goes on from its last checkpoint.
    >>> bool(np.array_equal(model.x_weights_, CIPLS().fit(source).x_weights_))
    True
    """
    if isinstance(model, Pipeline):
        raise TypeError("fit_source takes no pipelines: call fit or partial_fit of the pipeline, without checkpoints.")
    require_ours(model, "fitted")
    if not isinstance(source, Source):
        raise TypeError(f"fit_source takes what plstream.open_source returns, not a {type(source).__name__}.")
    if hasattr(model, "n_epochs") and cast("Any", model)._n_passes(source) > 1:
        raise ValueError("fit_source reads the data once for this model: call its fit, or set n_epochs=1.")
    folder = None if checkpoint is None else CheckpointFolder(checkpoint, every_rows, every_seconds)
    with changed_at_once(model) as (twin,), nullcontext() if folder is None else folder.locked():
        learner = _learner_of(twin)
        if learner is None:
            cast("Any", twin).fit(source)
        else:
            fit = _Fit(learner, source, folder, one_pass=one_pass, classes=classes, on_block=on_block)
            with _stopping(stop, fit, on_stopped):
                fit.run()
        if isinstance(twin, VIPSelector) and learner is not None:
            twin._trained = learner
        if on_fitted is not None:
            on_fitted(twin)
        if folder is not None:
            folder.remove()
    return model


def _learner_of(model: Any) -> Any:
    """Return what learns from the rows: the model, or a new one for a selector, or None if that has a fitted one."""
    model._validate_params()
    if isinstance(model, VIPSelector):
        if model.prefit or isinstance(model.estimator, FrozenEstimator):
            return None
        inner = model._fresh_model()
        require_ours(inner, "fitted to a source")
        inner._validate_params()
        return inner
    if not hasattr(model, "partial_fit"):
        raise TypeError(f"{type(model).__name__} needs all rows in memory: pass them to its fit.")
    return model


class _Fit:
    """A fit that is under way."""

    def __init__(
        self,
        model: Any,
        source: Source,
        folder: CheckpointFolder | None,
        *,
        one_pass: bool,
        classes: Any,
        on_block: Callable[[Any, Array, Array | None], None] | None,
    ) -> None:
        if classes is not None and not (hasattr(model, "target") or is_classifier(model)):
            raise ValueError(f"{type(model).__name__} does not learn labels: pass no classes.")
        self.model = model
        self.source = source
        self.folder = folder
        self.on_block = on_block
        self.targets: dict[str, Any] = {} if classes is None else {"classes": classes}
        in_one_read = not isinstance(model, PLSBase) or one_pass or Settings.of(model).in_one_read
        self.reached = Checkpoint(clone(model), journal=None if in_one_read else Journal())
        """How far it has come."""

    def run(self) -> None:
        """Fit the model, from the last checkpoint on if there is one."""
        if self.folder is not None:
            self.reached = self._resumed(self.folder)
        if self.reached.journal is None:
            self._learn()
        else:
            self._reread(self.reached.journal)

    def _resumed(self, folder: CheckpointFolder) -> Checkpoint:
        """Return the last checkpoint of this fit, or one of its beginning."""
        _require_nothing_else(self.model)
        if folder.every_rows is not None and not self.source.rereadable:
            self.source.limit_rows(folder.every_rows)
        fresh = replace(
            self.reached,
            source=self.source.fingerprint(),
            beginning=self.source.beginning(),
            classes=np.asarray(self.targets["classes"]) if self.targets else None,
            version=plstream.__version__,
        )
        found = folder.resume(fresh, self.source.n_rows)
        if found.beginning == fresh.beginning:
            return found
        # A pipe that does not begin again, but goes on: all that comes is new.
        return replace(found, beginning=fresh.beginning, n_rows_before=found.n_rows)

    def _learn(self) -> None:
        """Learn from one block after another."""
        model, source, reached = self.model, self.source, self.reached
        _forget(model)
        if reached.model is not None:
            learnt = vars(reached.model)
            learnt.pop(_OUTPUT, None)
            vars(model).update(learnt)
        reached.model = model
        if isinstance(model, PLSBase):
            Settings.of(model).require_rows(source.n_rows, source.n_columns)
        row = reached.n_rows - reached.n_rows_before
        n_rows = None if source.n_rows is None else source.n_rows - row
        records = track(source.records(row), "read 1 of 1", n_rows, lambda record: len(record[0]))
        with closing(records):
            for record in records:
                X, y = record[:2]
                if self.on_block is not None:
                    self.on_block(model, X, y)
                with listening(None):
                    model.partial_fit(source.part(record, row), **self.targets)
                row += len(X)
                reached.n_rows += len(X)
                self._write_if_due(len(X))
        if not reached.n_rows:
            raise DataError(f"{source.name} has no rows.")
        if isinstance(model, PLSBase):
            Settings.of(model).require_rows(reached.n_rows, source.n_columns)
        model._solution()

    def _reread(self, journal: Journal) -> None:
        """Read the data several times."""
        journal.tell = self._write_if_due
        try:
            self.model._fit(self.source, journal=journal, **self.targets)
        except JournalError:
            assert self.folder is not None
            raise CheckpointError(
                f"The checkpoint in {str(self.folder.folder)!r} was made by a processor or libraries that round "
                "otherwise: go on with those, or delete the folder to start over."
            ) from None

    def _write_if_due(self, n_rows: int) -> None:
        """Write a checkpoint if it is time, after so many rows more."""
        if self.folder is not None and self.folder.is_due(n_rows):
            self.folder.try_to_write(self.reached)

    def write_last(self) -> None:
        """Write how far it has come, unless that is written already."""
        if self.folder is not None and self.folder.is_behind:
            self.folder.write(self.reached)


def _forget(model: Any) -> None:
    """Let a model be as if it had never been fitted, and keep what is not its own."""
    for name in {*vars(model)} - {*vars(clone(model))}:
        if _is_ours(name):
            delattr(model, name)


def _is_ours(name: str) -> bool:
    return name.startswith("_") or name.endswith("_")


def _require_nothing_else(model: Any) -> None:
    """Raise ValueError if a model has attributes that a checkpoint cannot hold."""
    for name in {*vars(model)} - {*vars(clone(model))}:
        if not _is_ours(name):
            raise ValueError(f"The model has {name!r}, which a checkpoint cannot hold: delete that attribute.")


@contextmanager
def _stopping(stop: Callable[[], bool] | None, fit: _Fit, on_stopped: Callable[[Any], None] | None) -> Iterator[None]:
    """Ask after each block of the work inside whether to stop, and if so write a last checkpoint."""
    if stop is None:
        yield
        return

    def ask(_step: Step) -> None:
        if stop():
            then = "." if fit.folder is None else ": the same call goes on from its last checkpoint."
            raise Stopped(f"The fit was stopped{then}")

    try:
        with also_listening(ask):
            yield
    except Stopped:
        fit.write_last()
        if on_stopped is not None and fit.reached.n_rows:
            on_stopped(fit.reached.model)
        raise
