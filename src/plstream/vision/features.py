"""Features of images by a network, in one file, and of pairs of images."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError
from .._core.memory import format_bytes, require_memory
from .._core.progress import track
from .._core.threads import ordered_map
from .._core.types import Array
from .._core.urls import local_path, shown
from .._core.warnings import warn_user
from ..data.columns import listed
from ..data.reading import read_ahead
from .images import IMAGENET_MEAN, IMAGENET_STD, Content, Images, Preprocessing, find_images
from .network import Network, graph_up_to
from .partial import PartialArray
from .vgg import smallest_size, vgg16

_DTYPES = ("float16", "float32")
_VGG_SIZE = 224
_VGG_LAYER = "conv5_3"
# A block of rows of pairs that stays in cache, or nearly so, while it is subtracted.
_BLOCK_BYTES = 4 << 20


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
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
    dtype: str = "float32",
    batch_size: int | None = None,
    threads: int | None = None,
    skip_bad: bool = False,
    overwrite: bool = False,
) -> Array:
    """Compute features of images, and write them to a .npy file, with a row for each image.

    Beside ``faces.npy`` there will be ``faces.txt`` with the name of the image of each row, one to a line. If the
    process is killed, the same call resumes.

    Parameters
    ----------
    images : str, path-like or iterable of such
        A folder, a pattern, a .tar or .zip archive, a list in a text file, or paths: see :func:`find_images`.
    output : str or path-like
        The file, ending in .npy.
    model : "vgg16" or path-like, default="vgg16"
        The network: VGG16, or an ONNX model with one input of (n, 3, height, width) or (n, height, width, 3).
    weights : str or path-like, default=None
        The weights of VGG16: see :func:`vgg16`. Those of an ONNX model are in it.
    layer : str, default=None
        What to take. Of VGG16 ``"conv1_1"`` to ``"pool5"``, by default ``"conv5_3"``, the last convolution after its
        ReLU; of an ONNX model the name of any tensor, by default of its only output.
    pool : {"none", "avg", "max"}, default="none"
        Whether each map becomes one number. Otherwise all are laid out one after the other.
    size : int, default=None
        Height and width to resize images to. By default what the model says, and 224 for VGG16.
    resample : {"lanczos", "bicubic", "bilinear", "box"}, default="lanczos"
        How to resize.
    mean, std : tuple of three floats
        The network sees ``(RGB / 255 - mean) / std``. By default those of ImageNet.
    dtype : {"float32", "float16"}, default="float32"
        The type of numbers in the file.
    batch_size : int, default=None
        Images computed at a time. By default what takes some 256 MB, and no more than 64.
    threads : int, default=None
        Threads of the network. By default as many as BLAS may use.
    skip_bad : bool, default=False
        Whether images that cannot be read are left out, with a warning. If not, the first one is an error.
    overwrite : bool, default=False
        Whether to replace files that are there already.

    Returns
    -------
    features : array of shape (n_images, n_features)
        The file, mapped.

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
        raise ValueError(f"{beside} is the list of images, and would be replaced by that of rows: rename one of them.")
    found = find_images(images)
    network = _network(model, weights, layer=layer, pool=pool, size=size, threads=threads)
    preprocessing = Preprocessing(network.size, resample, tuple(mean), tuple(std))
    made_from = {"images": found.fingerprint(), "network": network.fingerprint()}
    made_from["options"] = f"{preprocessing} {dtype}"
    with PartialArray(path, network.n_features, dtype, made_from, overwrite=overwrite) as part:
        left = len(found) - part.n_done
        _require_room(path, left * network.n_features * np.dtype(dtype).itemsize)

        def batches() -> Iterator[_Batch]:
            return _batches(found, part.n_done, preprocessing, batch_size or network.batch_size, skip_bad=skip_bad)

        with closing(read_ahead(batches)) as ahead:  # type: ignore[type-var]
            for batch in track(ahead, "features", left, lambda batch: batch.n_images, unit="images"):
                rows = network(batch.pixels) if len(batch.pixels) else np.empty((0, network.n_features), dtype)
                part.append(_stored(rows, dtype, found.where), batch.n_images, batch.bad)
        if not part.n_rows:
            raise DataError(f"None of the images in {found.where} can be read.")
        part.finish(found.names)
    if part.skipped:
        names = listed(found.names[i] for i in part.skipped)
        warn_user(f"{len(part.skipped)} image(s) cannot be read and were left out: {names}.")
    features: Array = np.load(path, mmap_mode="r")
    return features


def pair_differences(features: Array, pairs: Any, *, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Return the absolute differences of the features of pairs, ``|a - b|``, one row per pair.

    It is the representation of a pair in the paper: as many features as an image has, small where two images agree.

    Parameters
    ----------
    features : array of shape (n_images, n_features)
        One row per image, in any floating-point type, perhaps mapped.
    pairs : array-like of int of shape (n_pairs, 2)
        The rows of the images of each pair.
    out : float32 array of shape (n_pairs, n_features), default=None
        Where to put the differences, such as a mapped file if they are larger than memory.

    Returns
    -------
    differences : float32 array of shape (n_pairs, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.vision import pair_differences
    >>> pair_differences(np.array([[1.0, 2.0], [4.0, 0.0], [1.0, 1.0]]), [[0, 1], [2, 0]])
    array([[3., 2.],
           [0., 1.]], dtype=float32)
    """
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise DataError(f"pairs must be whole numbers of shape (n, 2), not {rows.dtype} of shape {rows.shape}.")
    if rows.size and (rows.min() < 0 or rows.max() >= len(features)):
        raise DataError(f"pairs names row {rows.max()} or {rows.min()}, and features has {len(features):,} rows.")
    n, m = len(rows), features.shape[1]
    if out is None:
        require_memory(4 * n * m, f"The differences of {n:,} pairs of {m:,} features")
        out = np.empty((n, m), np.float32)
    elif out.shape != (n, m) or out.dtype != np.float32:
        raise DataError(f"out must be float32 of shape {(n, m)}, not {out.dtype} of shape {out.shape}.")
    step = max(1, _BLOCK_BYTES // (4 * max(1, m)))
    for start in track(range(0, n, step), "pairs", n, lambda start: min(step, n - start), unit="pairs"):
        block = out[start : start + step]
        first, second = rows[start : start + step].T
        block[:] = features[first]
        block -= features[second]
        np.abs(block, out=block)
    return out


class _Batch(NamedTuple):
    """A batch of images: their number, the pixels of those that can be read, the indices of the others."""

    n_images: int
    pixels: NDArray[np.float32]
    bad: list[int]


def _batches(
    images: Images, start: int, preprocessing: Preprocessing, batch_size: int, *, skip_bad: bool
) -> Iterator[_Batch]:
    def read(content: tuple[str, Content]) -> NDArray[np.float32] | DataError:
        try:
            return preprocessing(content[1], content[0])
        except DataError as error:
            if skip_bad:
                return error
            raise

    read_images = ordered_map(read, images.contents(start))
    for first in range(start, len(images), batch_size):
        n = min(batch_size, len(images) - first)
        entries = list(islice(read_images, n))
        if len(entries) < n:
            raise DataError(f"{images.where} has become shorter while it was read.")
        good = [pixels for pixels in entries if not isinstance(pixels, DataError)]
        bad = [i for i, pixels in enumerate(entries, start=first) if isinstance(pixels, DataError)]
        yield _Batch(len(entries), np.stack(good) if good else np.empty((0, 3, 0, 0), np.float32), bad)


def _network(model: Any, weights: Any, *, layer: str | None, **options: Any) -> Network:
    if model == "vgg16":
        if weights is None:
            raise ValueError("VGG16 needs its weights: name a .safetensors or .pth file with weights=.")
        layer = layer or _VGG_LAYER
        graph = vgg16(weights, layer)
        options["size"] = options["size"] or _VGG_SIZE
        # The runtime would pool empty maps.
        if options["size"] < smallest_size(layer):
            raise ValueError(f"{layer} of VGG16 needs images of {smallest_size(layer)} pixels or more: see size=.")
        return Network(graph, "VGG16", layer=layer, **options)
    if weights is not None:
        raise ValueError("An ONNX model has its weights in it: leave out weights=.")
    if not str(model).endswith(".onnx"):
        raise ValueError(f"model={shown(str(model))!r} is neither vgg16 nor an .onnx file.")
    graph, layer = graph_up_to(model, layer)
    return Network(graph, shown(str(model)), layer=layer, **options)


def _stored(rows: Array, dtype: str, where: str) -> Array:
    """Return features in the type of the file; raise DataError if they overflow it."""
    with np.errstate(over="ignore"):
        stored = rows.astype(dtype)
    if not np.isfinite(stored).all():
        advice = "pass float32 as dtype=" if np.isfinite(rows).all() else "the network or its weights are not usable"
        raise DataError(f"Features of images in {where} are beyond {dtype}: {advice}.")
    return stored


def _check(path: Path, dtype: str, **counts: int | None) -> None:
    if path.suffix != ".npy":
        raise ValueError(f"{path} must end in .npy, for that is what is written.")
    if dtype not in _DTYPES:
        raise ValueError(f"dtype={dtype!r} is not one of {', '.join(_DTYPES)}.")
    for name, count in counts.items():
        if count is not None and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1):
            raise ValueError(f"{name}={count!r} must be a whole number of 1 or more.")


def _require_room(path: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(path.resolve().parent).free
    if n_bytes > free:
        reason = f"It will have {format_bytes(n_bytes)} more, and the disk has room for {format_bytes(free)}"
        raise OSError(errno.ENOSPC, reason, str(path))
