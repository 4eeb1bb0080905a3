"""User-supplied feature files and folders: labelled rows, images in one folder per class, or pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import DataError
from ..._core.types import Array
from ...data import open_source
from ...data.columns import listed
from ...vision.archives import is_image
from ..task import FOLDS, Rows, Split, Task, single_split, split_by_fold, stratified_folds
from .features import SUFFIXES, FeatureFile, as_rows, feature_files
from .pairs import verification

# Parts of paths and suffixes of names that distinguish training and test rows.
_TRAIN = "train"
_TEST = ("val", "test")


def load(path: Path, seed: int, *, name: str = "", title: str = "", without: Sequence[Path] = ()) -> list[Task]:
    """Return the task of a file, or one per feature file of a folder.

    In a folder, ``a_train.npz`` and ``a_val.npz`` are one task, and files in ``without`` are ignored. The seed
    determines folds that the files do not define, and the order of training rows. Name and title of the data set are
    prepended to those of the file; by default they are the name of the folder.
    """
    if not path.is_dir():
        return [_of_files([path], path.stem, path.name, seed) if path.suffix in SUFFIXES else _of_table(path, seed)]
    name = name or path.resolve().name
    return [
        _of_files(files, f"{name}/{stem}", f"{title or name}, {stem}", seed)
        for stem, files in grouped([file for file in feature_files(path) if file not in without]).items()
    ]


def grouped(paths: Sequence[Path]) -> dict[str, list[Path]]:
    """Return files by name, combining training and test files: ``a_train.npz`` and ``a_val.npz`` are named a."""
    single = {path.stem: path for path in paths}
    groups = {}
    for stem in [stem.removesuffix(_TRAIN) for stem in single if stem.endswith(f"_{_TRAIN}")]:
        test = next((name for part in _TEST if (name := stem + part) in single), None)
        if test is not None:
            groups[stem[:-1]] = [single.pop(stem + _TRAIN), single.pop(test)]
    return groups | {stem: [path] for stem, path in single.items()}


def _of_files(paths: Sequence[Path], name: str, title: str, seed: int) -> Task:
    """Return the task of one file, or of a training and a test file."""
    files = [FeatureFile(path) for path in paths]
    if "pairs" in files[0]:
        return _of_pairs(files[0], name, title, seed)
    where = listed(path.name for path in paths)
    X = as_rows([file.features for file in files], where)
    labels = [_labels(file) for file in files]
    if len({values.dtype.kind in "biuf" for values in labels}) > 1:
        raise DataError(
            f"{where}: the classes of one file are numbers, those of the other names: use the same in both."
        )
    labels_of_all = np.concatenate(labels)
    y = as_labels(labels_of_all, where)
    if len(files) == 2:
        splits, how = single_split(np.arange(len(y)) >= len(files[0].features), seed), "trained on the first"
    else:
        splits, how = _splits(files[0], y, seed)
    if len(splits) == 1:
        _require_learnt(labels_of_all, *splits[0], where)
    note = f"{where}; {how}; training rows in random order by seed {seed}."
    return Task(name, title, "classification", X, y, splits, note=note)


def _require_learnt(labels: Array, train: Rows, test: Rows, where: str) -> None:
    """Raise DataError if a class of test rows has no training rows, for example if numberings of classes differ."""
    if not (len(train) and len(test)):
        part = "training" if len(train) else "testing"
        raise DataError(f"{where}: all rows are for {part}: there must be some for each.")
    unknown = np.setdiff1d(labels[test], labels[train])
    if unknown.size:
        raise DataError(
            f"{where}: {len(unknown):,} of {len(np.unique(labels[test])):,} classes of test rows have no training rows "
            f"({listed(map(str, unknown))}): classes must have the same names or numbers in both."
        )


def _of_pairs(file: FeatureFile, name: str, title: str, seed: int) -> Task:
    absent = [key for key in ("same", "fold") if key not in file]
    if absent:
        raise DataError(f"{file.path} has pairs, but no array {' and no '.join(absent)}: pairs need both.")
    return verification(
        file.features,
        file["pairs"],
        file["same"],
        file["fold"],
        name=name,
        title=title,
        seed=seed,
        note=f"|a - b| of pairs of rows of {file.path.name}, in its own folds.",
    )


def _of_table(path: Path, seed: int) -> Task:
    """Return the task of a file in any other format, with labels in column y."""
    if is_image(path.name):
        raise DataError(f"{path} is an image: extract features of a folder of images with plstream features first.")
    blocks = list(open_source(str(path), target="y").blocks())
    X = as_rows([np.concatenate([X for X, _ in blocks])], path.name)
    y = as_labels(np.concatenate([y for _, y in blocks if y is not None]), path.name)
    splits, how = split_by_fold(stratified_folds(y, seed), seed), f"{FOLDS} stratified folds by seed {seed}"
    note = f"{path.name}, labels in its column y; {how}."
    return Task(path.stem, path.name, "classification", X, y, splits, note=note)


def _labels(file: FeatureFile) -> Array:
    """Return the labels of the rows: y, or the names of the image folders."""
    if "y" in file:
        return file.per_row("y")
    if file.files is None:
        raise DataError(
            f"{file.path} has no labels: put them as y into the .npz file, or for a .npy file into "
            f"{file.name}.y.npy, or the paths of images, with a folder for each class, into {file.name}.txt."
        )
    folders = [(_folders(image) or ("",))[-1] for image in file.files]
    for image, folder in zip(file.files, folders, strict=True):
        if folder in {"", _TRAIN, *_TEST}:
            labels = f"y in {file.path.name}" if file.path.suffix == ".npz" else f"{file.name}.y.npy"
            raise DataError(
                f"{file.path}: {image} is not in a class folder, such as train/n01440764/{PurePosixPath(image).name}: "
                f"extract features of images in such folders, or write the labels of all rows as {labels}."
            )
    return np.array(folders)


def as_labels(values: Array, where: str) -> NDArray[np.int64]:
    """Return integers unchanged, and names as their sorted index."""
    if values.dtype.kind in "SU" or (values.dtype.kind == "O" and all(isinstance(value, str) for value in values)):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)
    # Values that are not finite have the remainder NaN, which is nonzero.
    with np.errstate(invalid="ignore"):
        whole = values.dtype.kind in "biu" or (values.dtype.kind == "f" and not np.mod(values, 1).any())
    if not whole:
        raise DataError(f"{where}: labels must be integers or names, one per row.")
    return values.astype(np.int64)


def _splits(file: FeatureFile, y: Array, seed: int) -> tuple[tuple[Split, ...], str]:
    """Return the splits in the file, or else folds by seed, and a description."""
    if "fold" in file:
        return split_by_fold(file.per_row("fold"), seed), "its own folds"
    if "test" in file:
        return single_split(file.per_row("test"), seed), "its own test rows"
    if file.files is not None:
        # The parent of the class folder tells which images are for testing.
        test = np.array([any(part in _TEST for part in _folders(image)[-2:-1]) for image in file.files])
        if test.any() and not test.all():
            return single_split(test, seed), "tested on the images in folders val or test"
    return split_by_fold(stratified_folds(y, seed), seed), f"{FOLDS} stratified folds by seed {seed}"


def _folders(image: str) -> tuple[str, ...]:
    """Return the folders of an image down to that of its class, without the folder ``images`` of Tiny ImageNet."""
    folders = PurePosixPath(image).parent.parts
    return folders[:-1] if folders[-1:] == ("images",) else folders
