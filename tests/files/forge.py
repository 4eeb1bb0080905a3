"""Model files taken apart and put together again, as the documentation of the format says and without the library."""

import hashlib
import json
import struct

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "BOOL": "?"}


def take_apart(content):
    """Return the document, and the arrays by name as bytes with type and shape, in the order of the file."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    document = json.loads(header.pop("__metadata__")["plstream"])
    tensors = {
        name: [entry["dtype"], entry["shape"], content[8 + length :][slice(*entry["data_offsets"])]]
        for name, entry in header.items()
    }
    return document, tensors


def put_together(document, tensors, *, hashes=True):
    """Return a file of a document and arrays, with the right hashes unless they are to stay."""
    if hashes and isinstance(document, dict):
        document = {**document, "tensors": tensors_hash(document, tensors)}
    text = json.dumps(document, allow_nan=True)
    header, content, offset = {}, b"", 0
    for name, (type_name, shape, data) in tensors.items():
        header[name] = {"dtype": type_name, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        content += data
        offset += len(data)
    header["__metadata__"] = {"plstream": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + content


def tensors_hash(document, tensors):
    """Return the hash of the bytes of the arrays, in the order in which the document names them."""
    digest = hashlib.sha256()
    for name in names_in(document.get("model", document.get("checkpoint"))):
        if name in tensors:
            digest.update(tensors[name][2])
    return digest.hexdigest()


def names_in(node):
    if isinstance(node, dict):
        if isinstance(node.get("tensor"), str):
            yield node["tensor"]
        for part in node.values():
            yield from names_in(part)
    elif isinstance(node, list):
        for part in node:
            yield from names_in(part)


def array_of(tensors, node):
    """Return the array that a part of the document stands for."""
    type_name, shape, data = tensors[node["tensor"]]
    array = np.frombuffer(data, TYPES[type_name]).reshape(shape)
    return array.T if node["order"] == "F" else array
