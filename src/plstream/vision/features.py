"""Extraction of image features by a network, to one file."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, counted
from .._core.memory import format_bytes
from .._core.progress import track
from .._core.threads import ordered_map
from .._core.types import Array
from .._core.urls import local_path, shown
from .._core.warnings import warn_user
from ..data.columns import listed
from ..data.reading import read_ahead
from .decoding import Content, Preprocessing
from .images import Images, find_images
from .network import Network, graph_up_to
from .partial import PartialArray
from .vgg import PRESETS, Preset, smallest_size, vgg16

_DTYPES = ("float16", "float32")
_VGG_SIZE = 224
_VGG_LAYER = "conv5_3"
# Compressed bytes of images from an archive that wait to be decoded.
_WAITING_BYTES = 1 << 28


def extract_features(
    images: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "vgg16",
    weights: str | os.PathLike[str] | None = None,
    layer: str | None = None,
    pool: str = "none",
    size: int | None = None,
    resample: str = "lanczos",
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    channels: str | None = None,
    crop: float = 1.0,
    per_folder: bool = False,
    labels: str | os.PathLike[str] | None = None,
    dtype: str = "float32",
    batch_size: int | None = None,
    threads: int | None = None,
    skip_bad: bool = False,
    overwrite: bool = False,
) -> Array:
    """Extract features of images to a .npy file, with one row per image or per folder.

    The names of the images are written next to ``faces.npy``, to ``faces.txt``, one per line. If the
    process is killed, the same call resumes.

    Parameters
    ----------
    images : str, path-like or iterable of these
        A folder, a pattern, a .tar or .zip archive, batches of ImageNet 32x32 or CIFAR, a list in a text file, or
        paths: see :func:`find_images`.
    output : str or path-like
        The file, ending in .npy.
    model : "vgg16", "vggface" or path-like, default="vgg16"
        The network: VGG16 with weights named as in torchvision or VGGFace, or an ONNX model with one input of shape
        (n, 3, height, width) or (n, height, width, 3).
    weights : str or path-like, default=None
        The weights of VGG16: see :func:`vgg16`. An ONNX model contains its own.
    layer : str, default=None
        The layer to extract. For VGG16 ``"conv1_1"`` to ``"pool5"``, by default ``"conv5_3"``, the last convolution
        after its ReLU; for an ONNX model the name of any tensor, by default of its only output.
    pool : {"none", "avg", "max"}, default="none"
        How to reduce each map to one number. With "none", all maps are flattened.
    size : int, default=None
        Height and width to resize images to. By default that of the model; for VGG16 the size of the images in
        batches, otherwise 224.
    resample : {"lanczos", "bicubic", "bilinear", "box"}, default="lanczos"
        Interpolation filter.
    mean, std : tuple of three floats, default=None
        The network sees ``(RGB / 255 - mean) / std``. By default those of ImageNet; for VGGFace, its own mean and a
        std of 1 / 255.
    channels : {"rgb", "bgr"}, default=None
        The channel order of the network. ``mean`` and ``std`` are always in the order red, green, blue. By default
        "rgb", or "bgr" for VGGFace.
    crop : float, default=1.0
        The share of height and width to keep, around the centre, before resizing. The face takes 1 / 2.2 of an aligned
        frame of YouTube Faces.
    per_folder : bool, default=False
        Whether to write one row per folder, the mean over its images, such as the frames of a video.
        The .txt file then lists the folders, with a trailing slash.
    labels : str or path-like, default=None
        The classes of ImageNet's validation images: see :func:`find_images`.
    dtype : {"float32", "float16"}, default="float32"
        The type of numbers in the file.
    batch_size : int, default=None
        Images per batch. By default as many as fit in about 256 MB, at most 64.
    threads : int, default=None
        Threads of the network. By default the same number as for BLAS.
    skip_bad : bool, default=False
        Whether to skip unreadable images with a warning. Otherwise the first one raises an error.
    overwrite : bool, default=False
        Whether to replace existing files.

    Returns
    -------
    features : array of shape (n_images, n_features)
        The file, memory-mapped.

    Examples
    --------
    >>> from plstream.vision import extract_features
    >>> X = extract_features("faces.tar", "faces.npy", weights="vgg16.safetensors", size=64)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (7701, 8192)
    """
    path = local_path(output)
    _check(path, dtype, batch_size=batch_size, threads=threads, size=size)
    beside = path.with_suffix(".txt")
    if isinstance(images, str | os.PathLike) and beside.exists() and Path(images).exists() and beside.samefile(images):
        raise ValueError(
            f"{beside} is the list of images, but the names of the rows would be written there: rename the list or "
            "the output."
        )
    # Check weights and options before searching for images, of which there may be a million.
    preset = PRESETS.get(model) if isinstance(model, str) else None
    graph, layer = _graph(model, preset, weights, layer)
    usual = preset or PRESETS["vgg16"]
    pixels = (tuple(mean or usual.mean), tuple(std or usual.std), crop, channels or usual.channels)
    preprocessing = Preprocessing((_VGG_SIZE, _VGG_SIZE), resample, *pixels)
    found = find_images(images, labels=labels)
    found = found.by_folder() if per_folder else found
    if preset is not None:
        size = size or found.size or _VGG_SIZE
        # The runtime would pool empty maps.
        if size < smallest_size(layer):
            raise ValueError(f"{layer} of VGG16 requires images of at least {smallest_size(layer)} pixels: pass size=.")
    name = shown(str(model)) if preset is None else "VGG16"
    network = Network(graph, name, layer=layer, size=size, pool=pool, threads=threads)
    preprocessing = replace(preprocessing, size=network.size)
    # The images of a folder are contiguous, and share its row.
    row_names = found.folders() if per_folder else found.names
    n_rows = len(set(row_names)) if per_folder else len(found)
    made_from = {"images": found.fingerprint(), "network": network.fingerprint()}
    made_from["options"] = f"{preprocessing} {dtype} {'per folder' if per_folder else 'per image'}"
    with PartialArray(path, network.n_features, dtype, made_from, overwrite=overwrite) as part:
        left = len(found) - part.n_done
        _require_room(path, (n_rows - part.n_rows) * network.n_features * np.dtype(dtype).itemsize)

        def batches() -> Iterator[_Batch]:
            return _batches(found, part.n_done, preprocessing, batch_size or network.batch_size, skip_bad=skip_bad)

        with closing(read_ahead(batches)) as ahead:  # type: ignore[type-var]
            tracked = track(ahead, "features", left, lambda batch: batch.n_images, unit="images")
            nothing = np.empty((0, network.n_features), np.float32)
            computed = (batch._replace(rows=network(batch.rows) if len(batch.rows) else nothing) for batch in tracked)
            for rows, n_images, bad in _folder_means(computed, row_names, part.n_done) if per_folder else computed:
                part.append(_stored(rows, dtype, found.where), n_images, bad)
        if not part.n_rows:
            raise DataError(f"None of the images in {found.where} can be read.")
        skipped = set(part.skipped)
        kept = [name for i, name in enumerate(row_names) if i not in skipped]
        part.finish(list(dict.fromkeys(kept)) if per_folder else kept)
    if part.skipped:
        names = listed(found.names[i] for i in part.skipped)
        were = "was" if len(part.skipped) == 1 else "were"
        warn_user(f"{counted(len(part.skipped), 'image')} could not be read and {were} left out: {names}.")
    features: Array = np.load(path, mmap_mode="r")
    return features


class _Batch(NamedTuple):
    """A batch of images: the pixels or features of readable ones, their number, and the indices of unreadable ones."""

    rows: Array
    n_images: int
    bad: list[int]


def _folder_means(batches: Iterable[_Batch], folders: list[str], start: int) -> Iterator[_Batch]:
    """Yield the means of features over folders, whenever a folder is complete."""
    changes = (i for i in range(1, len(folders)) if folders[i] != folders[i - 1])
    all_ends = np.array([*changes, len(folders)])
    sums, n_good, written, bad = np.zeros(0), 0, start, list[int]()
    for batch in batches:
        stop = start + batch.n_images
        good = np.setdiff1d(np.arange(start, stop), batch.bad)
        bad += batch.bad
        rows, ends = [], all_ends[(all_ends > start) & (all_ends <= stop)].tolist()
        # Folders that end in this batch, and the beginning of one that continues in the next.
        for end in (*ends, stop):
            some = batch.rows[(good >= start) & (good < end)]
            sums = some.sum(axis=0, dtype=np.float64) + (sums if n_good else 0)
            n_good, start = n_good + len(some), end
            if end in ends and n_good:
                rows.append(sums / n_good)
                n_good = 0
        if ends:
            here = [number for number in bad if number < ends[-1]]
            yield _Batch(np.array(rows).reshape(len(rows), batch.rows.shape[1]), ends[-1] - written, here)
            written, bad = ends[-1], bad[len(here) :]


def _batches(
    images: Images, start: int, preprocessing: Preprocessing, batch_size: int, *, skip_bad: bool
) -> Iterator[_Batch]:
    def read(content: tuple[str, Content]) -> NDArray[np.float32] | DataError:
        try:
            return preprocessing(content[1], content[0])
        except DataError as error:
            if skip_bad:
                # Without pending work, including its pixels.
                return DataError(str(error))
            raise

    def size(content: tuple[str, Content]) -> int:
        return len(content[1]) if isinstance(content[1], bytes) else 0

    read_images = ordered_map(read, images.contents(start), size=size, largest=_WAITING_BYTES)
    for first in range(start, len(images), batch_size):
        n = min(batch_size, len(images) - first)
        entries = list(islice(read_images, n))
        if len(entries) < n:
            raise DataError(f"{images.where} has become shorter while it was read.")
        good = [pixels for pixels in entries if not isinstance(pixels, DataError)]
        bad = [i for i, pixels in enumerate(entries, start=first) if isinstance(pixels, DataError)]
        yield _Batch(np.stack(good) if good else np.empty((0, 3, 0, 0), np.float32), len(entries), bad)


def _graph(model: Any, preset: Preset | None, weights: Any, layer: str | None) -> tuple[bytes, str]:
    """Return the network up to a layer, and the name of the layer."""
    if preset is not None:
        if weights is None:
            raise ValueError("VGG16 requires weights: pass a .safetensors or .pth file as weights=.")
        layer = layer or _VGG_LAYER
        return vgg16(weights, layer, preset=model), layer
    if not str(model).endswith(".onnx"):
        raise ValueError(f"model={shown(str(model))!r} is neither {' nor '.join(PRESETS)} nor an .onnx file.")
    if weights is not None:
        raise ValueError("An ONNX model contains its weights: leave out weights=.")
    return graph_up_to(model, layer)


def _stored(rows: Array, dtype: str, where: str) -> Array:
    """Return features in the type of the file; raise DataError on overflow."""
    with np.errstate(over="ignore"):
        stored = rows.astype(dtype)
    if not np.isfinite(stored).all():
        advice = "pass float32 as dtype=" if np.isfinite(rows).all() else "the network or its weights are not usable"
        raise DataError(f"Features of images in {where} overflow {dtype}: {advice}.")
    return stored


def _check(path: Path, dtype: str, **counts: int | None) -> None:
    if path.suffix != ".npy":
        raise ValueError(f"{path} must end in .npy, the only format that is written.")
    if dtype not in _DTYPES:
        raise ValueError(f"dtype={dtype!r} is not one of {', '.join(_DTYPES)}.")
    for name, count in counts.items():
        if count is not None and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1):
            raise ValueError(f"{name}={count!r} must be an integer of at least 1.")


def _require_room(path: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(path.resolve().parent).free
    if n_bytes > free:
        reason = f"The file will take {format_bytes(n_bytes)} more, but the disk has only {format_bytes(free)} free"
        raise OSError(errno.ENOSPC, reason, str(path))
