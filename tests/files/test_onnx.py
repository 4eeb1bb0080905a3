"""ONNX graphs, run by ONNX Runtime, give the results of the models."""

import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from plstream import CIPLS, IncrementalLDA, IncrementalPLS, IncrementalPLSClassifier, VIPSelector
from plstream.files import export_onnx

from ..oracles import relative_error
from .models import EXPORTED, data, fitted

pytestmark = [
    pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:The two factors have swapped:UserWarning"),
    pytest.mark.filterwarnings("ignore:sketch_size=:UserWarning"),
]


@pytest.fixture
def run(tmp_path):
    """Return a function that exports a model and runs it."""
    pytest.importorskip("onnx", reason="needs onnx, to export")
    runtime = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime, to run what was exported")
    runtime.set_default_logger_severity(3)

    def exported(model, X, **options):
        export_onnx(model, tmp_path / "model.onnx", dtype=X.dtype, **options)
        session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, {"X": X}), strict=True)), session.get_modelmeta()

    return exported


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", EXPORTED, ids=str)
def test_same_results(case, dtype, run):
    X, y = data(case.target, m=7)
    model = fitted(case, X, y)
    rows = X.astype(dtype)
    outputs, _ = run(model, rows)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    scores = model.transform(rows)
    assert outputs["scores"].dtype == dtype
    assert outputs["scores"].shape == scores.shape
    assert relative_error(outputs["scores"], scores) < tolerance
    assert ("prediction" in outputs) == hasattr(model, "predict")
    if "prediction" in outputs:
        prediction = model.predict(rows)
        assert outputs["prediction"].shape == prediction.shape
        if prediction.dtype.kind == "f":
            assert relative_error(outputs["prediction"], prediction) < tolerance
        else:
            np.testing.assert_array_equal(outputs["prediction"], prediction)
    assert ("probabilities" in outputs) == hasattr(model, "predict_proba")
    if "probabilities" in outputs:
        np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(rows), atol=100 * tolerance)


@pytest.mark.parametrize("n_rows", [1, 5])
def test_any_number_of_rows(n_rows, run):
    X, y = data(m=7)
    outputs, _ = run(IncrementalPLS().fit(X, y), X[:n_rows])
    assert outputs["scores"].shape == (n_rows, 2)
    assert outputs["prediction"].shape == (n_rows,)


@pytest.mark.parametrize("kind", ["int8", "int64", "uint16", "bool", "float32", "float64", "U", "S", ">i4"])
def test_types_of_labels(kind, run):
    X, y = data("two", m=7)
    labels = (y == "yes").astype(int)
    labels = np.array(["ja", "neïn"])[labels] if kind == "U" else labels
    labels = np.array([b"ja", b"nein"])[labels] if kind == "S" else labels if kind == "U" else labels.astype(kind)
    model = IncrementalLDA().fit(X, labels)
    outputs, _ = run(model, X)
    expected = model.predict(X)
    np.testing.assert_array_equal(outputs["prediction"], expected.astype("U") if kind == "S" else expected)


def test_class_without_rows(run):
    X, y = data("many", m=7)
    for model in (IncrementalLDA(), IncrementalPLSClassifier()):
        model.partial_fit(X, y, classes=[0, 1, 2, 3, 4])
        outputs, _ = run(model, X)
        np.testing.assert_array_equal(outputs["prediction"], model.predict(X))
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), atol=1e-12)


def test_data_far_from_zero(run):
    X, y = data(m=7)
    far = (X + 1e5).astype(np.float32)
    model = IncrementalPLS().fit(far, y)
    outputs, _ = run(model, far)
    assert relative_error(outputs["scores"], model.transform(far)) < 1e-6


def test_responses_far_from_zero(run):
    X, y = data(m=7)
    rows = X.astype(np.float32)
    model = IncrementalPLS().fit(rows, y + 1e8)
    outputs, _ = run(model, rows)
    assert outputs["prediction"].dtype == np.float64
    assert relative_error(outputs["prediction"] - 1e8, model.predict(rows) - 1e8) < 1e-5


@pytest.mark.parametrize("far", [1e2, 1e5])
def test_classes_far_apart(run, far):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 10))
    X[:, 0] += 4 * (y == 1) + far * (y == 2)
    rows = X.astype(np.float32)
    model = IncrementalLDA().fit(rows, y)
    outputs, _ = run(model, rows)
    assert np.mean(outputs["prediction"] != model.predict(rows)) < 0.005


def test_labels_that_are_not_text(tmp_path):
    pytest.importorskip("onnx", reason="needs onnx, to export")
    X, y = data("two", m=7)
    model = IncrementalLDA().fit(X, np.where(y == "yes", b"\xff", b"no"))
    with pytest.raises(ValueError, match="cannot be encoded as UTF-8"):
        export_onnx(model, tmp_path / "model.onnx")


def test_method_and_metadata(run):
    pandas = pytest.importorskip("pandas")
    X, y = data(m=7)
    model = CIPLS().fit(pandas.DataFrame(X, columns=list("abcdefg")), y)
    outputs, metadata = run(model, X, method="predict")
    assert [*outputs] == ["prediction"]
    assert metadata.producer_name == "plstream"
    properties = metadata.custom_metadata_map
    assert properties["class"] == "CIPLS"
    assert properties["feature_names"] == '["a", "b", "c", "d", "e", "f", "g"]'
    with pytest.raises(ValueError, match="method must be one of transform for VIPSelector, not 'predict'"):
        run(VIPSelector().fit(X, y), X, method="predict")


def test_units_out_of_range_of_float32(run):
    X, y = data(m=7)
    model = IncrementalPLS().fit(X * 1e100, y)
    with pytest.raises(ValueError, match=r"numbers that float32 cannot hold .*: export it with dtype=float64"):
        run(model, X.astype(np.float32))
    outputs, _ = run(model, X * 1e100)
    assert relative_error(outputs["scores"], model.transform(X * 1e100)) < 1e-12


def test_unsupported_exports_are_refused(tmp_path):
    pytest.importorskip("onnx", reason="needs onnx, to export")
    path = tmp_path / "model.onnx"
    X, y = data(m=7)
    with pytest.raises(NotFittedError):
        export_onnx(IncrementalPLS(), path)
    with pytest.raises(TypeError, match="Only estimators of plstream can be exported, not PCA"):
        export_onnx(PCA().fit(X), path)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, not int64"):
        export_onnx(IncrementalPLS().fit(X, y), path, dtype=int)
    assert not path.exists()
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        export_onnx(IncrementalPLS().fit(X, y), path, overwrite=False)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"export_onnx requires the package onnx: pip install 'plstream\[onnx\]'"):
        export_onnx(IncrementalPLS(), tmp_path / "model.onnx")
