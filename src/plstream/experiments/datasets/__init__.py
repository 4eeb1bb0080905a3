"""Data sets by name, each with one or more tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..._core.errors import DataError
from ..._core.urls import shown
from ...data.files import exists
from ..task import Task
from . import digits, files, imagenet, lfw, ytf

_Loader = Callable[[Path, int], list[Task]]

# Data sets that need no files, and those in a folder of the data home.
_WITHOUT_FILES = {"digits": digits.load, "lfw-pixels": lfw.load_pixels}
_IN_FOLDERS: dict[str, tuple[str, _Loader]] = {
    "lfw": ("lfw", lfw.load),
    "lfw-view1": ("lfw", lfw.load_view_1),
    "ytf": ("ytf", ytf.load),
    "imagenet32": ("imagenet32", imagenet.load_32),
    "imagenet224": ("imagenet224", imagenet.load_224),
    "tiny-imagenet": ("tiny_imagenet", imagenet.load_tiny),
}
NAMES = (*_WITHOUT_FILES, *_IN_FOLDERS)


def data_home() -> Path:
    """Return the folder of all data sets: PLSTREAM_DATA, or plstream_data in the home folder."""
    return Path(os.environ.get("PLSTREAM_DATA") or Path.home() / "plstream_data")


def load_tasks(data: str, *, folds: int | None = None, seed: int = 0) -> list[Task]:
    """Return the tasks of a data set.

    Parameters
    ----------
    data : str
        ``"digits"``, ``"lfw"``, ``"lfw-pixels"``, ``"lfw-view1"``, ``"ytf"``, ``"imagenet32"``, ``"imagenet224"`` or
        ``"tiny-imagenet"``, in the folder given by the environment variable PLSTREAM_DATA; otherwise a folder or a
        feature file.
    folds : int, default=None
        Keep only the first splits. By default all.
    seed : int, default=0
        For folds and pairs that are not part of a data set, and for the order of training rows.

    Returns
    -------
    tasks : list of Task
        At least one.

    Raises
    ------
    DataError
        If the data set is missing or invalid. For missing data sets, the message says where to download them.

    Examples
    --------
    >>> from plstream.experiments.datasets import load_tasks
    >>> for task in load_tasks("digits", folds=3):
    ...     print(task.name, task.X.shape, len(task.splits))
    digits-pairs (4000, 64) 3
    digits (1797, 64) 3
    """
    if folds is not None and folds < 1:
        raise ValueError(f"folds={folds} must be at least 1.")
    tasks = _load(data, seed)
    return tasks if folds is None else [replace(task, splits=task.splits[:folds]) for task in tasks]


def _load(data: str, seed: int) -> list[Task]:
    if data in _WITHOUT_FILES:
        return _WITHOUT_FILES[data](seed)
    if data in _IN_FOLDERS:
        folder, load = _IN_FOLDERS[data]
        return load(data_home() / folder, seed)
    path = Path(data)
    if not exists(path):
        raise DataError(
            f"There is no file or folder {shown(data)!r}, and no data set of that name: there are {', '.join(NAMES)}."
        )
    tasks = _loader(path)(path, seed)
    if not tasks:
        raise DataError(
            f"There are no feature files (.npz, .npy) in {path}: extract features of images with plstream features "
            f"IMAGES --weights FILE -o {path / 'vgg16.npy'}, or put there the files of one of {', '.join(_IN_FOLDERS)}."
        )
    return tasks


def _loader(path: Path) -> _Loader:
    """Return the loader for a file or folder, by its content."""
    if (path / lfw.PAIRS).exists():
        return lfw.load
    if any((path / name).exists() for name in ytf.LISTS):
        return ytf.load
    return imagenet.load_batches if imagenet.find_batches(path) else files.load
