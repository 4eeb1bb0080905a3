"""Models in files, and as ONNX graphs; files that are written whole or not at all."""

from .files import replacing
from .modelfile import ModelFileError, load, save
from .onnx import export_onnx

__all__ = ["ModelFileError", "export_onnx", "load", "replacing", "save"]
