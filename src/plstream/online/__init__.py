"""Methods that learn one row at a time: CIPLS, and those it is compared with."""

from .ccipca import CCIPCA
from .ipls import IPLS

__all__ = ["CCIPCA", "IPLS"]
