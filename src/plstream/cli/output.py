"""Checks of inputs and outputs, and printing of tables and JSON."""

from __future__ import annotations

import csv
import glob
import io
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from .._core.errors import printable
from .._core.progress import track
from .._core.remote import RemotePath, path_of
from .._core.types import Array
from ..data import Source
from ..data.files import require_readable
from ..data.formats import split_key
from ..data.sql import is_database

STANDARD_OUTPUT = "-"


def require_inputs(*names: str | Path | None) -> None:
    """Raise OSError if a model or data is missing."""
    for name in map(str, filter(None, names)):
        if name == STANDARD_OUTPUT or is_database(name):
            continue
        path = split_key(name, None)[0]
        is_pattern = path.is_pattern if isinstance(path, RemotePath) else glob.has_magic(str(path))
        if not is_pattern:
            require_readable(path)


def require_free(path: str | Path, *, force: bool, endings: tuple[str, ...] = ()) -> None:
    """Raise an error if a file cannot be written because it exists, or its folder does not."""
    if str(path) == STANDARD_OUTPUT:
        return
    file = path_of(path)
    if endings and file.suffix not in endings:
        raise ValueError(f"{file} must end in {', '.join(endings)}, because that determines the format.")
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: name a file in it.")
    if file.exists() and not force:
        raise FileExistsError(f"{file} exists already: pass --force to replace it, or another name.")
    if isinstance(file, RemotePath):
        return
    folder = file.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}: make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"There is no permission to write to {folder}.")


def standard_output() -> Any:
    """Return standard output; on a terminal, control characters are escaped."""
    return _Terminal(sys.stdout) if sys.stdout.isatty() else sys.stdout


class _Terminal(io.TextIOBase):
    """A terminal that escapes control characters of names and labels."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._terminal.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()


def in_blocks(source: Source, function: Callable[[Array], Array]) -> Iterator[tuple[Any, ...]]:
    """Yield the result of a function for each block, its y, and its columns with roles."""
    with closing(source.records()) as blocks, warnings.catch_warnings():  # type: ignore[type-var]
        # Feature names have been checked for the source.
        warnings.simplefilter("ignore")
        n_rows = 0
        for X, y, *others in track(blocks, "one read", source.n_rows, lambda block: len(block[0])):
            yield function(X), y, *others
            n_rows += len(X)
    if not n_rows:
        raise source.no_rows()


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows with the same keys as CSV, with six digits."""
    write_table(standard_output(), list(rows[0]), rows)


def write_table(file: Any, names: list[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as CSV to a text or binary file, with six digits."""
    values = ((row[name] for name in names) for row in rows)
    write_csv(file, names, ([f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in values))


def write_csv(file: Any, names: list[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write names and rows as CSV to a text or binary file."""
    text = file if isinstance(file, io.TextIOBase) else io.TextIOWrapper(file, encoding="utf-8", newline="")
    csv.writer(text, lineterminator="\n").writerows(chain([names], rows))
    text.flush()
    if text is not file:
        text.detach()


def print_facts(facts: dict[str, Any]) -> None:
    """Print names with values, aligned."""
    width = max(map(len, facts)) + 1
    for name, fact in facts.items():
        # Names and labels may contain control sequences of terminals.
        typer.echo(printable(f"{(name + ':').ljust(width)} {fact}"))


def print_json(result: Any) -> None:
    """Print a result as JSON; NaN and infinity become null."""
    typer.echo(json.dumps(_plain(result), indent=1, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """Convert dicts, lists, arrays and numbers to JSON types."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
