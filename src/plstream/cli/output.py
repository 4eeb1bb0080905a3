"""Results in files, block by block: .npy, .csv and .parquet, written whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from .._core.errors import import_optional
from .._core.types import Array
from .._core.urls import local_path
from ..files import replacing

STANDARD_OUTPUT = "-"
# The header of a .npy file is written when all rows are: as long as one of any number of rows is.
_NPY_HEADER_BYTES = 192


def require_free(path: str | Path, *, force: bool, endings: tuple[str, ...] = ()) -> None:
    """Raise an error, before any work, if a file cannot be written: there is one, or no folder for it."""
    if str(path) == STANDARD_OUTPUT:
        return
    file = local_path(path)
    if endings and file.suffix not in endings:
        raise ValueError(f"{file} must end in {', '.join(endings)}, for that says what to write.")
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: name a file in it.")
    if file.exists() and not force:
        raise FileExistsError(f"{file} exists already: pass --force to replace it, or another name.")
    folder = file.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}: make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"There is no permission to write to {folder}.")


class Writer(Protocol):
    """Writes blocks of rows."""

    def write(self, block: Array) -> None:
        """Write some rows."""

    def finish(self) -> None:
        """Write what can only be written when all rows are."""


@contextmanager
def writing(path: str, names: list[str], *, force: bool) -> Iterator[Writer]:
    """Give a writer to a path, or to standard output as CSV, of columns of these names."""
    if path == STANDARD_OUTPUT:
        writer: Writer = CsvWriter(sys.stdout, names)
        yield writer
        writer.finish()
        return
    with replacing(path, overwrite=force) as file:
        writer = _WRITERS[Path(path).suffix](file, names)
        yield writer
        writer.finish()


class NpyWriter:
    """An array of as many dimensions as the blocks have."""

    def __init__(self, file: BinaryIO, _: list[str]) -> None:
        self._file = file
        self._first: Array | None = None
        self._n_rows = 0

    def write(self, block: Array) -> None:
        """Write some rows."""
        if self._first is None:
            self._first = block[:0]
            self._file.write(bytes(_NPY_HEADER_BYTES))
        self._file.write(np.ascontiguousarray(block, dtype=self._first.dtype).data.cast("B"))
        self._n_rows += len(block)

    def finish(self) -> None:
        """Write the header."""
        assert self._first is not None
        shape = (self._n_rows, *self._first.shape[1:])
        fields = {"descr": np.lib.format.dtype_to_descr(self._first.dtype), "fortran_order": False, "shape": shape}
        text = repr(fields).encode().ljust(_NPY_HEADER_BYTES - 11) + b"\n"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + (_NPY_HEADER_BYTES - 10).to_bytes(2, "little") + text)


class CsvWriter:
    """Text, with a line of names; numbers have as many digits as it takes to read them back."""

    def __init__(self, file: Any, names: list[str]) -> None:
        self._text = file if isinstance(file, io.TextIOBase) else io.TextIOWrapper(file, encoding="utf-8", newline="")
        self._owned = self._text is not file
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(names)

    def write(self, block: Array) -> None:
        """Write some rows."""
        # Digits of float32 that are not there would come with a conversion to Python's numbers.
        numbers = block.astype(str) if block.dtype == np.float32 else block
        self._rows.writerows(numbers.reshape(len(block), -1).tolist())

    def finish(self) -> None:
        """Write what is still in memory."""
        self._text.flush()
        if self._owned:
            self._text.detach()


class ParquetWriter:
    """A table of columns, with a row group for each block."""

    def __init__(self, file: BinaryIO, names: list[str]) -> None:
        self._arrow = import_optional("pyarrow", "Parquet")
        self._parquet = import_optional("pyarrow.parquet", "Parquet")
        self._file, self._names = file, names
        self._writer: Any = None

    def write(self, block: Array) -> None:
        """Write some rows."""
        columns = block.reshape(len(block), -1).T
        table = self._arrow.table([self._arrow.array(np.ascontiguousarray(column)) for column in columns], self._names)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        """Write the footer."""
        self._writer.close()


_WRITERS: dict[str, Any] = {".npy": NpyWriter, ".csv": CsvWriter, ".parquet": ParquetWriter}
ENDINGS = tuple(_WRITERS)


def print_table(rows: list[dict[str, Any]], file: Any = None) -> None:
    """Print rows with the same keys as CSV, to standard output by default, with as many digits as one can use."""
    writer = csv.DictWriter(sys.stdout if file is None else file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
