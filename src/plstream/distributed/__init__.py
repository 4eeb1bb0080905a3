"""Blocks of rows on the workers of a cluster: each is condensed where it is, and what is left of it is merged."""

from .collections import Collection, OnWorkers, collection_of, is_collection, lazily
from .graph import LoadedBlock
from .reduce import map_reduce

__all__ = ["Collection", "LoadedBlock", "OnWorkers", "collection_of", "is_collection", "lazily", "map_reduce"]
