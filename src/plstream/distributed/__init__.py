"""Blocks of rows on the workers of a cluster: each is condensed where it is, and what is left of it is merged."""

from .collections import Collection, Remote, collection_of, is_collection
from .files import OnWorkers
from .graph import LoadedBlock, rows_of
from .lazy import lazily
from .reducing import map_reduce

__all__ = [
    "Collection",
    "LoadedBlock",
    "OnWorkers",
    "Remote",
    "collection_of",
    "is_collection",
    "lazily",
    "map_reduce",
    "rows_of",
]
