"""ImageNet: the downsampled batches of 32 x 32 pixels, and features of images in one folder per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..._core.errors import DataError, counted
from ..._core.progress import track
from ...vision import batches
from ...vision.batches import read_batch
from ..task import Task, single_split
from . import files
from .features import as_rows, feature_files

ADDRESS = "https://image-net.org/"
TINY_ADDRESS = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
# Numbers of training and validation images of ILSVRC 2012.
_CLASSES, _IMAGES = 1000, 1_281_167 + 50_000


def load_32(folder: Path, seed: int) -> list[Task]:
    """Return the tasks of the pixels and of all feature files."""
    found = find_batches(folder)
    tasks = _of_batches(found, seed, "imagenet32", "ImageNet 32x32") if found else []
    tasks += _of_features(folder, seed, "imagenet32", "ImageNet 32x32", without=found)
    return _known_in_paper(
        tasks,
        "ImageNet 32x32",
        f"There is no ImageNet 32x32 in {folder}: download Imagenet32_train and Imagenet32_val from {ADDRESS} "
        "(downsampled image data), put train_data_batch_1 to train_data_batch_10 and val_data there, and run "
        f"plstream features {folder} --model vgg16 --weights FILE -o {folder / 'vgg16.npy'}",
    )


def load_224(folder: Path, seed: int) -> list[Task]:
    """Return the tasks of feature files of images in one folder per class."""
    return _known_in_paper(
        _of_features(folder, seed, "imagenet224", "ImageNet 224x224"),
        "ImageNet 224x224",
        f"There are no features of ImageNet in {folder}: download ILSVRC2012_img_train.tar, ILSVRC2012_img_val.tar "
        f"and ILSVRC2012_devkit_t12 from {ADDRESS} into one folder, unpack the last, and run plstream features "
        f"ILSVRC2012_img_train.tar --model vgg16 --weights FILE --dtype float16 -o {folder / 'vgg16_train.npy'}, "
        f"and the same with ILSVRC2012_img_val.tar for {folder / 'vgg16_val.npy'}",
    )


def load_tiny(folder: Path, seed: int) -> list[Task]:
    """Return the tasks of pairs of training and validation feature files."""
    return _known_in_paper(
        _of_features(folder, seed, "tiny-imagenet", "Tiny ImageNet"),
        None,
        f"There are no features of Tiny ImageNet in {folder}: download {TINY_ADDRESS}, make features of its images "
        "with plstream features, and put them there as NAME_train.npz and NAME_val.npz with arrays X and y.",
    )


def load_batches(folder: Path, seed: int) -> list[Task]:
    """Return the task of batches of small images, with pixels as features."""
    name = folder.resolve().name
    return _of_batches(find_batches(folder), seed, name, name)


def _of_batches(paths: list[Path], seed: int, name: str, title: str) -> list[Task]:
    read = [read_batch(path) for path in track(paths, f"Reading {name}", len(paths), lambda _: 1, "batches")]
    y = files.as_labels(np.concatenate([labels for _, labels in read]), name)
    X = as_rows([data for data, _ in read], f"{name}/pixels")
    splits = single_split(np.arange(len(y)) >= len(y) - len(read[-1][1]), seed)
    note = (
        "Pixels as features, not those of a network as in the paper; trained on "
        f"{counted(len(paths) - 1, 'batch', 'batches')} in random order by seed {seed}, tested on {paths[-1].name}."
    )
    return [Task(f"{name}/pixels", f"{title}, pixels", "classification", X, y, splits, note=note)]


def _of_features(folder: Path, seed: int, name: str, title: str, without: Sequence[Path] = ()) -> list[Task]:
    if not folder.is_dir():
        return []
    for stem in files.grouped([path for path in feature_files(folder) if path not in without]):
        base, _, part = stem.rpartition("_")
        if base and part in {"train", "val", "test"}:
            other = f"{base}_{'val' if part == 'train' else 'train'}"
            raise DataError(
                f"{folder} has features {stem}, but no {other} that belongs to them: make these as well, or name the "
                "file itself to use it alone."
            )
    return files.load(folder, seed, name=name, title=title, without=without)


def _known_in_paper(tasks: list[Task], paper: str | None, instructions: str) -> list[Task]:
    """Return tasks with the name of the data set in the paper, if they are complete; raise DataError if none exist."""
    if not tasks:
        raise DataError(instructions)
    complete = (_CLASSES, _IMAGES)
    return [replace(task, paper=paper) if (task.n_classes, len(task.y)) == complete else task for task in tasks]


def find_batches(folder: Path) -> list[Path]:
    """Return the training batches by number, followed by the test batch; or none."""
    found = batches.find_batches(folder) if folder.is_dir() else []
    parts = {batch.part for batch in found}
    return [batch.path for batch in found] if "train" in parts and len(parts) > 1 else []
