"""Feature selection: scores of features, and selectors that keep the best of them."""

from ._base import FeatureRanking
from .vip import VIPSelector, vip_scores

__all__ = ["FeatureRanking", "VIPSelector", "vip_scores"]
