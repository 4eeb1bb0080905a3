"""The command features."""

import pickle
import tarfile

import numpy as np
import pytest
from safetensors.numpy import save_file

import plstream.vision.features as module
from plstream.experiments.datasets import load_tasks
from plstream.experiments.methods import TITLES
from plstream.experiments.outputs import tables_of
from plstream.experiments.paper import experiments
from plstream.experiments.plan import make_plan
from plstream.experiments.results import Results
from plstream.experiments.runner import run as run_parts
from tests.experiments.conftest import SMALL
from tests.experiments.files import write_lines
from tests.vision.test_ground_truth import CLASSES, IMAGES, NUMBERS, write_kit
from tests.vision.tiny import photo, weights


@pytest.fixture
def photos(tmp_path, monkeypatch):
    for package in ("PIL", "onnx", "onnxruntime"):
        pytest.importorskip(package, reason="features of images need plstream[vision]")
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLSTREAM_DATA", str(tmp_path))
    (tmp_path / "photos").mkdir()
    for i in range(5):
        Image.fromarray(photo(i)).save(tmp_path / "photos" / f"{i}.png")
    save_file(weights(), "vgg.safetensors")
    return tmp_path / "photos"


COMMAND = ["features", "photos", "--weights", "vgg.safetensors", "--size", 32]


@pytest.mark.usefixtures("photos")
def test_features(done, refused):
    text = done(*COMMAND, "--threads", 1)
    assert text == "features.npy: 5 images of 20 features, float32; names in features.txt\n"
    assert "features.npy exists already: pass --force" in refused(*COMMAND)
    text = done(*COMMAND, "--layer", "pool5", "--pool", "max", "--dtype", "float16", "-o", "small.npy")
    assert text == "small.npy: 5 images of 5 features, float16; names in small.txt\n"
    large, small = np.load("features.npy"), np.load("small.npy")
    np.testing.assert_array_equal(small, large.reshape(5, 5, 4).max(axis=2).astype(np.float16))
    options = ["--mean", "0.5,0.5,0.5", "--std", "1, 1, 1", "--resample", "box", "--batch-size", 2, "--force"]
    done(*COMMAND, *options)
    assert not np.allclose(np.load("features.npy"), large)


def test_errors_are_in_terms_of_options(photos, refused):
    assert "VGG16 requires weights: pass a .safetensors or .pth file as --weights." in refused("features", "photos")
    assert "pass --size." in refused(*COMMAND[:-1], 8)
    assert "--mean 1,x is not three numbers" in refused(*COMMAND, "--mean", "1,x")
    assert "--mean must be three numbers" in refused(*COMMAND, "--mean", "1")
    (photos.parent / "features.txt").write_text("mine")
    assert "features.txt exists already: choose another name, or replace it with --force." in refused(*COMMAND)
    (photos.parent / "features.txt").unlink()
    assert "must end in .npy" in refused(*COMMAND, "-o", "out.csv")
    assert "There is no file nothing." in refused("features", "nothing", *COMMAND[2:])
    (photos / "2.png").write_bytes(b"")
    assert "2.png is not an image" in refused(*COMMAND)


def test_bad_images_are_left_out_if_requested(photos, run):
    (photos / "2.png").write_bytes(b"")
    result = run(*COMMAND, "--skip-bad")
    assert (result.code, result.err) == (
        0,
        "plstream: warning: 1 image could not be read and was left out: 2.png.\n",
    )
    assert (photos.parent / "features.txt").read_text() == "0.png\n1.png\n3.png\n4.png\n"


@pytest.mark.usefixtures("photos")
def test_interrupted(done, run, monkeypatch):
    stored, n_calls = module._stored, 0

    def interrupted(*arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 2:
            raise KeyboardInterrupt
        return stored(*arguments)

    monkeypatch.setattr(module, "_stored", interrupted)
    result = run(*COMMAND, "--batch-size", 2)
    assert (result.code, result.out) == (1, "")
    assert result.err == "plstream: interrupted; run the same command to resume.\n"
    assert done(*COMMAND, "--batch-size", 2).startswith("features.npy: 5 images")
    assert n_calls == 4


def test_imagenet_32_from_pixels_to_a_table(photos, done, refused):
    """Downloaded batches become features, a task with labels, and a row of the paper's table."""
    folder = photos.parent / "imagenet32"
    folder.mkdir()
    random = np.random.default_rng(0)
    shades = random.integers(40, 200, (3, 3072))
    for name, n in (("train_data_batch_1", 40), ("train_data_batch_2", 20), ("val_data", 15)):
        labels = [1 + i % 3 for i in range(n)]
        data = np.clip(shades[np.array(labels) - 1] + random.normal(scale=9, size=(n, 3072)), 0, 255).astype(np.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": data, "labels": labels, "mean": data.mean(axis=0)}))
    command = ["features", "imagenet32", "--weights", "vgg.safetensors", "--dtype", "float16", "--threads", 1]
    text = done(*command, "-o", "imagenet32/vgg16.npy")
    assert text.startswith("imagenet32/vgg16.npy: 75 images of 20 features, float16")
    pixels, features = load_tasks("imagenet32")
    assert (pixels.name, features.name) == ("imagenet32/pixels", "imagenet32/vgg16")
    # Names of classes are numbered in their order, and labels begin at 1.
    np.testing.assert_array_equal(features.y + 1, pixels.y)
    np.testing.assert_array_equal(features.splits[0][1], pixels.splits[0][1])
    np.testing.assert_array_equal(features.X, np.load(folder / "vgg16.npy").astype(np.float32))
    accuracy, results = experiments()["accuracy"], Results(photos.parent, 0, SMALL)
    results.begin(features)
    parts = make_plan([features], [accuracy], methods=["cipls"], folds=None, settings=SMALL, seed=0, jobs=1)
    run_parts(parts, results)
    table = tables_of(results.data, "accuracy")[0]
    (row,) = [row for row in table.rows if row[0] == TITLES["cipls"]]
    assert float(row[1].split()[0]) > 60
    (folder / "train_data_batch_2").write_bytes(b"nothing")
    assert "train_data_batch_2 is not a pickle of arrays" in refused(*command, "--force")


def test_youtube_faces_from_frames_to_pairs(photos, done):
    """Frames of videos become one row each, cropped to the face, and pairs of videos."""
    from PIL import Image

    folder = photos.parent / "ytf"
    videos = ["Ann/0", "Ann/1", "Bob/0", "Bob/2", "Cy/0", "Cy/5"]
    for number, video in enumerate(videos):
        (folder / "aligned_images_DB" / video).mkdir(parents=True)
        for frame in range(1 + number % 3):
            image = Image.fromarray(photo(number + 10 * frame, 70, 70))
            image.save(folder / "aligned_images_DB" / video / f"aligned_detect_{video[-1]}.{frame}.png")
    splits = ["1, 1, Ann/0, Ann/1, 1", "1, 2, Ann/0, Bob/0, 0", "2, 1, Cy/0, Cy/5, 1", "2, 2, Cy/0, Bob/2, 0"]
    write_lines(folder / "splits.txt", *splits)
    command = ["features", "ytf/aligned_images_DB", *COMMAND[2:], "--crop", 0.4545, "--threads", 1]
    text = done(*command, "--per-folder", "-o", "ytf/videos.npy")
    assert text == "ytf/videos.npy: 6 folders of 20 features, float32; names in ytf/videos.txt\n"
    assert (folder / "videos.txt").read_text() == "".join(f"{video}/\n" for video in videos)
    (pooled,) = load_tasks("ytf")
    (folder / "videos.npy").rename(folder / "videos.kept")
    done(*command, "-o", "ytf/frames.npy")
    (frames,) = load_tasks("ytf")
    # The mean of frames is the same whenever it is taken.
    np.testing.assert_allclose(pooled.X, frames.X, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(pooled.y, [1, 0, 1, 0])


def test_imagenet_224_from_archives(photos, done, refused):
    """A tar of class tars for training, and one of unsorted images for validation, become one task."""
    (photos.parent / "imagenet224").mkdir()
    files = sorted(photos.iterdir())
    with tarfile.open("train.tar", "w") as train:
        for name in sorted(CLASSES.values()):
            with tarfile.open(f"{name}.tar", "w") as tar:
                for i in range(2):
                    tar.add(files[i], f"{name}_{i}.JPEG")
            train.add(f"{name}.tar")
    with tarfile.open("val.tar", "w") as val:
        for image, file in zip(IMAGES, files, strict=False):
            val.add(file, image)
    for part in ("train", "val"):
        command = ["features", f"{part}.tar", *COMMAND[2:], "-o", f"imagenet224/vgg16_{part}.npy"]
        if part == "val":
            assert "name its folder with --labels." in refused(*command)
            write_kit(photos.parent / "kit")
            command += ["--labels", "kit"]
        done(*command)
    (task,) = load_tasks("imagenet224")
    number = {name: k for k, name in enumerate(sorted(CLASSES.values()))}
    np.testing.assert_array_equal(task.y, [0, 0, 1, 1, 2, 2, *(number[CLASSES[k]] for k in NUMBERS)])
    assert [len(part) for part in task.splits[0]] == [6, 4]
