"""Decoding of images: correct conversion in bounded memory, and errors that name the image."""

import io
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from plstream._core.memory import MemoryBudget
from plstream.data import DataError
from plstream.vision import decoding
from plstream.vision.decoding import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

from .tiny import photo, read_image


def bytes_of(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pixels_of(content):
    return np.asarray(read_image(content, "the image"))


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


def test_transparent_pixels_become_white(Image):
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
    monkeypatch.setattr("plstream.vision.decoding._MOST_BYTES", 800)
    with pytest.raises(DataError, match=r"the image has 50 x 40 pixels, too many: .* at most 100 pixels"):
        pixels_of(bytes_of(Image.fromarray(photo(0))))


def peak_of(work):
    """Return how many bytes more a process has at its peak while it works."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        pytest.skip("the peak of memory is known on Linux")

    def known(field):
        return int(re.search(rf"{field}:\s+(\d+)", status.read_text())[1]) << 10

    reset.write_text("5")
    before = known("VmRSS")
    work()
    return known("VmHWM") - before


SIDE = 2000


@pytest.mark.parametrize(
    ("mode", "kind", "bytes_per_pixel"),
    [
        ("RGB", "PNG", 8),
        ("RGBA", "PNG", 8),
        ("LA", "PNG", 8),
        ("I;16", "PNG", 8),
        ("CMYK", "TIFF", 8),
        ("RGB", "JPEG", 8),
        ("RGB", "WEBP", 16),
    ],
)
def test_large_images_take_what_is_promised(Image, mode, kind, bytes_per_pixel, monkeypatch):
    monkeypatch.setattr(decoding, "_STRIP_PIXELS", 1 << 16)
    content = bytes_of(Image.new(mode, (SIDE, SIDE)), kind)
    scaled = Preprocessing((8, 8))
    scaled(content, "the image")
    allowed = bytes_per_pixel * SIDE**2
    # What other threads of the process allocate in the meantime can only add to it.
    peak = min(peak_of(lambda: scaled(content, "the image")) for _ in range(3))
    # A strip that is converted has some copies.
    assert peak < 1.1 * allowed + 30 * decoding._STRIP_PIXELS


def test_images_that_are_large_together_are_decoded_one_at_a_time(Image, monkeypatch):
    content = bytes_of(Image.new("RGB", (1000, 1000)))
    monkeypatch.setattr(decoding, "_DECODING", MemoryBudget(12 * 1000**2))
    under_way, most = [], []
    in_rgb = decoding._in_rgb

    def counted(*arguments):
        under_way.append(1)
        most.append(len(under_way))
        time.sleep(0.01)
        found = in_rgb(*arguments)
        under_way.pop()
        return found

    monkeypatch.setattr(decoding, "_in_rgb", counted)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: Preprocessing((8, 8))(content, "the image"), range(6)))
    assert (len(found), max(most)) == (6, 1)


@pytest.mark.parametrize("damaged", [False, True])
def test_pixels_are_gone_before_others_take_their_place(Image, monkeypatch, damaged):
    content = bytes_of(Image.fromarray(photo(0, 200, 200)))
    content = content[: len(content) // 2] if damaged else content
    opened, closed = [], []

    class Budget:
        @contextmanager
        def taking(self, _):
            try:
                yield
            finally:
                with pytest.raises(ValueError, match="closed image"):
                    opened[0].getpixel((0, 0))
                closed.append(True)

    in_rgb = decoding._in_rgb
    monkeypatch.setattr(decoding, "_DECODING", Budget())
    monkeypatch.setattr(decoding, "_in_rgb", lambda image, where: (opened.append(image), in_rgb(image, where))[1])
    with pytest.raises(DataError, match="damaged") if damaged else nullcontext():
        Preprocessing((8, 8))(content, "the image")
    assert closed


def test_an_image_that_memory_is_too_small_for(Image, monkeypatch):
    monkeypatch.setattr(decoding, "_LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(decoding, "available_bytes", lambda: 1 << 20)
    content = bytes_of(Image.new("1", (SIDE, SIDE)))
    with pytest.raises(DataError, match=r"a.png has 2,000 x 2,000 pixels, which require 32.0 MB of memory, but only"):
        read_image(content, "a.png")


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


def test_images_are_cropped(Image):
    even = Preprocessing((20, 26), "box", crop=0.5)(bytes_of(Image.fromarray(photo(5, 40, 52))), "the image")
    expected = (photo(5, 40, 52)[10:30, 13:39] / 255 - IMAGENET_MEAN) / IMAGENET_STD
    np.testing.assert_allclose(even, expected.transpose(2, 0, 1), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resample": "nearest"}, "not one of lanczos"),
        ({"mean": (1.0, 2.0)}, "mean= must be three numbers"),
        ({"mean": (1.0, 2.0, np.nan)}, "mean= must be three numbers"),
        ({"channels": "bgrx"}, "channels='bgrx' is not one of rgb, bgr"),
        ({"crop": -0.5}, "crop=-0.5 must be above 0"),
        ({"crop": float("nan")}, "crop=nan must be above 0"),
        ({"std": (1.0, 1.0, 0.0)}, "std= must be three positive numbers"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=words):
        Preprocessing((8, 8), **options)
