"""The container of a model: a safetensors file with a JSON document in its metadata, and hashes of everything.

The file consists of eight bytes with the length of the header, the header, which is JSON, and the bytes of the arrays.
The header gives the type, shape and offset of every array. It is checked before memory is allocated for arrays: a file
cannot request more memory than its size.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from math import prod
from typing import IO, Any, BinaryIO

import numpy as np

import plstream

from .._core.compiled import aligned_empty
from .._core.types import Array
from .document import TYPE_NAMES, TYPES, StoredArray, require_keys
from .files import replacing
from .plain import MismatchError

# A million names of 30 letters. JSON takes up to 25 times its size in memory.
LONGEST_HEADER = 1 << 25
MOST_TENSORS = 100_000
_MOST_DIMENSIONS = 3
# Versions in any other form are not shown in messages.
_VERSION = re.compile(r"\d[\w.+!-]{0,40}", re.ASCII)
# Size of the part of an array that is hashed and checked while in cache.
_PART_BYTES = 1 << 20


class ModelFileError(ValueError):
    """A file that is not a model, is damaged, or was written by a later version."""


class LaterFormatError(ModelFileError):
    """A file written by a later version."""


def require_known_format(document: Any, newest: int, where: str) -> None:
    """Raise LaterFormatError if a later version wrote the document, before any other check."""
    number = document.get("format") if isinstance(document, dict) else None
    if type(number) is int and number > newest:
        version = str(document.get("plstream"))
        writer = f"plstream {version}" if _VERSION.fullmatch(version) else "a later plstream"
        raise LaterFormatError(
            f"{where} was written by {writer}, format {number}; this is plstream {plstream.__version__}, which reads "
            f"formats up to {newest}: upgrade plstream."
        )


def write_container(
    place: str | os.PathLike[str] | BinaryIO,
    document: dict[str, Any],
    arrays: dict[str, Array],
    *,
    overwrite: bool,
    prefix: str,
) -> None:
    """Write a JSON document and contiguous arrays atomically, or to an open file at its current position.

    The bytes depend only on the document and the arrays.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    # The package safetensors writes metadata in random order.
    header: dict[str, Any] = {"__metadata__": {"plstream": text, "sha256": sha256(text.encode()).hexdigest()}}
    # Widest types first, so that all arrays are aligned in a mapped file.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    end = 0
    for name in names:
        type_name, shape = type_and_shape(arrays[name])
        start, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": type_name, "shape": shape, "data_offsets": [start, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % 8)
    if len(content) > LONGEST_HEADER:
        raise ValueError("The model has more names and labels than a model file can hold: use shorter ones.")
    opened: AbstractContextManager[BinaryIO]
    if isinstance(place, str | os.PathLike):
        opened = replacing(place, overwrite=overwrite, prefix=prefix)
    else:
        opened = nullcontext(place)
    with opened as file:
        file.write(struct.pack("<Q", len(content)) + content)
        for name in names:
            file.write(arrays[name].data)


def type_and_shape(array: Array) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape of an array as in the header."""
    return TYPE_NAMES[array.dtype], array.shape


def hash_of(arrays: Iterable[Array]) -> str:
    """Return the hash of the concatenated bytes of contiguous arrays."""
    digest = sha256()
    for array in arrays:
        for part in _parts(array):
            digest.update(part.view(np.uint8).data)
    return digest.hexdigest()


class Container:
    """A model file that is open for reading: its document, whose hash has been verified, and ``shapes``.

    These are the types and shapes of its arrays by name.
    """

    def __init__(self, file: IO[bytes], newest: int, where: str) -> None:
        self._file = file
        self._begin = file.tell()
        n_bytes = file.seek(0, os.SEEK_END) - self._begin
        file.seek(self._begin)
        header = self._read_header(n_bytes)
        metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
        if not isinstance(metadata, dict) or "plstream" not in metadata:
            raise ModelFileError(f"{where} is not a model file: pass a file written by plstream.save.")
        text = metadata["plstream"]
        if not isinstance(text, str) or metadata.get("sha256") != sha256(text.encode(errors="replace")).hexdigest():
            raise MismatchError("the model description does not match its hash")
        self.document = _strict_json(text)
        # First, because a later format may have other keys.
        require_known_format(self.document, newest, where)
        require_keys(metadata, {"plstream", "sha256"}, "the header")
        self._places = _places(header, n_bytes - self._start)
        self.shapes = {name: (type_name, shape) for name, (type_name, shape, _) in self._places.items()}

    def read(self, arrays: list[StoredArray], expected_hash: Any) -> None:
        """Read arrays, and check their numbers and their common hash."""
        digest = sha256()
        for entry in arrays:
            type_name, shape, offset = self._places[entry.where]
            dtype = TYPES[type_name]
            # Aligned for the compiled loops.
            contents: Array = aligned_empty(shape) if dtype == np.float64 else np.empty(shape, dtype)
            self._file.seek(self._begin + self._start + offset)
            for part in _parts(contents):
                part_bytes = part.view(np.uint8)
                if not _is_filled(self._file, part_bytes.data):
                    raise MismatchError("the file became shorter while it was read")
                digest.update(part_bytes.data)
                entry.check_part(part)
            entry.contents = contents
        if digest.hexdigest() != expected_hash:
            raise MismatchError("the arrays do not match their hash")

    def _read_header(self, n_bytes: int) -> Any:
        """Return the header, or None if there is none."""
        first = self._file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        self._start = 8 + length
        if not 2 <= length <= min(LONGEST_HEADER, n_bytes - 8):
            return None
        try:
            return _strict_json(self._file.read(length).decode())
        except (UnicodeDecodeError, MismatchError):
            return None


def _is_filled(file: Any, part: memoryview) -> bool:
    """Fill the buffer, by several reads if necessary; return whether there were enough bytes."""
    done = 0
    while done < len(part):
        n_bytes = file.readinto(part[done:])
        if not n_bytes:
            return False
        done += n_bytes
    return True


def _strict_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise MismatchError("the model description is not strict JSON") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("duplicate key")
    return entries


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _places(header: dict[str, Any], n_bytes: int) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Return type, shape and offset of every array; raise MismatchError unless they fill the file."""
    if len(header) > MOST_TENSORS:
        raise MismatchError(f"there are more than {MOST_TENSORS} arrays")
    places, spans = {}, []
    for name, entry in header.items():
        require_keys(entry, {"dtype", "shape", "data_offsets"}, "the header")
        type_name, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(type_name, str) or type_name not in TYPES:
            raise MismatchError("an array has an unknown type")
        if not _are_sizes(shape, range(_MOST_DIMENSIONS + 1)) or not _are_sizes(offsets, range(2, 3)):
            raise MismatchError("an array has no shape, or no position in the file")
        start, stop = offsets
        if stop - start != prod(shape) * TYPES[type_name].itemsize or stop > n_bytes:
            raise MismatchError("an array does not fit into its position in the file")
        places[name] = type_name, tuple(shape), start
        spans.append((start, stop))
    end = 0
    for start, stop in sorted(spans):
        if start != end:
            raise MismatchError("arrays overlap, or there are unused bytes between them")
        end = stop
    if end != n_bytes:
        raise MismatchError("the file is longer or shorter than its arrays")
    return places


def _are_sizes(numbers: Any, lengths: range) -> bool:
    is_list = isinstance(numbers, list) and len(numbers) in lengths
    return is_list and all(type(number) is int and 0 <= number < 2**48 for number in numbers)


def _parts(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    step = _PART_BYTES // flat.itemsize
    for start in range(0, flat.size, step):
        yield flat[start : start + step]
