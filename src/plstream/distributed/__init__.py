"""Blocks of rows on the workers of a cluster: each is condensed where it is, and what is left of it is merged."""

from .collections import Collection, is_collection
from .graph import LoadedBlock
from .lazy import lazily
from .reducing import map_reduce
from .remote import RemoteBlocks

__all__ = ["Collection", "LoadedBlock", "RemoteBlocks", "is_collection", "lazily", "map_reduce"]
