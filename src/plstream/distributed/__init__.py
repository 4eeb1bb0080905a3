"""Blocks of rows on the workers of a cluster: each is condensed where it is, and what is left of it is merged."""

from .collections import OnWorkers
from .reduce import map_reduce

__all__ = ["OnWorkers", "map_reduce"]
