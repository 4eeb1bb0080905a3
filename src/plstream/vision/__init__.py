"""Features of images and of pairs of images."""

from .features import extract_features
from .images import Images, find_images
from .pairs import pair_differences
from .vgg import VGG16_LAYERS, vgg16

__all__ = ["VGG16_LAYERS", "Images", "extract_features", "find_images", "pair_differences", "vgg16"]
