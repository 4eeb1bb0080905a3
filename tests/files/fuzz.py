"""Model files with random changes: whatever a file holds, loading it ends in one sentence or in a model that works.

``python -m tests.files.fuzz 20000 0`` makes so many rounds from that seed, in a process of limited memory, and
with limited time for each round. Some changes are of bytes, which hashes notice. Most come with the right hashes, so
that it is the checks of classes, fields, types, shapes and numbers that must. Among those are changes after which all
parts still agree, of counts and of sizes: a small file must not cost much, however well it is made.
"""

import copy
import json
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.base import clone

from plstream import load, save
from plstream.files import ModelFileError
from plstream.monitoring import DriftTracker, Monitor
from tests.fuzzing import cut, flip_bits, insert, pick, rounds, swap

from .forge import TYPES, put_together, take_apart
from .models import CASES, data, fitted, learn, watchers

# What a number or a text in a file may be changed to.
VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 1024, 2**20, 2**31, 2**53, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, -1.5,
    1e-320, 1e308, "", "F", "C", "F32", "F64", "I64", "BOOL", "Gram", "Sketch", "PaperRecursion",
    "NormalizedRecursion", "OLPLSState", "WithinScatter",
    "VIPSelector", "IncrementalPLS", "gram", "sketch", "multipass", "model", "x" * 5000, "\x00", [],
    {}, [[]], [1, 2], {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"tuple": [1, 2, 3]}, {"list": [{}]},
    {"numpy": "int64", "value": 2}, {"numpy": "float32", "value": 1e300}, {"parameter": "estimator"},
    {"parameter": "random_state"}, {"array": "<U1", "values": ["a", "b"]}, {"array": "<i8", "values": [0, 1, 2]},
    {"array": "object", "values": ["a"] * 7}, {"class": "Gram", "fields": {}}, {"tensor": "model", "type": "F64"},
    {"dict": [["no", 2]]}, "Monitor", "DriftTracker", "error",
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, 5e-324, np.nan, np.inf, -np.inf, 2.0**53]


def edit_header(content, rng):
    """Change what the header says of arrays, and keep the bytes."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    names = [name for name in header if name != "__metadata__"]
    if names:
        entry = header[rng.choice(names)]
        key = rng.choice(["dtype", "shape", "data_offsets"])
        entry[key] = pick(rng, [*VALUES, [0, 8], [10**12], [2**48, 2**48], [-8, 0], entry["shape"][::-1]])
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + content[8 + length :]


def edit_document(content, rng):
    """Change, drop, add, copy or swap parts of the document, and make the hashes right again."""
    document, tensors = take_apart(content)
    for _ in range(rng.integers(1, 3)):
        places = [*containers(document)]
        node = pick(rng, places)
        keys = list(range(len(node))) if isinstance(node, list) else list(node)
        if not keys:
            continue
        key = pick(rng, keys)
        action = rng.integers(6)
        if action == 0:
            del node[key]
        elif action == 1:
            node[key] = copy.deepcopy(pick(rng, places))
        elif action == 2:
            other = pick(rng, keys)
            node[key], node[other] = node[other], node[key]
        elif action == 3 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
            node[key] = pick(rng, [-node[key], node[key] + 1, node[key] - 1, node[key] * 2, float(node[key])])
        else:
            node[key] = copy.deepcopy(pick(rng, VALUES))
    return put_together(document, tensors)


def edit_numbers(content, rng):
    """Change numbers in an array, and make the hash right again."""
    document, tensors = take_apart(content)
    names = [name for name, entry in tensors.items() if entry[2]]
    for name in rng.choice(names, size=min(len(names), 2)) if names else ():
        data_bytes = bytearray(tensors[name][2])
        if len(data_bytes) % 8 == 0 and rng.random() < 0.7:
            place = 8 * rng.integers(len(data_bytes) // 8)
            number = pick(rng, NUMBERS)
            value = np.float64(number) if tensors[name][0] == "F64" else np.int64(rng.integers(-(2**63), 2**63 - 1))
            data_bytes[place : place + 8] = value.tobytes()
        else:
            data_bytes[rng.integers(len(data_bytes))] = rng.integers(256)
        tensors[name][2] = bytes(data_bytes)
    return put_together(document, tensors)


def resize(content, rng):
    """Change the shape of an array, with its bytes, its entry in the document and the hash."""
    document, tensors = take_apart(content)
    arrays = [node for node in containers(document) if isinstance(node, dict) and node.get("tensor") in tensors]
    if arrays:
        node = pick(rng, arrays)
        entry = tensors[node["tensor"]]
        axis, size = rng.integers(len(node["shape"])), int(rng.integers(0, 12))
        item = {"F64": 8, "I64": 8, "F32": 4, "BOOL": 1}[entry[0]]
        node["shape"][axis] = size
        entry[1] = node["shape"][::-1] if node["order"] == "F" else node["shape"]
        entry[2] = (entry[2] + bytes(10**5))[: item * int(np.prod(node["shape"]))]
    return put_together(document, tensors)


# Numbers that decide what a model costs, and what they may be changed to, everywhere in a document.
COUNTS = [
    "n_components", "max_components", "n_pca_components", "size", "sketch_size", "block_rows", "n_steps", "cv",
    "n_rows", "n_targets", "n_columns", "window", "max_history", "n_batches_", "n_rising",
]  # fmt: skip
LARGE = [2, 3, 8, 40, 1000, 1024, 5000, 2**16, 2**20, 2**25, 2**31 - 1, 2**40]
# Bytes of a file with larger arrays.
MOST_BYTES = 2 << 20


def edit_counts(content, rng):
    """Change a number wherever it has the same name: whatever has to agree with it agrees."""
    document, tensors = take_apart(content)
    nodes = [node for node in containers(document) if isinstance(node, dict)]
    names = [name for name in COUNTS if any(type(node.get(name)) is int for node in nodes)]
    for name in rng.choice(names, size=rng.integers(1, 3)) if names else ():
        value = pick(rng, LARGE)
        for node in nodes:
            if type(node.get(name)) is int:
                node[name] = value
    if rng.random() < 0.3:
        # Of a sketch, two numbers are the same.
        for node in nodes:
            if "block_rows" in node:
                node["block_rows"] = node["state"]["fields"].get("size", node["block_rows"])
    return put_together(document, tensors)


def edit_sizes(content, rng):
    """Change a size wherever it is one: all arrays of that size, numbers that say it, names and labels."""
    document, tensors = take_apart(content)
    arrays = [node for node in containers(document) if isinstance(node, dict) and node.get("tensor") in tensors]
    sizes = sorted({size for node in arrays for size in node["shape"] if size})
    if not sizes:
        return content
    old, new = pick(rng, sizes), int(pick(rng, [1, 2, 5, 30, 100, 300, 1024, 1100, 3000, 20_000]))
    n_bytes = sum(8 * int(np.prod([new if n == old else n for n in node["shape"]], dtype=float)) for node in arrays)
    if n_bytes > MOST_BYTES:
        return content
    for node in arrays:
        entry = tensors[node["tensor"]]
        if old in node["shape"]:
            array = np.frombuffer(entry[2], TYPES[entry[0]]).reshape(entry[1])
            for axis, size in enumerate(entry[1]):
                if size == old:
                    array = np.take(array, np.arange(new) % old, axis=axis)
            entry[1], entry[2] = list(array.shape), np.ascontiguousarray(array).tobytes()
            node["shape"] = entry[1][::-1] if node["order"] == "F" else entry[1]
    change_numbers(document, old, new)
    return put_together(document, tensors)


def change_numbers(node, old, new):
    """Change numbers that are a size to another one, and arrays of so many labels and names."""
    if isinstance(node, dict) and "tensor" in node:
        return
    for key, part in node.items() if isinstance(node, dict) else enumerate(node):
        if type(part) is int and part == old:
            node[key] = new
        elif isinstance(part, dict) and part.keys() == {"array", "values"}:
            if len(part["values"]) == old:
                kind = part["array"][1]
                values = [i if kind in "iu" else float(i) if kind == "f" else f"{i:05}" for i in range(new)]
                part.update(array="<U5" if kind == "U" else part["array"], values=values)
        elif isinstance(part, dict | list):
            change_numbers(part, old, new)


def containers(node):
    """Yield all lists and objects in a document."""
    if isinstance(node, dict | list):
        yield node
        for part in node.values() if isinstance(node, dict) else node:
            yield from containers(part)


# Of these the hashes tell, and those that follow come with the right hashes.
DAMAGES = [flip_bits, cut, insert, swap, edit_header]
FORGERIES = [edit_document, edit_document, edit_document, edit_numbers, resize, edit_counts, edit_sizes]
MUTATIONS = DAMAGES + FORGERIES


def originals(folder):
    """Return the files of all models, after a few rows and after a fit, and of what watches them."""
    path, contents = folder / "original.plstream", []
    for case in CASES:
        X, y = data(case.target, n=40, m=7)
        models = [fitted(case, X, y), *([learn(clone(case.model), X[:9], y[:9])] if case.streams else [])]
        for model in models:
            save(model, path)
            contents.append(path.read_bytes())
    for watcher in watchers(m=7).values():
        save(watcher, path)
        contents.append(path.read_bytes())
    return contents


def outcome_of(path):
    """Load a file and use its contents; raise any error other than the documented ones."""
    try:
        model = load(path)
    except ModelFileError:
        return "refused"
    if isinstance(model, Monitor | DriftTracker):
        return outcome_of_watching(model)
    n_features = getattr(model, "n_features_in_", 7)
    X = np.random.default_rng(0).normal(size=(3, n_features))
    try:
        model.transform(X)
        outcome = "works"
    except ValueError:  # NotFittedError and errors about numbers among them.
        outcome = "loads, and says why it does not transform"
    if hasattr(model, "partial_fit"):
        # Compiled loops look at no bounds: that they run is the test. A parameter of any type can be in a file.
        with suppress(ValueError, TypeError):
            model.partial_fit(X, np.array([0.5, 1.0, 2.0]))
    return outcome


def outcome_of_watching(watcher):
    """Use a monitor or a tracker; raise any error other than the documented ones."""
    X = np.random.default_rng(0).normal(size=(8, getattr(watcher.model, "n_features_in_", 7)))
    try:
        if isinstance(watcher, Monitor):
            watcher.check(X)
            watcher.partial_fit(X).check(X)
        else:
            watcher.summary()
            for _ in range(2):
                watcher.partial_fit(X, np.linspace(0, 1, 8))
            watcher.summary()
    except (ValueError, TypeError):
        return "loads, and says why it does not watch"
    return "works"


def fuzz(n_rounds, seed=0):
    """Load so many files that have been changed; return how many ended how."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contents = originals(Path(folder))
        path = Path(folder, "changed.plstream")

        def one_round(rng):
            path.write_bytes(pick(rng, MUTATIONS)(pick(rng, contents), rng))
            return outcome_of(path)

        return rounds("model files", n_rounds, seed, Path(folder), one_round)


if __name__ == "__main__":
    print(dict(fuzz(*map(int, sys.argv[1:]))))  # noqa: T201
