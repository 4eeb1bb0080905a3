"""Format 1 as documented, and stored files in this format."""

import hashlib
import io
import json
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.frozen import FrozenEstimator

from plstream import CIPLS, IncrementalPLS, load, save
from plstream._core.schema import Entries, Object, Tuple, schema_of
from plstream.files.modelfile import SAVED

from ..oracles import relative_error
from .forge import array_of, put_together, take_apart
from .models import assert_identical, data

ARCHIVE = Path(__file__).parents[1] / "samples" / "model_files.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    STORED = sorted(name for name in _archive.namelist() if name.endswith(".plstream"))
    EXPECTED = dict(np.load(io.BytesIO(_archive.read("expected.npz"))))


@pytest.mark.parametrize("name", STORED)
def test_stored_files(name, tmp_path):
    with zipfile.ZipFile(ARCHIVE) as archive:
        path = archive.extract(name, tmp_path)
    model, name = load(path), name.removesuffix(".plstream")
    if name == "unfitted":
        assert repr(model) == "IncrementalPLS(forgetting=0.9, n_components=3)"
        return
    X = EXPECTED["X"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert relative_error(model.transform(X), EXPECTED[f"{name}_scores"]) < 1e-12
        if f"{name}_prediction" in EXPECTED:
            prediction = EXPECTED[f"{name}_prediction"]
            if prediction.dtype.kind == "f":
                assert relative_error(model.predict(X), prediction) < 1e-12
            else:
                assert_identical(model.predict(X), prediction)
        if f"{name}_later_scores" in EXPECTED:
            y = EXPECTED["labels" if hasattr(model, "classes_") else "y"]
            later = model.partial_fit(X[::-1], y[::-1]).transform(X)
            assert relative_error(later, EXPECTED[f"{name}_later_scores"]) < 1e-9


def test_read_as_documented(tmp_path):
    """With JSON, hashes and NumPy alone."""
    X, y = data()
    model = IncrementalPLS(solver="gram").fit(X, y)
    save(model, tmp_path / "model.plstream")
    content = (tmp_path / "model.plstream").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    assert hashlib.sha256(metadata["plstream"].encode()).hexdigest() == metadata["sha256"]
    document, tensors = take_apart(content)
    assert document["format"] == 1
    assert document["model"]["class"] == "IncrementalPLS"
    assert document["model"]["parameters"]["solver"] == "gram"
    factors = document["model"]["fields"]["_fitted"]["fields"]["solution"]["fields"]["factors"]["fields"]
    np.testing.assert_array_equal(array_of(tensors, factors["x_weights"]), model.x_weights_)
    # Written again by the same description, it is the same model.
    (tmp_path / "again.plstream").write_bytes(put_together(document, tensors))
    assert_identical(load(tmp_path / "again.plstream"), model)


def test_other_programs_read_the_arrays(tmp_path):
    X, y = data()
    model = CIPLS().fit(X, y)
    save(model, tmp_path / "model.plstream")
    with safe_open(tmp_path / "model.plstream", framework="numpy") as file:
        assert json.loads(file.metadata()["plstream"])["model"]["class"] == "CIPLS"
        np.testing.assert_array_equal(file.get_tensor("model._solved.x_mean"), model.x_mean_)


def test_other_programs_read_a_file_without_arrays(tmp_path):
    save(CIPLS(), tmp_path / "model.plstream")
    with safe_open(tmp_path / "model.plstream", framework="numpy") as file:
        assert not file.keys()
        assert json.loads(file.metadata()["plstream"])["model"]["fields"] is None


def test_every_class_is_of_the_library_or_frozen():
    found = {cls for cls in reachable(SAVED, set()) if not cls.__module__.startswith("plstream.")}
    assert found == {FrozenEstimator}


def reachable(kind, seen):
    """Return all classes whose objects a file of some kind may have."""
    inner = list(kind.classes.values()) if isinstance(kind, Object) else []
    for cls in inner:
        if cls not in seen:
            seen.add(cls)
            for field in schema_of(cls).fields.values():
                reachable(field, seen)
    nested = getattr(kind, "kinds", {})
    for part in [getattr(kind, "kind", None), *(nested.values() if isinstance(kind, Entries) else ())]:
        if part is not None:
            reachable(part, seen)
    if isinstance(kind, Tuple):
        for part in kind.kinds(0):
            reachable(part, seen)
    return seen
