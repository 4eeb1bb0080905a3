"""Small files in the layouts of real data sets."""

import pickle

import numpy as np


def save_features(path, files, X):
    """A feature file as written by plstream features: rows, and the paths of the images."""
    np.save(path, X)
    path.with_suffix(".txt").write_text("".join(f"{file}\n" for file in files), encoding="utf-8")


def write_lines(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def python_2_batch(data, labels, key=b"labels"):
    """What Python 2 wrote with protocol 2: texts are bytes, and an array is its reconstruction and its state."""

    def text(value):
        return b"T" + len(value).to_bytes(4, "little") + value

    def number(value):
        return b"J" + value.to_bytes(4, "little", signed=True)

    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R" + b"(K\x03" + text(b"|") + b"NNN"
    dtype += number(-1) + number(-1) + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    array += b"(K\x01" + number(data.shape[0]) + number(data.shape[1]) + b"\x86" + dtype + b"\x89"
    array += text(data.tobytes()) + b"tb"
    listed = b"](" + b"".join(map(number, labels)) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key) + listed + b"u."


def batch(n, seed, *, n_classes=3, first=1, key="labels", protocol=2):
    """A batch of n images of 32 x 32 pixels: its bytes, its pixels and its labels."""
    data = np.random.default_rng(seed).integers(0, 256, (n, 3072), np.uint8)
    labels = [first + i % n_classes for i in range(n)]
    return pickle.dumps({"data": data, key: labels, "mean": data.mean(axis=0)}, protocol=protocol), data, labels
