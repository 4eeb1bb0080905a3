"""Checkpoints: the progress of a fit, in its own folder, from which the fit can be resumed.

Each is one file in the format of model files, written atomically. The last two are kept: if the newest cannot be read,
the previous one is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from .._core.remote import AnyPath, RemotePath, path_of
from .._core.schema import Count, Object, OrNone, Text, Value, stored
from .._core.warnings import warn_user
from ..solvers import Journal
from .container import LaterFormatError, ModelFileError
from .document import encode
from .files import locked_folder
from .modelfile import MODEL, document_of, read_object, write_object
from .plain import to_json

PATTERN = "checkpoint-*.plstream"
"""File names of checkpoints."""
_KEPT = 2
# Prefix of the names of checkpoints while they are written.
_UNFINISHED = ".checkpoint-"
# Writing takes at most about this share of the time.
_LARGEST_SHARE = 0.1


class CheckpointError(ValueError):
    """A checkpoint that a fit cannot resume from, or a folder that is in use."""


@stored()
@dataclass
class Checkpoint:
    """The progress of a fit."""

    begun: Annotated[Any, MODEL]
    """The unfitted model, with the parameters at the start of the fit."""
    source: Annotated[str, Text()] = ""
    """Fingerprint of the source."""
    beginning: Annotated[str | None, OrNone(Text())] = None
    """Fingerprint of the first rows of a source that can be read only once."""
    n_rows: Annotated[int, Count()] = 0
    """Number of rows learnt, if the model learns in one pass."""
    n_rows_before: Annotated[int, Count()] = 0
    """Number of these rows that came from an earlier source, which the current one continues."""
    classes: Annotated[Any, Value()] = None
    """All labels that will occur."""
    version: Annotated[str, Text()] = ""
    """Version of the library."""
    model: Annotated[Any, OrNone(MODEL)] = None
    """The model after these rows."""
    journal: Annotated[Journal | None, OrNone(Object(Journal))] = None
    """Results of the reads so far, if the fit reads the data several times."""

    def require_same(self, other: Checkpoint, folder: AnyPath) -> None:
        """Raise CheckpointError if this differs from another checkpoint, naming the difference."""
        changed = [*_changes(self.begun, other.begun)]
        if self.source != other.source:
            changed.append("the data, the columns used, or the number of rows per block")
        if self.version != other.version:
            changed.append(f"the version of plstream ({other.version}, now {self.version})")
        if to_json(self.classes) != to_json(other.classes):
            changed.append("the classes")
        if not changed and (self.journal is None) != (other.journal is None):
            changed.append("whether the data is read once or several times")
        if changed:
            raise CheckpointError(
                f"The checkpoint in {str(folder)!r} belongs to another fit, which differs in {'; '.join(changed)}: "
                "choose another folder, or delete this one to start over."
            )

    def require_model(self) -> None:
        """Raise ModelFileError unless the model belongs to the fit and has learnt the stated number of rows.

        Files with correct hashes may still be forged.
        """
        n_seen = 0
        if self.model is not None:
            both = self.model, self.begun
            is_same = type(self.model) is type(self.begun) and all(
                isinstance(getattr(each, name), np.random.RandomState)
                for name in _changed_parameters(*both)
                for each in both
            )
            if not is_same:
                raise ModelFileError("The model is not the one with which the fit began.")
            n_seen = self.model.n_samples_seen_ if self.model.__sklearn_is_fitted__() else 0
        # Rows of weight zero, and rows without a response, do not count in the model.
        if n_seen > self.n_rows or self.n_rows_before > self.n_rows:
            raise ModelFileError("The model has learnt a different number of rows.")

    def is_within(self, n_rows: int, *, all_count: bool) -> bool:
        """Return whether this can be a checkpoint of a fit to a source with ``n_rows`` rows.

        ``all_count`` says whether they all count: none has a weight of zero or is without a response.
        """
        known = None if self.journal is None else self.journal.n_first
        if self.journal is None or known is None:
            return self.n_rows - self.n_rows_before <= n_rows
        is_complete = known == n_rows if all_count else known <= n_rows
        return self.journal.n_rows <= n_rows and (not self.journal.n_reads or is_complete)


_CHECKPOINT = Object(Checkpoint)


def _changed_parameters(now: Any, before: Any) -> list[str]:
    """Return the parameters that differ between two models of a class."""
    # Compared as encoded in a file: numbers and states of random generators must be bit-identical.
    mine, theirs = (encode(MODEL, model, "model", {})["parameters"] for model in (now, before))
    return [name for name, value in mine.items() if value != theirs[name]]


def _changes(now: Any, before: Any) -> Iterator[str]:
    """Yield the differences between the classes and parameters of two unfitted models."""
    if type(now) is not type(before):
        yield f"the method ({type(before).__name__}, now {type(now).__name__})"
        return
    for name in _changed_parameters(now, before):
        was, is_now = (repr(getattr(model, name)) for model in (before, now))
        yield f"the state of {name}" if "RandomState" in is_now else f"{name} ({was}, now {is_now})"


class CheckpointFolder:
    """A folder with the checkpoints of one fit, in use by this process alone, created if it does not exist.

    They are written after ``every_rows`` rows or ``every_seconds`` seconds, whichever comes first; if writing is slow,
    after more seconds.
    """

    def __init__(self, folder: str | os.PathLike[str], every_rows: int | None, every_seconds: float | None) -> None:
        if every_rows is not None and (type(every_rows) is not int or every_rows < 1):
            raise ValueError(f"every_rows={every_rows!r} must be an integer of at least 1, or None.")
        if every_seconds is not None and not (isinstance(every_seconds, int | float) and every_seconds >= 0):
            raise ValueError(f"every_seconds={every_seconds!r} must be zero, a positive number, or None.")
        self.folder = path_of(folder)
        self.every_rows = every_rows
        self.every_seconds = every_seconds
        self._n_rows = 0
        self._written_at = time.monotonic()
        self._seconds_to_write = 0.0
        self._failed = False

    def resume(self, fresh: Checkpoint, n_rows: int | None = None, *, all_count: bool = True) -> Checkpoint:
        """Return the newest readable checkpoint, or a fresh one if there is none.

        Raises ValueError at once if a file cannot hold the model, and CheckpointError if the checkpoint belongs to
        another fit. ``n_rows`` is the number of rows of the source, if known; for ``all_count`` see
        :meth:`Checkpoint.is_within`.
        """
        document_of("checkpoint", _CHECKPOINT, fresh)
        found = self.latest()
        if found is None:
            return fresh
        fresh.require_same(found, self.folder)
        if n_rows is not None and not found.is_within(n_rows, all_count=all_count):
            raise self._damaged()
        return found

    def latest(self) -> Checkpoint | None:
        """Return the newest readable checkpoint, or None if there is none."""
        paths = self._paths()
        for path in reversed(paths):
            try:
                found: Checkpoint = read_object(path, "checkpoint", _CHECKPOINT)
                found.require_model()
            except LaterFormatError as error:
                raise CheckpointError(str(error)) from None
            except (ModelFileError, OSError):
                continue
            return found
        if paths:
            raise self._damaged()
        return None

    def _damaged(self) -> CheckpointError:
        return CheckpointError(
            f"All checkpoints in {str(self.folder)!r} are damaged: choose another folder, or delete this one to start "
            "over."
        )

    def is_due(self, n_rows: int) -> bool:
        """Return whether a checkpoint is due, after more rows."""
        self._n_rows += n_rows
        if self.every_rows is not None and self._n_rows >= self.every_rows:
            return True
        if self.every_seconds is None:
            return False
        pause = max(self.every_seconds, self._seconds_to_write / _LARGEST_SHARE)
        return time.monotonic() - self._written_at >= pause

    @property
    def is_behind(self) -> bool:
        """Whether rows were learnt since the last checkpoint."""
        return self._n_rows > 0 or self._failed

    def try_to_write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint. If that fails, warn and continue the fit; the previous checkpoint is kept."""
        try:
            self.write(checkpoint)
        except (OSError, MemoryError, ValueError) as error:
            # ValueError if the model has too few rows for its components to be saved.
            self._rest()
            if not self._failed:
                reason = (str(error) or "there is not enough memory").rstrip(".")
                warn_user(f"No checkpoint could be written; the fit continues without it: {reason}.")
            self._failed = True

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and remove all but the last two."""
        started = time.monotonic()
        paths = self._paths()
        number = _number(paths[-1]) + 1 if paths else 1
        path = self.folder / f"checkpoint-{number:08}.plstream"
        write_object(path, "checkpoint", _CHECKPOINT, checkpoint, overwrite=True, prefix=_UNFINISHED)
        for old in paths[: 1 - _KEPT]:
            old.unlink(missing_ok=True)
        self._rest()
        self._seconds_to_write = self._written_at - started
        self._failed = False

    def remove(self) -> None:
        """Remove all checkpoints."""
        for path in self._paths():
            path.unlink(missing_ok=True)

    def _rest(self) -> None:
        self._n_rows, self._written_at = 0, time.monotonic()

    def _paths(self) -> list[Any]:
        """Return the checkpoints, the newest last."""
        return sorted((path for path in self.folder.glob(PATTERN) if _number(path) >= 0), key=_number)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create and lock the folder, and remove what a killed fit has left there.

        An object store has no locks: the caller must ensure that no other process writes there.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self.folder, RemotePath):
            yield
            return
        in_use = CheckpointError(
            f"{str(self.folder)!r} is in use by another fit: wait until it has ended, or choose another folder."
        )
        with locked_folder(self.folder, in_use):
            for unfinished in self.folder.glob(f"{_UNFINISHED}*.tmp"):
                unfinished.unlink(missing_ok=True)
            yield


def _number(path: AnyPath) -> int:
    """Return the number in the name of a checkpoint, or -1."""
    digits = path.name.removeprefix("checkpoint-").removesuffix(".plstream")
    return int(digits) if digits.isascii() and digits.isdecimal() else -1
