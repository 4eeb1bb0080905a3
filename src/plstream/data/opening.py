"""Data opened by what it is: an array, a file of any format, a folder of files, a stream."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, shortened
from .._core.urls import shown
from .columns import NameOrNumber, NamesIfAny, find_columns
from .files import exists, require_readable
from .parts import Parts, natural_order
from .source import DEFAULT_MEMORY, Source
from .stream import BlockStream, FrameTable, MemoryTable, is_block, is_frame
from .table import Matrix, Table

# By the end of a name, without ".gz".
_FORMATS = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".he5": "hdf5",
    ".zarr": "zarr",
}
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x89HDF\r\n\x1a\n": "hdf5",
}
_ALL_FORMATS = sorted(set(_FORMATS.values()))
_TEXT_FORMATS = {"csv", "tsv", "ndjson"}
# Formats that can be read from a pipe.
_STREAM_FORMATS = [*sorted(_TEXT_FORMATS), "arrow"]
# Formats of files that hold several arrays, each with a name.
_CONTAINERS = {"npz", "hdf5", "zarr"}


@dataclass(frozen=True)
class _Opener:
    """Opens tables with the options that were given."""

    format: str | None = None
    header: bool | None = None
    delimiter: str | None = None

    def table(self, data: Any, key: str | None = None) -> Table:
        """Open data of any kind."""
        if isinstance(data, str) and data == "-":
            if sys.stdin is None:
                raise DataError("There is no standard input: pass a file.")
            return self._stream(sys.stdin.buffer, "standard input")
        if isinstance(data, str | os.PathLike):
            return self._path(*self._split(os.fspath(data), key))
        if hasattr(data, "read"):
            return self._stream(data, "the stream")
        if is_frame(data):
            return FrameTable(data)
        if type(data).__module__.startswith("pyarrow"):
            from .tables import ArrowInMemory

            return ArrowInMemory(data)
        return _of_objects(data)

    def container(self, data: Any, key: str | None) -> Path | None:
        """Return the path of a file with several arrays, if the data is such."""
        if not isinstance(data, str | os.PathLike) or data == "-":
            return None
        path, _ = self._split(os.fspath(data), key)
        return path if path.exists() and self._format(path) in _CONTAINERS else None

    @staticmethod
    def _split(name: str, key: str | None) -> tuple[Path, str | None]:
        """Take ``file.h5:X`` apart, unless there is a file of that name."""
        path = Path(name)
        front, colon, back = name.rpartition(":")
        # "C:\\data" is a path.
        is_there = exists(Path(front)) or glob.has_magic(front)
        if key is None and colon and len(front) > 1 and back and not exists(path) and is_there:
            return Path(front), back
        return path, key

    def _path(self, path: Path, key: str | None) -> Table:
        if glob.has_magic(str(path)) and not exists(path):
            found = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207
            # With ** a pattern also stands for folders whose files it stands for.
            files = [file for file in found if not file.is_dir() or self._format(file) == "zarr"]
            return self._parts(shown(path), files or [file for folder in found for file in _files_in(folder)], key)
        if require_readable(path):
            return self._stream(path, str(path), self._format(path))
        if path.is_dir() and self._format(path) != "zarr":
            return self._parts(str(path), _files_in(path), key)
        return self._file(path, key)

    def _parts(self, where: str, paths: list[Path], key: str | None) -> Table:
        paths = sorted(paths, key=natural_order)
        formats = {self._format(path): path for path in reversed(paths)}
        known = [name for name in formats if name is not None]
        if not known:
            raise DataError(f"There are no files of data in {where}.")
        if len(formats) > 1:
            one, other = list(formats.values())[:2]
            raise DataError(f"Parts must be of one format, and {where} has {other.name} and {one.name}.")
        for path in paths:
            require_readable(path)
        tables = [self._file(path, key) for path in paths]
        return tables[0] if len(tables) == 1 else Parts(where, tables)

    def _file(self, path: Path, key: str | None) -> Table:
        name = self._format(path)
        if name is None:
            raise DataError(f"It is not clear what format {path} is: pass format=, one of {', '.join(_ALL_FORMATS)}.")
        if key is not None and name not in _CONTAINERS:
            raise DataError(f"{path} is a file of one table, which has no part named {key!r}.")
        return self._open(name, path, key)

    def _open(self, name: str, path: Path, key: str | None) -> Table:
        # Each format is loaded when it is needed.
        if name in _TEXT_FORMATS:
            return self._text(name, path, str(path))
        if name in {"npy", "npz"}:
            from .numpy_files import NpyTable, open_npz

            return NpyTable(path) if name == "npy" else open_npz(path, key)
        if name in {"parquet", "arrow"}:
            from .row_groups import ParquetTable, open_arrow

            return ParquetTable(path) if name == "parquet" else open_arrow(path)
        if name == "hdf5":
            from .hdf5 import open_hdf5

            return open_hdf5(path, key)
        from .zarr import ZarrTable

        return ZarrTable(path, key)

    def _stream(self, file: Path | IO[bytes], where: str, name: str | None = None) -> Table:
        name = self.format or name
        if name is None:
            raise DataError(f"Pass format= for {where}: one of {', '.join(_STREAM_FORMATS)}.")
        if name not in _STREAM_FORMATS:
            raise DataError(f"Format {name} cannot be read from {where}: use one of {', '.join(_STREAM_FORMATS)}.")
        if name == "arrow":
            from .tables import IpcStreamTable

            return IpcStreamTable(file, where)
        return self._text(name, file, where)

    def _text(self, name: str, file: Path | IO[bytes], where: str) -> Table:
        if name == "ndjson":
            from .ndjson import NdjsonTable

            return NdjsonTable(file, where)
        from .delimited import CsvTable

        delimiter = self.delimiter or ("\t" if name == "tsv" else ",")
        return CsvTable(file, where, delimiter=delimiter, header=self.header)

    def _format(self, path: Path) -> str | None:
        """Return the format that was asked for, or that of the name, or that of the first bytes."""
        if self.format is not None:
            return self.format
        name = path.name.lower().removesuffix(".gz")
        if name.endswith(".zarr.zip"):
            return "zarr"
        if Path(name).suffix in _FORMATS:
            return _FORMATS[Path(name).suffix]
        if path.is_dir():
            from .zarr import is_store

            return "zarr" if is_store(path) else None
        if not path.is_file():
            return None
        with path.open("rb") as file:
            begin = file.read(8)
        return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), None)


def open_source(
    data: Any,
    target: Any = None,
    *,
    columns: Any = None,
    exclude: Any = None,
    format: str | None = None,  # noqa: A002
    key: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    memory: int | None = None,
    batch_size: int | None = None,
) -> Source:
    """Open data of any size, from any file, as a source of blocks of rows.

    What it returns can be passed as X to ``fit``, ``partial_fit``, ``transform`` and ``predict``. Rows are read block
    by block, ahead of their use, and memory does not depend on their number.

    Parameters
    ----------
    data : str, path, array, frame, file or iterable
        One of

        - a file: ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.ndjson`` or ``.jsonl`` (also with ``.gz``), ``.parquet``,
          ``.arrow`` or ``.feather``, ``.h5`` or ``.hdf5``, ``.zarr`` or ``.zarr.zip``; with ``file:name`` for an array
          in a file that has several;
        - a folder, or a pattern such as ``"day*.csv"``: files of one format, in the order of the numbers in their
          names;
        - ``"-"``, standard input, or a binary file that is open: text or an Arrow stream, see ``format``;
        - an array, a data frame of pandas or polars, or a table of Arrow, in memory;
        - an iterable of blocks, which are X or pairs of X and y.
    target : str, int, list, path or array, default=None
        The responses or labels: a column by name or number, a list of such, or an array, or a file with an array. For
        a file of several arrays the name of another one in it.
    columns, exclude : str, int, range, slice or list of such, default=None
        Features to use, by name or number, and features to leave out. By default all columns but targets. They are
        used in the order given.
    format : str, default=None
        The format, if names of files do not tell: "npy", "npz", "csv", "tsv", "ndjson", "parquet", "arrow", "hdf5" or
        "zarr".
    key : str, default=None
        The array to open in a file that has several. ``file:name`` says the same.
    header : bool, default=None
        Whether the first line of CSV and TSV files holds names. By default it is found out.
    delimiter : str, default=None
        What is between fields of CSV files. By default a comma.
    memory : int, default=None
        Bytes that blocks under way and reading them may take together, see Notes. By default 256 MiB.
    batch_size : int, default=None
        Rows in a block, whatever ``memory`` is. By default as many as take 4 to 32 MiB and no more than an eighth of
        ``memory``.

    Returns
    -------
    source : Source
        With ``blocks(start=0)``, ``n_rows``, ``n_columns``, ``feature_names``, ``target_names``, ``dtype``,
        ``rereadable``, ``slow`` and ``fingerprint()``.

    Raises
    ------
    DataError
        A ValueError whose message names the file, the row (counted from 0, a header not included) and the column.

    Notes
    -----
    Nothing is ever unpickled. Parquet, Arrow, HDF5 and Zarr need ``pip install plstream[io]``.

    In Parquet, Arrow and NDJSON files a single column of lists of equal length holds all features; other columns can
    then only be targets.

    Numbers of text files are read as float64. A column of text files that is a target holds text if one of the first
    rows does; whole numbers are labels for the methods that tell labels from values.

    What is in use at the same time takes at most ``memory`` bytes and 10 MB: seven blocks (five that a fit works on,
    one that waits and one that is being made), and the text, chunks or columns that rows are read from, which may take
    4 MiB however small ``memory`` is. Pages of mapped files do not count, since the system drops them when it needs
    to, nor does freed memory that allocators keep (with it, up to 1.2 times ``memory`` and 10 MB were measured). Only
    what cannot be read in parts may exceed the bound: eight rows; a line of text, ten times; a chunk of HDF5, or ten
    of Zarr, three times; a record batch of a compressed Arrow file, or of an Arrow stream that is not a file; a page
    of a Parquet column, and 1 kB for every column of every row group.

    Fits that read the data several times first copy what is slow to read to a temporary file, if there is room for it
    where ``TMPDIR`` says (else in /var/tmp), and remove it in any case.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from plstream import IncrementalPLS, open_source
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "data.csv"
    ...     np.savetxt(file, np.column_stack([X, X @ [1, 2, 3]]), delimiter=",", header="a,b,c,y", comments="")
    ...     source = open_source(file, target="y")
    ...     model = IncrementalPLS(n_components=2).fit(source)
    >>> source.feature_names, source.target_names
    (['a', 'b', 'c'], ['y'])
    >>> model.feature_names_in_
    array(['a', 'b', 'c'], dtype=object)
    """
    _check_options(format, memory, batch_size, delimiter)
    opener = _Opener(format, header, delimiter)
    table = opener.table(data, key)
    allowed = DEFAULT_MEMORY if memory is None else memory
    _require_names(table)
    _require_narrow(table, allowed)
    targets, target_table, is_vector = _find_targets(opener, data, key, table, target)
    features = _find_features(table, targets if target_table is None else np.empty(0, np.intp), columns, exclude)
    if len(targets):
        # What cannot be a target is an error now, and not when it is read.
        (target_table or table).dtype_of(targets, text=True)
    source = Source(
        table,
        features,
        targets,
        target_table=target_table,
        is_vector=is_vector,
        memory=allowed,
        batch_size=batch_size,
    )
    if isinstance(data, str | os.PathLike) and source.rereadable:
        in_a_file = isinstance(target, str | os.PathLike) and _names_file(os.fspath(target))
        source.reopen = partial(
            open_source,
            _anywhere(data),
            _anywhere(target) if in_a_file and target_table is not None else target,
            columns=columns,
            exclude=exclude,
            format=format,
            key=key,
            header=header,
            delimiter=delimiter,
            memory=memory,
            batch_size=batch_size,
        )
    return source


def _anywhere(path: str | os.PathLike[str]) -> str:
    """Return a path that does not depend on the folder one is in."""
    return os.path.abspath(path)  # noqa: PTH100  pathlib would take "file.h5:name" and patterns apart


def text_columns(
    data: Any,
    *,
    format: str | None = None,  # noqa: A002
    header: bool | None = None,
    delimiter: str | None = None,
) -> list[str]:
    r"""Return the names of columns that hold text, of data in a file with names.

    Examples
    --------
    >>> from io import BytesIO
    >>> from plstream.data import text_columns
    >>> text_columns(BytesIO(b"a,kind\n1,red\n2,blue"), format="csv")
    ['kind']
    """
    table = _Opener(format, header, delimiter).table(data)
    return [name for j, name in enumerate(table.names or ()) if _is_text(table, j)]


def _is_text(table: Table, column: int) -> bool:
    return table.dtype_of(np.array([column], np.intp), text=True).kind in "SU"


def _find_targets(
    opener: _Opener, data: Any, key: str | None, table: Table, target: Any
) -> tuple[NDArray[np.intp], Table | None, bool]:
    """Return the numbers of the targets, the table that has them if it is another one, and whether y is a vector."""
    everything = np.arange(table.n_columns, table.n_columns + len(table.others), dtype=np.intp)
    if target is None:
        paired = isinstance(table, BlockStream) and table.paired
        return everything if paired else np.empty(0, np.intp), None, table.is_vector
    other = _other_table(opener, data, key, table, target)
    if other is not None:
        if None not in {other.n_rows, table.n_rows} and other.n_rows != table.n_rows:
            raise DataError(f"{other.where} has {other.n_rows:,} rows, and {table.where} has {table.n_rows:,}.")
        # An array may have one column and two dimensions; a file of text has lines.
        is_vector = other.is_vector or (other.n_columns == 1 and not isinstance(other, Matrix))
        return np.arange(other.n_columns, dtype=np.intp), other, is_vector
    names = None if table.names is None and not table.others else (table.names or ()) + table.others
    if table.others:
        found = table.n_columns + find_columns(target, table.others, len(table.others), table.where)
    else:
        found = find_columns(target, names, table.n_columns, table.where)
    if not len(found):
        raise DataError("target is an empty list: name a column, or leave it out.")
    return found, None, isinstance(target, str | int | np.integer)


def _other_table(opener: _Opener, data: Any, key: str | None, table: Table, target: Any) -> Table | None:
    """Return the table that a target is in by itself, if it is neither a column nor a list of such."""
    if isinstance(target, str):
        is_number = isinstance(target, NameOrNumber) and not isinstance(target.meant(table.names), str)
        if is_number or target in (table.names or ()) or target in table.others:
            return None
        container = opener.container(data, key)
        if container is not None and not _names_file(target):
            return opener.table(container, target)
        if not _names_file(target):
            return None
    if isinstance(target, str | os.PathLike):
        return _Opener(None, opener.header, opener.delimiter).table(target)
    if hasattr(target, "shape") or is_frame(target):
        return FrameTable(target) if is_frame(target) else MemoryTable(target, "the target")
    return None


def _names_file(name: str) -> bool:
    front, _, _ = name.rpartition(":")
    return exists(Path(name)) or (len(front) > 1 and exists(Path(front))) or os.sep in name


def _find_features(table: Table, targets: NDArray[np.intp], columns: Any, exclude: Any) -> NDArray[np.intp]:
    names, n = table.names, table.n_columns
    if isinstance(columns, NamesIfAny) and names is None:
        columns = None
    chosen = np.arange(n, dtype=np.intp) if columns is None else find_columns(columns, names, n, table.where)
    if columns is None:
        chosen = chosen[~np.isin(chosen, targets)]
    elif np.isin(chosen, targets).any():
        raise DataError("A column is both a feature and a target: leave it out of columns=.")
    if exclude is not None:
        exclude = [exclude] if isinstance(exclude, str) else exclude
        if isinstance(exclude, list | tuple):
            # What can only be a target is no feature anyway.
            exclude = [item for item in exclude if item not in table.others]
        chosen = chosen[~np.isin(chosen, find_columns(exclude, names, n, table.where))]
    if not len(chosen):
        raise DataError(f"No columns of {table.where} are left to be features.")
    return chosen


def _require_narrow(table: Table, memory: int) -> None:
    """Raise DataError if not even a row has room in memory: a small file can say that it has wide rows."""
    if 8 * table.n_columns > memory:
        raise DataError(f"A row of {table.where}, of {table.n_columns:,} columns, is too large for memory={memory:,}.")


def _require_names(table: Table) -> None:
    names = table.names
    if names is None or len(set(names)) == len(names):
        return
    twice = next(name for name in names if names.count(name) > 1)
    raise DataError(f"{table.where} has several columns named {shortened(twice)}: give each a name of its own.")


def _check_options(name: str | None, memory: int | None, batch_size: int | None, delimiter: str | None) -> None:
    if name is not None and name not in _ALL_FORMATS:
        raise ValueError(f"format={name!r} is not one of {', '.join(_ALL_FORMATS)}.")
    for option, value in (("memory", memory), ("batch_size", batch_size)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{option}={value!r} must be a whole number of 1 or more.")
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter={delimiter!r} must be one character.")


def _of_objects(data: Any) -> Table:
    if hasattr(data, "shape") or hasattr(data, "__array__"):
        return MemoryTable(data)
    if isinstance(data, list | tuple) and not (data and is_block(data[0])):
        return MemoryTable(np.asarray(data))
    if isinstance(data, Iterable) and not isinstance(data, bytes | dict):
        return BlockStream(data)
    raise TypeError(f"Data is a path, an array, a frame, a file or an iterable of blocks, not {type(data).__name__}.")


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a folder; raise DataError if there are folders in it, for they may hold more rows."""
    found = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    folders = [path for path in found if path.is_dir()]
    if folders:
        pattern = str(folder / "**" / "*.parquet")
        raise DataError(f"{folder} has folders in it, such as {folders[0].name}: use a pattern such as {pattern!r}.")
    return found
