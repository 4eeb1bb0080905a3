"""A network that computes one row of features per image: an ONNX graph up to one of its tensors, run on the CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, counted, import_optional
from .._core.threads import blas_threads
from .._core.types import Array
from ..data.columns import listed
from ..data.files import require_readable
from ..data.source import DEFAULT_MEMORY

POOLING = ("none", "avg", "max")
_INPUT_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
# Measured for VGG16: four to five times its first 64 maps, in float32.
_BYTES_PER_PIXEL = 5 * 64 * 4
_LARGEST_BATCH = 64
# Errors are raised and need not be logged.
_SILENT = 4


class Network:
    """An ONNX graph from images to one layer, whose maps are flattened, or pooled to one number each.

    ``size`` is the height and width of images, None for that of the model; ``threads`` is None for the same number as
    for BLAS. The attribute ``size`` is (height, width), and ``batch_size`` is the number of images that the model
    requires or that takes moderate memory.
    """

    def __init__(
        self, graph: bytes, name: str, *, layer: str, pool: str, size: int | None, threads: int | None
    ) -> None:
        if pool not in POOLING:
            raise ValueError(f"pool={pool!r} is not one of {', '.join(POOLING)}.")
        self.name, self.layer, self.pool = name, layer, pool
        self._runtime = import_optional("onnxruntime", "Computing features", "vision")
        options = self._runtime.SessionOptions()
        options.log_severity_level = _SILENT
        options.intra_op_num_threads = blas_threads() if threads is None else threads
        # Threads that spin while waiting would occupy the cores that read the next images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = self._runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001
            raise ValueError(f"{name} cannot be run by ONNX Runtime: {_reason(error)}.") from None
        self._hash = sha256(graph).hexdigest()
        self._dtype, self._fixed_batch, self._channels_last, self.size = self._input(size)
        fitting = DEFAULT_MEMORY // (_BYTES_PER_PIXEL * self.size[0] * self.size[1])
        self.batch_size = self._fixed_batch or max(1, min(_LARGEST_BATCH, fitting))
        self.n_features = self(np.zeros((1, 3, *self.size), np.float32)).shape[1]

    def fingerprint(self) -> str:
        """Return a string that changes if the network changes."""
        return f"{self._hash} {self.layer} {self.pool}"

    def __call__(self, pixels: NDArray[np.float32]) -> Array:
        """Return one row per image of (images, 3, height, width), with flattened maps."""
        if self._fixed_batch is None:
            return self._rows(pixels)
        parts = range(0, len(pixels), self._fixed_batch)
        return np.concatenate([self._rows(pixels[start : start + self._fixed_batch]) for start in parts])

    def _rows(self, pixels: NDArray[np.float32]) -> Array:
        n = len(pixels)
        images = pixels
        if self._fixed_batch is not None and n < self._fixed_batch:
            images = np.concatenate([pixels, np.repeat(pixels[:1], self._fixed_batch - n, axis=0)])
        if self._channels_last:
            images = images.transpose(0, 2, 3, 1)
        maps = self._computed(np.ascontiguousarray(images, self._dtype))[:n]
        if self.pool != "none":
            if maps.ndim != 4:
                raise ValueError(f"{self.layer} of {self.name} has no maps to pool: leave out pool=.")
            axes = (1, 2) if self._channels_last else (2, 3)
            maps = maps.mean(axis=axes) if self.pool == "avg" else maps.max(axis=axes)
        return maps.reshape(n, -1)

    def _computed(self, images: Array) -> Array:
        options = self._runtime.RunOptions()
        options.log_severity_level = _SILENT
        try:
            (result,) = self._session.run([self.layer], {self._input_name: images}, options)
        except Exception as error:  # noqa: BLE001
            height, width = self.size
            raise ValueError(
                f"{self.name} cannot process images of {height} x {width} up to {self.layer}: {_reason(error)}."
            ) from None
        found: Array = np.asarray(result)
        if found.dtype.kind != "f" or found.ndim < 2 or len(found) != len(images) or not found.size:
            raise ValueError(
                f"{self.layer} of {self.name} is {found.dtype} of shape {found.shape} for "
                f"{counted(len(images), 'image')}, but must be floats, with one or more values per image: use another "
                "layer, or larger images."
            )
        return found

    def _input(self, size: int | None) -> tuple[Any, int | None, bool, tuple[int, int]]:
        """Return type, number of images if fixed, whether channels come last, and height and width."""
        inputs = self._session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 else []
        if len(shape) != 4 or 3 not in (shape[1], shape[3]) or inputs[0].type not in _INPUT_TYPES:
            found = ", ".join(f"{each.name} {each.type} {each.shape}" for each in inputs)
            raise ValueError(
                f"{self.name} must have one input, fractions of shape (n, 3, height, width) or (n, height, width, 3), "
                f"and has: {found}."
            )
        self._input_name = inputs[0].name
        channels_last = shape[1] != 3
        sizes = shape[1:3] if channels_last else shape[2:4]
        height, width = (length if isinstance(length, int) and length > 0 else size for length in sizes)
        if height is None or width is None:
            raise ValueError(f"{self.name} accepts images of any size: choose one with size=.")
        if size is not None and (height, width) != (size, size):
            raise ValueError(f"{self.name} requires images of {height} x {width}: leave out size=.")
        batch = shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None
        return _INPUT_TYPES[inputs[0].type], batch, channels_last, (height, width)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def graph_up_to(path: str | os.PathLike[str], layer: str | None) -> tuple[bytes, str]:
    """Return the part of an ONNX model that a tensor depends on, and the name of the tensor.

    ``layer`` is the name of an output or of any other tensor; None for the only output.
    """
    onnx = import_optional("onnx", f"Reading {path}", "vision")
    require_readable(Path(path))
    try:
        model = onnx.load(path)
    except Exception as error:  # noqa: BLE001
        # The exceptions of protobuf differ between versions.
        raise DataError(f"{path} is not an ONNX model, or is damaged: {error}.") from None
    graph = model.graph
    layer = _require_tensor(str(path), graph, layer)
    nodes = _nodes_for(graph, layer)
    used = {name for node in nodes for name in _inputs(node)} | {layer}
    # The runtime infers the type of an output without one.
    outputs = [output for output in graph.output if output.name == layer] or [onnx.ValueInfoProto(name=layer)]
    _keep(graph.output, outputs)
    _keep(graph.node, nodes)
    _keep(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in used])
    try:
        content: bytes = model.SerializeToString(deterministic=True)
    except ValueError:
        raise DataError(f"{path} is too large: the graph up to {layer} takes more than 2 GB.") from None
    return content, layer


def _require_tensor(where: str, graph: Any, layer: str | None) -> str:
    outputs = [output.name for output in graph.output]
    if layer is None and len(outputs) == 1:
        return str(outputs[0])
    if layer is None:
        raise ValueError(f"Choose a tensor of {where} with layer=: its outputs are {listed(outputs)}.")
    if layer not in {name for node in graph.node for name in node.output if name}:
        raise ValueError(f"layer={layer!r} is not a tensor of {where}: its outputs are {listed(outputs)}.")
    return layer


def _nodes_for(graph: Any, layer: str) -> list[Any]:
    """Return the nodes that a tensor depends on, in topological order."""
    wanted, kept = {layer}, []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(_inputs(node))
            kept.append(node)
    return kept[::-1]


def _inputs(node: Any) -> Iterator[str]:
    """Yield the tensors that a node may use, including those in branches and loops."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from (output.name for output in graph.output)
            for inner in graph.node:
                yield from _inputs(inner)


def _keep(entries: Any, kept: list[Any]) -> None:
    # The list owns its entries: copy them before it is cleared.
    copies = [type(entry).FromString(entry.SerializeToString()) for entry in kept]
    del entries[:]
    entries.extend(copies)
