"""ImageNet's validation images get their classes, or are refused before any computation."""

import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from plstream.data import DataError
from plstream.vision import find_images
from plstream.vision.ground_truth import TRUTH

CLASSES = {1: "n02119789", 2: "n02100735", 3: "n01440764"}
NUMBERS = [3, 1, 1, 2]
IMAGES = [f"ILSVRC2012_val_{i:08}.JPEG" for i in range(1, 5)]


def write_kit(folder):
    """A development kit, whose list of classes also has those that contain others."""
    data = folder / "data"
    data.mkdir(parents=True)
    (data / TRUTH).write_text("".join(f"{number}\n" for number in NUMBERS))
    synsets = np.zeros((4, 1), [("ILSVRC2012_ID", object), ("WNID", object), ("words", object)])
    for row, (number, name) in enumerate([*CLASSES.items(), (4, "n00001740")]):
        synsets[row, 0] = number, name, "a fish"
    savemat(data / "meta.mat", {"synsets": synsets})
    return folder


@pytest.fixture
def flat(tmp_path):
    folder = tmp_path / "images" / "val"
    folder.mkdir(parents=True)
    for name in IMAGES:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("place", ["val", "beside", "above", "given", "given data", "given file"])
def test_a_flat_folder(flat, tmp_path, place):
    kit = "ILSVRC2012_devkit_t12"
    where = {"val": flat / kit, "beside": flat.parent / kit, "above": tmp_path / kit}.get(
        place, tmp_path / "far" / "kit"
    )
    write_kit(where)
    labels = {"given": where, "given data": where / "data", "given file": where / "data" / TRUTH}.get(place)
    expected = [f"val/{CLASSES[number]}/{name}" for number, name in zip(NUMBERS, IMAGES, strict=True)]
    if place != "above":
        assert find_images(flat, labels=labels).names == expected
    if place != "val":
        # With images for training in folders beside it.
        (flat.parent / "train" / "n01440764").mkdir(parents=True)
        (flat.parent / "train" / "n01440764" / "n01440764_1.JPEG").touch()
        found = find_images(flat.parent, labels=labels)
        assert found.names == ["train/n01440764/n01440764_1.JPEG", *expected]
        assert [content.name for _, content in found.contents(1)] == IMAGES


def test_the_archive_of_validation_images(flat, tmp_path):
    with tarfile.open(tmp_path / "ILSVRC2012_img_val.tar", "w") as tar:
        for name in reversed(IMAGES):
            tar.add(flat / name, name)
    write_kit(tmp_path / "kit")
    found = find_images(tmp_path / "ILSVRC2012_img_val.tar", labels=tmp_path / "kit")
    assert found.names == [f"val/{CLASSES[k]}/{name}" for k, name in zip(NUMBERS, IMAGES, strict=True)][::-1]
    with pytest.raises(
        DataError, match=r"ILSVRC2012_val_00000004.JPEG is a validation image of ImageNet that is not in a class folder"
    ):
        find_images(tmp_path / "ILSVRC2012_img_val.tar")


def test_kaggles_list(flat, tmp_path):
    lines = [f"{name[:-5]},{CLASSES[k]} 1 2 3 4 {CLASSES[k]} 5 6 7 8" for k, name in zip(NUMBERS, IMAGES, strict=True)]
    path = tmp_path / "LOC_val_solution.csv"
    path.write_text("\n".join(["ImageId,PredictionString", *reversed(lines)]) + "\n")
    assert find_images(flat, labels=path).names[0] == f"val/n01440764/{IMAGES[0]}"
    assert find_images(flat / "*.JPEG", labels=path).names[0] == f"{flat}/n01440764/{IMAGES[0]}"


def test_images_in_folders_of_classes_need_nothing(tmp_path):
    (tmp_path / "val" / "n01440764").mkdir(parents=True)
    (tmp_path / "val" / "n01440764" / IMAGES[0]).touch()
    assert find_images(tmp_path).names == [f"val/n01440764/{IMAGES[0]}"]
    with pytest.raises(
        DataError, match=r"labels= is for ImageNet's validation images, .* all of them are in class folders"
    ):
        find_images(tmp_path, labels=tmp_path)


def test_what_to_do_without_the_kit(flat, tmp_path):
    for images in (flat, flat / "*.JPEG"):
        with pytest.raises(
            DataError,
            match=r"00000001.JPEG is a validation .* such as val/n01440764: download ILSVRC2012_devkit_t12 .* labels=",
        ):
            find_images(images)
    with pytest.raises(DataError, match=rf"There is no {TRUTH} in .*: name the folder of ILSVRC2012_devkit_t12"):
        find_images(flat, labels=tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        find_images(flat, labels=tmp_path / "nothing")
    write_kit(tmp_path / "kit")
    (tmp_path / "kit" / "data" / "meta.mat").unlink()
    with pytest.raises(DataError, match=r"There is no .*meta.mat, which names the classes"):
        find_images(flat, labels=tmp_path / "kit")
    # Paths that are named individually are used unchanged.
    assert find_images([flat / IMAGES[0]]).names == [str(flat / IMAGES[0])]


def test_kits_that_are_wrong(flat, tmp_path):
    data = write_kit(tmp_path / "kit") / "data"
    (data / TRUTH).write_text("3\n1\n1\n")
    with pytest.raises(DataError, match=r"ground_truth.txt has classes of 3 images, but not of .*00000004.JPEG"):
        find_images(flat, labels=data)
    (data / TRUTH).write_text("3\n1\n5\n2\n")
    with pytest.raises(DataError, match=r"ground_truth.txt, line 3: '5' is not the number of a class in meta.mat"):
        find_images(flat, labels=data)
    (data / TRUTH).write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not text"):
        find_images(flat, labels=data)
    (data / TRUTH).write_text("3\n1\n1\n2\n")
    savemat(data / "meta.mat", {"other": 1})
    with pytest.raises(DataError, match=r"meta.mat is not the list of ImageNet's classes"):
        find_images(flat, labels=data)
    (data / "meta.mat").write_bytes(b"nothing" * 100)
    with pytest.raises(DataError, match=r"meta.mat is not the list of ImageNet's classes"):
        find_images(flat, labels=data)
    path = tmp_path / "val.txt"
    path.write_text("".join(f"{name} {k}\n" for k, name in enumerate(IMAGES)))
    with pytest.raises(DataError, match=r"val.txt, line 2: expected an image and its class, as in .* n01751748"):
        find_images(flat, labels=path)


def test_test_images_have_no_classes(flat):
    write_kit(flat.parent / "ILSVRC2012_devkit_t12")
    (flat.parent / "test").mkdir()
    (flat.parent / "test" / "ILSVRC2012_test_00000001.JPEG").touch()
    with pytest.raises(DataError, match=r"test/ILSVRC2012_test_00000001.JPEG is a test image .* leave these out"):
        find_images(flat.parent)
