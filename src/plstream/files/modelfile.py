"""Models in files: ``save`` and ``load``."""

from __future__ import annotations

import os
from copy import copy
from typing import Any

import plstream

from .._core.urls import local_path
from .container import Container, ModelFileError, NotAModelError, hash_of, write_container
from .files import PREFIX
from .kinds import Kind, MismatchError, Sizes, Tensors, require_keys
from .records import OneOf, arrays_in, build, check_rules
from .registry import MODEL, SAVED

FORMAT = 1


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Write a model to a file, all of it: :func:`load` returns one that goes on as if nothing had happened.

    The file takes its place only when it is complete. Until then, and if anything fails, what was there is as it was.

    Parameters
    ----------
    model : estimator, Monitor or DriftTracker
        Any estimator of this library, fitted or not, or what watches one, with the model.
    path : str or path-like
        Where to write it. By convention names end in ``.plstream``.
    overwrite : bool, default=True
        Whether to replace a file that is there already. If not, FileExistsError is raised.

    See Also
    --------
    load : Reads it.

    Notes
    -----
    The file is data: a safetensors file with the arrays of the model, and with all else as JSON in its metadata. What a
    model was given as a parameter must be a number, text, a tuple or list of such, an array of one dimension, None or a
    ``RandomState``; and a model within a ``VIPSelector`` one of this library.

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
    write_tree(path, "model", SAVED, model, overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that :func:`save` has written.

    Nothing in the file is ever run. All of it is checked before anything is made of it: hashes, classes, fields, types,
    shapes and numbers; what is not known is refused.

    Parameters
    ----------
    path : str or path-like
        The file.

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
    """
    return read_tree(path, "model", SAVED)


def require_ours(model: Any, what: str, kind: OneOf = MODEL) -> None:
    """Raise TypeError unless it is an estimator of this library; ``what`` says what only those can be."""
    if type(model).__name__ not in kind.classes or not type(model).__module__.startswith("plstream."):
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__qualname__}"
        raise TypeError(f"Only estimators of plstream can be {what}, and this is {name}: pass one of those.")


def write_tree(
    path: str | os.PathLike[str], key: str, kind: Kind, value: Any, *, overwrite: bool, prefix: str = PREFIX
) -> None:
    """Write a value of some kind, a model or a checkpoint, as ``key`` of the document of a file."""
    document, tensors = require_writable(key, kind, value)
    write_container(path, document, tensors, overwrite=overwrite, prefix=prefix)


def require_writable(key: str, kind: Kind, value: Any) -> tuple[dict[str, Any], Tensors]:
    """Return the document and the arrays of a file; raise ValueError if a file cannot hold the value."""
    tensors = Tensors()
    try:
        return _document_of(key, kind, value, tensors), tensors
    except MismatchError as error:
        raise ValueError(f"The model cannot be saved, for {error}, which a model file cannot hold.") from None


def read_tree(path: str | os.PathLike[str], key: str, kind: Kind) -> Any:
    """Read what ``write_tree`` has written; raise ModelFileError if it is anything else."""
    path = local_path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        # To open a pipe is to wait for someone who writes to it.
        raise ModelFileError(f"{str(path)!r} is not a model file: pass one that plstream.save has written.")
    with path.open("rb") as file:
        try:
            container = Container(file, FORMAT, repr(str(path)))
            tree = _checked(key, kind, container.document, container.tensors)
            container.read([*arrays_in(tree)], container.document["tensors"])
            check_rules(tree)
            return build(tree)
        except NotAModelError:
            raise ModelFileError(
                f"{str(path)!r} is not a model file: pass one that plstream.save has written."
            ) from None
        except _IsCheckpointError:
            raise ModelFileError(
                f"{str(path)!r} is a checkpoint, and no model yet: finish the fit with plstream.files.fit_source."
            ) from None
        except MismatchError as error:
            raise ModelFileError(
                f"{str(path)!r} is damaged or was not written by plstream: {error}. Save the model again."
            ) from None
        except MemoryError:
            raise ModelFileError(f"{str(path)!r} holds a model that takes more memory than there is.") from None


class _IsCheckpointError(ValueError):
    """A checkpoint where a model was asked for."""


def _document_of(key: str, kind: Kind, value: Any, tensors: Tensors) -> dict[str, Any]:
    """Return the JSON document of a value that ``read_tree`` will accept, and put its arrays with the tensors."""
    document = {
        "format": FORMAT,
        "plstream": plstream.__version__,
        key: kind.write(value, tensors, key),
        "tensors": "",
    }
    tree = _checked(key, kind, document, Tensors(copy(tensors.shapes)))
    stored = [*arrays_in(tree)]
    for entry in stored:
        entry.contents = tensors.arrays[entry.where]
        entry.kind.check_part(entry.contents, entry.where)
    check_rules(tree)
    document["tensors"] = hash_of(tensors.arrays[entry.where] for entry in stored)
    return document


def _checked(key: str, kind: Kind, document: Any, tensors: Tensors) -> Any:
    """Return what a document says, after all checks that need no arrays."""
    if key == "model" and isinstance(document, dict) and "checkpoint" in document:
        raise _IsCheckpointError
    require_keys(document, {"format", "plstream", key, "tensors"}, "the file")
    if type(document["format"]) is not int or document["format"] != FORMAT or not isinstance(document["plstream"], str):
        raise MismatchError("the file does not say which format it has")
    tree = kind.check(document[key], tensors, Sizes(), key)
    if tensors.shapes:
        raise MismatchError("there is an array that is no part of the model")
    return tree
