"""Models in files, and as ONNX graphs; fits that go on after they were killed; files written whole or not at all."""

from .checkpoints import CheckpointError
from .container import ModelFileError
from .files import replacing
from .fitting import Stopped, fit_source
from .modelfile import load, save
from .onnx import export_onnx

__all__ = ["CheckpointError", "ModelFileError", "Stopped", "export_onnx", "fit_source", "load", "replacing", "save"]
