"""States: summaries of rows. A state absorbs rows, forgets and merges; only the sketch depends on PLS."""

from .buffer import Buffered
from .folds import Folds
from .gram import Gram
from .moments import Moments, moments_of
from .sketch import Sketch

__all__ = ["Buffered", "Folds", "Gram", "Moments", "Sketch", "moments_of"]
