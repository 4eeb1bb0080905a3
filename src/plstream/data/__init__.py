"""Data from anywhere, opened as a source of blocks of rows."""

from .._core.errors import DataError
from .opening import open_source, text_columns
from .reader import XY
from .source import Source

__all__ = ["XY", "DataError", "Source", "open_source", "text_columns"]
