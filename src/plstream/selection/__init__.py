"""Feature selection: scores of features, and selectors that keep the best of them."""

from ._base import FeatureRanking

__all__ = ["FeatureRanking"]
