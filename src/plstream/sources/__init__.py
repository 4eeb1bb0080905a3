"""Sources: everything that yields blocks of rows."""

from .arrays import ArraySource
from .blocks import Block

__all__ = ["ArraySource", "Block"]
