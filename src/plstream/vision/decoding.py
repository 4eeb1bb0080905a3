"""From an image file to the input of a network, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, import_optional
from .._core.memory import MemoryBudget, available_bytes, format_bytes

RESAMPLING = ("lanczos", "bicubic", "bilinear", "box")
CHANNELS = ("rgb", "bgr")
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
# Formats that are plain data: some of Pillow's others start external programs.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# Pillow needs up to 4 bytes per pixel of the decoded image, and as many for its conversion; its WebP decoder, which
# supports several frames, needs two more images.
_BYTES_PER_PIXEL = 8
_BYTES_PER_PIXEL_OF = {"WEBP": 16}
# For all images decoded at the same time, and thus for the largest one: 134 million pixels. Photographs have up to 100
# million.
_MOST_BYTES = 1 << 30
_DECODING = MemoryBudget(_MOST_BYTES)
# Available memory is checked for images that need this much.
_LARGE_BYTES = 1 << 26
# Size of the strips for conversions that take several copies.
_STRIP_PIXELS = 1 << 20
_LARGEST_OF_16_BITS = 65_535

Content: TypeAlias = Path | bytes | NDArray[np.uint8] | DataError
"""The file of an image, its bytes, its pixels (height, width, 3), or the error to raise."""


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of an image: ``(RGB / 255 - mean) / std`` at a given size, regardless of its aspect ratio."""

    # Height and width.
    size: tuple[int, int]
    # All pixels contribute when downsampling.
    resample: str = "lanczos"
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    # The share of height and width that is kept, around the centre.
    crop: float = 1.0
    # The channel order of the network; mean and std are always for red, green and blue.
    channels: str = "rgb"

    def __post_init__(self) -> None:
        for name, value, known in (("resample", self.resample, RESAMPLING), ("channels", self.channels, CHANNELS)):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}.")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != 3 or not np.isfinite(values).all():
                raise ValueError(f"{name}= must be three numbers, for red, green and blue, not {values}.")
        if min(self.std) <= 0:
            raise ValueError(f"std= must be three positive numbers, not {self.std}.")
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop={self.crop!r} must be above 0, and at most 1.")

    def __call__(self, content: Content, where: str) -> NDArray[np.float32]:
        """Return the input of an image, as (3, height, width)."""
        Image = import_optional("PIL.Image", "Reading images", "vision")
        height, width = self.size
        with _opened(content, where) as image:
            needed = _bytes_per_pixel(image) * image.width * image.height
            # Release the pixels before others are decoded, even if they are invalid.
            with _DECODING.taking(needed), closing(image):
                upright = _in_rgb(image, where)
                resample = getattr(Image.Resampling, self.resample.upper())
                small = upright.resize((width, height), resample, self._box(*upright.size))
                del upright
        mean, std = np.array(self.mean), np.array(self.std)
        factor, shift = (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)
        numbers = (np.asarray(small) * factor + shift).transpose(2, 0, 1)
        return np.ascontiguousarray(numbers if self.channels == "rgb" else numbers[::-1])

    def _box(self, width: int, height: int) -> tuple[float, float, float, float] | None:
        """Return left, top, right and bottom of the crop."""
        if self.crop == 1:
            return None
        left, top = (length * (1 - self.crop) / 2 for length in (width, height))
        return left, top, width - left, height - top


@contextmanager
def _opened(content: Content, where: str) -> Iterator[Any]:
    """Open an image, reading only the header; raise DataError for failures, also during decoding."""
    Image = import_optional("PIL.Image", "Reading images", "vision")
    if isinstance(content, DataError):
        raise content
    if isinstance(content, np.ndarray):
        yield Image.fromarray(content)
        return
    try:
        with Image.open(BytesIO(content) if isinstance(content, bytes) else content, formats=_FORMATS) as image:
            _require_room(image, where)
            yield image
    except (DataError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{where} has too many pixels: make it smaller.") from None
    except Image.UnidentifiedImageError:
        raise DataError(f"{where} is not an image in a supported format: {', '.join(_FORMATS)}.") from None
    except Exception as error:  # noqa: BLE001
        # Decoders raise arbitrary exceptions.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{where} is damaged, or cannot be read: {reason}.") from None


def _bytes_per_pixel(image: Any) -> int:
    return _BYTES_PER_PIXEL_OF.get(image.format, _BYTES_PER_PIXEL)


def _require_room(image: Any, where: str) -> None:
    """Raise DataError if, according to its header, an image needs too much memory."""
    needed = _bytes_per_pixel(image) * image.width * image.height
    size = f"{image.width:,} x {image.height:,} pixels"
    if needed > _MOST_BYTES:
        most = _MOST_BYTES // _bytes_per_pixel(image)
        raise DataError(f"{where} has {size}, too many: make it smaller, with at most {most:,} pixels.")
    available = available_bytes() if needed > _LARGE_BYTES else None
    if available is not None and needed > available:
        raise DataError(
            f"{where} has {size}, which require {format_bytes(needed)} of memory, but only {format_bytes(available)} "
            "is available: make it smaller."
        )


def _in_rgb(image: Any, where: str) -> Any:
    """Return the first frame, upright, in 8-bit RGB, with 16-bit grey scaled, and transparency on white."""
    Image, ImageOps = (import_optional(name, "Reading images", "vision") for name in ("PIL.Image", "PIL.ImageOps"))
    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I"):
        return _in_strips(image, lambda strip: Image.fromarray(_in_8_bits(np.asarray(strip), where)).convert("RGB"))
    if image.mode == "F":
        raise DataError(f"{where} holds floats, whose range is unknown: save it with 8 or 16 bits.")
    if image.mode.endswith(("A", "a")) or "transparency" in image.info:
        return _in_strips(image, _on_white)
    return image.convert("RGB")


def _in_strips(image: Any, convert: Callable[[Any], Any]) -> Any:
    """Return an image in RGB, converted in blocks of rows."""
    Image = import_optional("PIL.Image", "Reading images", "vision")
    result = Image.new("RGB", image.size)
    step = max(1, _STRIP_PIXELS // max(1, image.width))
    for top in range(0, image.height, step):
        result.paste(convert(image.crop((0, top, image.width, min(top + step, image.height)))), (0, top))
    return result


def _in_8_bits(values: NDArray[Any], where: str) -> NDArray[np.uint8]:
    if values.min() < 0 or values.max() > _LARGEST_OF_16_BITS:
        raise DataError(f"{where} has values beyond 16 bits: save it with 8 or 16 bits.")
    # Pillow's conversion would clip at 255.
    return np.rint(values / 257).astype(np.uint8)


def _on_white(image: Any) -> Any:
    """Return an image with transparent pixels, which may have any colour, on white."""
    Image = import_optional("PIL.Image", "Reading images", "vision")
    visible = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", visible.size, "white"), visible).convert("RGB")
