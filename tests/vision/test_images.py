"""Images: found in all kinds of places, converted as they should be, or refused by name."""

import io
import tarfile
import zipfile

import numpy as np
import pytest

from plstream.data import DataError
from plstream.vision import find_images, pair_differences
from plstream.vision.images import IMAGENET_MEAN, IMAGENET_STD, Preprocessing, read_image

from .tiny import photo

NAMES = [f"person{k}/{i}.png" for k in range(2) for i in range(k, 12, 2)]


def bytes_of(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pixels_of(content):
    return np.asarray(read_image(content, "the image"))


# Finding


def archive_of(folder, path, names):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(folder / name, name)
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            for name in names:
                archive.add(folder / name, name, recursive=False)
    return path


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
def test_archives_are_read_in_their_order(photos, tmp_path, ending):
    order = [NAMES[i] for i in np.random.default_rng(0).permutation(12)]
    (photos / ".hidden.png").write_bytes(b"")
    path = archive_of(photos, tmp_path / f"photos.{ending}", [*order, "notes.md", "person0", ".hidden.png"])
    found = find_images(path)
    assert found.names == [name for name in order if name in found.names]
    assert sorted(found.names) == sorted(NAMES)
    for start in (0, 5):
        for name, (where, content) in zip(found.names[start:], found.contents(start), strict=True):
            assert where == f"{path}:{name}"
            assert content == (photos / name).read_bytes()


def test_folders_patterns_lists_and_paths(photos, tmp_path):
    assert find_images(photos).names == NAMES
    assert find_images(photos / "person*" / "1*.png").names == [
        str(photos / name) for name in NAMES if name.split("/")[1].startswith("1")
    ]
    assert find_images(photos / NAMES[3]).names == [NAMES[3].split("/")[1]]
    (tmp_path / "list.txt").write_text("photos/person1/11.png\r\n\nphotos/person0/0.png\n")
    found = find_images(tmp_path / "list.txt")
    assert found.names == ["photos/person1/11.png", "photos/person0/0.png"]
    assert [content for _, content in found.contents(1)] == [photos / "person0" / "0.png"]
    assert len(find_images(iter([photos / NAMES[0]]))) == 1


def test_a_folder_with_the_name_of_a_pattern(photos):
    odd = photos.rename(photos.with_name("a[1]"))
    assert find_images(odd).names == NAMES


def test_fingerprints_change_with_the_images(photos, tmp_path):
    found = find_images(photos)
    before = found.fingerprint()
    assert find_images(photos).fingerprint() == before
    (photos / NAMES[0]).write_bytes((photos / NAMES[1]).read_bytes())
    assert find_images(photos).fingerprint() != before
    (photos / NAMES[0]).unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no file .*person0/0.png"):
        found.fingerprint()
    one = find_images(archive_of(photos, tmp_path / "a.tar", NAMES[1:3])).fingerprint()
    assert find_images(archive_of(photos, tmp_path / "a.tar", NAMES[2:4])).fingerprint() != one


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tar", b"nothing", "no archive, damaged or cut off"),
        ("a.zip", b"nothing", "no archive, damaged or cut off"),
        ("a.tar.gz", b"\x1f\x8b\x08nothing", "no archive, damaged or cut off"),
        ("a.bin", b"\xff\xfe\x00", "none of what images can be in"),
        ("a.txt", b"\n \n", "There are no images in"),
        ("a.txt", "a\u2028b.png".encode(), "line break"),
        ("a.txt", b"", "is empty"),
    ],
)
def test_places_without_images(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        find_images(tmp_path / name)


def test_places_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        find_images(tmp_path / "none")
    with pytest.raises(DataError, match=r"no images in .*: names of images end in .jpg"):
        find_images(tmp_path / "*.jpg")
    with pytest.raises(DataError, match="no images in"):
        find_images(tmp_path)


@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_archives_that_are_cut_off(photos, tmp_path, ending):
    path = archive_of(photos, tmp_path / f"a.{ending}", NAMES)
    found = find_images(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    def read_all():
        for where, part in found.contents():
            read_image(part, where)

    with pytest.raises(DataError, match=r"cut off|cannot be read"):
        read_all()


def test_a_damaged_member_has_a_name(photos, tmp_path):
    path = archive_of(photos, tmp_path / "a.zip", NAMES[:3])
    content = bytearray(path.read_bytes())
    middle = content.find(NAMES[1].encode()) + 60
    content[middle : middle + 9] = b"\xff" * 9
    path.write_bytes(content)
    parts = [part for _, part in find_images(path).contents()]
    assert [type(part) for part in parts] == [bytes, DataError, bytes]
    assert NAMES[1] in str(parts[1])


# Reading


def test_grey_palettes_and_modes(Image):
    image = Image.fromarray(photo(0))
    np.testing.assert_array_equal(pixels_of(bytes_of(image)), photo(0))
    grey = np.asarray(image.convert("L"))
    for mode in ("L", "LA"):
        np.testing.assert_array_equal(pixels_of(bytes_of(image.convert(mode))), np.stack([grey] * 3, axis=-1))
    black = np.asarray(image.convert("1"))
    np.testing.assert_array_equal(pixels_of(bytes_of(image.convert("1")))[..., 0], 255 * black)
    palette = image.quantize(16)
    np.testing.assert_array_equal(pixels_of(bytes_of(palette, "GIF")), np.asarray(palette.convert("RGB")))


def test_cmyk(Image):
    ink = np.zeros((8, 8, 4), np.uint8)
    ink[:4, :, 0] = 255
    ink[:, 4:, 3] = 255
    image = Image.merge("CMYK", [Image.fromarray(ink[..., k]) for k in range(4)])
    found = pixels_of(bytes_of(image, "TIFF"))
    # Cyan leaves no red, and black leaves nothing.
    np.testing.assert_array_equal(found[0, 0], [0, 255, 255])
    np.testing.assert_array_equal(found[7, 0], [255, 255, 255])
    np.testing.assert_array_equal(found[0, 7], [0, 0, 0])


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(Image, kind):
    wide = np.linspace(0, 65_535, 256).round().astype(np.uint16).reshape(16, 16)
    found = pixels_of(bytes_of(Image.fromarray(wide), kind))
    np.testing.assert_array_equal(found[..., 1], np.arange(256).reshape(16, 16))


def test_what_is_transparent_is_white(Image):
    rgba = np.zeros((4, 4, 4), np.uint8)
    rgba[..., 0] = 200
    rgba[:2, :, 3] = 255
    rgba[2, :, 3] = 51
    found = pixels_of(bytes_of(Image.fromarray(rgba)))
    np.testing.assert_array_equal(found[0, 0], [200, 0, 0])
    np.testing.assert_array_equal(found[3, 0], [255, 255, 255])
    np.testing.assert_array_equal(found[2, 0], [round(0.2 * 200 + 0.8 * 255), 204, 204])
    palette = Image.fromarray(np.array([[0, 1]], np.uint8)).convert("P")
    palette.putpalette([200, 0, 0, 0, 200, 0])
    found = pixels_of(bytes_of(palette, transparency=1))
    np.testing.assert_array_equal(found, [[[200, 0, 0], [255, 255, 255]]])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(Image, orientation):
    upright = photo(3)
    transposed = upright.transpose(1, 0, 2)
    # What a camera stores for an upright scene, by its number in EXIF.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: transposed,
        6: transposed[::-1],
        7: transposed[::-1, ::-1],
        8: transposed[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[274] = orientation
    content = bytes_of(Image.fromarray(np.ascontiguousarray(stored)), exif=exif)
    np.testing.assert_array_equal(pixels_of(content), upright)


def bad_contents(Image):
    image = Image.fromarray(photo(0, 200, 200))
    jpeg, png = bytes_of(image, "JPEG"), bytes_of(image)
    bomb = bytearray(png)
    bomb[16:24] = (30_000).to_bytes(4, "big") * 2
    return {
        "empty": b"",
        "text": b"nothing",
        "cut.jpg": jpeg[: len(jpeg) // 2],
        "cut.png": png[: len(png) // 2],
        "damaged.png": png[:100] + bytes(50) + png[150:],
        "bomb.png": bytes(bomb),
        "program.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n",
        "fractions.tif": bytes_of(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF"),
        "wide.tif": bytes_of(Image.fromarray(np.full((4, 4), 70_000, np.int32)), "TIFF"),
    }


def test_bad_images_are_named(Image, tmp_path):
    for name, content in bad_contents(Image).items():
        (tmp_path / name).write_bytes(content)
        for given in (content, tmp_path / name):
            with pytest.raises(DataError, match=name) as error:
                read_image(given, name)
            assert "0x" not in str(error.value)
            assert "\n" not in str(error.value)


def test_a_bomb_below_the_limit_of_pillow(Image, monkeypatch):
    monkeypatch.setattr("plstream.vision.images._MOST_PIXELS", 100)
    with pytest.raises(DataError, match=r"the image has 50 x 40 pixels, too many"):
        pixels_of(bytes_of(Image.fromarray(photo(0))))


# From pixels to numbers


def test_the_numbers_of_a_network(Image):
    content = bytes_of(Image.fromarray(photo(5)))
    same_size = Preprocessing((40, 50))(content, "the image")
    expected = (photo(5) / 255 - IMAGENET_MEAN) / IMAGENET_STD
    np.testing.assert_allclose(same_size, expected.transpose(2, 0, 1), atol=1e-5)
    assert same_size.dtype == np.float32
    halves = Preprocessing((20, 25), "box", (0.5, 0.5, 0.5), (1, 1, 1))(content, "the image")
    boxes = photo(5).reshape(20, 2, 25, 2, 3).mean(axis=(1, 3)) / 255 - 0.5
    # Pixels are rounded to 8 bits, along rows and then along columns.
    np.testing.assert_allclose(halves, boxes.transpose(2, 0, 1), atol=1.01 / 255)
    found = [Preprocessing((16, 16), how)(content, "the image") for how in ("lanczos", "bicubic", "bilinear", "box")]
    assert len({array.tobytes() for array in found}) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resample": "nearest"}, "not one of lanczos"),
        ({"mean": (1.0, 2.0)}, "mean= takes three numbers"),
        ({"mean": (1.0, 2.0, np.nan)}, "mean= takes three numbers"),
        ({"std": (1.0, 1.0, 0.0)}, "std= takes three numbers above 0"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=words):
        Preprocessing((8, 8), **options)


# Pairs


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_differences_of_pairs(dtype, monkeypatch):
    monkeypatch.setattr("plstream.vision.features._BLOCK_BYTES", 100)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 7)).astype(dtype)
    pairs = rng.integers(20, size=(31, 2))
    expected = np.array([[abs(float(features[a, j]) - float(features[b, j])) for j in range(7)] for a, b in pairs])
    found = pair_differences(features, pairs)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    out = np.empty((31, 7), np.float32)
    assert pair_differences(features, pairs, out=out) is out
    np.testing.assert_array_equal(out, found)
    assert pair_differences(features, np.empty((0, 2), int)).shape == (0, 7)


@pytest.mark.parametrize("pairs", [[[0, 20]], [[-1, 0]], [[0.0, 1.0]], [0, 1], [[0, 1, 2]]])
def test_wrong_pairs(pairs):
    with pytest.raises(DataError, match="pairs"):
        pair_differences(np.zeros((20, 3)), pairs)


def test_differences_that_do_not_fit(monkeypatch):
    with pytest.raises(DataError, match="out must be float32"):
        pair_differences(np.zeros((2, 3)), [[0, 1]], out=np.empty((1, 2), np.float32))
    monkeypatch.setattr("plstream._core.memory.available_bytes", lambda: 10)
    with pytest.raises(MemoryError, match="The differences of 1 pairs of 3 features needs"):
        pair_differences(np.zeros((2, 3)), [[0, 1]])
