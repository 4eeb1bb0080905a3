"""ImageNet: the downsampled batches of 32 x 32 pixels, and features of images in a folder for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.errors import DataError
from ..._core.progress import track
from ..._core.types import Array
from ...data.numpy_files import members
from ..task import Task, single_split
from . import files
from .features import as_rows, read_array
from .pickles import read_pickle

ADDRESS = "https://image-net.org/"
TINY_ADDRESS = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
# Of ILSVRC 2012: those for training and those for validation.
_CLASSES, _IMAGES = 1000, 1_281_167 + 50_000
# Batches for training and for testing: of the downsampled ImageNet, of CIFAR-10 and of CIFAR-100.
_LAYOUTS = (("train_data_batch_", "val_data"), ("data_batch_", "test_batch"), ("train", "test"))
_LABELS = ("labels", "fine_labels")


def load_32(folder: Path, seed: int) -> list[Task]:
    """Return the pixels of the batches, and every feature file that is there."""
    batches = find_batches(folder)
    tasks = _of_batches(batches, seed, "imagenet32", "ImageNet 32x32") if batches else []
    tasks += _of_features(folder, seed, "imagenet32", "ImageNet 32x32", without=batches)
    tasks = [_of_paper(task, "ImageNet 32x32") for task in tasks]
    if not tasks:
        raise DataError(
            f"There is no ImageNet 32x32 in {folder}: download Imagenet32_train and Imagenet32_val from {ADDRESS} "
            "(downsampled image data), and put train_data_batch_1 to train_data_batch_10 and val_data there."
        )
    return tasks


def load_224(folder: Path, seed: int) -> list[Task]:
    """Return every feature file of images in a folder for each class."""
    tasks = _of_features(folder, seed, "imagenet224", "ImageNet 224x224")
    tasks = [_of_paper(task, "ImageNet 224x224") for task in tasks]
    if not tasks:
        raise DataError(
            f"There are no features of ImageNet in {folder}: download ILSVRC 2012 from {ADDRESS}, put images into "
            f"{folder / 'images'}/train and val with a folder for each class (as in train/n01440764), and run "
            f"plstream features {folder / 'images'} --model vgg16 --weights FILE -o {folder / 'vgg16.npy'}"
        )
    return tasks


def load_tiny(folder: Path, seed: int) -> list[Task]:
    """Return every pair of feature files, for training and validation."""
    tasks = _of_features(folder, seed, "tiny-imagenet", "Tiny ImageNet")
    if not tasks:
        raise DataError(
            f"There are no features of Tiny ImageNet in {folder}: download {TINY_ADDRESS}, make features of its images "
            "with plstream features, and put them there as NAME_train.npz and NAME_val.npz with arrays X and y."
        )
    return tasks


def load_batches(folder: Path, seed: int) -> list[Task]:
    """Return the task of batches of small images, with pixels as features."""
    name = folder.resolve().name
    return _of_batches(find_batches(folder), seed, name, name)


def _of_batches(paths: list[Path], seed: int, name: str, title: str) -> list[Task]:
    batches = [_read_batch(path) for path in track(paths, f"Reading {name}", len(paths), lambda _: 1, "batches")]
    y = files.as_labels(np.concatenate([labels for _, labels in batches]), name)
    task = Task(
        name=f"{name}/pixels",
        title=f"{title}, pixels",
        kind="classification",
        X=as_rows([data for data, _ in batches], f"{name}/pixels"),
        y=y,
        splits=single_split(np.arange(len(y)) >= len(y) - len(batches[-1][1]), seed),
        note=(
            f"Pixels as features, not those of a network as in the paper; trained on {len(paths) - 1} batch(es) in "
            f"random order by seed {seed}, tested on {paths[-1].name}."
        ),
    )
    return [task]


def _of_features(folder: Path, seed: int, name: str, title: str, without: Sequence[Path] = ()) -> list[Task]:
    return files.load(folder, seed, name=name, title=title, without=without) if folder.is_dir() else []


def _of_paper(task: Task, paper: str) -> Task:
    """Return a task with the name of the data set in the paper, if it is all of it."""
    return replace(task, paper=paper) if (task.n_classes, len(task.y)) == (_CLASSES, _IMAGES) else task


def find_batches(folder: Path) -> list[Path]:
    """Return the batches for training, in order of their numbers, and the one for testing as the last; or none."""
    for train, test in _LAYOUTS:
        for suffix in ("", ".npz"):
            numbers = range(1, 11) if train.endswith("_") else [""]
            batches = [path for number in numbers if (path := folder / f"{train}{number}{suffix}").is_file()]
            if batches and (folder / f"{test}{suffix}").is_file():
                return [*batches, folder / f"{test}{suffix}"]
    return []


def _read_batch(path: Path) -> tuple[Array, Array]:
    """Return rows of pixels and their labels."""
    if path.suffix == ".npz":
        batch: dict[str, Any] = {key: read_array(path, key) for key in members(path) if key in {"data", *_LABELS}}
    else:
        batch = read_pickle(path)
    data, labels = batch.get("data"), next((batch[key] for key in _LABELS if key in batch), None)
    if isinstance(labels, list) and all(isinstance(label, int) for label in labels):
        labels = np.array(labels)
    if not isinstance(data, np.ndarray) or data.ndim != 2 or not isinstance(labels, np.ndarray) or labels.ndim != 1:
        raise DataError(f"{path} is not a batch of images: it must have data, rows of pixels, and labels, one a row.")
    if len(labels) != len(data):
        raise DataError(f"{path} has {len(data):,} images and {len(labels):,} labels.")
    return data, labels
