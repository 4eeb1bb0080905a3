"""Feature files of users."""

import numpy as np
import pytest

from plstream.data import DataError
from plstream.experiments.datasets import data_home, load_tasks

from .files import save_features, write_lines

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.repeat([2, 7], 20)


def load(path, **options):
    (task,) = load_tasks(str(path), **options)
    return task


def test_npz_without_folds_gets_stratified_ones(tmp_path):
    np.savez(tmp_path / "own.npz", X=X, y=Y)
    task = load(tmp_path / "own.npz", seed=3)
    assert (task.name, task.kind, len(task.splits)) == ("own", "classification", 10)
    np.testing.assert_array_equal(task.X, X)
    assert all(np.bincount(Y[test], minlength=8)[[2, 7]].tolist() == [2, 2] for _, test in task.splits)
    assert load(tmp_path / "own.npz", seed=3, folds=4).splits[3][0].tolist() == task.splits[3][0].tolist()


def test_own_folds_and_own_test_rows(tmp_path):
    fold = np.arange(40) % 3
    np.savez(tmp_path / "a.npz", X=X, y=Y, fold=fold)
    assert [test.tolist() for _, test in load(tmp_path / "a.npz").splits] == [
        np.flatnonzero(fold == k).tolist() for k in range(3)
    ]
    np.savez(tmp_path / "a.npz", X=X, y=Y, test=fold == 1)
    ((_, test),) = load(tmp_path / "a.npz").splits
    np.testing.assert_array_equal(test, np.flatnonzero(fold == 1))


def test_pairs(tmp_path):
    pairs, same, fold = [[0, 1], [2, 3], [4, 5], [6, 0]], [1, 0, 1, 0], [0, 0, 1, 1]
    np.savez(tmp_path / "a.npz", F=X, pairs=pairs, same=same, fold=fold)
    task = load(tmp_path / "a.npz")
    assert task.kind == "verification"
    np.testing.assert_allclose(task.X, [abs(X[a] - X[b]) for a, b in pairs], rtol=1e-6)
    assert "Some images are in pairs of several folds" in task.note
    np.savez(tmp_path / "a.npz", F=X, pairs=[*pairs[:3], [6, 7]], same=same, fold=fold)
    assert "several folds" not in load(tmp_path / "a.npz").note


@pytest.mark.parametrize("names", [("X.npy", "y.npy"), ("net.npy", "net.y.npy")])
def test_npy_with_labels_in_another_file(tmp_path, names):
    np.save(tmp_path / names[0], X.astype(np.float16))
    np.save(tmp_path / names[1], np.array(["no", "yes"])[Y // 7])
    task = load(tmp_path)
    assert task.name == f"{tmp_path.name}/{names[0][:-4]}"
    np.testing.assert_array_equal(task.y, Y // 7)
    assert task.X.dtype == np.float32
    assert load(tmp_path / names[0]).name == names[0][:-4]


def test_folder_with_several_files(tmp_path):
    np.savez(tmp_path / "b.npz", X=X, y=Y)
    np.savez(tmp_path / "a_train.npz", X=X, y=Y)
    np.savez(tmp_path / "a_test.npz", X=X, y=Y)
    # Nothing to be tested on belongs to it.
    np.savez(tmp_path / "c_train.npz", X=X, y=Y)
    tasks = {task.name.split("/")[1]: task for task in load_tasks(str(tmp_path))}
    assert {name: len(task.splits) for name, task in tasks.items()} == {"a": 1, "b": 10, "c_train": 10}
    np.testing.assert_array_equal(tasks["a"].splits[0][1], np.arange(40, 80))


def test_files_of_one_name(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    with pytest.raises(DataError, match=r"a.npy and a.npz have the same name"):
        load(tmp_path)


def test_tables_have_a_column_of_labels(tmp_path):
    names = np.array(["no", "yes"])[Y // 7]
    rows = [",".join(map(repr, map(float, row))) + f",{name}" for row, name in zip(X, names, strict=True)]
    write_lines(tmp_path / "own.csv", "a,b,c,y", *rows)
    task = load(tmp_path / "own.csv")
    np.testing.assert_array_equal(task.X, X)
    np.testing.assert_array_equal(task.y, Y // 7)
    write_lines(tmp_path / "own.csv", "a,b,c,other", *rows)
    with pytest.raises(DataError, match="no column 'y'"):
        load(tmp_path / "own.csv")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": Y}, "has no array X or F of features: it has y"),
        ({"X": X}, "a.npz has no labels: put them as y"),
        ({"X": X[:, 0], "y": Y}, r"must contain rows of features, but has an array of shape \(40,\)"),
        ({"X": X, "y": Y[:5]}, r"y has shape \(5,\), but there are 40 rows"),
        ({"X": X, "y": np.where(Y > 2, np.nan, Y)}, "labels must be integers or names"),
        ({"X": X, "y": np.where(Y > 2, np.inf, Y)}, "labels must be integers or names"),
        ({"X": X, "y": Y + 0.5}, "labels must be integers or names"),
        ({"X": X, "y": Y, "fold": [0, 1]}, r"fold has shape \(2,\), but there are 40 rows"),
        ({"X": X, "y": np.zeros(40, int)}, "single class"),
        ({"X": X.astype(str), "y": Y}, "not numbers"),
        ({"X": np.where(X > 2, np.nan, X), "y": Y}, "is nan, not a finite number"),
        ({"X": np.array([[{}]], object), "y": [1]}, "holds Python objects, which are never loaded"),
        ({"X": X, "y": Y, "files": [f"{i}.jpg" for i in range(39)]}, "has 40 rows, but paths of 39 images"),
        ({"X": X, "y": Y, "files": ["a.jpg"] * 40}, "more than one row of a.jpg"),
        ({"F": X, "pairs": [[0, 1]], "same": [1]}, "has pairs, but no array fold"),
        ({"F": X, "pairs": [[0, 1]]}, "has pairs, but no array same and no fold"),
        ({"F": X, "pairs": [[0, 1]], "same": [1, 0], "fold": [0]}, "one entry for each of 1 pairs"),
        ({"F": X, "pairs": [[0, 1]], "same": [3], "fold": [0]}, "same must be 1 or 0"),
        ({"F": X, "pairs": [[0, 40]], "same": [1], "fold": [0]}, "pairs has row 40, but there are rows 0 to 39"),
        ({"F": X, "pairs": [[-1, 40]], "same": [1], "fold": [0]}, "pairs has row -1"),
        ({"X": X, "y": Y, "fold": [1] * 40}, "all rows are for testing: there must be some for each"),
        ({"X": X, "y": Y, "test": [False] * 40}, "all rows are for training: there must be some for each"),
        ({"F": X, "pairs": [0, 1], "same": [1], "fold": [0]}, r"same and fold must have one entry"),
    ],
)
def test_mismatched_data_is_refused(tmp_path, arrays, message):
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (Y + 1, r"a_train.npz, a_val.npz: 2 of 2 classes of test rows have no training rows \(3, 8\): classes must"),
        (np.where(Y > 2, Y, 3), r"1 of 2 classes of test rows have no training rows \(3\)"),
        (np.array(["no", "yes"])[Y // 7], "the classes of one file are numbers, those of the other names"),
    ],
)
def test_classes_that_are_not_learnt_are_refused(tmp_path, labels, message):
    np.savez(tmp_path / "a_train.npz", X=X, y=Y)
    np.savez(tmp_path / "a_val.npz", X=X, y=labels)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_classes_of_folders_that_are_not_learnt_are_refused(tmp_path):
    names = [f"{'val/00' if i % 2 else 'train/n0'}{y}/{i}.jpg" for i, y in enumerate(Y)]
    save_features(tmp_path / "net.npy", names, X)
    with pytest.raises(DataError, match=r"no training rows \(002, 007\)"):
        load(tmp_path / "net.npy")
    # Folds of a class with few rows may well lack it.
    np.savez(tmp_path / "rare.npz", X=X, y=np.where(np.arange(40) == 0, 9, Y))
    assert len(load(tmp_path / "rare.npz").splits) == 10


def test_folders_of_tiny_imagenet(tmp_path):
    names = [f"tiny-imagenet-200/{'val' if i % 2 else 'train'}/n0{y}/images/{i}.JPEG" for i, y in enumerate(Y)]
    save_features(tmp_path / "net.npy", names, X)
    task = load(tmp_path / "net.npy")
    np.testing.assert_array_equal(task.y, Y // 7)
    np.testing.assert_array_equal(task.splits[0][1], np.arange(1, 40, 2))
    # Validation images are downloaded without class folders.
    flat = [name if i % 2 == 0 else f"tiny-imagenet-200/val/images/{i}.JPEG" for i, name in enumerate(names)]
    save_features(tmp_path / "net.npy", flat, X)
    message = r"val/images/1.JPEG is not in a class folder, such as train/n01440764/1.JPEG: .* as net.y.npy"
    with pytest.raises(DataError, match=message):
        load(tmp_path / "net.npy")


@pytest.mark.parametrize("name", ["imagenet32", "imagenet224", "tiny-imagenet"])
@pytest.mark.parametrize(("there", "missing"), [("vgg16_train", "vgg16_val"), ("vgg16_val", "vgg16_train")])
def test_half_of_imagenet_is_refused(tmp_path, monkeypatch, name, there, missing):
    folder = tmp_path / name.replace("-", "_")
    folder.mkdir()
    np.savez(folder / f"{there}.npz", X=X, y=Y)
    monkeypatch.setenv("PLSTREAM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"has features {there}, but no {missing} that belongs to them"):
        load_tasks(name)
    assert len(load(folder / f"{there}.npz").splits) == 10


def test_images_without_features(tmp_path):
    image = tmp_path / "1.jpg"
    image.write_bytes(b"")
    with pytest.raises(DataError, match=r"There are no feature files .* plstream features IMAGES --weights FILE -o"):
        load_tasks(str(tmp_path))
    with pytest.raises(DataError, match=r"1.jpg is an image: extract features of a folder of images"):
        load_tasks(str(image))


def test_class_folders_without_validation_get_folds(tmp_path):
    save_features(tmp_path / "net.npy", [f"images/{y}/{i}.jpg" for i, y in enumerate(Y)], X)
    task = load(tmp_path / "net.npy")
    np.testing.assert_array_equal(task.y, Y // 7)
    assert len(task.splits) == 10


def test_nothing_there(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"no file or folder .*nowhere.* there are digits, lfw"):
        load_tasks(str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="no feature files"):
        load_tasks(str(tmp_path))
    monkeypatch.setenv("PLSTREAM_DATA", "/data")
    assert str(data_home()) == "/data"
    monkeypatch.delenv("PLSTREAM_DATA")
    assert data_home().name == "plstream_data"
