"""Pickles of arrays of every Python version and protocol are read, and no code in them is executed."""

import os
import pickle
from contextlib import suppress

import numpy as np
import pytest

from plstream.data import DataError
from plstream.vision.pickles import read_pickle
from tests.experiments.files import batch, python_2_batch


def read(tmp_path, content):
    path = tmp_path / "batch"
    path.write_bytes(content)
    return read_pickle(path)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(tmp_path, protocol):
    content, data, labels = batch(5, 0, protocol=protocol)
    read_back = read(tmp_path, content)
    np.testing.assert_array_equal(read_back["data"], data)
    assert read_back["data"].dtype == np.uint8
    np.testing.assert_allclose(read_back["mean"], data.mean(axis=0), rtol=0)
    assert read_back["labels"] == labels


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", ">i2", "?"])
def test_byte_order_layout_and_scalars(tmp_path, dtype, protocol):
    data = np.asfortranarray(np.arange(12).reshape(3, 4)).astype(dtype)
    content = pickle.dumps({"data": data, "labels": list(np.arange(3))}, protocol=protocol)
    read_back = read(tmp_path, content)
    np.testing.assert_array_equal(read_back["data"], data)
    assert read_back["data"].dtype == data.dtype
    assert read_back["labels"] == [0, 1, 2]


def test_python_2(tmp_path):
    _, data, labels = batch(5, 0)
    read_back = read(tmp_path, python_2_batch(data, labels))
    np.testing.assert_array_equal(read_back["data"], data)
    assert read_back["labels"] == labels


class Planted:
    """Runs a function when it is unpickled by anything that does so."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("place", ["whole", "value", "key", "in a list", "in an array"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_planted_call_never_runs(tmp_path, place, protocol):
    marker = tmp_path / "ran"
    planted = Planted(os.mkdir, str(marker))
    holder = {
        "whole": planted,
        "value": {"data": planted},
        "key": {planted: 1},
        "in a list": {"labels": [planted]},
        "in an array": {"data": np.array([planted], object)},
    }[place]
    content = pickle.dumps(holder, protocol=protocol)
    with pytest.raises(DataError, match=r"batch: it (requests|has an array)"):
        read(tmp_path, content)
    assert not marker.exists()
    pickle.loads(content)  # noqa: S301
    assert marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(Vprint(1)\ntR.",
        b"c__builtin__\neval\n(S'print(1)'\ntR.",
        b"cnumpy\nload\n(Vx\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n(Vx\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.",
        b"ios\nsystem\n.",
        b"Pname\n.",
    ],
)
def test_other_names_are_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"refused|requests"):
        read(tmp_path, content)


def test_attributes_set_by_a_pickle_do_not_persist(tmp_path):
    # BUILD with a pair of dictionaries sets attributes of whatever is on the stack.
    content = b"c_codecs\nencode\n(N(V__defaults__\n(Vutf8\ntdtb."
    with pytest.raises(DataError, match="holds a function"):
        read(tmp_path, content)
    test_every_protocol(tmp_path, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ((b"T\x02\x00\x00\x00u1", b"T\x02\x00\x00\x00O8"), "not of numbers"),
        ((b"T\x02\x00\x00\x00u1", b"T\x02\x00\x00\x00u2"), r"shape \(5, 3072\) and type uint16 has 15,360 bytes"),
        ((b"J\x05\x00\x00\x00J\x00\x0c", b"J\xff\xff\xff\x7fJ\x00\x0c"), "has 15,360 bytes"),
        ((b"\x80\x02}(", b"\x80\x02]("), "holds a list"),
    ],
)
def test_arrays_that_are_not_what_they_say(tmp_path, changed, message):
    _, data, labels = batch(5, 0)
    content = python_2_batch(data, labels)
    assert changed[0] in content
    content = content.replace(*changed)
    if message == "holds a list":
        content = content[:-2] + b"e."
    with pytest.raises(DataError, match=message):
        read(tmp_path, content)


def test_damage_is_one_sentence(tmp_path):
    random = np.random.default_rng(0)
    data = random.integers(0, 256, (3, 4), np.uint8)
    for content in (python_2_batch(data, [1, 2, 3]), pickle.dumps({"data": data, "labels": [1, 2, 3]}, protocol=4)):
        for end in range(len(content)):
            # An empty file has no reason to give.
            with pytest.raises(DataError, match=r"\w\.$" if end == 0 else None):
                read(tmp_path, content[:end])
        for _ in range(250):
            bad = bytearray(content)
            bad[random.integers(len(bad))] = random.integers(256)
            with suppress(DataError):
                assert isinstance(read(tmp_path, bytes(bad)), dict)


def nested(depth):
    """A tuple of two of the one before, which is written once: small in the file, and 2 ** depth steps to hash."""
    pair = (1, 2)
    for _ in range(depth):
        pair = (pair, pair)
    return pair


@pytest.mark.parametrize("holder", [lambda key: {key: 1}, lambda key: {"a": 1, key: 1}, lambda key: {"labels": {key}}])
@pytest.mark.parametrize("protocol", [2, 4])
def test_names_are_texts_or_numbers(tmp_path, holder, protocol):
    content = pickle.dumps(holder((1, 2)), protocol=protocol)
    with pytest.raises(DataError, match=r"key of type|has a set|requests"):
        read(tmp_path, content)


@pytest.mark.parametrize("operation", [b"s", b"u"])
def test_names_are_not_hashed_before_they_are_known_to_be_short(tmp_path, operation):
    key = pickle.dumps(nested(200), protocol=2)[2:-1]
    start, mark = b"\x80\x02}", b"(" if operation == b"u" else b""
    with pytest.raises(DataError, match="it has a key of type tuple"):
        read(tmp_path, start + mark + key + b"K\x01" + operation + b".")


def test_more_bytes_than_memory(tmp_path):
    with pytest.raises(DataError, match="damaged"):
        read(tmp_path, b"\x80\x04\x8e" + (2**62).to_bytes(8, "little") + b"abc.")
