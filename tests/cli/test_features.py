"""The command features."""

import numpy as np
import pytest
from safetensors.numpy import save_file

import plstream.vision.features as module
from tests.vision.tiny import photo, weights


@pytest.fixture
def photos(tmp_path, monkeypatch):
    for package in ("PIL", "onnx", "onnxruntime"):
        pytest.importorskip(package, reason="features of images need plstream[vision]")
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for i in range(5):
        Image.fromarray(photo(i)).save(tmp_path / "photos" / f"{i}.png")
    save_file(weights(), "vgg.safetensors")
    return tmp_path / "photos"


COMMAND = ["features", "photos", "--weights", "vgg.safetensors", "--size", 32]


@pytest.mark.usefixtures("photos")
def test_features(done, refused):
    text = done(*COMMAND, "--threads", 1)
    assert text == "features.npy: 5 image(s) of 20 feature(s), float32; names in features.txt\n"
    assert "features.npy exists already: pass --force" in refused(*COMMAND)
    text = done(*COMMAND, "--layer", "pool5", "--pool", "max", "--dtype", "float16", "-o", "small.npy")
    assert text == "small.npy: 5 image(s) of 5 feature(s), float16; names in small.txt\n"
    large, small = np.load("features.npy"), np.load("small.npy")
    np.testing.assert_array_equal(small, large.reshape(5, 5, 4).max(axis=2).astype(np.float16))
    options = ["--mean", "0.5,0.5,0.5", "--std", "1, 1, 1", "--resample", "box", "--batch-size", 2, "--force"]
    done(*COMMAND, *options)
    assert not np.allclose(np.load("features.npy"), large)


def test_errors_are_in_terms_of_options(photos, refused):
    assert "VGG16 needs its weights: name a .safetensors or .pth file with --weights." in refused("features", "photos")
    assert "see --size." in refused(*COMMAND[:-1], 8)
    assert "--mean 1,x is not three numbers" in refused(*COMMAND, "--mean", "1,x")
    assert "--mean takes three numbers" in refused(*COMMAND, "--mean", "1")
    (photos.parent / "features.txt").write_text("mine")
    assert "features.txt exists already: choose another name, or replace it with --force." in refused(*COMMAND)
    (photos.parent / "features.txt").unlink()
    assert "must end in .npy" in refused(*COMMAND, "-o", "out.csv")
    assert "There is no file nothing." in refused("features", "nothing", *COMMAND[2:])
    (photos / "2.png").write_bytes(b"")
    assert "2.png is not an image" in refused(*COMMAND)


def test_bad_images_are_left_out_if_asked(photos, run):
    (photos / "2.png").write_bytes(b"")
    result = run(*COMMAND, "--skip-bad")
    assert (result.code, result.err) == (
        0,
        "plstream: warning: 1 image(s) cannot be read and were left out: 2.png.\n",
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
    assert result.err == "plstream: interrupted; the same command goes on where it was.\n"
    assert done(*COMMAND, "--batch-size", 2).startswith("features.npy: 5 image(s)")
    assert n_calls == 4
