"""A small network of VGG16's form, its layers computed by loops, and images to run it on."""

import numpy as np

from plstream.vision import decoding

LAYERS = [(2, 3), (2, 4), (3, 4), (3, 5), (3, 5)]


def weights(seed=0):
    """Return random weights under torchvision's names, with a few channels a layer."""
    rng = np.random.default_rng(seed)
    arrays, i, n_in = {}, 0, 3
    for n_convolutions, n_out in LAYERS:
        for _ in range(n_convolutions):
            arrays[f"features.{i}.weight"] = rng.normal(scale=0.4, size=(n_out, n_in, 3, 3)).astype(np.float32)
            arrays[f"features.{i}.bias"] = rng.normal(scale=0.4, size=n_out).astype(np.float32)
            i, n_in = i + 2, n_out
        i += 1
    return arrays


def convolved(maps, weight, bias):
    """Return what a convolution with a ReLU after it gives, in float64, one number at a time."""
    _, height, width = maps.shape
    result = np.empty((len(weight), height, width))
    for out in range(len(weight)):
        for row in range(height):
            for column in range(width):
                total = float(bias[out])
                for i in range(-1, 2):
                    for j in range(-1, 2):
                        if 0 <= row + i < height and 0 <= column + j < width:
                            total += maps[:, row + i, column + j] @ weight[out, :, i + 1, j + 1].astype(float)
                result[out, row, column] = max(total, 0.0)
    return result


def pooled(maps):
    """Return the largest of each 2 x 2; what is left over at odd borders is dropped."""
    _, height, width = maps.shape
    result = np.empty((len(maps), height // 2, width // 2))
    for row in range(height // 2):
        for column in range(width // 2):
            result[:, row, column] = maps[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].max(axis=(1, 2))
    return result


def all_layers(arrays, image):
    """Return the maps of all layers of an image by name."""
    maps, found, i = image.astype(float), {}, 0
    for block, (n_convolutions, _) in enumerate(LAYERS, start=1):
        for k in range(1, n_convolutions + 1):
            maps = convolved(maps, arrays[f"features.{i}.weight"], arrays[f"features.{i}.bias"])
            found[f"conv{block}_{k}"] = maps
            i += 2
        maps = found[f"pool{block}"] = pooled(maps)
        i += 1
    return found


def photo(seed, height=40, width=50):
    """Return the pixels of a smooth image with some noise, as photographs are."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] / 20
    waves = np.stack([np.sin(x * rng.uniform(1, 3) + y * rng.uniform(1, 3) + seed) for _ in range(3)], axis=-1)
    return np.clip(128 + 90 * waves + rng.normal(scale=5, size=waves.shape), 0, 255).astype(np.uint8)


def read_image(content, where):
    """Return an image in RGB, as it is decoded before it is resized."""
    with decoding._opened(content, where) as image:
        return decoding._in_rgb(image, where)
