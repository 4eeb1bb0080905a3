"""open_source: opens data of any kind, and finds its features and targets."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._core.errors import DataError
from .._core.memory import require_memory
from .._core.progress import track
from .._core.remote import AnyPath
from .._core.tiles import LARGEST_BLOCK_BYTES
from .._core.types import Array
from .._core.urls import is_url
from .array_reader import ArrayReader
from .columns import NameOrNumber, find_columns, require_unique
from .files import exists
from .formats import FORMATS, format_of, open_file, open_reader, split_key
from .objects import is_table, open_array, open_object
from .preparation import choose_columns, find_role
from .reader import NO_COLUMNS, Columns, OpenOptions, Reader
from .source import DEFAULT_MEMORY, Source
from .sql import is_database
from .where import Where


def open_source(
    data: Any,
    target: Any = None,
    *,
    columns: Any = None,
    exclude: Any = None,
    format: str | None = None,  # noqa: A002
    query: str | None = None,
    where: Any = None,
    categorical: Any = None,
    weight: str | int | None = None,
    groups: str | int | None = None,
    folds: str | int | None = None,
    ids: str | int | list[Any] | None = None,
    key: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    memory: int | None = None,
    batch_size: int | None = None,
) -> Source:
    """Open data of any size, from any file, as a source of blocks of rows.

    The source can be passed as X to ``fit``, ``partial_fit``, ``transform`` and ``predict``. Rows are read block by
    block, ahead of use, in memory that does not depend on their number.

    Parameters
    ----------
    data : str, path, array, frame, file or iterable
        One of

        - a file: ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.ndjson`` or ``.jsonl`` (also with ``.gz``), ``.parquet``,
          ``.arrow`` or ``.feather``, ``.h5`` or ``.hdf5``, ``.zarr`` or ``.zarr.zip``; with ``file:name`` for an array
          in a file that has several;
        - a folder, or a pattern such as ``"day*.csv"``: files of one format, in the order of the numbers in their
          names;
        - a URL of such a file, folder or pattern, as in ``s3://bucket/day*.csv`` (``pip install 'plstream[remote]'``);
        - ``"-"``, standard input, or a file that is open: text or an Arrow stream, see ``format``;
        - a database, with ``query``: ``postgresql://user:password@host/name``, ``sqlite:///PATH``, ``duckdb:///PATH``;
        - an array or a sparse matrix in memory;
        - an object that supports Arrow: a pandas or polars frame, a pyarrow table, record batch, reader or dataset, a
          DuckDB relation, an ADBC cursor; or a dict of columns;
        - an iterable of blocks, which are any of these or pairs of X and y, such as ``pandas.read_csv(file,
          chunksize=1000)``.
    target : str, int, list, path or array, default=None
        The responses or labels: a column by name or number, a list of columns, an array, or a file that holds an array.
        If ``data`` is a file with several arrays, also the name of another array in it.
    columns, exclude : str, int, range, slice or list of these, default=None
        Features to use, by name or number, and features to leave out. By default all columns except targets. They are
        used in the given order. Patterns such as ``"sensor_*"`` match several names. ``"kind=red"`` is a level of a
        column of categories, so that the names of a model's features open new data for it.
    query : str, default=None
        The query whose result is read, if ``data`` is the address of a database.
    where : str or list of tuples, default=None
        Which rows to use: a condition such as ``"year >= 2020 and site in ('A', 'B')"``, or ``[("year", ">=", 2020)]``.
        It may refer to columns that are not features. Parquet row groups and partitions that cannot match are not read.
    categorical : str, int, list of these, or dict, default=None
        Categorical columns. Each becomes one indicator feature per level, named like ``"kind=red"``. Levels are found
        by a separate read, unless a dict of columns and their levels is passed. Rows with other levels have zeros, and
        are counted in ``unseen_levels``. Where the category is missing, all its features are zero.
    weight, groups, folds, ids : str or int, default=None; ids also a list of these
        Columns that are not features: sample weights, which ``fit`` uses; groups or folds, which estimators with
        cross-validation use; and row identifiers, which :meth:`Source.records` yields.
    format : str, default=None
        The format, if file names do not show it: "npy", "npz", "csv", "tsv", "ndjson", "parquet", "arrow", "hdf5" or
        "zarr".
    key : str, default=None
        The array to open in a file that has several. Equivalent to ``file:name``.
    header : bool, default=None
        Whether the first line of CSV and TSV files holds names. By default detected.
    delimiter : str, default=None
        Delimiter of CSV files. By default a comma.
    memory : int, default=None
        Memory limit of blocks and read buffers in bytes, see Notes. By default 256 MiB.
    batch_size : int, default=None
        Number of rows per block, regardless of ``memory``. By default 4 to 32 MiB, at most an eighth of ``memory``.

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
    Nothing is ever unpickled. Parquet, Arrow, frames, HDF5 and Zarr require ``pip install 'plstream[io]'``.

    In Parquet, Arrow and NDJSON files a single column of lists of equal length holds all features; other columns can
    then only be targets.

    Numbers in text files are read as float64. A target in a text file holds strings if one of its first rows does.
    Targets that are integers are labels for the methods that distinguish labels from values.

    Memory in use is at most ``memory`` bytes plus 10 MB: seven blocks (five that a fit works on, one waiting and one
    being assembled), and buffers of text, chunks or columns, which may take 4 MiB however small ``memory`` is. Pages
    of mapped files do not count, since the system drops them when needed, nor does freed memory that allocators keep
    (with it, up to 1.2 times ``memory`` plus 10 MB were measured). Only units that cannot be read in parts may exceed
    the bound: eight rows; ten times a line of text; three times a chunk of HDF5 or ten chunks of Zarr; a record batch
    of a compressed Arrow file, or of an Arrow stream that is not a file; a page of a Parquet column, and 1 kB for every
    column of every row group.

    Fits that read the data several times first copy slow files to a temporary file in ``TMPDIR`` (by default /var/tmp),
    if there is enough space, and always remove it.

    If a file is written to, replaced or removed after it was opened, the current or next read raises an error: size,
    inode and modification time are compared.

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
    arguments = locals().copy()
    _check_options(format, memory, batch_size, delimiter)
    condition = None if where is None else Where.of(where)
    options = OpenOptions(format, key, header, delimiter, query, condition)
    reader = open_reader(data, options)
    allowed = DEFAULT_MEMORY if memory is None else memory
    require_unique(reader.names or (), reader.where)
    # A small file can declare wide rows.
    if 8 * reader.n_columns > allowed:
        raise DataError(
            f"A row of {reader.where} ({reader.n_columns:,} columns) does not fit in memory={allowed:,} bytes: allow "
            "more memory."
        )
    targets, target_reader, is_vector = _find_targets(reader, target, data, options)
    named = {"weight": weight, "groups": groups, "folds": folds}
    for number, column in enumerate(ids if isinstance(ids, list) else [ids], start=1):
        named["ids" if number == 1 else f"ids {number}"] = column
    roles = {role: find_role(reader, role, column) for role, column in named.items() if column is not None}
    if condition is not None:
        if target_reader is not None:
            raise DataError(
                "where= requires that the target is a column of the same table: move it there, or leave out where=."
            )
        names = condition.names()
        numbers = find_columns(names, reader.names, reader.n_columns, reader.where)
        condition = replace(condition, columns=dict(zip(names, numbers.tolist(), strict=True)))
    own_targets = targets if target_reader is None else NO_COLUMNS
    preparation = choose_columns(reader, own_targets, columns, exclude, categorical, condition, roles)
    if len(targets):
        # Raises an error for columns that cannot be targets.
        (target_reader or reader).dtype_of(targets, text=True)
    source = Source(
        reader,
        preparation,
        targets,
        target_reader=target_reader,
        is_vector=is_vector,
        memory=allowed,
        batch_size=batch_size,
    )
    if isinstance(data, str | os.PathLike) and source.rereadable:
        is_file = isinstance(target, str | os.PathLike) and _names_file(os.fspath(target))
        arguments["data"] = _absolute(data)
        arguments["target"] = _absolute(target) if is_file and target_reader is not None else target
        arguments["categorical"] = {category.name: category.levels for category in preparation.categories} or None
        source.reopen = partial(open_source, **arguments)
    return source


def read_array(path: Path, key: str | None = None) -> Array:
    """Return an array of a .npy or .npz file, memory-mapped unless compressed; nothing is ever unpickled."""
    reader = open_file(path, OpenOptions(key=key))
    assert isinstance(reader, ArrayReader)
    if reader.array is not None:
        return reader.array
    assert reader.n_rows is not None
    shape = reader.n_rows, reader.n_columns
    dtype = reader.dtype_of(NO_COLUMNS, text=True)
    require_memory(shape[0] * shape[1] * dtype.itemsize, f"{reader.where}, {shape[0]:,} rows of {shape[1]:,} columns,")
    array = np.empty(shape, dtype)
    pieces = reader.rows(0, max(1, LARGEST_BLOCK_BYTES // array[:1].nbytes))
    done = 0
    for piece in track(pieces, f"Reading {path.name}", len(array), len):
        array[done : done + len(piece)] = piece
        done += len(piece)
    return array[:, 0] if reader.is_vector else array


def _absolute(path: str | os.PathLike[str]) -> str:
    """Return a path that does not depend on the current folder."""
    if is_url(os.fspath(path)):
        return os.fspath(path)
    return os.path.abspath(path)  # noqa: PTH100  pathlib does not support "file.h5:name" and patterns


class Column(NamedTuple):
    """A column of a file: its name or number, a description of its values, and whether it can be a feature."""

    name: str
    kind: str
    is_numeric: bool


def list_columns(
    data: Any,
    *,
    format: str | None = None,  # noqa: A002
    header: bool | None = None,
    delimiter: str | None = None,
    query: str | None = None,
) -> list[Column]:
    r"""Return all columns of data, including those that can be neither features nor targets.

    Examples
    --------
    >>> from io import BytesIO
    >>> from plstream.data.opening import list_columns
    >>> for column in list_columns(BytesIO(b"a,kind,day\n1,red,2024-05-01\n2,blue,2024-05-02"), format="csv"):
    ...     print(f"{column.name}: {column.kind}")
    a: integer
    kind: text
    day: date
    """
    reader = open_reader(data, OpenOptions(format, None, header, delimiter, query))
    found = []
    for j in range(reader.n_columns + len(reader.others)):
        name = reader.name_of(j)
        try:
            is_numeric = reader.dtype_of(np.array([j], np.intp)).kind in "biuf"
        except DataError:
            is_numeric = False
        found.append(Column(str(j) if name is None else name, reader.kind_of(j), is_numeric))
    return found


def _find_targets(reader: Reader, target: Any, data: Any, options: OpenOptions) -> tuple[Columns, Reader | None, bool]:
    """Return the numbers of the targets, their reader if it is a separate one, and whether y is a vector."""
    if target is None:
        return reader.own_targets, None, reader.is_vector
    other = _target_reader(reader, target, data, options)
    if other is not None:
        if None not in {other.n_rows, reader.n_rows} and other.n_rows != reader.n_rows:
            raise DataError(f"{other.where} has {other.n_rows:,} rows, but {reader.where} has {reader.n_rows:,}.")
        # Only arrays distinguish one dimension from one column.
        is_vector = other.is_vector or (other.n_columns == 1 and not isinstance(other, ArrayReader))
        return np.arange(other.n_columns, dtype=np.intp), other, is_vector
    if reader.others:
        found = reader.n_columns + find_columns(target, reader.others, len(reader.others), reader.where)
    else:
        found = find_columns(target, reader.names, reader.n_columns, reader.where)
    if not len(found):
        raise DataError("target is an empty list: name a column, or leave it out.")
    return found, None, isinstance(target, str | int | np.integer)


def _target_reader(reader: Reader, target: Any, data: Any, options: OpenOptions) -> Reader | None:
    """Return the reader of a target that is an array or a file, or None if it is a column or a list of columns."""
    if isinstance(target, str):
        is_number = isinstance(target, NameOrNumber) and not isinstance(target.meant(reader.names), str)
        if is_number or target in (reader.names or ()) or target in reader.others:
            return None
        if not _names_file(target):
            file = _file_with_keys(data, options)
            return None if file is None else open_reader(file, options._replace(key=target))
    if isinstance(target, str | os.PathLike):
        return open_reader(target, options._replace(format=None, key=None))
    if is_table(target):
        return open_object(target)
    is_array = hasattr(target, "shape") or hasattr(target, "__array__")
    return open_array(target, "the target") if is_array else None


def _file_with_keys(data: Any, options: OpenOptions) -> AnyPath | None:
    """Return the path of the data if it is a file that can hold several arrays."""
    if not isinstance(data, str | os.PathLike) or data == "-" or is_database(data):
        return None
    path, _ = split_key(os.fspath(data), options.key)
    known = format_of(path, options) if path.exists() else None
    return path if known is not None and known.has_keys else None


def _names_file(name: str) -> bool:
    front, _, _ = name.rpartition(":")
    return exists(Path(name)) or (len(front) > 1 and exists(Path(front))) or os.sep in name


def _check_options(name: str | None, memory: int | None, batch_size: int | None, delimiter: str | None) -> None:
    if name is not None and name not in FORMATS:
        raise ValueError(f"format={name!r} is not one of {', '.join(FORMATS)}.")
    for option, value in (("memory", memory), ("batch_size", batch_size)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{option}={value!r} must be an integer of at least 1.")
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter={delimiter!r} must be one character.")
