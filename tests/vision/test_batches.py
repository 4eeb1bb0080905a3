"""Batches of small images: from pickled pixels to features, one file at a time, with labels."""

import pickle

import numpy as np
import pytest

from plstream.data import DataError
from plstream.vision import batches, extract_features, find_images
from plstream.vision.decoding import Preprocessing
from tests.experiments.files import batch, python_2_batch

from . import tiny
from .tiny import weights


@pytest.fixture
def folder(tmp_path):
    """ImageNet 32x32 of three batches: the pixels of each, and the names that its images get."""
    place = tmp_path / "imagenet32"
    place.mkdir()
    names, pixels = [], []
    for seed, (name, part) in enumerate(
        {"train_data_batch_1": "train", "train_data_batch_10": "train", "val_data": "val"}.items()
    ):
        content, data, labels = batch(4 + seed, seed, n_classes=3)
        (place / name).write_bytes(python_2_batch(data, labels) if seed == 1 else content)
        names += [f"{part}/{label}/{name}_{i}" for i, label in enumerate(labels)]
        pixels.append(data)
    return place, names, np.concatenate(pixels).reshape(-1, 3, 32, 32)


def test_images_of_a_folder(folder):
    place, names, pixels = folder
    found = find_images(place)
    assert found.names == names
    assert found.size == 32
    for start in (0, 3, 4, 12):
        for expected, (_, image) in zip(pixels[start:], found.contents(start), strict=True):
            np.testing.assert_array_equal(image, expected.transpose(1, 2, 0))
    assert find_images(place / "val_data").names == names[9:]
    before = found.fingerprint()
    (place / "val_data").write_bytes(batch(6, 9)[0])
    assert find_images(place).fingerprint() != before


@pytest.mark.usefixtures("_runtime")
def test_from_pixels_to_features(folder, tmp_path):
    place, names, pixels = folder
    X = extract_features(place, tmp_path / "vgg16.npy", weights=weights(), layer="pool5", batch_size=4, threads=1)
    # At the size of the images, not at that of ImageNet.
    assert X.shape == (15, 5)
    assert (tmp_path / "vgg16.txt").read_text().splitlines() == names
    mean, std = (np.reshape(values, (3, 1, 1)) for values in (Preprocessing.mean, Preprocessing.std))
    for i in (0, 6, 14):
        expected = tiny.all_layers(weights(), (pixels[i] / 255 - mean) / std)["pool5"].ravel()
        np.testing.assert_allclose(X[i], expected, rtol=1e-4, atol=1e-4)
    larger = extract_features(place, tmp_path / "large.npy", weights=weights(), layer="pool5", size=64, threads=1)
    assert larger.shape == (15, 20)


def test_files_of_numpy(tmp_path):
    _, data, labels = batch(3, 0)
    np.savez(tmp_path / "val_data.npz", data=data, labels=labels)
    with pytest.warns(UserWarning, match="has only val batches, so features of other batches will be missing"):
        assert find_images(tmp_path).names == [f"val/{label}/val_data_{i}" for i, label in enumerate(labels)]


def test_a_list_with_the_name_of_a_batch(tmp_path):
    (tmp_path / "train").write_text("a.png\nb.png\n")
    assert find_images(tmp_path / "train").names == ["a.png", "b.png"]
    assert batches.find_batches(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"data": np.zeros((2, 3071), np.uint8), "labels": [1, 2]},
            "val_data has rows of 3,071 numbers",
        ),
        ({"data": np.zeros((2, 3072)), "labels": [1, 2]}, "of 3,072 numbers of type float64"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": np.array([1.5, 2])}, "labels must be integers"),
        ({"data": np.zeros((2, 3072), np.uint8)}, "val_data is not a batch of images"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "val_data has 2 images but 1 labels"),
        ({"data": print, "labels": [1]}, "it requests builtins.print"),
    ],
)
def test_batches_that_are_wrong(tmp_path, content, message):
    (tmp_path / "val_data").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=message):
        find_images(tmp_path / "val_data")


def test_batches_of_two_sizes(tmp_path):
    for name, size in (("train_data_batch_1", 32), ("val_data", 16)):
        data = np.zeros((2, 3 * size * size), np.uint8)
        (tmp_path / name).write_bytes(pickle.dumps({"data": data, "labels": [1, 2]}))
    with pytest.raises(DataError, match="images have 32, 16 pixels per side"):
        find_images(tmp_path)


def test_a_batch_that_changes(folder):
    place, _, _ = folder
    found = find_images(place)
    (place / "val_data").write_bytes(batch(5, 9)[0])
    with pytest.raises(DataError, match="val_data has changed while it was read"):
        list(found.contents())
