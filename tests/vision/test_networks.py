"""Networks: VGG16's graph against loops, any tensor of any ONNX graph, and invalid networks."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

from plstream.data import DataError
from plstream.vision import VGG16_LAYERS, vgg16
from plstream.vision.network import Network, graph_up_to
from plstream.vision.vgg import read_weights

from . import tiny
from .tiny import weights

pytestmark = pytest.mark.usefixtures("_runtime")
HEIGHT = 37


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(1).normal(size=(2, 3, HEIGHT, HEIGHT)).astype(np.float32)


@pytest.fixture(scope="module")
def by_loops(pixels):
    return [tiny.all_layers(weights(), image) for image in pixels]


def network(graph, layer, pool="none", size=HEIGHT, threads=None):
    return Network(graph, "the network", layer=layer, pool=pool, size=size, threads=threads)


@pytest.mark.parametrize("layer", VGG16_LAYERS)
def test_every_layer_equals_loops(layer, pixels, by_loops):
    rows = network(vgg16(weights(), layer), layer)(pixels)
    expected = np.stack([layers[layer].ravel() for layers in by_loops])
    assert rows.shape == expected.shape
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4 * expected.max())
    assert expected.max() > 0


@pytest.mark.parametrize(("pool", "reduce"), [("avg", np.mean), ("max", np.max)])
def test_pooled_maps(pool, reduce, pixels, by_loops):
    rows = network(vgg16(weights(), "conv3_3"), "conv3_3", pool)(pixels)
    expected = [reduce(layers["conv3_3"], axis=(1, 2)) for layers in by_loops]
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("layer", "size", "shape"),
    [
        ("conv5_3", 224, 14 * 14),
        ("pool5", 224, 7 * 7),
        ("conv5_3", 64, 4 * 4),
        ("conv5_3", 32, 2 * 2),
        ("pool5", 32, 1),
    ],
)
def test_numbers_of_features(layer, size, shape):
    # VGG16 has 512 channels where the small one has 5: 100,352, 25,088, 8,192, 2,048 and 512 features.
    assert network(vgg16(weights(), layer), layer, size=size).n_features == 5 * shape


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_types_of_weights(dtype, tmp_path):
    path = tmp_path / "weights.safetensors"
    arrays = {"other": np.arange(3), **weights()}
    if dtype == "bfloat16":
        # Integers of few bits are exact in this type.
        kept = {name: np.round(4 * array) for name, array in arrays.items()}
        save_file(
            {name: (np.float32(array).view(np.uint32) >> 16).astype(np.uint16) for name, array in kept.items()}, path
        )
        path.write_bytes(path.read_bytes().replace(b'"U16"', b'"BF16"'))
        _shorten_header(path, len(kept))
    else:
        kept = {name: array.astype(dtype) for name, array in arrays.items()}
        save_file(kept, path)
    names = [*weights()]
    found = read_weights(path, names)
    assert [*found] == names
    for name in names:
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], kept[name].astype(np.float32))


def _shorten_header(path, n_arrays):
    """Set the length of a header in which each type has become a character longer."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little") + n_arrays
    path.write_bytes(length.to_bytes(8, "little") + content[8:])


def test_weights_of_pytorch(tmp_path, monkeypatch):
    path = tmp_path / "weights.pth"
    path.write_bytes(b"data")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="requires the package torch: pip install torch, or save"):
        read_weights(path, [])

    class Tensor:
        def __init__(self, array):
            self.array = array

        def detach(self):
            return self

        def float(self):
            return Tensor(self.array.astype(np.float32))

        def numpy(self):
            return self.array

    def load(_, *, map_location, weights_only):
        assert map_location == "cpu"
        assert weights_only
        return {name: Tensor(array.astype(np.float64)) for name, array in weights().items()}

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(load=load))
    assert vgg16(path) == vgg16(weights())
    for wrong, words in (([1], "holds no named weights"), (dict.fromkeys(weights(), 1), "is not a tensor")):
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(load=lambda *_, found=wrong, **__: found))
        with pytest.raises(DataError, match=words):
            vgg16(path)


def test_weights_in_a_file_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="reading .pth files needs PyTorch")
    path = tmp_path / "weights.pth"
    torch.save({name: torch.nn.Parameter(torch.from_numpy(array)) for name, array in weights().items()}, path)
    assert vgg16(path) == vgg16(weights())
    torch.save({"features.0.weight": SimpleNamespace()}, path)
    with pytest.raises(DataError, match="damaged, or holds code besides weights"):
        vgg16(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w.pop("features.28.bias"), "has features.0.weight but no features.28.bias: it is incomplete"),
        (
            lambda w: w.update(module=w.pop("features.0.weight")),
            "no features.0.weight, but .*: rename VGG16's",
        ),
        (lambda w: w.update({"features.5.weight": w["features.0.weight"]}), "weights of another network"),
        (lambda w: w.update({"features.5.bias": w["features.0.bias"]}), "weights of another network"),
        (lambda w: w.update({"features.0.bias": np.full(3, np.nan, np.float32)}), "not finite"),
        (lambda w: w.update({"features.0.bias": np.zeros(3, np.int32)}), "of type I32, not one of F16"),
    ],
)
def test_weights_of_something_else(change, words, tmp_path):
    arrays = weights()
    change(arrays)
    save_file(arrays, tmp_path / "weights.safetensors")
    with pytest.raises(DataError, match=words):
        vgg16(tmp_path / "weights.safetensors")


@pytest.mark.parametrize("content", [b"nothing at all", b"\xff" * 100, b"\x02" + bytes(7) + b"{}x"])
def test_damaged_weights(content, tmp_path):
    (tmp_path / "weights.safetensors").write_bytes(content)
    with pytest.raises(DataError, match=r"not a safetensors file, or is damaged|has no features.0.weight"):
        vgg16(tmp_path / "weights.safetensors")


def test_a_folder_of_weights(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder: name the .safetensors or .pth file"):
        vgg16(tmp_path)


def test_arrays_without_a_layer_that_is_needed():
    few = {name: array for name, array in weights().items() if name.startswith(("features.0", "features.2."))}
    vgg16(few, "pool1")
    with pytest.raises(DataError, match=r"no features.5.weight"):
        vgg16(few, "conv2_1")
    with pytest.raises(ValueError, match="not one of conv1_1"):
        vgg16(few, "fc6")


# Any ONNX model: averages of the channels, a product, a branch that fails if it is computed.
@pytest.fixture
def onnx_file(tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def write(shape=("n", 3, 8, 8), kind=TensorProto.FLOAT, axes=(2, 3), inputs=1):
        constants = {
            "matrix": numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "matrix"),
            "wrong": numpy_helper.from_array(np.zeros((7, 7), np.float32), "wrong"),
        }
        nodes = [
            helper.make_node("Cast", ["image"], ["pixels"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", ["pixels"], ["means"], axes=list(axes), keepdims=0),
            helper.make_node("MatMul", ["means", "matrix"], ["embedding"]),
            helper.make_node("ArgMax", ["embedding"], ["label"], axis=1, keepdims=0),
            helper.make_node("MatMul", ["pixels", "wrong"], ["impossible"]),
        ]
        images = [helper.make_tensor_value_info(name, kind, shape) for name in ["image", "other"][:inputs]]
        outputs = [
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("impossible", TensorProto.FLOAT, None),
        ]
        graph = helper.make_graph(nodes, "g", images, outputs, [*constants.values()])
        path = tmp_path / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        return path

    return write


def opened(path, layer, size=None, pool="none"):
    graph, name = graph_up_to(path, layer)
    return Network(graph, str(path), layer=name, pool=pool, size=size, threads=1)


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16", "DOUBLE"])
@pytest.mark.parametrize(
    ("shape", "axes", "size"),
    [
        (("n", 3, 8, 8), (2, 3), None),
        ((None, 3, "h", "w"), (2, 3), 8),
        ((4, 3, 8, 8), (2, 3), 8),
        (("n", 8, 8, 3), (1, 2), None),
    ],
)
def test_any_onnx_model(onnx_file, shape, axes, size, kind):
    from onnx import TensorProto

    path = onnx_file(shape, getattr(TensorProto, kind), axes)
    pixels = np.random.default_rng(2).normal(size=(7, 3, 8, 8)).astype(np.float32)
    means = pixels.mean(axis=(2, 3))
    tolerance = 1e-2 if kind == "FLOAT16" else 1e-4
    np.testing.assert_allclose(opened(path, "means", size)(pixels), means, atol=tolerance)
    product = means @ np.arange(12).reshape(3, 4)
    np.testing.assert_allclose(opened(path, "embedding", size)(pixels), product, atol=10 * tolerance)
    np.testing.assert_allclose(opened(path, "pixels", size, pool="avg")(pixels), means, atol=tolerance)


@pytest.mark.parametrize(
    ("options", "layer", "size", "words"),
    [
        ({}, None, None, "Choose a tensor of .*: its outputs are embedding, impossible"),
        ({}, "nothing", None, "layer='nothing' is not a tensor"),
        ({}, "impossible", None, "cannot"),
        ({}, "label", None, "must be floats, with one or more values per image"),
        ({}, "embedding", 9, "requires images of 8 x 8: leave out size="),
        ({"shape": ("n", 3, "h", "w")}, "embedding", None, "accepts images of any size: choose one with size="),
        ({"shape": ("n", 1, 8, 8)}, "pixels", None, "must have one input, fractions of shape"),
        ({"kind": 2}, "embedding", None, r"has: image tensor\(uint8\)"),
        ({"inputs": 2}, "embedding", None, "must have one input"),
    ],
)
def test_onnx_models_that_cannot_be_used(onnx_file, options, layer, size, words, capfd):
    with pytest.raises(ValueError, match=words):
        opened(onnx_file(**options), layer, size)
    assert capfd.readouterr().err == ""


def test_pooling_what_has_no_maps(onnx_file):
    with pytest.raises(ValueError, match="no maps to pool: leave out pool="):
        opened(onnx_file(), "embedding", pool="avg")
    with pytest.raises(ValueError, match="not one of none, avg, max"):
        opened(onnx_file(), "pixels", pool="sum")


def test_a_damaged_onnx_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x00\x01nothing")
    with pytest.raises(DataError, match="not an ONNX model, or is damaged"):
        graph_up_to(path, None)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        graph_up_to(path, None)
