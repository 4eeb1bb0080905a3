"""Query results as Arrow record batches: PostgreSQL and SQLite by ADBC drivers, DuckDB by its own package.

All reads of a source see the same snapshot: the connection stays in one read-only transaction.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import finalize

from .._core.errors import DataError, import_optional
from .._core.urls import redacted, shown
from .arrow import ArrowReader
from .reader import OpenOptions

_SCHEMES = ("postgresql://", "postgres://", "sqlite://", "duckdb://")
_LONGEST_REASON = 200
# Metadata of the PostgreSQL driver for numbers of arbitrary precision, which it returns as text.
_TYPE_NAME = b"ADBC:postgresql:typname"


def is_database(data: Any) -> bool:
    """Return whether a string is the URL of a database."""
    return isinstance(data, str) and data.startswith(_SCHEMES)


def open_query(address: str, options: OpenOptions) -> ArrowReader:
    """Open the result of a query."""
    where = f"the query of {shown(address)}"
    if options.query is None:
        raise DataError(f"Pass query= for {shown(address)}: a statement that returns the rows.")
    pa = import_optional("pyarrow", "Reading a database")
    database = _Database(address, options.query, where)
    with database.wrapped_errors("fails"):
        schema = database.schema(pa)
    numeric = [f.name for f in schema if (f.metadata or {}).get(_TYPE_NAME) == b"numeric"]
    kinds = pa.schema([(f.name, pa.float64() if f.name in numeric else f.type) for f in schema])

    def batches(*_: Any) -> Iterator[Any]:
        with database.wrapped_errors("broke off"), closing(database.batches(pa)) as found:
            for batch in found:
                yield batch.cast(kinds) if numeric else batch

    reader = ArrowReader(where, kinds, batches)
    reader.known_by = shown(address), options.query
    return reader


class _Database:
    """A connection in one transaction, opened when first needed."""

    def __init__(self, address: str, query: str, where: str) -> None:
        self.address, self.query, self.where = address, query, where
        self._connection: Any = None

    @contextmanager
    def wrapped_errors(self, problem: str) -> Iterator[None]:
        """Raise DataError, without secrets of the URL, for any exception of a driver, and close the connection."""
        try:
            yield
        except (DataError, ImportError, GeneratorExit):
            raise
        except Exception as error:  # noqa: BLE001
            _close(self._connection)
            self._connection = None
            lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
            reason = redacted(lines[0], [self.address])[:_LONGEST_REASON].rstrip(".")
        else:
            return
        # Raised outside of the handler: the driver's error may contain the full URL.
        raise DataError(f"{self.where[0].upper()}{self.where[1:]} {problem}: {reason}.") from None

    def schema(self, pa: Any) -> Any:
        """Return the columns of the result."""
        connection = self._connected()
        if self.address.startswith("duckdb"):
            return pa.RecordBatchReader.from_stream(connection.sql(self.query)).schema
        with connection.cursor() as cursor:
            if self.address.startswith("sqlite"):
                # Its types depend on the values.
                cursor.execute(self.query)
                return cursor.fetch_record_batch().schema
            return cursor.adbc_execute_schema(self.query)

    def batches(self, pa: Any) -> Generator[Any]:
        """Yield the result in batches."""
        connection = self._connected()
        if self.address.startswith("duckdb"):
            yield from pa.RecordBatchReader.from_stream(connection.sql(self.query))
            return
        with connection.cursor() as cursor:
            cursor.execute(self.query)
            yield from cursor.fetch_record_batch()

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = self._connect()
            # Drivers warn about connections that are not closed.
            finalize(self, _close, self._connection)
        return self._connection

    def _connect(self) -> Any:
        if self.address.startswith("duckdb"):
            duckdb = import_optional("duckdb", "Reading DuckDB", "sql")
            connection = duckdb.connect(str(self._file()), read_only=True)
            connection.begin()
            return connection
        if self.address.startswith("sqlite"):
            dbapi = import_optional("adbc_driver_sqlite.dbapi", "Reading SQLite", "sql")
            return dbapi.connect(f"file:{self._file().absolute()}?mode=ro")
        dbapi = import_optional("adbc_driver_postgresql.dbapi", "Reading PostgreSQL", "sql")
        connection = dbapi.connect(self.address)
        with connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read read only")
        return connection

    def _file(self) -> Path:
        """Return the path after three slashes."""
        path = Path(unquote(self.address.partition("://")[2].removeprefix("/")))
        if not path.is_file():
            raise DataError(f"There is no file {shown(path)}.")
        return path


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()
