"""YouTube Faces: the official pairs of videos in ten splits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import DataError
from ..._core.progress import track
from ..task import FOLDS, Task
from .features import FeatureFile, feature_files, read_lines
from .pairs import NamedPair, find_rows, is_number, unique_pairs, verification

ADDRESS = "https://www.cs.tau.ac.il/~wolf/ytfaces/"
# The first file has corrected labels and is preferred.
LISTS = ("splits_corrected.txt", "splits.txt")
# The share of an aligned frame that shows the face: boxes are 2.2 times as large as the face.
FACE = 0.4545


def load(folder: Path, seed: int) -> list[Task]:
    """Return one task per feature file of the folder."""
    paths = feature_files(folder) if folder.is_dir() else []
    listed_pairs = next((folder / name for name in LISTS if (folder / name).exists()), None)
    if not paths or listed_pairs is None:
        raise DataError(
            f"There is no {'list of pairs' if paths else 'feature file'} of YouTube Faces in {folder}: download "
            f"aligned_images_DB and {LISTS[1]} (or {LISTS[0]}) from {ADDRESS} into it, and run plstream features "
            f"{folder / 'aligned_images_DB'} --crop {FACE} --per-folder --model vggface --weights FILE "
            f"-o {folder / 'vgg16.npy'}"
        )
    pairs = read_splits(listed_pairs)
    return [_task(FeatureFile(path), pairs, listed_pairs.name, seed) for path in paths]


def read_splits(path: Path) -> list[NamedPair]:
    """Read a list of pairs of videos.

    A line contains the number of the split, the number of the pair, the names of two videos and whether the person is
    the same, separated by commas: ``1, 251, Edgar_Savisaar/1, Ray_Wasden/0, 0``. A further field before the last, and
    a header line, are allowed.

    DataError names the first invalid line, a duplicate pair, or a split of a different size.
    """
    lines = [[field.strip() for field in line.split(",")] for line in read_lines(path)]
    start = 1 if lines[0][0].isdecimal() else 2
    numbered = enumerate(lines[start - 1 :], start)
    pairs = unique_pairs(((number, _parse(line, f"{path}, line {number}")) for number, line in numbered), path)
    sizes = Counter(pair.fold for pair in pairs)
    if len(sizes) < 2 or len(set(sizes.values())) > 1:
        found = ", ".join(f"{size:,} in split {fold}" for fold, size in sizes.items())
        raise DataError(f"{path} must have several splits of the same number of pairs, and has {found or 'none'}.")
    return pairs


def _parse(fields: list[str], where: str) -> NamedPair:
    videos = [field for field in fields[1:-1] if "/" in field]
    if len(fields) < 4 or not is_number(fields[0]) or len(videos) != 2 or fields[-1] not in {"0", "1"}:
        raise DataError(
            f"{where}: expected a split, two videos (as in Aaron_Eckhart/0) and 1 or 0 for the same person or "
            f"not, with commas between, not {', '.join(fields)!r}."
        )
    first, second = videos
    if first == second:
        raise DataError(f"{where}: both videos are {first}.")
    return NamedPair(first, second, same=fields[-1] == "1", fold=int(fields[0]))


def _task(file: FeatureFile, pairs: list[NamedPair], listed_in: str, seed: int) -> Task:
    if file.files is None:
        raise file.unnamed("frame")
    rows = _rows_of_videos(file.files)
    wanted = sorted({name for pair in pairs for name in pair[:2]})
    places = {name: place for place, name in enumerate(wanted) if name in rows}
    found = find_rows(pairs, places, str(file.path), "videos")
    means = np.empty((len(wanted), file.features.shape[1]), np.float32)
    for place, name in enumerate(track(wanted, f"Reading {file.path.name}", len(wanted), lambda _: 1, "videos")):
        means[place] = file.features[rows[name]].mean(axis=0, dtype=np.float64)
    return verification(
        means,
        *found,
        name=f"ytf/{file.name}",
        title=f"YouTube Faces, {file.name}",
        official=("YTF", 500 * FOLDS),
        seed=seed,
        note=(
            f"|a - b| of {file.path.name}, of each video the mean of its frames; {len(pairs):,} pairs of {listed_in}. "
            "How the paper makes one vector of a video is not known."
        ),
    )


def _rows_of_videos(files: list[str]) -> dict[str, NDArray[np.intp]]:
    """Return the rows of every video: ``.../Aaron_Eckhart/0/0.555.jpg`` and ``.../Aaron_Eckhart/0/`` are the same."""
    rows: dict[str, list[int]] = {}
    for row, file in enumerate(files):
        folder = file.rpartition("/")[0]
        rows.setdefault("/".join(PurePosixPath(folder).parts[-2:]), []).append(row)
    return {video: np.array(numbers, np.intp) for video, numbers in rows.items()}
