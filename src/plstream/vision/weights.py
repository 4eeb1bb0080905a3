"""Weights of networks, from files that are data: safetensors, or PyTorch's through its loader of weights alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from .._core.errors import DataError
from ..data.files import require_readable

_TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "BF16": np.uint16}
_TORCH_ENDINGS = (".pth", ".pt")


def read_weights(path: str | os.PathLike[str], names: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Return arrays by name from a file, of any type of floating point, as float32; the others are not read."""
    file = Path(path)
    require_readable(file)
    tensors = _Torch(file) if file.suffix in _TORCH_ENDINGS else _Safetensors(file)
    found = {}
    for name in names:
        if name not in tensors.names:
            raise DataError(f"{file} has no {name}: it must have the names that torchvision gives to VGG16.")
        found[name] = tensors.read(name)
        if not np.isfinite(found[name]).all():
            raise DataError(f"{name} in {file} has numbers that are not finite: the file is damaged.")
    return found


class _Safetensors:
    """Arrays in a safetensors file, mapped."""

    def __init__(self, path: Path) -> None:
        try:
            # It checks the header and that all of the file is there, but has no bfloat16 for NumPy.
            with safe_open(path, "numpy"):
                pass
        except SafetensorError as error:
            raise DataError(
                f"{path} is not a safetensors file, or damaged: {error}. Weights are a .safetensors or a .pth file."
            ) from None
        self.path = path
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            self.names: dict[str, Any] = json.loads(file.read(length))
        self._start = 8 + length

    def read(self, name: str) -> NDArray[np.float32]:
        entry = self.names[name]
        if entry["dtype"] not in _TYPES:
            raise DataError(f"{name} in {self.path} is of type {entry['dtype']}, not one of {', '.join(_TYPES)}.")
        offset = self._start + entry["data_offsets"][0]
        stored = np.memmap(self.path, _TYPES[entry["dtype"]], "r", offset, tuple(entry["shape"]))
        if entry["dtype"] == "BF16":
            # The upper half of a float32.
            return (stored.astype(np.uint32) << 16).view(np.float32)
        return np.array(stored, np.float32)


class _Torch:
    """Arrays in a file of PyTorch's, if that is installed."""

    def __init__(self, path: Path) -> None:
        try:
            import torch  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise ImportError(
                f"Reading {path} needs the package torch: pip install torch, or save the weights with safetensors."
            ) from None
        try:
            self.names: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except Exception:  # noqa: BLE001
            # What PyTorch says itself advises to run the file.
            raise DataError(f"{path} is damaged, or holds more than weights, which is never run.") from None
        if not isinstance(self.names, dict):
            raise DataError(f"{path} holds no weights by name: save a state_dict().")
        self.path = path

    def read(self, name: str) -> NDArray[np.float32]:
        tensor = self.names[name]
        if not hasattr(tensor, "detach"):
            raise DataError(f"{name} in {self.path} is no tensor: save a state_dict().")
        return np.array(tensor.detach().float().numpy(), np.float32)
