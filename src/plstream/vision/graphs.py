"""ONNX graphs cut off at one of their tensors, so that nothing is computed in vain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._core.errors import DataError, import_optional
from ..data.columns import listed
from ..data.files import require_readable


def graph_up_to(path: str | os.PathLike[str], layer: str | None) -> tuple[bytes, str]:
    """Return the part of an ONNX model that a tensor needs, with that as its only output, and the tensor's name.

    Parameters
    ----------
    path : str or path-like
        The model.
    layer : str or None
        The name of an output, or of any other tensor. None is the only output.
    """
    onnx = import_optional("onnx", f"Reading {path}", "vision")
    require_readable(Path(path))
    try:
        model = onnx.load(path)
    except Exception as error:  # noqa: BLE001
        # What protobuf raises has changed its place more than once.
        raise DataError(f"{path} is not an ONNX model, or damaged: {error}.") from None
    graph = model.graph
    layer = _require_tensor(str(path), graph, layer)
    needed_nodes = _nodes_for(graph, layer)
    used = {name for node in needed_nodes for name in _inputs(node)} | {layer}
    _keep(graph.output, [output for output in graph.output if output.name == layer] or [_named(onnx, layer)])
    _keep(graph.node, needed_nodes)
    _keep(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in used])
    try:
        content: bytes = model.SerializeToString(deterministic=True)
    except ValueError:
        raise DataError(f"{path} is too large: up to {layer} it has more than 2 GB.") from None
    return content, layer


def _require_tensor(where: str, graph: Any, layer: str | None) -> str:
    outputs = [output.name for output in graph.output]
    if layer is None and len(outputs) == 1:
        return str(outputs[0])
    if layer is None:
        raise ValueError(f"Say with layer= which tensor of {where} to take: its outputs are {listed(outputs)}.")
    if layer not in {name for node in graph.node for name in node.output if name}:
        raise ValueError(f"layer={layer!r} is no tensor of {where}: its outputs are {listed(outputs)}.")
    return layer


def _nodes_for(graph: Any, layer: str) -> list[Any]:
    """Return the nodes that a tensor depends on, in their order, which is one that can be run."""
    wanted, kept = {layer}, []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(_inputs(node))
            kept.append(node)
    return kept[::-1]


def _inputs(node: Any) -> Iterator[str]:
    """Yield the tensors that a node may use, those of branches and loops inside it among them."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from (output.name for output in graph.output)
            for inner in graph.node:
                yield from _inputs(inner)


def _keep(entries: Any, kept: list[Any]) -> None:
    # They belong to the list, and would go with it.
    copies = [type(entry).FromString(entry.SerializeToString()) for entry in kept]
    del entries[:]
    entries.extend(copies)


def _named(onnx: Any, name: str) -> Any:
    """Return an output of which the runtime finds out the type."""
    return onnx.ValueInfoProto(name=name)
