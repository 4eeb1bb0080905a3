"""Feature files: the output of the network for every image, however often extraction was interrupted."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plstream
from plstream._core.progress import listening
from plstream.data import DataError
from plstream.vision import extract_features, features, partial, vgg
from plstream.vision.decoding import Preprocessing
from tests.real_data import FOLDER, real_data

from . import tiny
from .tiny import read_image, weights

pytestmark = pytest.mark.usefixtures("_runtime")


@pytest.fixture
def call(photos, weights_file, tmp_path):
    """Compute features of the photos, two at a time, with few layers."""

    def call(images=photos, output=tmp_path / "out.npy", **options):
        given = {"weights": weights_file, "layer": "conv2_2", "size": 16, "batch_size": 2, "threads": 1}
        return extract_features(images, output, **{**given, **options})

    return call


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if "part" in path.name or path.suffix == ".tmp")


def names(folder):
    return (folder / "out.txt").read_text().splitlines()


def test_rows_are_those_of_loops(call, photos, tmp_path):
    found = call()
    assert found.dtype == np.float32
    assert names(tmp_path) == [f"person{k}/{i}.png" for k in range(2) for i in range(k, 12, 2)]
    assert not leftovers(tmp_path)
    for i in (0, 7, 11):
        image = Preprocessing((16, 16))(photos / names(tmp_path)[i], "")
        expected = tiny.all_layers(weights(), image)["conv2_2"].ravel()
        np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), found)


def test_options_change_the_numbers_and_not_the_rows(call, tmp_path):
    plain = np.array(call())
    for options in ({"resample": "box"}, {"mean": (0.5, 0.5, 0.5)}, {"std": (1.0, 1.0, 1.0)}):
        other = call(**options, overwrite=True)
        assert other.shape == plain.shape
        assert not np.allclose(other, plain)
    np.testing.assert_allclose(call(batch_size=5, threads=2, overwrite=True), plain, rtol=1e-5, atol=1e-5)
    half = call(dtype="float16", overwrite=True)
    np.testing.assert_array_equal(half, plain.astype(np.float16))
    pooled = call(pool="avg", overwrite=True)
    np.testing.assert_allclose(pooled, plain.reshape(12, 4, -1).mean(axis=2), rtol=1e-5)
    assert not leftovers(tmp_path)


class Interrupted(Exception):  # noqa: N818
    """Stands in for whatever ends a process."""


@pytest.mark.parametrize("journal_seconds", [0.0, 1e9])
def test_interrupted_at_every_batch(call, tmp_path, monkeypatch, journal_seconds):
    monkeypatch.setattr(partial, "_JOURNAL_SECONDS", journal_seconds)
    expected = np.array(call(output=tmp_path / "whole.npy"))
    append = partial.PartialArray.append
    n_calls = 0

    def once(self, *arguments):
        nonlocal n_calls
        n_calls += 1
        append(self, *arguments)
        raise Interrupted

    monkeypatch.setattr(partial.PartialArray, "append", once)
    for done in range(2, 13, 2):
        with pytest.raises(Interrupted):
            call()
        assert leftovers(tmp_path) == ["out.npy.part", "out.npy.part.json"]
        assert json.loads((tmp_path / "out.npy.part.json").read_text())["n_done"] == done
    np.testing.assert_array_equal(call(), expected)
    assert n_calls == 6
    assert not leftovers(tmp_path)


def test_killed(call, photos, weights_file, tmp_path):
    expected = np.array(call(output=tmp_path / "whole.npy"))
    code = f"""
import os, signal
from plstream.vision import extract_features, partial
partial._JOURNAL_SECONDS = 0
append = partial.PartialArray.append
def killed(self, *arguments):
    append(self, *arguments)
    if self.n_done == 6:
        self._file.write(b"half a row")
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
partial.PartialArray.append = killed
extract_features({str(photos)!r}, {str(tmp_path / "out.npy")!r}, weights={str(weights_file)!r}, layer="conv2_2",
                 size=16, batch_size=2, threads=1)
"""
    source = {"PYTHONPATH": str(Path(plstream.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", code], env=source, check=False)  # noqa: S603
    assert result.returncode == -9
    steps = []
    with listening(steps.append):
        np.testing.assert_array_equal(call(), expected)
    # Finished work is not repeated. The same step is reported again while waiting for the next images.
    told = dict.fromkeys((step.done, step.total, step.unit) for step in steps if step.done and step.label == "features")
    assert [*told] == [(k, 6, "images") for k in (2, 4, 6)]


@pytest.mark.parametrize("where", ["names", "place"])
def test_interrupted_while_it_gets_its_name(call, tmp_path, monkeypatch, where):
    expected = np.array(call(output=tmp_path / "whole.npy"))

    def fail(*_, **__):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(partial, "put_in_place", fail)
        if where == "names":
            patch.setattr(Path, "with_suffix", lambda self, _: self.parent / "nothing" / "x")
        with pytest.raises((Interrupted, OSError)):
            call()
    assert not (tmp_path / "out.npy").exists()
    np.testing.assert_array_equal(call(), expected)
    assert not leftovers(tmp_path)


def test_changed_inputs_are_refused(call, photos, monkeypatch):
    def fail(*_):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(partial.PartialArray, "finish", fail)
        with pytest.raises(Interrupted):
            call()
    for options, what in (
        ({"size": 17}, "options"),
        ({"layer": "pool2"}, "network"),
        ({"pool": "max"}, "network"),
        ({"resample": "box"}, "options"),
        ({"dtype": "float16"}, "options"),
        ({"images": photos / "person0"}, "images"),
    ):
        with pytest.raises(DataError, match=rf"out.npy.part was begun with other ({what}): start over with overwrite="):
            call(**options)
    assert call(layer="pool2", overwrite=True).shape == (12, 4 * 4 * 4)


@pytest.mark.parametrize("journal", [b"", b"{}", b"[1]", b'{"n_done": 6, "n_rows": 6, "skipped": [], "made_from": {}}'])
def test_a_damaged_journal(call, tmp_path, journal):
    (tmp_path / "out.npy.part").write_bytes(b"something")
    (tmp_path / "out.npy.part.json").write_bytes(journal)
    if b"made_from" in journal:
        with pytest.raises(DataError, match="was begun with other images and network and options"):
            call()
    assert len(call(overwrite=b"made_from" in journal)) == 12


def test_two_at_a_time(call, tmp_path, monkeypatch):
    append = partial.PartialArray.append

    def meanwhile(self, *arguments):
        with pytest.raises(DataError, match="is being written by another process"):
            call()
        append(self, *arguments)

    monkeypatch.setattr(partial.PartialArray, "append", meanwhile)
    assert len(call()) == 12
    assert not leftovers(tmp_path)


def test_existing_files_are_kept(call, tmp_path):
    (tmp_path / "out.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"out.txt exists already"):
        call()
    (tmp_path / "out.txt").rename(tmp_path / "out.npy")
    with pytest.raises(FileExistsError, match=r"out.npy exists already"):
        call()
    assert (tmp_path / "out.npy").read_text() == "mine"
    assert not leftovers(tmp_path)
    assert len(call(overwrite=True)) == 12


def test_bad_images(call, photos, tmp_path):
    whole = np.array(call(output=tmp_path / "whole.npy"))
    bad = [0, 4, 5, 11]
    for i in bad:
        (photos / (tmp_path / "whole.txt").read_text().splitlines()[i]).write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"person0/0.png is not an image"):
        call()
    assert not leftovers(tmp_path)
    with pytest.warns(UserWarning, match=r"4 images could not be read and were left out: person0/0.png, person0/8.png"):
        found = call(skip_bad=True)
    np.testing.assert_allclose(found, np.delete(whole, bad, axis=0), rtol=1e-5, atol=1e-5)
    assert len(names(tmp_path)) == 8
    for path in photos.glob("*/*.png"):
        path.write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"None of the images in .* can be read"):
        call(skip_bad=True, overwrite=True)
    assert len(np.load(tmp_path / "out.npy")) == 8


def test_a_bad_image_in_between_costs_nothing_that_was_done(call, photos, tmp_path):
    (photos / "person1" / "3.png").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"person1/3.png"):
        call()
    assert json.loads((tmp_path / "out.npy.part.json").read_text())["n_done"] == 6
    with pytest.warns(UserWarning, match="left out: person1/3.png"):
        assert len(call(skip_bad=True)) == 11


@pytest.fixture
def videos(tmp_path, Image):
    """Frames as YouTube Faces has them, of videos that are shorter and longer than a batch of two."""
    counts = {"Ann/0": 1, "Ann/10": 5, "Ann/2": 2, "Bob/0": 3}
    for number, (video, n_frames) in enumerate(counts.items()):
        folder = tmp_path / "aligned_images_DB" / video
        folder.mkdir(parents=True)
        for frame in range(n_frames):
            pixels = tiny.photo(10 * number + frame, 44, 44)
            Image.fromarray(pixels).save(folder / f"aligned_detect_{video[-1]}.{frame}.png")
    return tmp_path / "aligned_images_DB"


def means_of(call, videos, folder):
    """The means of frames, from features of every frame."""
    rows = call(videos, folder / "frames.npy")
    frames = (folder / "frames.txt").read_text().splitlines()
    folders = [frame.rpartition("/")[0] + "/" for frame in frames]
    return {name: rows[[each == name for each in folders]].astype(float).mean(axis=0) for name in folders}


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 64])
def test_a_row_per_folder(call, videos, tmp_path, batch_size):
    expected = means_of(call, videos, tmp_path)
    assert [*expected] == ["Ann/0/", "Ann/2/", "Ann/10/", "Bob/0/"]
    found = call(videos, per_folder=True, batch_size=batch_size)
    assert names(tmp_path) == [*expected]
    np.testing.assert_allclose(found, [*expected.values()], rtol=1e-5, atol=1e-5)
    half = call(videos, per_folder=True, dtype="float16", batch_size=batch_size, overwrite=True)
    np.testing.assert_array_equal(half, found.astype(np.float16))


def test_folders_are_resumed_at_their_beginning(call, videos, tmp_path, monkeypatch):
    expected = np.array(call(videos, tmp_path / "whole.npy", per_folder=True))
    append = partial.PartialArray.append
    done = []

    def once(self, rows, n_items, skipped):
        append(self, rows, n_items, skipped)
        done.append((self.n_rows, self.n_done))
        raise Interrupted

    monkeypatch.setattr(partial.PartialArray, "append", once)
    # Each time from the first frame of a video on: two videos in two batches, then one at the end of a batch each.
    for _ in range(3):
        with pytest.raises(Interrupted):
            call(videos, per_folder=True)
    assert done == [(1, 1), (2, 3), (3, 8)]
    monkeypatch.setattr(partial.PartialArray, "append", append)
    np.testing.assert_allclose(call(videos, per_folder=True), expected, rtol=1e-6)
    assert not leftovers(tmp_path)


def test_bad_frames(call, videos, tmp_path):
    for bad in ("Ann/10/aligned_detect_0.1.png", "Ann/0/aligned_detect_0.0.png", "Bob/0/aligned_detect_0.2.png"):
        (videos / bad).write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"Ann/0/aligned_detect_0.0.png is not an image"):
        call(videos, per_folder=True)
    with pytest.warns(UserWarning, match=r"3 images could not be read and were left out: Ann/0/aligned"):
        found = call(videos, per_folder=True, skip_bad=True)
    with pytest.warns(UserWarning, match="3 image"):
        rows = call(videos, tmp_path / "frames.npy", skip_bad=True)
    assert names(tmp_path) == ["Ann/2/", "Ann/10/", "Bob/0/"]
    expected = [rows[:2], rows[2:6], rows[6:]]
    np.testing.assert_allclose(found, [part.mean(axis=0) for part in expected], rtol=1e-5, atol=1e-5)


def test_folders_that_are_not_together(call, photos, tmp_path):
    import tarfile

    order = [f"person{i % 2}/{i}.png" for i in range(12)]
    listed = [photos / name for name in order]
    found = np.array(call(listed, per_folder=True))
    assert names(tmp_path) == [f"{photos}/person{k}/" for k in range(2)]
    np.testing.assert_allclose(found, call(photos, per_folder=True, overwrite=True), rtol=1e-5, atol=1e-5)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in order:
            tar.add(photos / name, name)
    with pytest.raises(DataError, match=r"images of person0/ in .*a.tar are not contiguous: unpack"):
        call(tmp_path / "a.tar", per_folder=True, overwrite=True)


def test_an_archive_that_has_become_shorter(call, photos, tmp_path, monkeypatch):
    found = features.find_images(photos)
    monkeypatch.setattr(features, "find_images", lambda *_, **__: found)
    found._store.paths.pop()
    monkeypatch.setattr(found, "fingerprint", lambda: "")
    with pytest.raises(DataError, match="has become shorter while it was read"):
        call()
    assert not (tmp_path / "out.npy").exists()


def test_numbers_beyond_the_type(call):
    large = {name: array * np.float32(30) for name, array in weights().items()}
    with pytest.raises(DataError, match="overflow float16: pass float32 as dtype="):
        call(weights=large, dtype="float16")
    with np.errstate(over="ignore"):
        larger = {name: array * np.float32(1e30) for name, array in large.items()}
    with pytest.raises(DataError, match="overflow float32: the network or its weights are not usable"):
        call(weights=larger)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output": "out.csv"}, "must end in .npy"),
        ({"dtype": "int8"}, "dtype='int8' is not one of float16, float32"),
        ({"batch_size": 0}, "batch_size=0 must be an integer of at least 1"),
        ({"threads": -1}, "threads=-1 must be"),
        ({"size": True}, "size=True must be"),
        ({"size": 1}, "conv2_2 of VGG16 requires images of at least 2 pixels"),
        ({"layer": "pool5", "size": 31}, "pool5 of VGG16 requires images of at least 32 pixels"),
        ({"weights": None}, "VGG16 requires weights"),
        ({"model": "resnet.onnx"}, "leave out weights="),
        ({"model": "resnet"}, "model='resnet' is neither vgg16 nor vggface nor an .onnx file"),
        ({"model": "resnet", "weights": None}, "model='resnet' is neither vgg16 nor vggface nor an .onnx file"),
        ({"layer": "fc6"}, "layer='fc6' is not one of"),
        ({"pool": "sum"}, "pool='sum' is not one of"),
        ({"channels": "grb"}, "channels='grb' is not one of rgb, bgr"),
        ({"crop": 0.0}, "crop=0.0 must be above 0, and at most 1"),
        ({"crop": 1.5}, "crop=1.5 must be above 0, and at most 1"),
        ({"model": "vggface"}, "has no conv1_1.weight, but the names of torchvision's VGG16: pass vgg16 as model="),
    ],
)
def test_wrong_options(call, tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        call(**options)
    assert not leftovers(tmp_path)


def test_no_room_on_the_disk(call, tmp_path, monkeypatch):
    monkeypatch.setattr(features.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(OSError, match=r"The file will take 0.0 MB more, but the disk has only 0.0 MB free"):
        call()
    assert not leftovers(tmp_path)


def named_as_vggface(arrays):
    """The same weights under the names of VGGFace's."""
    return {
        f"{layer}.{part}": arrays[f"features.{number}.{part}"]
        for layer, number in vgg._NUMBERS.items()
        if layer.startswith("conv")
        for part in ("weight", "bias")
    }


def test_vggface(call, photos, tmp_path):
    """It takes pixels of 0 to 255, blue first, minus a mean."""
    arrays = {name: array * np.float32(0.3) for name, array in weights().items()}
    found = call(model="vggface", weights=named_as_vggface(arrays), size=40)
    pixels = np.asarray(read_image(photos / names(tmp_path)[3], ""), float)[:, 5:45]
    image = (pixels[..., ::-1] - [93.5940, 104.7624, 129.1863]).transpose(2, 0, 1)
    whole = Preprocessing((40, 50), mean=vgg.PRESETS["vggface"].mean, std=(1 / 255,) * 3, channels="bgr")
    np.testing.assert_allclose(whole(photos / names(tmp_path)[3], "")[:, :, 5:45], image, atol=1e-4)
    same = call(
        weights=arrays, size=40, channels="bgr", mean=vgg.PRESETS["vggface"].mean, std=(1 / 255,) * 3, overwrite=True
    )
    np.testing.assert_array_equal(same, found)
    other = call(weights=named_as_vggface(arrays), model="vggface", channels="rgb", size=40, overwrite=True)
    assert not np.allclose(other, found)
    with pytest.raises(DataError, match=r"has no features.0.weight, but the names of VGGFace's VGG16: pass vggface"):
        call(weights=named_as_vggface(arrays), overwrite=True)


def test_wrong_weights_are_refused_before_images_are_searched(call, tmp_path):
    renamed = {f"module.{name}": array for name, array in weights().items()}
    with pytest.raises(DataError, match=r"has no features.0.weight, but module.features.0.weight, .*: rename"):
        call(images=tmp_path / "nothing", weights=renamed)


@pytest.mark.parametrize("module", ["PIL.Image", "onnx", "onnxruntime"])
def test_without_a_package(call, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    package = module.split(".", maxsplit=1)[0].replace("PIL", "pillow")
    with pytest.raises(ImportError, match=rf"requires the package {package}: pip install 'plstream\[vision\]'"):
        call()


def test_features_of_faces(tmp_path):
    """Faces through VGG16 give the features that another implementation gave."""
    archive, vgg = FOLDER / "lfw" / "lfw_pairs_aligned_112.tar", FOLDER / "vgg16" / "vgg16_features_f16.safetensors"
    if not archive.exists() or not vgg.exists():
        pytest.skip("needs the images and the weights in the folder that PLSTREAM_DATA names")
    data = real_data("lfw/vgg16_conv5_64px.npz")
    from tarfile import open as open_tar

    sample = [data["files"][i] for i in range(0, len(data["files"]), 600)]
    with open_tar(archive) as tar:
        for name in sample:
            tar.extract(f"data/{name}", tmp_path, filter="data")
    found = extract_features([tmp_path / "data" / name for name in sample], tmp_path / "out.npy", weights=vgg, size=64)
    expected = data["F"][::600].astype(np.float32)
    assert found.shape == expected.shape == (len(sample), 8192)
    cosines = np.sum(found * expected, axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.99999
