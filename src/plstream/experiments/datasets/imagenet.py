"""ImageNet: the downsampled batches of 32 x 32 pixels, and features of images in a folder for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._types import Array
from ...sources.errors import DataError
from ...sources.numpy_files import members
from ..splits import single_split
from ..task import Task
from . import files
from .features import as_rows, read_array
from .pickles import read_pickle

ADDRESS = "https://image-net.org/"
TINY_ADDRESS = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
_CLASSES = 1000
# Batches for training and for testing: of the downsampled ImageNet, of CIFAR-10 and of CIFAR-100.
_LAYOUTS = (("train_data_batch_", "val_data"), ("data_batch_", "test_batch"), ("train", "test"))
_LABELS = ("labels", "fine_labels")


def load_32(folder: Path, seed: int) -> list[Task]:
    """Return the pixels of the batches, and every feature file that is there."""
    tasks = load_batches(folder, seed, name="imagenet32", title="ImageNet 32x32") if has_batches(folder) else []
    tasks += _features(folder, seed, "imagenet32", "ImageNet 32x32")
    if not tasks:
        raise DataError(
            f"There is no ImageNet 32x32 in {folder}: download Imagenet32_train and Imagenet32_val from {ADDRESS} "
            "(downsampled image data), and put train_data_batch_1 to train_data_batch_10 and val_data there."
        )
    return tasks


def load_224(folder: Path, seed: int) -> list[Task]:
    """Return every feature file of images in a folder for each class."""
    tasks = _features(folder, seed, "imagenet224", "ImageNet 224x224")
    if not tasks:
        raise DataError(
            f"There are no features of ImageNet in {folder}: download ILSVRC 2012 from {ADDRESS}, put images into "
            f"{folder / 'images'}/train and val with a folder for each class (as in train/n01440764), and run "
            f"plstream features {folder / 'images'} --model vgg16 --weights FILE -o {folder / 'vgg16.npy'}"
        )
    return tasks


def load_tiny(folder: Path, seed: int) -> list[Task]:
    """Return every pair of feature files, for training and validation."""
    tasks = files.load(folder, seed, name="tiny-imagenet", title="Tiny ImageNet") if folder.is_dir() else []
    if not tasks:
        raise DataError(
            f"There are no features of Tiny ImageNet in {folder}: download {TINY_ADDRESS}, make features of its images "
            "with plstream features, and put them there as NAME_train.npz and NAME_val.npz with arrays X and y."
        )
    return tasks


def has_batches(folder: Path) -> bool:
    """Whether a folder has batches for training and for testing."""
    return _find_batches(folder) is not None


def load_batches(folder: Path, seed: int, *, name: str = "", title: str = "") -> list[Task]:
    """Return the task of batches of small images, with pixels as features."""
    found = _find_batches(folder)
    assert found is not None
    name = name or folder.resolve().name
    paths = [*found[0], found[1]]
    batches = [_read_batch(path) for path in paths]
    y = files.as_labels(np.concatenate([labels for _, labels in batches]), str(folder))
    task = Task(
        name=f"{name}/pixels",
        title=f"{title or name}, pixels",
        kind="classification",
        X=as_rows([data for data, _ in batches], f"{name}/pixels"),
        y=y,
        splits=single_split(np.arange(len(y)) >= len(y) - len(batches[-1][1]), seed),
        note=(
            f"Pixels as features, not those of a network as in the paper; trained on {len(paths) - 1} batch(es) in "
            f"random order by seed {seed}, tested on {paths[-1].name}."
        ),
    )
    return [_of_paper(task, "ImageNet 32x32") if name == "imagenet32" else task]


def _features(folder: Path, seed: int, name: str, paper: str) -> list[Task]:
    tasks = files.load(folder, seed, name=name, title=paper) if folder.is_dir() else []
    return [_of_paper(task, paper) for task in tasks]


def _of_paper(task: Task, paper: str) -> Task:
    """Return a task with the name of the data set in the paper, if it has all classes."""
    return replace(task, paper=paper) if task.n_classes == _CLASSES else task


def _find_batches(folder: Path) -> tuple[list[Path], Path] | None:
    """Return the batches for training, in order of their numbers, and the one for testing."""
    for train, test in _LAYOUTS:
        for suffix in ("", ".npz"):
            numbers = range(1, 11) if train.endswith("_") else [""]
            batches = [path for number in numbers if (path := folder / f"{train}{number}{suffix}").is_file()]
            if batches and (folder / f"{test}{suffix}").is_file():
                return batches, folder / f"{test}{suffix}"
    return None


def _read_batch(path: Path) -> tuple[Array, Sequence[Any]]:
    """Return rows of pixels and their labels."""
    if path.suffix == ".npz":
        batch: dict[str, Any] = {key: read_array(path, key) for key in members(path) if key in {"data", *_LABELS}}
    else:
        batch = read_pickle(path)
    data, labels = batch.get("data"), next((batch[key] for key in _LABELS if key in batch), None)
    if not isinstance(data, np.ndarray) or data.ndim != 2 or labels is None:
        raise DataError(f"{path} is not a batch of images: it must have data, rows of pixels, and labels.")
    if len(labels) != len(data):
        raise DataError(f"{path} has {len(data):,} images and {len(labels):,} labels.")
    return data, labels
