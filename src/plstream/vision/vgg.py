"""The convolutional layers of VGG16 as an ONNX graph, built from a file of ImageNet or VGGFace weights.

Weights are data: safetensors, or PyTorch's format through its weights-only loader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from .._core.errors import DataError, import_optional
from .._core.types import Array
from ..data.columns import listed
from ..data.files import require_readable
from .decoding import IMAGENET_MEAN, IMAGENET_STD

# Names of arrays, and the function that reads one.
_Opened: TypeAlias = tuple[Collection[str], Callable[[str], NDArray[np.float32]]]

_TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "BF16": np.uint16}
_TORCH_ENDINGS = (".pth", ".pt")
# Supported by all recent runtimes.
_OPSET = 13
_IR_VERSION = 7


#: Names of the layers of VGG16's convolutional part, from the first to the last.
VGG16_LAYERS = tuple(
    layer
    for block, n_convolutions in enumerate((2, 2, 3, 3, 3), start=1)
    for layer in (*(f"conv{block}_{k}" for k in range(1, n_convolutions + 1)), f"pool{block}")
)
# Their indices in torchvision's list, where a convolution is followed by its ReLU.
_NUMBERS = dict(
    zip(VGG16_LAYERS, (0, 2, 4, 5, 7, 9, 10, 12, 14, 16, 17, 19, 21, 23, 24, 26, 28, 30), strict=True),
)


class Preset(NamedTuple):
    """A trained VGG16: the names of its weights, and its preprocessing."""

    title: str
    # The name of the weights of a layer, before ".weight" and ".bias".
    prefix: Callable[[str], str]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: str


PRESETS = {
    "vgg16": Preset(
        "torchvision's VGG16", lambda layer: f"features.{_NUMBERS[layer]}", IMAGENET_MEAN, IMAGENET_STD, "rgb"
    ),
    # Its input is pixels from 0 to 255 minus the mean of its faces, here divided by 255.
    "vggface": Preset(
        "VGGFace's VGG16",
        lambda layer: layer,
        (129.1863 / 255, 104.7624 / 255, 93.5940 / 255),
        (1 / 255, 1 / 255, 1 / 255),
        "bgr",
    ),
}


def vgg16(
    weights: str | os.PathLike[str] | Mapping[str, Array], layer: str = "conv5_3", *, preset: str = "vgg16"
) -> bytes:
    """Return VGG16 up to a layer as an ONNX graph.

    Its input ``X`` is (images, 3, height, width) of any size, its output has the name of the layer. A ``conv`` layer
    is taken after its ReLU; ``pool5`` is the maximum of each 2 x 2 block of ``conv5_3``.

    Parameters
    ----------
    weights : str, path-like or dict of arrays
        A safetensors file in any floating-point type, a .pth file if PyTorch is installed, or the arrays; only
        those up to the layer are needed. The numbers of channels are those of the weights.
    layer : {"conv1_1", "conv1_2", "pool1", ..., "conv5_3", "pool5"}, default="conv5_3"
        The last layer.
    preset : {"vgg16", "vggface"}, default="vgg16"
        Naming of the weights: ``features.0.weight`` to ``features.28.bias`` as in torchvision, or
        ``conv1_1.weight`` to ``conv5_3.bias`` as in VGGFace.

    Returns
    -------
    graph : bytes
        The content of an .onnx file.

    Examples
    --------
    >>> from plstream.vision import vgg16
    >>> graph = vgg16("vgg16.safetensors", layer="pool5")  # doctest: +SKIP
    """
    onnx = import_optional("onnx", "Building VGG16", "vision")
    if layer not in _NUMBERS:
        raise ValueError(f"layer={layer!r} is not one of {', '.join(VGG16_LAYERS)}.")
    layers = VGG16_LAYERS[: VGG16_LAYERS.index(layer) + 1]
    prefix = PRESETS[preset].prefix
    names = [f"{prefix(each)}.{part}" for each in layers if _is_conv(each) for part in ("weight", "bias")]
    if isinstance(weights, Mapping):
        _require_names("weights", weights, names)
        arrays = {name: np.ascontiguousarray(weights[name], np.float32) for name in names}
    else:
        arrays = read_weights(weights, names)
    nodes, n_channels = _nodes(onnx, layers, arrays, prefix)
    helper = onnx.helper
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "VGG16",
            [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, ["images", 3, "height", "width"])],
            [helper.make_tensor_value_info(layer, onnx.TensorProto.FLOAT, ["images", n_channels, None, None])],
            [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="plstream",
    )
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def smallest_size(layer: str) -> int:
    """Return the smallest height and width of images for a layer: each pooling halves them."""
    return 1 << sum(not _is_conv(each) for each in VGG16_LAYERS[: VGG16_LAYERS.index(layer) + 1])


def _is_conv(layer: str) -> bool:
    return layer.startswith("conv")


def _nodes(
    onnx: Any, layers: tuple[str, ...], arrays: Mapping[str, Array], prefix: Callable[[str], str]
) -> tuple[list[Any], int]:
    """Return the operations, and the number of output channels."""
    make, nodes, last, n_channels = onnx.helper.make_node, [], "X", 3
    for layer in layers:
        if _is_conv(layer):
            weight, bias = (f"{prefix(layer)}.{part}" for part in ("weight", "bias"))
            shape, bias_shape = arrays[weight].shape, arrays[bias].shape
            if len(shape) != 4 or shape[1:] != (n_channels, 3, 3) or bias_shape != shape[:1]:
                raise DataError(
                    f"{weight} has the shape {shape}, and its bias {bias_shape}, where VGG16 has (n, {n_channels}, 3, "
                    "3) and (n,): these are the weights of another network."
                )
            n_channels = shape[0]
            nodes.append(make("Conv", [last, weight, bias], [f"{layer}_sums"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
            nodes.append(make("Relu", [f"{layer}_sums"], [layer]))
        else:
            nodes.append(make("MaxPool", [last], [layer], kernel_shape=[2, 2], strides=[2, 2]))
        last = layer
    return nodes, n_channels


def read_weights(path: str | os.PathLike[str], names: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Return named arrays of a file, of any floating-point type, as float32; other arrays are not read."""
    file = Path(path)
    require_readable(file)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: name the .safetensors or .pth file of the weights.")
    stored, read = _open_torch(file) if file.suffix in _TORCH_ENDINGS else _open_safetensors(file)
    names = list(names)
    _require_names(str(file), stored, names)
    found = {}
    for name in names:
        found[name] = read(name)
        if not np.isfinite(found[name]).all():
            raise DataError(f"{name} in {file} has numbers that are not finite: the file is damaged.")
    return found


def _require_names(where: str, stored: Collection[str], names: list[str]) -> None:
    """Raise DataError if weights are missing, with advice if they have the names of another preset."""
    absent = next((name for name in names if name not in stored), None)
    if absent is None:
        return
    for model, preset in PRESETS.items():
        if f"{preset.prefix(VGG16_LAYERS[0])}.weight" in stored and absent == names[0]:
            raise DataError(f"{where} has no {absent}, but the names of {preset.title}: pass {model} as model=.")
    if absent != names[0]:
        raise DataError(f"{where} has {names[0]} but no {absent}: it is incomplete, or not a VGG16.")
    raise DataError(
        f"{where} has no {absent}, but {listed(stored) if stored else 'nothing'}: rename VGG16's weights as in "
        "torchvision (features.0.weight) or in VGGFace (conv1_1.weight)."
    )


def _open_safetensors(path: Path) -> _Opened:
    try:
        # safetensors checks the header and the file size, but does not support bfloat16 in NumPy.
        with safe_open(path, "numpy"):
            pass
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a safetensors file, or is damaged: {error}. Weights must be a .safetensors or .pth file."
        ) from None
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entries: dict[str, Any] = json.loads(file.read(length))
    entries.pop("__metadata__", None)

    def read(name: str) -> NDArray[np.float32]:
        entry = entries[name]
        if entry["dtype"] not in _TYPES:
            raise DataError(f"{name} in {path} is of type {entry['dtype']}, not one of {', '.join(_TYPES)}.")
        offset = 8 + length + entry["data_offsets"][0]
        stored = np.memmap(path, _TYPES[entry["dtype"]], "r", offset, tuple(entry["shape"]))
        if entry["dtype"] == "BF16":
            # The upper half of a float32.
            return (stored.astype(np.uint32) << 16).view(np.float32)
        return np.array(stored, np.float32)

    return entries, read


def _open_torch(path: Path) -> _Opened:
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(
            f"Reading {path} requires the package torch: pip install torch, or save the weights with safetensors."
        ) from None
    try:
        tensors: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001
        # PyTorch's own message advises executing the file.
        raise DataError(f"{path} is damaged, or holds code besides weights, which is never executed.") from None
    if not isinstance(tensors, dict):
        raise DataError(f"{path} holds no named weights: save a state_dict().")

    def read(name: str) -> NDArray[np.float32]:
        if not hasattr(tensors[name], "detach"):
            raise DataError(f"{name} in {path} is not a tensor: save a state_dict().")
        return np.array(tensors[name].detach().float().numpy(), np.float32)

    return tensors, read
