"""Results in files: what a model makes of data, block by block, as .npy, .csv or .parquet, whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._core.errors import import_optional, printable
from .._core.progress import track
from .._core.types import Array
from .._core.urls import local_path
from ..data import DataError, Source
from ..files import replacing
from .options import Format, load_model, open_data
from .progress import shown

STANDARD_OUTPUT = "-"


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


def apply(
    method: str,
    model_file: Path,
    data: str,
    output: str,
    force: bool,
    columns: list[str] | None,
    exclude: list[str] | None,
    data_format: Format | None,
    header: bool | None,
    delimiter: str | None,
) -> None:
    """Write what a method of a model returns for all rows."""
    require_free(output, force=force, endings=tuple(_WRITERS))
    model = load_model(model_file)
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} cannot {method}: it only has scores, for plstream transform.")
    source = open_data(data, None, columns, exclude, data_format, header, delimiter, model)
    if method == "transform":
        names = [str(name) for name in model.get_feature_names_out()]
    else:
        n_targets = len(model.intercept_) if hasattr(model, "intercept_") and not hasattr(model, "classes_") else 1
        names = ["prediction"] if n_targets == 1 else [f"prediction{k}" for k in range(n_targets)]
    blocks = (block for block, _ in in_blocks(source, getattr(model, method)))
    with shown():
        if output == STANDARD_OUTPUT:
            _write_csv(standard_output(), names, blocks)
            return
        with replacing(output, overwrite=force) as file:
            _WRITERS[Path(output).suffix](file, names, blocks)


def standard_output() -> Any:
    """Return where text is written to: on a terminal, without what would steer it."""
    return _Shown(sys.stdout) if sys.stdout.isatty() else sys.stdout


class _Shown(io.TextIOBase):
    """Lines on a terminal: names and labels may hold anything."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._terminal.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()


def in_blocks(source: Source, function: Callable[[Array], Array]) -> Iterator[tuple[Array, Array | None]]:
    """Yield the result of each block, and its y."""
    with closing(source.blocks()) as blocks, warnings.catch_warnings():  # type: ignore[type-var]
        # Names of features are checked once, for the source.
        warnings.simplefilter("ignore")
        n_rows = 0
        for X, y in track(blocks, "one read", source.n_rows, lambda block: len(block[0])):
            yield function(X), y
            n_rows += len(X)
    if not n_rows:
        raise DataError(f"{source.name} has no rows.")


def _write_npy(file: BinaryIO, _: list[str], blocks: Iterator[Array]) -> None:
    """Write an array of as many dimensions as the blocks have."""
    first = next(blocks)
    dtype, shape, n_rows = first.dtype, first.shape[1:], 0
    file.write(_npy_header(dtype, (0, *shape)))
    for block in chain([first], blocks):
        file.write(np.ascontiguousarray(block, dtype=dtype).data.cast("B"))
        n_rows += len(block)
    file.seek(0)
    file.write(_npy_header(dtype, (n_rows, *shape)))


def _npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file, which is as long for any number of rows."""
    header = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _write_csv(file: Any, names: list[str], blocks: Iterator[Array]) -> None:
    """Write text, with a line of names; numbers have as many digits as it takes to read them back."""
    text = file if isinstance(file, io.TextIOBase) else io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for block in blocks:
        # Digits of float32 that are not there would come with a conversion to Python's numbers.
        numbers = block.astype(str) if block.dtype == np.float32 else block
        writer.writerows(numbers.reshape(len(block), -1).tolist())
    text.flush()
    if text is not file:
        text.detach()


def _write_parquet(file: BinaryIO, names: list[str], blocks: Iterator[Array]) -> None:
    """Write a table of columns, with a row group per block."""
    arrow, parquet = import_optional("pyarrow", "Parquet"), import_optional("pyarrow.parquet", "Parquet")
    writer = None
    for block in blocks:
        columns = block.reshape(len(block), -1).T
        table = arrow.table([arrow.array(np.ascontiguousarray(column)) for column in columns], names)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


_WRITERS: dict[str, Callable[[Any, list[str], Iterator[Array]], None]] = {
    ".npy": _write_npy,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}


def print_table(rows: list[dict[str, Any]], file: Any = None) -> None:
    """Print rows with the same keys as CSV, to standard output by default, with as many digits as one can use."""
    writer = csv.DictWriter(standard_output() if file is None else file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
