"""Model files, ONNX graphs, resumable fits, and atomic writes."""

from .checkpoints import CheckpointError
from .container import ModelFileError
from .files import replacing
from .fitting import Stopped, fit_source
from .modelfile import load, save
from .onnx import export_onnx

__all__ = ["CheckpointError", "ModelFileError", "Stopped", "export_onnx", "fit_source", "load", "replacing", "save"]
