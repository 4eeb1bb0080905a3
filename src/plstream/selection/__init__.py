"""Feature selection: scores of features, and selectors that keep the best of them."""

from ._base import FeatureRanking
from .compare import SelectorComparison, compare_selectors, overlap, stability
from .ilfs import ILFS

__all__ = ["ILFS", "FeatureRanking", "SelectorComparison", "compare_selectors", "overlap", "stability"]
