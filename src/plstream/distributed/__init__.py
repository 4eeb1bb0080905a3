"""Blocks of rows on the workers of a cluster: each is reduced where it is stored, and the results are merged."""

from .collections import OnWorkers
from .reduce import map_reduce

__all__ = ["OnWorkers", "map_reduce"]
