"""Models in files, and as ONNX graphs; files that are written whole or not at all."""

from .files import replacing
from .modelfile import ModelFileError, load, save

__all__ = ["ModelFileError", "load", "replacing", "save"]
