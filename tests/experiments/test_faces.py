"""LFW and YouTube Faces: published lists of pairs, and features by name."""

from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from plstream.data import DataError
from plstream.experiments.datasets import load_tasks
from plstream.experiments.datasets.lfw import read_pairs
from plstream.experiments.datasets.ytf import read_splits
from tests.real_data import FOLDER, real_data

from .files import save_features, write_lines

# Two folds of two matched and two mismatched pairs.
PAIRS = ["2\t2", "Ann\t1\t2", "Bob\t1\t3", "Ann\t2\tBob\t1", "Ann\t1\tCy\t1"]
PAIRS += ["Dee\t1\t2", "Eve\t1\t2", "Dee\t1\tEve\t1", "Dee\t2\tEve\t12"]
IMAGES = ["Ann_0001", "Ann_0002", "Bob_0001", "Bob_0003", "Cy_0001", "Dee_0001", "Dee_0002"]
IMAGES += ["Eve_0001", "Eve_0002", "Eve_0012", "Zoe_0001"]
VIDEOS = ["Ann/0", "Ann/1", "Bob/0", "Bob/2", "Cy/0", "Cy/5"]
SPLITS = ["1, 1, Ann/0, Ann/1, 1", "1, 2, Ann/0, Bob/0, 0", "2, 1, Cy/0, Cy/5, 1", "2, 2, Cy/0, Bob/2, 0"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLSTREAM_DATA", str(tmp_path))
    for name in ("lfw", "ytf"):
        (tmp_path / name).mkdir()
    return tmp_path


def features(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float16)


def test_lfw_by_names_of_images(home):
    write_lines(home / "lfw/pairs.txt", *PAIRS)
    X = features(len(IMAGES))
    save_features(home / "lfw/net.npy", [f"lfw_funneled/{name[:3]}/{name}.jpg" for name in IMAGES], X)
    (task,) = load_tasks("lfw")
    assert (task.name, task.kind, task.paper) == ("lfw/net", "verification", None)
    of = dict(zip(IMAGES, X.astype(np.float32), strict=True))
    expected = [("Ann_0001", "Ann_0002"), ("Bob_0001", "Bob_0003"), ("Ann_0002", "Bob_0001"), ("Ann_0001", "Cy_0001")]
    expected += [("Dee_0001", "Dee_0002"), ("Eve_0001", "Eve_0002"), ("Dee_0001", "Eve_0001"), ("Dee_0002", "Eve_0012")]
    np.testing.assert_array_equal(task.X, [abs(of[a] - of[b]) for a, b in expected])
    np.testing.assert_array_equal(task.y, [1, 1, 0, 0] * 2)
    assert [sorted(test) for _, test in task.splits] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    # A folder elsewhere is known by its pairs.txt.
    assert load_tasks(str(home / "lfw"))[0].fingerprint() == task.fingerprint()


def test_lfw_with_pairs_in_the_feature_file(home):
    pairs, same, fold = np.array([[0, 1], [1, 2], [3, 4], [4, 5]], np.int32), [1, 0, 1, 0], [0, 0, 1, 1]
    np.savez_compressed(home / "lfw/net.npz", F=features(6), pairs=pairs, same=same, fold=fold)
    (task,) = load_tasks("lfw", folds=1)
    assert len(task.splits) == 1
    np.testing.assert_array_equal(task.y, same)


def test_lfw_view_1(home):
    save_features(home / "lfw/net.npy", [f"{name}.jpg" for name in IMAGES], features(len(IMAGES)))
    with pytest.raises(DataError, match=r"no pairsDevTrain.txt and no pairsDevTest.txt in .*vis-www"):
        load_tasks("lfw-view1")
    write_lines(home / "lfw/pairsDevTrain.txt", "2", *PAIRS[1:5])
    write_lines(home / "lfw/pairsDevTest.txt", "1", PAIRS[5], PAIRS[8])
    (task,) = load_tasks("lfw-view1")
    ((train, test),) = task.splits
    assert sorted(train) == [0, 1, 2, 3]
    assert sorted(test) == [4, 5]
    np.testing.assert_array_equal(task.y, [1, 1, 0, 0, 1, 0])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: expected the number of folds"),
        (PAIRS[1:], "line 1: expected the number of folds"),
        (["0\t2"], "line 1: expected the number of folds"),
        (["9" * 5000], "line 1: expected the number of folds"),
        (PAIRS[:-1], "has 8 lines, but its first line declares 9"),
        (["3\t2", *PAIRS[1:]], "has 9 lines, but its first line declares 13"),
        ([*PAIRS[:2], PAIRS[3], PAIRS[2], *PAIRS[4:]], "line 3: expected a matched pair"),
        ([*PAIRS[:3], "Ann\t1\t2", *PAIRS[4:]], "line 4: expected a mismatched pair"),
        ([PAIRS[0], "Ann 1 2", *PAIRS[2:]], "line 2: expected a matched pair"),
        ([PAIRS[0], "Ann\t0\t2", *PAIRS[2:]], "line 2: .* images counted from 1"),
        ([PAIRS[0], "Ann\t-1\t2", *PAIRS[2:]], "line 2: .* images counted from 1"),
        ([PAIRS[0], "Ann\tone\t2", *PAIRS[2:]], "line 2: .* images counted from 1"),
        ([PAIRS[0], "\t1\t2", *PAIRS[2:]], "line 2: .* images counted from 1"),
        ([PAIRS[0], "Ann\t2\t2", *PAIRS[2:]], "line 2: .* is not a matched pair"),
        ([*PAIRS[:4], "Ann\t1\tAnn\t2", *PAIRS[5:]], "line 5: .* is not a mismatched pair"),
        ([*PAIRS[:2], "Ann\t2\t1", *PAIRS[3:]], "line 3: the same pair is in line 2"),
    ],
)
def test_lists_of_lfw_that_are_wrong(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        read_pairs(write_lines(tmp_path / "pairs.txt", *lines))


def test_lfw_images_that_are_missing_or_duplicate(home):
    write_lines(home / "lfw/pairs.txt", *PAIRS)
    save_features(home / "lfw/net.npy", IMAGES[1:], features(len(IMAGES) - 1))
    with pytest.raises(DataError, match=r"net.npy has no features of 1 images that occur in pairs: Ann_0001"):
        load_tasks("lfw")
    save_features(home / "lfw/net.npy", [*IMAGES, "other/Bob_0003.jpg"], features(len(IMAGES) + 1))
    with pytest.raises(DataError, match="more than one row of Bob_0003"):
        load_tasks("lfw")
    save_features(home / "lfw/net.npy", IMAGES, features(4))
    with pytest.raises(DataError, match="has 4 rows, but paths of 11 images"):
        load_tasks("lfw")
    (home / "lfw/net.txt").unlink()
    with pytest.raises(DataError, match=r"has no names of images: list one path per row in net.txt"):
        load_tasks("lfw")
    (home / "lfw/pairs.txt").unlink()
    with pytest.raises(DataError, match=r"download pairs.txt from http"):
        load_tasks("lfw")


def test_what_to_do_without_lfw(home):
    with pytest.raises(DataError, match=r"download the images and pairs.txt .* run plstream features .*images --model"):
        load_tasks("lfw")
    (home / "lfw/lfw_funneled/Ann").mkdir(parents=True)
    (home / "lfw/lfw_funneled/Ann/Ann_0001.jpg").touch()
    with pytest.raises(DataError, match=r"no features of them: run plstream features .*lfw_funneled --model vgg16"):
        load_tasks("lfw")


def test_pixels_by_scikit_learn(monkeypatch):
    pairs = np.random.default_rng(0).random((40, 2, 4, 3), np.float32)
    target = np.tile([1, 1, 0, 0], 10)
    monkeypatch.setattr(sklearn.datasets, "fetch_lfw_pairs", lambda **_: SimpleNamespace(pairs=pairs, target=target))
    (task,) = load_tasks("lfw-pixels")
    np.testing.assert_array_equal(task.X, abs(pairs[:, 0] - pairs[:, 1]).reshape(40, 12))
    assert [list(test) for _, test in task.splits] == np.arange(40).reshape(10, 4).tolist()

    def fail(**_):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_lfw_pairs", fail)
    with pytest.raises(DataError, match="could not be downloaded"):
        load_tasks("lfw-pixels")


def test_official_lfw(monkeypatch):
    data = real_data("lfw/facenet_embedding_512.npz")
    monkeypatch.setenv("PLSTREAM_DATA", str(FOLDER))
    tasks = load_tasks("lfw")
    for task in tasks:
        assert task.paper == "LFW"
        # The pairs that the file itself has say the same as the names in pairs.txt do.
        np.testing.assert_array_equal(task.y, data["same"])
        assert [len(test) for _, test in task.splits] == [600] * 10
        assert [set(data["fold"][test]) for _, test in task.splits] == [{fold} for fold in range(10)]
        assert "several folds" not in task.note
    task = next(task for task in tasks if task.name == "lfw/facenet_embedding_512")
    first, second = data["F"].astype(np.float32)[data["pairs"].T]
    np.testing.assert_array_equal(task.X, abs(first - second))


def test_official_list_of_lfw():
    real_data("lfw/facenet_embedding_512.npz").close()
    pairs = read_pairs(FOLDER / "lfw/pairs.txt")
    counts = np.zeros((10, 2), int)
    folds_of = {}
    for pair in pairs:
        counts[pair.fold, pair.same] += 1
        for name in pair[:2]:
            folds_of.setdefault(name.rpartition("_")[0], set()).add(pair.fold)
    assert (counts == 300).all()
    assert all(len(folds) == 1 for folds in folds_of.values())


@pytest.mark.parametrize(
    ("name", "header", "extra"),
    [("splits.txt", [], ""), ("splits_corrected.txt", ["split number, pair, first, second, x, same"], "1, ")],
)
def test_ytf_is_the_mean_of_frames(home, name, header, extra):
    lines = [f"{line[:-1]}{extra}{line[-1]}" for line in SPLITS]
    write_lines(home / "ytf" / name, *header, *lines)
    rows = [(video, frame) for frame in range(1, 4) for video in VIDEOS]
    X = features(len(rows))
    save_features(home / "ytf/net.npy", [f"aligned/{video}/aligned_detect_{frame}.jpg" for video, frame in rows], X)
    (task,) = load_tasks("ytf")
    mean = {video: X[i :: len(VIDEOS)].astype(float).mean(axis=0) for i, video in enumerate(VIDEOS)}
    pairs = [("Ann/0", "Ann/1"), ("Ann/0", "Bob/0"), ("Cy/0", "Cy/5"), ("Cy/0", "Bob/2")]
    np.testing.assert_allclose(task.X, [abs(mean[a] - mean[b]) for a, b in pairs], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(task.y, [1, 0, 1, 0])
    assert [list(test) for _, test in task.splits] == [[0, 1], [2, 3]]
    assert f"of {name}" in task.note
    assert load_tasks(str(home / "ytf"))[0].fingerprint() == task.fingerprint()


def test_corrected_splits_come_first(home):
    write_lines(home / "ytf/splits.txt", *SPLITS)
    write_lines(home / "ytf/splits_corrected.txt", *[line[:-1] + "10"[int(line[-1])] for line in SPLITS])
    save_features(home / "ytf/net.npy", [f"{video}/1.jpg" for video in VIDEOS], features(len(VIDEOS)))
    (task,) = load_tasks("ytf")
    np.testing.assert_array_equal(task.y, [0, 1, 0, 1])
    assert "splits_corrected.txt" in task.note


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "must have several splits .* has none"),
        (SPLITS[:3], "same number of pairs, and has 2 in split 1, 1 in split 2"),
        (SPLITS[:2], "must have several splits"),
        (["a, b", *SPLITS[:1], "1, 2, Ann/0, 0", *SPLITS[2:]], "line 3: expected a split, two videos"),
        ([*SPLITS[:3], "2, 2, Cy/0, Bob/2, 2"], "line 4: expected a split"),
        ([*SPLITS[:3], "two, 2, Cy/0, Bob/2, 0"], "line 4: expected a split"),
        ([*SPLITS[:3], "2, 2, Cy/0, Cy/0, 0"], "line 4: both videos are Cy/0"),
        ([*SPLITS[:3], "2, 2, Cy/5, Cy/0, 1"], "line 4: the same pair is in line 3"),
    ],
)
def test_lists_of_ytf_that_are_wrong(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        read_splits(write_lines(tmp_path / "splits.txt", *lines))


def test_ytf_that_is_not_complete(home):
    with pytest.raises(DataError, match=r"no feature file of YouTube Faces .* splits.txt .* plstream features"):
        load_tasks("ytf")
    np.save(home / "ytf/net.npy", features(5))
    with pytest.raises(DataError, match="no list of pairs of YouTube Faces"):
        load_tasks("ytf")
    write_lines(home / "ytf/splits.txt", *SPLITS)
    with pytest.raises(DataError, match="has no names of frames"):
        load_tasks("ytf")
    save_features(home / "ytf/net.npy", [f"{video}/1.jpg" for video in VIDEOS[:-1]], features(5))
    with pytest.raises(DataError, match="no features of 1 videos that occur in pairs: Cy/5"):
        load_tasks("ytf")


def test_official_numbers_of_ytf_make_it_the_data_set_of_the_paper(home):
    people = [f"P{number}" for number in range(5000)]
    lines = [
        f"{1 + number // 500}, {1 + number % 500}, {person}/0, {person if same else people[number - 1]}/1, {same:d}"
        for number, person in enumerate(people)
        for same in [number % 500 < 250]
    ]
    write_lines(home / "ytf/splits.txt", *lines)
    files = [f"{person}/{video}/1.jpg" for person in people for video in (0, 1)]
    save_features(home / "ytf/net.npy", files, np.ones((len(files), 1)))
    (task,) = load_tasks("ytf")
    assert task.paper == "YTF"
    assert [(len(test), task.y[test].sum()) for _, test in task.splits] == [(500, 250)] * 10
