"""Methods that learn one row at a time: CIPLS, and those it is compared with."""

from .ccipca import CCIPCA
from .lda import IncrementalLDA
from .olpls import OLPLS

__all__ = ["CCIPCA", "OLPLS", "IncrementalLDA"]
