"""Vision: from images to rows of features, and to those of pairs."""

from .pairs import pair_differences

__all__ = ["pair_differences"]
