"""Models in files: ``save`` and ``load``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any, BinaryIO

import plstream

from .. import monitoring
from .._core.remote import path_of
from .._core.schema import Object, declared
from .._core.types import Array
from .._core.urls import shown
from ..estimators import StreamingPipeline
from .container import Container, ModelFileError, NotAModelError, hash_of, type_and_shape, write_container
from .document import MismatchError, Reading, build, encode, require_keys
from .files import PREFIX
from .steps import MODELS

FORMAT = 1

MODEL = Object(*MODELS)
SAVED = Object(*MODELS, StreamingPipeline, *declared(monitoring))


def save(model: Any, path: str | os.PathLike[str] | BinaryIO, *, overwrite: bool = True) -> None:
    """Write a complete model to a file: the one that :func:`load` returns can continue training.

    The file is replaced only when the new one is complete. If anything fails, the earlier file is left unchanged.

    Parameters
    ----------
    model : estimator, Monitor or DriftTracker
        Any estimator of this library, fitted or not, or what watches one, with the model.
    path : str, path-like or binary file
        Where to write it. By convention names end in ``.plstream``. A URL such as ``s3://bucket/model.plstream`` names
        an object in a store. To a file that is open for writing, the model is written as it is, from where it is.
    overwrite : bool, default=True
        Whether to replace a file that is there already. If not, FileExistsError is raised.

    See Also
    --------
    load : Reads it.

    Notes
    -----
    The file is data: a safetensors file with the arrays of the model, and with all else as JSON in its metadata. What a
    model was given as a parameter must be a number, text, a tuple or list of such, an array of one dimension, None or a
    ``RandomState``; and a model within a ``VIPSelector`` one of this library. Steps of a :class:`StreamingPipeline` are
    estimators of this library, or of a short list of scikit-learn and chemotools: see ``docs/models.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream import CIPLS, load, save
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> model = CIPLS().partial_fit(X[:100], X[:100, 0])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder, "model.plstream"))
    ...     twin = load(Path(folder, "model.plstream"))
    >>> scores = model.partial_fit(X[100:], X[100:, 0]).transform(X)
    >>> bool(np.array_equal(twin.partial_fit(X[100:], X[100:, 0]).transform(X), scores))
    True
    """
    require_ours(model, "saved", SAVED)
    write_object(path, "model", SAVED, model, overwrite=overwrite)


def load(path: str | os.PathLike[str] | bytes | BinaryIO) -> Any:
    """Read a model from a file that :func:`save` has written.

    Nothing in the file is ever run. All of it is checked before anything is made of it: hashes, classes, fields, types,
    shapes and numbers; what is not known is refused.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        The file, or what is in it. A file that is open is read from where it is to its end. A URL names an object in a
        store.

    Returns
    -------
    model : estimator, Monitor or DriftTracker
        As it was: the same parameters, results and state, to the last bit, and so is what it learns from then on.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written by a later version. It is a ValueError.

    See Also
    --------
    save : Writes it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream import IncrementalPLS, load, save
    >>> with TemporaryDirectory() as folder:
    ...     save(IncrementalPLS(3), Path(folder, "model.plstream"))
    ...     load(Path(folder, "model.plstream"))
    IncrementalPLS(n_components=3)

    To and from bytes, as for a database or a message:

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> save(IncrementalPLS(3), file)
    >>> load(file.getvalue())
    IncrementalPLS(n_components=3)
    """
    return read_object(path, "model", SAVED)


def require_ours(model: Any, what: str, kind: Object = MODEL) -> None:
    """Raise TypeError unless it is an estimator of this library; ``what`` says what only those can be."""
    if type(model) not in kind.classes.values():
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__qualname__}"
        raise TypeError(f"Only estimators of plstream can be {what}, and this is {name}: pass one of those.")


def write_object(
    path: str | os.PathLike[str] | BinaryIO,
    key: str,
    kind: Object,
    value: Any,
    *,
    overwrite: bool,
    prefix: str = PREFIX,
) -> None:
    """Write an object, a model or a checkpoint, as ``key`` of the document of a file."""
    if not isinstance(path, str | os.PathLike) and (not hasattr(path, "write") or hasattr(path, "encoding")):
        raise TypeError(f"A model is written to a path or a binary file, not to a {type(path).__name__}.")
    try:
        document, arrays = document_of(key, kind, value)
        write_container(path, document, arrays, overwrite=overwrite, prefix=prefix)
    except MemoryError:
        raise MemoryError(
            f"There is not enough memory to write {_where(path)}, and nothing was written: free some and try again."
        ) from None


def _where(path: str | os.PathLike[str] | bytes | BinaryIO) -> str:
    """Return what to call a file in a message."""
    if isinstance(path, bytes | bytearray | memoryview):
        return "The bytes"
    return repr(shown(path)) if isinstance(path, str | os.PathLike) else "The file"


@contextmanager
def _opened(path: str | os.PathLike[str] | bytes | BinaryIO, where: str) -> Iterator[IO[bytes]]:
    """Open a file to be read at any place."""
    if isinstance(path, bytes | bytearray | memoryview):
        yield BytesIO(path)
    elif isinstance(path, str | os.PathLike):
        place = path_of(path)
        if place.exists() and not place.is_file() and not place.is_dir():
            # To open a pipe is to wait for someone who writes to it.
            raise ModelFileError(f"{where} is not a model file: pass one that plstream.save has written.")
        with place.open("rb") as file:
            yield file
    elif not hasattr(path, "read") or hasattr(path, "encoding"):
        raise TypeError(f"A model is read from a path, bytes or a binary file, not from a {type(path).__name__}.")
    else:
        is_random = hasattr(path, "readinto") and hasattr(path, "seekable") and path.seekable()
        yield path if is_random else BytesIO(path.read())


def read_object(path: str | os.PathLike[str] | bytes | BinaryIO, key: str, kind: Object) -> Any:
    """Read what ``write_object`` has written; raise ModelFileError if it is anything else."""
    where = _where(path)
    with _opened(path, where) as file:
        try:
            container = Container(file, FORMAT, where)
            if key == "model" and isinstance(container.document, dict) and "checkpoint" in container.document:
                raise ModelFileError(
                    f"{where} is a checkpoint, and no model yet: finish the fit with plstream.files.fit_source."
                )
            reading, tree = _checked(key, kind, container.document, container.shapes)
            container.read(reading.arrays, container.document["tensors"])
            reading.check_rules()
            return build(tree)
        except NotAModelError:
            raise ModelFileError(f"{where} is not a model file: pass one that plstream.save has written.") from None
        except MismatchError as error:
            raise ModelFileError(
                f"{where} is damaged or was not written by plstream: {error}. Save the model again."
            ) from None
        except MemoryError:
            raise ModelFileError(f"{where} holds a model that takes more memory than there is.") from None


def document_of(key: str, kind: Object, value: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the document and the arrays of a file; raise ValueError if ``read_object`` would not accept them."""
    arrays: dict[str, Array] = {}
    try:
        document = {
            "format": FORMAT,
            "plstream": plstream.__version__,
            key: encode(kind, value, key, arrays),
            "tensors": "",
        }
        shapes = {name: type_and_shape(array) for name, array in arrays.items()}
        reading, _ = _checked(key, kind, document, shapes)
        for entry in reading.arrays:
            entry.contents = arrays[entry.where]
            entry.check_part(entry.contents)
        reading.check_rules()
    except MismatchError as error:
        raise ValueError(f"The model cannot be saved: {error}, which a model file cannot hold.") from None
    document["tensors"] = hash_of(arrays[entry.where] for entry in reading.arrays)
    return document, arrays


def _checked(
    key: str, kind: Object, document: Any, shapes: dict[str, tuple[str, tuple[int, ...]]]
) -> tuple[Reading, Any]:
    """Return what a document says, after all checks that need no arrays."""
    require_keys(document, {"format", "plstream", key, "tensors"}, "the file")
    if type(document["format"]) is not int or document["format"] != FORMAT or not isinstance(document["plstream"], str):
        raise MismatchError("the file does not say which format it has")
    reading = Reading(shapes)
    tree = reading.check(kind, document[key], key)
    reading.require_no_more_arrays()
    return reading, tree
