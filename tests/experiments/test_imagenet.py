"""ImageNet, CIFAR and Tiny ImageNet: batches of pixels, and features of images in class folders."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from plstream.data import DataError
from plstream.experiments.datasets import imagenet, load_tasks
from tests.real_data import FOLDER, real_data

from .files import batch, python_2_batch, save_features


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLSTREAM_DATA", str(tmp_path))
    for name in ("imagenet32", "imagenet224", "tiny_imagenet"):
        (tmp_path / name).mkdir()
    return tmp_path


def check_pixels(task, parts):
    """The rows are those of the batches in order, and the last batch is tested on."""
    np.testing.assert_array_equal(task.X, np.concatenate([data for data, _ in parts]))
    np.testing.assert_array_equal(task.y, np.concatenate([labels for _, labels in parts]))
    assert task.X.dtype == np.float32
    ((train, test),) = task.splits
    first_test = len(task.y) - len(parts[-1][1])
    np.testing.assert_array_equal(np.sort(train), np.arange(first_test))
    assert (np.diff(train) < 0).any()
    np.testing.assert_array_equal(test, np.arange(first_test, len(task.y)))
    assert "Pixels" in task.note


@pytest.mark.parametrize("kind", ["python 3", "python 2", "npz"])
def test_downsampled_batches(home, kind):
    parts = []
    # Number 10 comes after 2, and not between 1 and 2.
    for seed, name in enumerate(["train_data_batch_1", "train_data_batch_2", "train_data_batch_10", "val_data"]):
        content, data, labels = batch(6 + seed, seed)
        parts.append((data, labels))
        path = home / "imagenet32" / name
        if kind == "npz":
            np.savez(path, data=data, labels=np.array(labels), mean=data.mean(axis=0))
        else:
            path.write_bytes(content if kind == "python 3" else python_2_batch(data, labels))
    (task,) = load_tasks("imagenet32")
    assert (task.name, task.paper) == ("imagenet32/pixels", None)
    check_pixels(task, parts)


@pytest.mark.parametrize(
    ("names", "key"),
    [(["data_batch_1", "data_batch_2", "test_batch"], b"labels"), (["train", "test"], b"fine_labels")],
)
def test_cifar(tmp_path, names, key):
    folder = tmp_path / "cifar"
    folder.mkdir()
    parts = []
    for seed, name in enumerate(names):
        _, data, labels = batch(6, seed, first=0)
        parts.append((data, labels))
        (folder / name).write_bytes(python_2_batch(data, labels, key))
    (task,) = load_tasks(str(folder))
    assert task.name == "cifar/pixels"
    check_pixels(task, parts)


def test_official_numbers():
    assert (imagenet._CLASSES, imagenet._IMAGES) == (1000, 1_331_167)


@pytest.mark.parametrize(("n", "paper"), [(3000, "ImageNet 32x32"), (2000, None)])
def test_all_images_make_it_the_data_set_of_the_paper(home, monkeypatch, n, paper):
    monkeypatch.setattr(imagenet, "_IMAGES", 4000)
    for name, rows in (("train_data_batch_1", n), ("val_data", 1000)):
        data, labels = np.zeros((rows, 1), np.uint8), np.arange(rows) % 1000 + 1
        np.savez(home / "imagenet32" / name, data=data, labels=labels)
    assert load_tasks("imagenet32")[0].paper == paper


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": [1, 2]}, "val_data.npz is not a batch of images"),
        ({"data": np.zeros((2, 4))}, "val_data.npz is not a batch of images"),
        ({"data": np.zeros(2), "labels": [1, 2]}, "val_data.npz is not a batch of images"),
        ({"data": np.zeros((2, 4)), "labels": [1, 2, 3]}, "val_data.npz has 2 images but 3 labels"),
        ({"data": np.zeros((2, 5)), "labels": [1, 2]}, "rows have 4, 5 features"),
        ({"data": np.zeros((2, 4)), "labels": [[1, 2], [1, 2]]}, "val_data.npz is not a batch of images"),
        ({"data": np.zeros((2, 4)), "labels": [1.5, 2]}, "labels must be integers"),
        ({"data": np.array([[{}]], object), "labels": [1]}, "holds Python objects, which are never loaded"),
    ],
)
def test_batches_that_are_wrong(home, arrays, message):
    np.savez(home / "imagenet32/train_data_batch_1", data=np.zeros((2, 4)), labels=[1, 2])
    np.savez(home / "imagenet32/val_data", **arrays)
    with pytest.raises(DataError, match=message):
        load_tasks("imagenet32")


@pytest.mark.parametrize("labels", [3, [1, [2]], ["a", "b"], [1, None], np.zeros((2, 2), int), [10**30, 1]])
def test_pickled_labels_that_are_none(home, labels):
    good, data, _ = batch(2, 0)
    (home / "imagenet32/val_data").write_bytes(good)
    (home / "imagenet32/train_data_batch_1").write_bytes(pickle.dumps({"data": data, "labels": labels}))
    with pytest.raises(DataError, match=r"train_data_batch_1 is not a batch of images|labels must be integers"):
        load_tasks("imagenet32")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "imagenet32",
            r"train_data_batch_1 to .*_10 and val_data there.* plstream features .*vgg16.npy",
        ),
        ("imagenet224", r"ILSVRC2012_devkit_t12 from .*image-net.org.* plstream features .*_train.npy.*_val.npy"),
        ("tiny-imagenet", r"tiny-imagenet-200.zip.*NAME_train.npz and NAME_val.npz"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_to_do_without_the_data(data, message):
    with pytest.raises(DataError, match=message):
        load_tasks(data)


def test_class_folders(home):
    files = [
        f"{part}/n0{c}/{c}_{i}.JPEG" for part, n in (("train", 4), ("val", 2)) for c in (7, 3, 5) for i in range(n)
    ]
    X = np.random.default_rng(0).normal(size=(len(files), 5)).astype(np.float32)
    save_features(home / "imagenet224/vgg16.npy", files, X)
    (task,) = load_tasks("imagenet224")
    assert task.name == "imagenet224/vgg16"
    assert isinstance(task.X, np.memmap)
    np.testing.assert_array_equal(task.y, [{"3": 0, "5": 1, "7": 2}[file.split("/")[1][-1]] for file in files])
    ((train, test),) = task.splits
    np.testing.assert_array_equal(np.sort(train), np.arange(12))
    np.testing.assert_array_equal(test, np.arange(12, 18))


def test_class_folders_in_two_files(home):
    # A class that only training rows have must not change the numbers of the others.
    for part, classes in (("train", "abc"), ("val", "bc")):
        files = [f"{c}/{i}.JPEG" for c in classes for i in range(3)]
        save_features(home / f"imagenet224/vgg16_{part}.npy", files, np.ones((len(files), 2), np.float16))
    (task,) = load_tasks("imagenet224")
    np.testing.assert_array_equal(task.y, np.repeat([0, 1, 2, 1, 2], 3))
    ((train, test),) = task.splits
    assert (len(train), len(test)) == (9, 6)
    assert task.X.dtype == np.float32


def test_features_of_half_precision_stay_in_their_files(home):
    """Rows are taken as float32, from both files; nothing of their size is ever made."""
    random = np.random.default_rng(0)
    X = {part: random.normal(size=(n, 5)).astype(np.float16) for part, n in (("train", 12), ("val", 6))}
    for part, rows in X.items():
        files = [f"{part}/n0{i % 3}/{i}.JPEG" for i in range(len(rows))]
        save_features(home / f"imagenet224/vgg16_{part}.npy", files, rows)
    (task,) = load_tasks("imagenet224")
    both = np.concatenate([X["train"], X["val"]]).astype(np.float32)
    assert all(isinstance(array, np.memmap) and array.dtype == np.float16 for array in task.X._arrays)
    assert (task.X.shape, task.X.dtype, task.X.ndim, len(task.X)) == ((18, 5), np.float32, 2, 18)
    for rows in (
        random.permutation(18),
        np.array([13]),
        np.array([], np.intp),
        slice(10, 14),
        slice(None),
        slice(4, 4),
    ):
        assert task.X[rows].dtype == np.float32
        np.testing.assert_array_equal(task.X[rows], both[rows])
    np.testing.assert_array_equal(np.asarray(task.X, np.float64), both)
    # It is the same task as with a copy of the rows.
    assert replace(task, X=both).fingerprint() == task.fingerprint()
    X["val"][3, 2] = np.nan
    np.save(home / "imagenet224/vgg16_val.npy", X["val"])
    with pytest.raises(DataError, match="row 15, feature 2 is nan, not a finite number"):
        load_tasks("imagenet224")


def test_images_of_no_class(home):
    files = ["train/n01/a.JPEG", "train/n02/b.JPEG", "val/ILSVRC2012_val_00000001.JPEG"]
    save_features(home / "imagenet224/vgg16.npy", files, np.ones((3, 2)))
    with pytest.raises(DataError, match=r"val/ILSVRC2012_val_00000001.JPEG is not in a class folder"):
        load_tasks("imagenet224")


def test_tiny_imagenet(home):
    random = np.random.default_rng(0)
    X = {part: random.normal(size=(n, 3)).astype(np.float16) for part, n in (("train", 12), ("val", 6))}
    for part, rows in X.items():
        np.savez_compressed(home / f"tiny_imagenet/net_{part}.npz", X=rows, y=np.repeat(np.arange(3), len(rows) // 3))
    (task,) = load_tasks("tiny-imagenet", seed=1)
    assert task.name == "tiny-imagenet/net"
    np.testing.assert_array_equal(task.X, np.concatenate([X["train"], X["val"]]))
    ((train, test),) = task.splits
    assert sorted(train) == list(range(12)) != list(train)
    np.testing.assert_array_equal(test, np.arange(12, 18))
    assert list(load_tasks("tiny-imagenet", seed=2)[0].splits[0][0]) != list(train)


def test_real_tiny_imagenet(monkeypatch):
    data = real_data("tiny_imagenet/vgg16_pool5_32px_val.npz")
    monkeypatch.setenv("PLSTREAM_DATA", str(FOLDER))
    (task,) = load_tasks("tiny-imagenet")
    ((train, test),) = task.splits
    assert (len(train), len(test), task.n_classes) == (100_000, 10_000, 200)
    np.testing.assert_array_equal(task.y[test], data["y"])
    np.testing.assert_array_equal(np.bincount(task.y[train]), np.full(200, 500))
    # No class for long: a stream that brings one after another is another experiment.
    assert len(np.unique(task.y[train[:1000]])) > 150
