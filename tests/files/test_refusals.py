"""Files that are not models are refused in one sentence, before any object is created."""

import json
import os
import pickle
import re
import struct
from copy import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA

import plstream
from plstream import (
    CCIPCA,
    CIPLS,
    ILFS,
    IPLS,
    OLPLS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSCV,
    VIPSelector,
    load,
    open_source,
    save,
)
from plstream.files import CheckpointError, ModelFileError, Stopped, fit_source
from plstream.files.modelfile import FORMAT
from plstream.states import Buffered

from .forge import put_together, take_apart
from .models import data, learn, watchers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.plstream"


@pytest.fixture
def parts(path):
    """Return the parts of a file of a small model."""

    def parts_of(model, target="value", n=20):
        X, y = data(target, m=7)
        save(learn(clone(model), X[:n], y[:n]), path)
        return take_apart(path.read_bytes())

    return parts_of


def refused(path, content, match):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    message = str(caught.value)
    assert "model.plstream" in message
    assert "\n" not in message


def of_a_later_version(document, tensors, **changes):
    """Return a file with classes, parameters, arrays and types of arrays that are not known yet, and right hashes."""
    key = "model" if "model" in document else "checkpoint"
    record = {"class": "QuantumPLS", "parameters": {"qubits": 8}, "fields": {"_new": {"tensor": "new"}}, "more": []}
    later = {**document, "format": FORMAT + 1, "plstream": "9.8.7", key: record, "signature": "abc", **changes}
    return put_together(later, {**tensors, "new": ["BF16", [1, 1, 1, 2], b"\0" * 4]})


LATER = (
    rf"model.plstream' was written by plstream 9\.8\.7, format {FORMAT + 1}; this is plstream "
    rf"{re.escape(plstream.__version__)}, which reads formats up to {FORMAT}: upgrade plstream\.$"
)


def test_errors_name_a_later_version(path, parts):
    document, tensors = parts(CIPLS())
    refused(path, put_together({**document, "format": FORMAT + 1, "plstream": "9.8.7"}, tensors), LATER)
    refused(path, of_a_later_version(document, tensors), LATER)
    # The model may be under another name, or be gone, and the header may have more entries.
    refused(path, of_a_later_version({"models": []}, tensors), LATER)
    content = of_a_later_version(document, tensors)
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"]["signed_by"] = "a later version"
    text = json.dumps(header).encode()
    refused(path, struct.pack("<Q", len(text)) + text + content[8 + length :], LATER)


@pytest.mark.parametrize("version", [None, "", "9.8\n.7", "9" * 100, "\x1b[31m"])
def test_a_later_version_without_a_name(version, path, parts):
    content = of_a_later_version(*parts(CIPLS()), plstream=version)
    refused(path, content, rf"was written by a later plstream, format {FORMAT + 1}; this is .*: upgrade plstream\.$")


def test_damage_comes_before_versions(path, parts):
    """A file whose hash is wrong may have any number for its format."""
    content = of_a_later_version(*parts(CIPLS()))
    refused(path, content.replace(b"QuantumPLS", b"QuantumPLZ"), "does not match its hash")


def test_errors_name_a_later_version_of_a_checkpoint(tmp_path):
    X, y = data()
    source, answers = open_source(X, target=y, batch_size=20), iter([False, True])
    with pytest.raises(Stopped):
        fit_source(CIPLS(), source, checkpoint=tmp_path, every_rows=20, stop=lambda: next(answers))
    older, newest = sorted(tmp_path.glob("*.plstream"))
    newest.write_bytes(of_a_later_version(*take_apart(newest.read_bytes())))
    # Nor is an older one taken in its place, which would throw away what the later version did.
    with pytest.raises(CheckpointError, match=LATER.replace("model.plstream", newest.name)):
        fit_source(CIPLS(), source, checkpoint=tmp_path)
    assert older.exists()
    assert newest.exists()


def test_error_messages(path, parts):
    document, tensors = parts(CIPLS())
    refused(path, b"", "is not a model file: pass a file written by plstream.save")
    refused(path, b"\x00" * 100, "is not a model file")
    refused(path, b"PK\x03\x04" * 100, "is not a model file")
    refused(path, struct.pack("<Q", 2**63) + b"{}", "is not a model file")
    refused(path, struct.pack("<Q", 2) + b"{}", "is not a model file")
    refused(path, struct.pack("<Q", 4) + b"null", "is not a model file")
    refused(
        path, put_together(document, tensors)[:-1], "is damaged or was not written by plstream: an array does not fit"
    )
    document["model"]["fields"]["_state"]["class"] = "os.system"
    refused(path, put_together(document, tensors), "model._state is not of the class OnlineState. Save the model again")


def test_another_safetensors_file(path):
    from safetensors.numpy import save_file

    save_file({"weights": np.ones(3)}, path, metadata={"format": "pt"})
    with pytest.raises(ModelFileError, match="is not a model file"):
        load(path)


def test_system_errors(path, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: .*model\.plstream"):
        load(path)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_device():
    with pytest.raises(ModelFileError, match="is not a model file"):
        load("/dev/null")


class Planted:
    def __reduce__(self):
        return os.abort, ()


def test_planted_pickle_does_not_run(path, parts):
    payload = pickle.dumps(Planted())
    refused(path, payload, "is not a model file")
    document, tensors = parts(CIPLS(), "two")
    text = payload.decode("latin-1")
    for value in (text, {"numpy": "object", "value": text}, {"array": "|O", "values": [text]}, {"py/reduce": [text]}):
        forged = json.loads(json.dumps(document))
        forged["model"]["fields"]["_encoding"]["fields"]["labels"]["fields"]["classes"] = value
        refused(path, put_together(forged, tensors), "classes")
    refused(path, put_together(document, {**tensors, "pickle": ["U8", [len(payload)], payload]}), "unknown type")


def labels(dtype, values):
    return {"class": "Labels", "fields": {"classes": {"array": dtype, "values": values}, "kind": "strings"}}


# Where in the document, what to put there, and what the sentence says of it.
EDITS = [
    (["format"], "1", "state its format"),
    (["format"], 0, "state its format"),
    (["more"], 1, "has an unknown field, 'more'"),
    (["model", "class"], "Gram", "not of the class"),
    (["model", "class"], ["CIPLS"], "not of the class"),
    (["model", "parameters", "n_components"], {"float": 3}, "not a number"),
    (["model", "parameters", "n_components"], {"numpy": "object", "value": 3}, "not a value"),
    (["model", "parameters", "n_components"], {"numpy": "int8", "value": 2}, "not a value"),
    (["model", "fields", "_state", "fields", "x", "fields", "n_rows"], {"numpy": "int8", "value": 20}, "not a value"),
    (["model", "fields", "_state", "fields", "x", "fields", "unit"], {"numpy": "float32", "value": 0.5}, "not a value"),
    (["model", "parameters", "n_components"], 2**70, "not a value"),
    (["model", "parameters", "whatever"], 2, "has an unknown field, 'whatever'"),
    (["model", "output"], "html", "not one of default, pandas, polars"),
    (["model", "fields"], None, "not part of the model"),
    (["model", "fields", "n_features_in_"], 8, "has a size of"),
    (["model", "fields", "n_features_in_"], -1, "integer from 1"),
    (["model", "fields", "n_features_in_"], True, "integer from 1"),
    (["model", "fields", "n_features_in_"], 7.0, "integer from 1"),
    (["model", "fields", "_begun_with", "n_components"], 3, "has a size of"),
    (["model", "fields", "_begun_with", "n_components"], 2**40, "has a size of"),
    (["model", "fields", "_begun_with", "n_components"], 2**60, "integer"),
    (["model", "fields", "_begun_with", "variant"], "another", "one of normalized, paper, released"),
    (["model", "fields", "_begun_with", "variant"], {"parameter": "variant"}, "not a value"),
    (["model", "fields", "_state", "fields", "x", "fields", "unit"], -0.5, "number from 0"),
    (["model", "fields", "_state", "fields", "x", "fields", "unit"], {"float": "nan"}, "number from 0"),
    (["model", "fields", "_state", "fields", "x", "fields", "n_rows"], -3, "integer from 0"),
    (["model", "fields", "_state", "fields", "x", "fields", "more"], 0, "unknown"),
    (["model", "fields", "_state", "fields", "x", "fields"], [], "no fields"),
    (
        ["model", "fields", "_state", "fields", "recursion", "class"],
        "OLPLSState",
        "not of the class NormalizedRecursion or PaperRecursion",
    ),
    (
        ["model", "fields", "_state", "fields", "recursion", "fields", "cross", "shape"],
        [7, 1],
        "no tensor with its name",
    ),
    (["model", "fields", "_state", "fields", "recursion", "fields", "cross", "order"], "F", "not an array of type"),
    (["model", "fields", "_state", "fields", "recursion", "fields", "cross", "order"], [], "not an array of type"),
    (["model", "fields", "_state", "fields", "recursion", "fields", "cross", "type"], "F32", "not an array of type"),
    (["model", "fields", "_state", "fields", "recursion", "fields", "cross", "tensor"], "model._state", "no tensor"),
    (["model", "fields", "_encoding", "fields", "n_columns"], 2, "has a size of"),
    (
        ["model", "fields", "_encoding", "fields", "labels"],
        labels("<U1", ["a", "b", "c"]),
        "a rule: there is one column",
    ),
    (["model", "fields", "_encoding", "fields", "labels"], labels("<U3", ["b", "a"]), "ascending order"),
    (["model", "fields", "_encoding", "fields", "labels"], labels("<U1", ["a", "bb"]), "not fit|not of type"),
    (["model", "fields", "_encoding", "fields", "labels"], labels("<U9999999", ["a", "b"]), "too large"),
    (["model", "fields", "_encoding", "fields", "labels"], labels("|i1", [1, 300]), "not of type|not fit"),
    (["model", "fields", "_encoding", "fields", "labels"], labels("V4", [1, 3]), "unknown type"),
]


# The same for a classifier in mid-stream.
CLASSIFIER_EDITS = [
    (["parameters", "class_weight"], {"dict": [[{"list": []}, 1]]}, "not a value"),
    (["parameters", "class_weight"], {"dict": [["no"]]}, "is not a dict"),
    (["parameters", "class_weight"], {"dict": 1}, "is not a dict"),
    (
        ["fields", "_fitted", "fields", "head", "fields", "labels", "fields", "classes"],
        {"array": "<U1", "values": ["a", "b", "c"]},
        "has a size of",
    ),
    (
        ["fields", "_fitted", "fields", "head", "fields", "labels", "fields", "classes"],
        {"array": "<U1", "values": ["b", "a"]},
        "ascending order",
    ),
    (["fields", "_fitted", "fields", "head", "fields", "labels", "fields", "kind"], "values", "one of"),
    (["class"], "IncrementalPLS", "unknown field|lacks"),
]


@pytest.mark.parametrize(("place", "value", "match"), CLASSIFIER_EDITS)
def test_edited_classifier(place, value, match, path, parts):
    document, tensors = parts(IncrementalPLSClassifier(solver="gram"), "two")
    node = document["model"]
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = value
    refused(path, put_together(document, tensors), match)


@pytest.mark.parametrize("number", [-1.0, 0.5, 2.0, np.nan])
def test_class_indices_out_of_range(number, path, parts):
    document, tensors = parts(IncrementalPLSClassifier(solver="gram"), "two")
    name = "model._fitted.stream._Y"
    tensors[name][2] = struct.pack("<d", number) + tensors[name][2][8:]
    refused(path, put_together(document, tensors), "values out of range|y has all responses, or class indices")


@pytest.mark.parametrize(("place", "value", "match"), EDITS)
def test_edited(place, value, match, path, parts):
    document, tensors = parts(CIPLS())
    node = document
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = value
    refused(path, put_together(document, tensors), match)


_MOMENTS = ["_moments", "fields"]
_SUM = ["_sums", "error", "fields"]
_BATCH = ["history_", 0, "fields"]
# The same for what watches models: which one, where in its fields, and what to put there.
WATCHER_EDITS = [
    ("monitor", ["level"], 1.5, "number from 0"),
    ("monitor", ["q_limit"], "os.system", "one of pearson"),
    ("monitor", ["model"], None, "not of the class"),
    ("monitor", ["model", "class"], "CIPLS", "not of the class"),
    ("monitor", ["model", "fields"], None, "not part of the model"),
    ("monitor", ["_n_rows"], -1, "number from 0"),
    ("monitor", ["_unit"], {"float": "nan"}, "number from 0"),
    ("monitor", ["_normal", "fields", "n_rows"], {"float": "nan"}, "number from 0"),
    ("monitor", ["_normal", "fields", "residuals", "fields", "third"], "much", "is not a number"),
    ("monitor", ["_normal", "fields", "more"], 1, "unknown"),
    ("monitor", ["_solution", "fields", "factors", "fields", "n_components"], 3, "model._normal has a size of 2"),
    ("monitor", ["_solution", "fields", "factors", "fields", "n_components"], 1, "model._normal has a size of 2"),
    ("monitor of reference rows", ["_reference", "class"], "Sketch", "not of the class"),
    ("monitor of reference rows", ["_reference", "fields", "n_rows"], -3, "integer from 0"),
    (
        "monitor of reference rows",
        ["_solution", "fields", "factors", "fields", "n_components"],
        1,
        "model._reference has a size of 4",
    ),
    ("tracker", ["model", "class"], "DriftTracker", "not of the class"),
    ("tracker", ["window"], 3, "integer from 10"),
    ("tracker", ["threshold"], {"float": "nan"}, "number from 0"),
    ("tracker", ["max_history"], -1, "integer from 0"),
    ("tracker", ["_sums"], {}, "lacks 'error'"),
    ("tracker with a reference", [*_MOMENTS, "forgetting"], 2.0, "number from 0"),
    ("tracker with a reference", ["_moments"], None, "not part of the model|rows before"),
    ("tracker with a reference", ["_reference"], None, "not part of the model|with a reference"),
    ("tracker with a reference", ["_reference_sums"], {}, "not part of the model|with a reference"),
    ("tracker with a reference", ["_reference", "fields", "n_batches"], -1, "integer from 0"),
    ("tracker with a reference", [*_SUM, "size"], 9, "integer from 10"),
    ("tracker with a reference", [*_SUM, "total"], {"float": "inf"}, "number from 0"),
    ("tracker with a reference", [*_SUM, "raised"], 1, "not true or false"),
    ("tracker with a reference", [*_SUM, "more"], 1, "unknown"),
    ("tracker with a reference", [*_BATCH, "alarms"], ["fire"], "one of error, outside, shift"),
    ("tracker with a reference", [*_BATCH, "reasons"], [1], "not a string"),
    ("tracker with a reference", [*_BATCH, "shifted_feature"], 3, "not a string"),
    ("tracker with a reference", [*_BATCH, "error"], "large", "is not a number"),
    ("tracker with a reference", ["alarms_"], [[1]], "is not a list, or has the wrong length"),
]


@pytest.mark.parametrize(("name", "place", "value", "match"), WATCHER_EDITS)
def test_edited_monitors_and_trackers(name, place, value, match, path):
    save(watchers(m=7)[name], path)
    document, tensors = take_apart(path.read_bytes())
    node = document["model"]["fields"]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    refused(path, put_together(document, tensors), match)


def test_arrays_of_monitors_and_trackers(path):
    made = watchers(m=7)
    for name, tensor, value in (
        ("monitor", "model._normal.mean", np.nan),
        ("monitor", "model._normal.whitening", np.inf),
        ("tracker with a reference", "model._moments.x_squares", -1.0),
        ("tracker with a reference", "model._reference.moments.y_squares", -1.0),
        ("tracker with a reference", "model._sums.error.usual", np.nan),
        ("tracker with a reference", "model._earlier", np.inf),
    ):
        save(made[name], path)
        document, tensors = take_apart(path.read_bytes())
        tensors[tensor][2] = struct.pack("<d", value) + tensors[tensor][2][8:]
        refused(path, put_together(document, tensors), f"{tensor} has values out of range")
    tensors["model._earlier"][2] = bytes(len(tensors["model._earlier"][2]))
    tensors["model._sums.error.usual"][2] = bytes(len(tensors["model._sums.error.usual"][2]))
    refused(path, put_together(document, tensors), "breaks a rule: values have weights")


def test_a_tracker_of_other_features_than_its_model(path):
    X, y = data(m=7)
    tracker = copy(watchers(m=7)["tracker of a few rows"])
    tracker.model = IncrementalPLS().partial_fit(X[:, :6], y)
    with pytest.raises(ValueError, match=r"the model has the features and responses of the rows before, which a"):
        save(tracker, path)


def test_missing_field(path, parts):
    document, tensors = parts(CIPLS())
    del document["model"]["fields"]["_state"]["fields"]["x"]["fields"]["total"]
    refused(path, put_together(document, tensors), "model._state.x lacks 'total'")


def test_numbers_that_cannot_be(path, parts):
    for model, name, value in (
        (CIPLS(), "model._state.x.origin", np.nan),
        (CIPLS(), "model._state.recursion.actions", np.inf),
        (CCIPCA(), "model._state.recursion.ages", -1.0),
        (IncrementalLDA(), "model._state.counts", -1.0),
        (IncrementalPLS(solver="gram"), "model._fitted.stream._weight", -1.0),
    ):
        document, tensors = parts(model, "many" if isinstance(model, IncrementalLDA) else "value")
        tensors[name][2] = struct.pack("<d", value) + tensors[name][2][8:]
        refused(path, put_together(document, tensors), f"{name} has values out of range")
    document, tensors = parts(SGDPLS(random_state=0), "many")
    tensors["model._state.recursion.begun"][2] = struct.pack("<q", 3)
    refused(path, put_together(document, tensors), "breaks a rule: no more rows are in use than exist")
    document, tensors = parts(IncrementalLDA(), "many")
    classes = tensors["model._state.waiting_classes"]
    classes[2] = struct.pack("<q", 4) + classes[2][8:]
    refused(path, put_together(document, tensors), "breaks a rule: buffered rows are of known classes")


def test_booleans_are_zero_or_one(path):
    X, y = data("many", m=7)
    save(ILFS().fit(X, y), path)
    document, tensors = take_apart(path.read_bytes())
    tensors["model.support_"][2] = b"\x02" * 7
    refused(path, put_together(document, tensors), "support_ has values out of range")


def test_every_bit_counts(path):
    X, y = data()
    save(CIPLS(1).fit(X[:, :2], y), path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for bit in rng.choice(8 * len(content), 400, replace=False):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)
    for length in rng.choice(len(content), 100, replace=False):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            load(path)


def test_arrays_that_change_places_are_noticed(path, parts):
    document, tensors = parts(CIPLS())
    one, other = (tensors[f"model._state.x.{name}"] for name in ("origin", "offset"))
    one[2], other[2] = other[2], one[2]
    refused(path, put_together(document, tensors, hashes=False), "the arrays do not match their hash")


def test_deep_nesting_and_strict_json(path, parts):
    document, tensors = parts(CIPLS())
    for _ in range(90):
        document["model"]["parameters"]["amnesic"] = {"list": [document["model"]["parameters"]["amnesic"]]}
    refused(path, put_together(document, tensors), "not a value")
    deep = b'{"__metadata__":' + b"[" * 10**6 + b"]" * 10**6 + b"}"
    refused(path, struct.pack("<Q", len(deep)) + deep, "is not a model file")
    document["model"]["parameters"]["amnesic"] = float("nan")
    refused(path, put_together(document, tensors), "not strict JSON")
    twice = b'{"__metadata__":{},"__metadata__":{}}'
    refused(path, struct.pack("<Q", len(twice)) + twice, "is not a model file")


def test_huge_declarations_take_no_memory(path, parts):
    document, tensors = parts(CIPLS())
    huge = {name: list(entry) for name, entry in tensors.items()}
    name = "model._state.recursion.cross"
    huge[name][1] = [1, 10**10]
    document["model"]["fields"]["_state"]["fields"]["recursion"]["fields"]["cross"]["shape"] = [1, 10**10]
    refused(path, put_together(document, huge), "an array does not fit into its position")
    content = bytearray(put_together(document, tensors))
    content[:8] = struct.pack("<Q", 10**10)
    refused(path, bytes(content), "is not a model file")


def test_sketch_of_no_memory(path, parts, monkeypatch):
    document, tensors = parts(IncrementalPLS(solver="sketch"))
    stream = document["model"]["fields"]["_fitted"]["fields"]["stream"]["fields"]
    stream["block_rows"] = stream["state"]["fields"]["size"] = 2**40
    refused(path, put_together(document, tensors), "integer from 1")
    # As for a large one on a small machine.
    monkeypatch.setattr(Buffered, "__setstate__", too_large)
    refused(path, put_together(*parts(IncrementalPLS(solver="sketch"))), "requires more memory than is available")


# Numbers in small files that decide what it costs to use the model: which one, where in its document, what to put
# there and what the sentence says of it. Places that have to agree are changed together.
COSTS = [
    (IncrementalPLS(solver="gram"), "value", [["fields", "_fitted", "fields", "n_components"]], 2**20, "in proportion"),
    (IncrementalPLS(solver="gram"), "value", [["fields", "_fitted", "fields", "n_components"]], 1025, "in proportion"),
    (IncrementalPLS(solver="gram"), "value", [["parameters", "n_components"]], 2**20, "components to come are in"),
    (IncrementalPLSCV(2), "value", [["fields", "_fitted", "fields", "n_components"]], 2**20, "in proportion"),
    (IncrementalPLSCV(2), "value", [["parameters", "max_components"]], 2**20, "components to come are in"),
    (IncrementalPLS(solver="sketch"), "value", [["parameters", "n_components"]], 2**20, "components to come are in"),
    (
        IncrementalPLS(solver="sketch", sketch_size=9),
        "value",
        [["fields", "_fitted", "fields", "stream", "fields", name] for name in ("block_rows",)]
        + [["fields", "_fitted", "fields", "stream", "fields", "state", "fields", "size"]],
        2,
        "fewer rows wait than make a block|in proportion|at most 3n",
    ),
    (IPLS(), "values", [["fields", "_begun_with", "n_components"]], 2**20, "many more components than features"),
    (IPLS(), "values", [["fields", "_begun_with", "n_components"]], 1025, "many more components than features"),
    (SGDPLS(2), "many", [["fields", "_begun_with", "n_components"]], 2**20, "many more components than features"),
    (SGDPLS(2), "many", [["fields", "_begun_with", "n_steps"]], 2**20, "integer from 1 to 1000"),
    (SGDPLS(2), "many", [["fields", "_begun_with", "n_steps"]], 2, "the number of steps is that of the start"),
    (
        SGDPLS(2, algorithm="msg"),
        "many",
        [["fields", "_state", "fields", "recursion", "fields", "n_steps"], ["fields", "_begun_with", "n_steps"]],
        2**20,
        "integer from 1 to 1000",
    ),
]


@pytest.mark.parametrize(("model", "target", "places", "value", "match"), COSTS)
def test_small_files_of_large_cost(model, target, places, value, match, path, parts):
    document, tensors = parts(model, target)
    for place in places:
        node = document["model"]
        for name in place[:-1]:
            node = node[name]
        assert node[place[-1]] != value
        node[place[-1]] = value
    refused(path, put_together(document, tensors), match)


def test_many_vectors_of_few_features(path, parts):
    """Products of vectors with each other would take the square of their number."""
    for model, target, names in (
        (CCIPCA(2), "value", ["V", "squares", "ages"]),
        (SGDPLS(algorithm="incremental"), "many", ["U", "s", "V"]),
    ):
        document, tensors = parts(model, target)
        fields = document["model"]["fields"]
        for name in names:
            node = fields["_state"]["fields"]["recursion"]["fields"][name]
            entry = tensors[node["tensor"]]
            entry[2] += entry[2][:8] * (2000 * int(np.prod(entry[1][1:])))
            entry[1][0] += 2000
            node["shape"] = entry[1]
        if isinstance(model, CCIPCA):
            fields["_begun_with"]["n_components"] += 2000
        refused(path, put_together(document, tensors), "than features")


def test_many_responses_of_one_feature(path):
    """Loadings of all responses with the components of all of them would take the square of their number."""
    Y = np.random.default_rng(0).normal(size=(3, 2000))
    for model in (CIPLS(), OLPLS()):
        with pytest.raises(ValueError, match="model breaks a rule: responses are in proportion to its arrays, which a"):
            save(model.partial_fit(Y[:, :1], Y), path)


def test_a_sketch_takes_memory_for_the_rows_that_it_has(path, parts):
    document, tensors = parts(IncrementalPLS(solver="sketch"))
    stream = document["model"]["fields"]["_fitted"]["fields"]["stream"]["fields"]
    stream["block_rows"] = stream["state"]["fields"]["size"] = 2**25
    path.write_bytes(put_together(document, tensors))
    X, y = data(m=7)
    model = load(path)
    assert model._fitted.stream.nbytes < 100_000
    model.partial_fit(X, y)
    assert model._fitted.stream.nbytes < 100_000


@pytest.mark.parametrize(("compressed", "residuals"), [(True, False), (False, True)])
def test_a_sketch_of_few_rows_and_all_directions(compressed, residuals, path):
    X, y = data(n=200, m=30)
    model = IncrementalPLS(solver="sketch", sketch_size=6)
    for start in range(0, 200, 6):
        learn(model, X[start : start + 6], y[start : start + 6])
    save(model, path)
    document, tensors = take_apart(path.read_bytes())
    state = document["model"]["fields"]["_fitted"]["fields"]["stream"]["fields"]["state"]["fields"]
    held = state["held"]["fields"]
    assert state["compressed"]
    assert held["residuals"]
    state["compressed"] = compressed
    if not residuals:
        for piece in held["pieces"]:
            del tensors[piece["tensor"]]
        held["pieces"] = []
    refused(path, put_together(document, tensors), "there is a compressed row for every preserved component")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows["_columns"].__setitem__(0, 200),
        lambda rows: rows["_ends"].__setitem__(0, rows["_ends"][1] + 1),
        lambda rows: rows["_ends"].__setitem__(-1, rows["_ends"][-1] - 1),
        lambda rows: rows.pop("_columns"),
        lambda rows: rows.pop("_ends"),
    ],
)
def test_sparse_rows_out_of_place(change, path, monkeypatch):
    X = sparse.random(300, 200, density=0.02, format="csr", random_state=0)
    model = IncrementalPLS(2, solver="sketch", sketch_size=6)
    for start in range(0, 300, 50):
        learn(model, X[start : start + 50], np.arange(start, start + 50.0))
    state = model._fitted.stream.__getstate__()
    change(state)
    monkeypatch.setattr(type(model._fitted.stream), "__getstate__", lambda _: state)
    # A file is read by the same rules.
    with pytest.raises(ValueError, match="fewer rows wait than make a block, or sparse ones"):
        save(model, path)


def test_more_components_than_a_model_can_have(path):
    """What cannot be saved is not learnt either."""
    X, y = data(m=7)
    labels = data("many", m=7)[1]
    for model, target in (
        (IncrementalPLS(1025), y),
        (IncrementalPLSClassifier(1025), labels),
        (IncrementalPLSCV(1025), y),
        (CIPLS(1025), y),
        (CCIPCA(1025), y),
        (SGDPLS(1025), y),
        (IPLS(1025), y),
    ):
        with pytest.raises(ValueError, match=r"components=1025 is too large for 7 features: reduce it to 1024"):
            model.partial_fit(X, target)
        model.set_params(**{name: 9 for name in model.get_params() if name in {"n_components", "max_components"}})
        save(learn(model, X, target), path)
        load(path)


def too_large(_stream, _state):
    raise MemoryError


def test_objects_that_cannot_be_saved(path):
    X, y = data()
    for model in (PLSRegression(), PCA().fit(X), {}, None, CIPLS, 3):
        with pytest.raises(TypeError, match=r"Only estimators of plstream can be saved, not "):
            save(model, path)

    class Derived(CIPLS):
        pass

    with pytest.raises(TypeError, match=r"not a .*Derived"):
        save(Derived(), path)
    for model, match in (
        (VIPSelector(PLSRegression()), "model.estimator is of the class PLSRegression, which a model file cannot hold"),
        (VIPSelector(CCIPCA()), "model.estimator is of the class CCIPCA"),
        (CIPLS(amnesic=object()), "model.amnesic is of type object"),
        (CIPLS(amnesic=2**64), "model.amnesic is of type int"),
        (SGDPLS(random_state=np.random.RandomState(np.random.PCG64(0))), "RandomState of PCG64, not MT19937"),
        (CIPLS(amnesic=np.array([object()])), "is an array of type object"),
    ):
        with pytest.raises(ValueError, match=match):
            save(model, path)
    noted = CIPLS().fit(X, y)
    noted.note = "mine"
    with pytest.raises(ValueError, match="model has an unknown field, 'note'"):
        save(noted, path)
    assert not path.exists()


def test_text_that_would_fill_the_memory_is_refused(tmp_path):
    """A few letters in an array of entries of a million."""
    path = tmp_path / "model"
    save(IncrementalPLS(), path)
    document, tensors = take_apart(path.read_bytes())
    bomb = {"array": "<U1000000", "values": ["a"] * 16}
    for value in (bomb, {"tuple": [bomb] * 30}, {"list": [{"array": "<i8", "values": [1]}]}):
        document["model"]["parameters"]["forgetting"] = value
        path.write_bytes(put_together(document, tensors))
        with pytest.raises(ModelFileError, match="damaged or was not written"):
            load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a model file"):
        load(tmp_path / "pipe")


def test_requests_of_metadata(tmp_path):
    path = tmp_path / "model"
    with config_context(enable_metadata_routing=True):
        model = IncrementalPLS().set_fit_request(sample_weight=True).set_score_request(sample_weight="w")
        save(model, path)
        twin = load(path)
    assert twin._metadata_request._serialize() == model._metadata_request._serialize()
    document, tensors = take_apart(path.read_bytes())
    for requests in ({"fit": {"other": True}}, {"fits": {"sample_weight": True}}, {"fit": {"sample_weight": 7}}, [], 3):
        document["model"]["requests"] = requests
        path.write_bytes(put_together(document, tensors))
        with pytest.raises(ModelFileError, match="requests unknown metadata"):
            load(path)
