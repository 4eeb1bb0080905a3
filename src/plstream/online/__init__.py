"""Methods that learn one row at a time: CIPLS, and those it is compared with."""

from .ccipca import CCIPCA
from .sgdpls import SGDPLS

__all__ = ["CCIPCA", "SGDPLS"]
