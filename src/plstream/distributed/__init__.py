"""Distributed reduction: blocks of rows are reduced by the workers that store them, and the results are merged."""

from .collections import OnWorkers
from .reduce import map_reduce

__all__ = ["OnWorkers", "map_reduce"]
