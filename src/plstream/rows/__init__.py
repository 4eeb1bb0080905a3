"""Training rows in blocks, from arrays, sources and Dask collections.

All three are :class:`TrainingRows`, which are read block by block, and reduced where they are stored.
"""

from .blocks import ArrayRows, Block, Part, TrainingRows
from .collections import CollectionRows, is_collection
from .sources import SourceRows, by_blocks, opened_data, require_alone, require_target, reread, validate_source

__all__ = [
    "ArrayRows",
    "Block",
    "CollectionRows",
    "Part",
    "SourceRows",
    "TrainingRows",
    "by_blocks",
    "is_collection",
    "opened_data",
    "require_alone",
    "require_target",
    "reread",
    "validate_source",
]
