"""An image as the numbers that a network takes: decoded, upright, in RGB, resized, scaled."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, import_optional
from .finding import Content

RESAMPLING = ("lanczos", "bicubic", "bilinear", "box")
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
# Only what is data: others of Pillow's formats start programs.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# With 3 bytes each and copies it is some 2 GB; photographs have up to 100 million.
_MOST_PIXELS = 178_000_000
_LARGEST_OF_16_BITS = 65_535


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes numbers: ``(RGB / 255 - mean) / std`` at a given size, whatever its own shape.

    Attributes
    ----------
    size : tuple of int
        Height and width.
    resample : {"lanczos", "bicubic", "bilinear", "box"}
        How pixels are made of others; when an image becomes smaller all of them count.
    mean, std : tuple of float
        Of red, green and blue.
    """

    size: tuple[int, int]
    resample: str = "lanczos"
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def __post_init__(self) -> None:
        if self.resample not in RESAMPLING:
            raise ValueError(f"resample={self.resample!r} is not one of {', '.join(RESAMPLING)}.")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != 3 or not np.isfinite(values).all():
                raise ValueError(f"{name}= takes three numbers, of red, green and blue, not {values}.")
        if min(self.std) <= 0:
            raise ValueError(f"std= takes three numbers above 0, not {self.std}.")

    def __call__(self, content: Content, where: str) -> NDArray[np.float32]:
        """Return the numbers of an image, as (3, height, width)."""
        Image = import_optional("PIL.Image", "Reading images", "vision")
        height, width = self.size
        small = read_image(content, where).resize((width, height), getattr(Image.Resampling, self.resample.upper()))
        mean, std = np.array(self.mean), np.array(self.std)
        factor, shift = (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)
        return np.ascontiguousarray((np.asarray(small) * factor + shift).transpose(2, 0, 1))


def read_image(content: Content, where: str) -> Any:
    """Return an image of Pillow in RGB, 8 bits each, upright.

    Grey, palettes and CMYK are converted, 16 bits of grey scaled to 8, what is transparent becomes white, and of
    several frames the first is taken. Profiles of colours are left alone.

    Parameters
    ----------
    content : path or bytes
        A file, or what is in it. If it is a DataError, that is raised.
    where : str
        The name of the image, for messages.
    """
    Image, ImageOps = (import_optional(name, "Reading images", "vision") for name in ("PIL.Image", "PIL.ImageOps"))
    if isinstance(content, DataError):
        raise content
    try:
        with Image.open(BytesIO(content) if isinstance(content, bytes) else content, formats=_FORMATS) as image:
            _require_pixels(image, where)
            image.load()
            return _in_rgb(ImageOps.exif_transpose(image), where)
    except (DataError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{where} has more pixels than an image should: make it smaller.") from None
    except Image.UnidentifiedImageError:
        raise DataError(f"{where} is not an image in a format that is read here: {', '.join(_FORMATS)}.") from None
    except Exception as error:  # noqa: BLE001
        # Decoders raise whatever they come across.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{where} is damaged, or cannot be read: {reason}.") from None


def _require_pixels(image: Any, where: str) -> None:
    """Raise DataError, before memory is taken, for an image that would need too much of it."""
    if image.width * image.height > _MOST_PIXELS:
        raise DataError(f"{where} has {image.width:,} x {image.height:,} pixels, too many: make it smaller.")


def _in_rgb(image: Any, where: str) -> Any:
    Image = import_optional("PIL.Image", "Reading images", "vision")
    if image.mode.startswith("I"):
        # Conversion by Pillow would clip at 255.
        return Image.fromarray(_in_8_bits(np.asarray(image), where)).convert("RGB")
    if image.mode == "F":
        raise DataError(f"{where} holds fractions, which say nothing of black and white: save it with 8 or 16 bits.")
    if image.mode.endswith(("A", "a")) or "transparency" in image.info:
        # Colours that cannot be seen are any colours.
        visible = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", visible.size, "white"), visible).convert("RGB")
    return image.convert("RGB")


def _in_8_bits(values: NDArray[Any], where: str) -> NDArray[np.uint8]:
    if values.min() < 0 or values.max() > _LARGEST_OF_16_BITS:
        raise DataError(f"{where} has values beyond 16 bits: save it with 8 or 16 bits.")
    return np.rint(values / 257).astype(np.uint8)
