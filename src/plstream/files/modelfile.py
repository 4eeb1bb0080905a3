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
from .container import Container, ModelFileError, hash_of, type_and_shape, write_container
from .document import CheckedDocument, build, encode, require_keys
from .files import PREFIX
from .plain import MismatchError
from .steps import MODELS

FORMAT = 1

MODEL = Object(*MODELS)
SAVED = Object(*MODELS, StreamingPipeline, *declared(monitoring))


def save(model: Any, path: str | os.PathLike[str] | BinaryIO, *, overwrite: bool = True) -> None:
    """Write a complete model to a file. After :func:`load`, it can continue training.

    The file is replaced only when the new one is complete. If anything fails, an existing file is left unchanged.

    Parameters
    ----------
    model : estimator, Monitor or DriftTracker
        Any estimator of this library, fitted or not, or a monitor or tracker, which is saved with its model.
    path : str, path-like or binary file
        Where to write it. By convention, names end in ``.plstream``. A URL such as ``s3://bucket/model.plstream`` names
        an object in a store. An open file is written at its current position.
    overwrite : bool, default=True
        Whether to replace an existing file. Otherwise FileExistsError is raised.

    See Also
    --------
    load : Reads a model file.

    Notes
    -----
    The file is a safetensors file with the arrays of the model, and everything else as JSON in its metadata. Parameters
    must be numbers, strings, tuples or lists of these, one-dimensional arrays, None or a ``RandomState``; the model of
    a ``VIPSelector`` must be an estimator of this library. Steps of a :class:`StreamingPipeline` must be estimators of
    this library, or supported ones of scikit-learn and chemotools: see ``docs/models.md``.

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
    """Read a model from a file written by :func:`save`.

    Nothing in the file is executed. Everything is checked before objects are created: hashes, classes, fields, types,
    shapes and numbers. Unknown content is refused.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        The file, or its content. An open file is read from its current position to its end. A URL names an object in a
        store.

    Returns
    -------
    model : estimator, Monitor or DriftTracker
        The saved object: parameters, results and state are bit-identical, and so is further training.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written by a later version. It is a ValueError.

    See Also
    --------
    save : Writes a model file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream import IncrementalPLS, load, save
    >>> with TemporaryDirectory() as folder:
    ...     save(IncrementalPLS(3), Path(folder, "model.plstream"))
    ...     load(Path(folder, "model.plstream"))
    IncrementalPLS(n_components=3)

    To and from bytes, for example for a database or a message:

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> save(IncrementalPLS(3), file)
    >>> load(file.getvalue())
    IncrementalPLS(n_components=3)
    """
    return read_object(path, "model", SAVED)


def require_ours(model: Any, what: str, kind: Object = MODEL) -> None:
    """Raise TypeError unless it is an estimator of this library; ``what`` is a past participle in the message."""
    if type(model) not in kind.classes.values():
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__qualname__}"
        raise TypeError(f"Only estimators of plstream can be {what}, not {name}.")


def write_object(
    path: str | os.PathLike[str] | BinaryIO,
    key: str,
    kind: Object,
    value: Any,
    *,
    overwrite: bool,
    prefix: str = PREFIX,
) -> None:
    """Write a model or a checkpoint as ``key`` of the document of a file."""
    if not isinstance(path, str | os.PathLike) and (not hasattr(path, "write") or hasattr(path, "encoding")):
        raise TypeError(f"A model is written to a path or a binary file, not to a {type(path).__name__}.")
    try:
        document, arrays = document_of(key, kind, value)
        write_container(path, document, arrays, overwrite=overwrite, prefix=prefix)
    except MemoryError:
        raise MemoryError(
            f"There is not enough memory to write {_where(path)}; nothing was written. Free some memory and try again."
        ) from None


def _where(path: str | os.PathLike[str] | bytes | BinaryIO) -> str:
    """Return the name of a file in messages."""
    if isinstance(path, bytes | bytearray | memoryview):
        return "The bytes"
    return repr(shown(path)) if isinstance(path, str | os.PathLike) else "The file"


@contextmanager
def _opened(path: str | os.PathLike[str] | bytes | BinaryIO, where: str) -> Iterator[IO[bytes]]:
    """Open a file for random access."""
    if isinstance(path, bytes | bytearray | memoryview):
        yield BytesIO(path)
    elif isinstance(path, str | os.PathLike):
        place = path_of(path)
        if place.exists() and not place.is_file() and not place.is_dir():
            # Opening a named pipe would wait for a writer.
            raise ModelFileError(f"{where} is not a model file: pass a file written by plstream.save.")
        with place.open("rb") as file:
            yield file
    elif not hasattr(path, "read") or hasattr(path, "encoding"):
        raise TypeError(f"A model is read from a path, bytes or a binary file, not from a {type(path).__name__}.")
    else:
        is_random = hasattr(path, "readinto") and hasattr(path, "seekable") and path.seekable()
        yield path if is_random else BytesIO(path.read())


def read_object(path: str | os.PathLike[str] | bytes | BinaryIO, key: str, kind: Object) -> Any:
    """Read an object written by ``write_object``; raise ModelFileError for anything else."""
    where = _where(path)
    with _opened(path, where) as file:
        try:
            container = Container(file, FORMAT, where)
            if key == "model" and isinstance(container.document, dict) and "checkpoint" in container.document:
                raise ModelFileError(
                    f"{where} is a checkpoint, not a model: finish the fit with plstream.files.fit_source."
                )
            checked = _checked(key, kind, container.document, container.shapes)
            container.read(checked.arrays, container.document["tensors"])
            checked.check_rules()
            return build(checked.tree)
        except MismatchError as error:
            raise ModelFileError(
                f"{where} is damaged or was not written by plstream: {error}. Save the model again."
            ) from None
        except MemoryError:
            raise ModelFileError(f"{where} holds a model that requires more memory than is available.") from None


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
        checked = _checked(key, kind, document, shapes)
        for entry in checked.arrays:
            entry.contents = arrays[entry.where]
            entry.check_part(entry.contents)
        checked.check_rules()
    except MismatchError as error:
        raise ValueError(f"The model cannot be saved: {error}, which a model file cannot hold.") from None
    document["tensors"] = hash_of(arrays[entry.where] for entry in checked.arrays)
    return document, arrays


def _checked(key: str, kind: Object, document: Any, shapes: dict[str, tuple[str, tuple[int, ...]]]) -> CheckedDocument:
    """Return the contents of a document, after all checks that need no arrays."""
    require_keys(document, {"format", "plstream", key, "tensors"}, "the file")
    if type(document["format"]) is not int or document["format"] != FORMAT or not isinstance(document["plstream"], str):
        raise MismatchError("the file does not state its format")
    return CheckedDocument(kind, document[key], key, shapes)
