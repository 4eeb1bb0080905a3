"""Methods that learn one row at a time: CIPLS, and methods for comparison."""

from .ccipca import CCIPCA
from .cipls import CIPLS
from .ipls import IPLS
from .lda import IncrementalLDA
from .olpls import OLPLS
from .sgdpls import SGDPLS

__all__ = ["CCIPCA", "CIPLS", "IPLS", "OLPLS", "SGDPLS", "IncrementalLDA"]
