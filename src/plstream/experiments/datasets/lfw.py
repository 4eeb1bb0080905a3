"""Labeled Faces in the Wild: the official pairs of View 2 (ten folds) and View 1 (development)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from ..._core.errors import DataError
from ..._core.types import Array
from ...data.columns import listed
from ..task import FOLDS, Task
from .features import FeatureFile, feature_files, read_lines
from .pairs import NamedPair, find_rows, is_number, unique_pairs, verification

ADDRESS = "http://vis-www.cs.umass.edu/lfw/"
PAIRS = "pairs.txt"
_DEVELOPMENT = ("pairsDevTrain.txt", "pairsDevTest.txt")


def load(folder: Path, seed: int) -> list[Task]:
    """Return View 2, one task per feature file of the folder."""
    return [_view_2(FeatureFile(path), folder / PAIRS, seed) for path in _found(folder)]


def load_view_1(folder: Path, seed: int) -> list[Task]:
    """Return View 1, which is for model selection: one split, one task per feature file of the folder."""
    lists = [folder / name for name in _DEVELOPMENT]
    absent = [path.name for path in lists if not path.exists()]
    if absent:
        raise DataError(f"There is no {' and no '.join(absent)} in {folder}: download them from {ADDRESS}.")
    # Two folds, of which only the first is tested.
    train, test = (read_pairs(path) for path in lists)
    pairs = [pair._replace(fold=1) for pair in train] + test
    tasks = [
        verification(
            file.features,
            *_of_list(pairs, file),
            name=f"lfw-view1/{file.name}",
            title=f"Labeled Faces in the Wild, development, {file.name}",
            seed=seed,
            note=f"|a - b| of {file.path.name}, View 1: {len(train):,} pairs to train on and {len(test):,} to test on.",
        )
        for file in map(FeatureFile, _found(folder))
    ]
    return [replace(task, splits=task.splits[:1]) for task in tasks]


def load_pixels(seed: int) -> list[Task]:
    """Return View 2 with pixels as features, downloaded by scikit-learn."""
    from sklearn.datasets import fetch_lfw_pairs

    try:
        data = fetch_lfw_pairs(subset="10_folds")
    except OSError as error:
        raise DataError(
            f"LFW could not be downloaded by scikit-learn's fetch_lfw_pairs ({error}): try again with a network."
        ) from None
    n_pairs = len(data.target)
    # The first images of all pairs, then the second ones.
    features = data.pairs.swapaxes(0, 1).reshape(2 * n_pairs, -1)
    number = np.arange(n_pairs)
    return [
        verification(
            features,
            np.column_stack([number, n_pairs + number]),
            data.target,
            number // (n_pairs // FOLDS),
            name="lfw-pixels",
            title="Labeled Faces in the Wild, grey pixels",
            seed=seed,
            note=(
                "|a - b| of grey pixels, not of features of a network as in the paper: View 2 by scikit-learn's "
                "fetch_lfw_pairs."
            ),
        )
    ]


def read_pairs(path: Path) -> list[NamedPair]:
    """Read a list of pairs: of View 2 (``pairs.txt``), or of View 1 (``pairsDevTrain.txt``, ``pairsDevTest.txt``).

    The first line contains the number of folds, if there are several, and the number n of pairs of each kind. Every
    fold then has n lines of matched pairs (name, image, image) and n of mismatched pairs (name, image, name, image),
    separated by tabs. Images are named as in ``"Aaron_Eckhart_0001"``, and folds are counted from 0.
    DataError names the first invalid line, or a duplicate pair.
    """
    lines = read_lines(path)
    header = lines[0].split()
    if len(header) not in {1, 2} or not all(is_number(field) and int(field) for field in header):
        raise DataError(f"{path}, line 1: expected the number of folds and of pairs of each kind per fold.")
    n_folds, n_pairs = (1, int(header[0])) if len(header) == 1 else map(int, header)
    expected = 1 + 2 * n_folds * n_pairs
    if len(lines) != expected:
        raise DataError(f"{path} has {len(lines):,} lines, but its first line declares {expected:,}.")
    numbered = (
        (2 + i, _parse(line, f"{path}, line {2 + i}", i // (2 * n_pairs), same=i % (2 * n_pairs) < n_pairs))
        for i, line in enumerate(lines[1:])
    )
    return unique_pairs(numbered, path)


def _parse(line: str, where: str, fold: int, *, same: bool) -> NamedPair:
    fields = line.split("\t")
    kind = "matched pair: name, image, image" if same else "mismatched pair: name, image, name, image"
    if len(fields) != (3 if same else 4):
        raise DataError(f"{where}: expected a {kind}, separated by tabs, not {line!r}.")
    people = fields[:1] * 2 if same else fields[::2]
    numbers = fields[1:] if same else fields[1::2]
    if not all(is_number(number) and int(number) for number in numbers) or not all(people):
        raise DataError(f"{where}: expected a {kind}, images counted from 1, not {line!r}.")
    first, second = (f"{person}_{int(number):04}" for person, number in zip(people, numbers, strict=True))
    if first == second or (not same and people[0] == people[1]):
        raise DataError(f"{where}: {line!r} is not a {kind}.")
    return NamedPair(first, second, same, fold)


def _found(folder: Path) -> list[Path]:
    """Return the feature files; raise DataError with instructions if there are none."""
    found = feature_files(folder) if folder.is_dir() else []
    if found:
        return found
    patterns = ("*/*_0001.jpg", "*/*/*_0001.jpg")
    # The folder with the folders of people.
    images = next((image.parent.parent for pattern in patterns for image in folder.glob(pattern)), None)
    command = f"plstream features {images or folder / 'images'} --model vgg16 --weights FILE -o {folder / 'vgg16.npy'}"
    if images is not None:
        raise DataError(f"There are images of LFW in {images}, but no features of them: run {command}")
    raise DataError(
        f"There is no LFW in {folder}: download the images and pairs.txt of Labeled Faces in the Wild from {ADDRESS}, "
        f"put the folders of people into {folder / 'images'} and pairs.txt into {folder}, and run {command}"
    )


def _view_2(file: FeatureFile, listed_pairs: Path, seed: int) -> Task:
    if all(key in file for key in ("pairs", "same", "fold")) and not (file.files and listed_pairs.exists()):
        pairs, same, fold = file["pairs"], file["same"], file["fold"]
    elif listed_pairs.exists():
        pairs, same, fold = _of_list(read_pairs(listed_pairs), file)
    else:
        raise DataError(f"The pairs of LFW are missing: download {PAIRS} from {ADDRESS} into {listed_pairs.parent}.")
    return verification(
        file.features,
        pairs,
        same,
        fold,
        name=f"lfw/{file.name}",
        title=f"Labeled Faces in the Wild, {file.name}",
        official=("LFW", 600 * FOLDS),
        seed=seed,
        note=f"|a - b| of {file.path.name}: the {len(same):,} pairs of View 2, in its own folds.",
    )


def _of_list(pairs: list[NamedPair], file: FeatureFile) -> tuple[Array, Array, Array]:
    """Return the rows, the labels and the folds of listed pairs."""
    if file.files is None:
        raise file.unnamed("image")
    images = [PurePosixPath(image).stem for image in file.files]
    twice = [image for image, count in Counter(images).items() if count > 1]
    if twice:
        raise DataError(f"{file.path} has more than one row of {listed(twice)}.")
    return find_rows(pairs, {image: row for row, image in enumerate(images)}, str(file.path), "images")
