"""Sources: everything that yields blocks of rows."""

from .._core.errors import DataError
from .arrays import ArraySource
from .blocks import Block
from .opening import open_source, text_columns
from .source import Source

__all__ = ["ArraySource", "Block", "DataError", "Source", "open_source", "text_columns"]
