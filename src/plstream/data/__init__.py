"""Data from anywhere, opened as a source of blocks of rows."""

from .._core.errors import DataError
from .opening import open_source
from .source import Source

__all__ = ["DataError", "Source", "open_source"]
