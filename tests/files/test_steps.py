"""Steps of pipelines in files and in ONNX graphs: the same results, from a short list of classes."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    StandardScaler,
)

from plstream import CCIPCA, IncrementalPLS, StreamingPipeline, VIPSelector, load, save
from plstream.files import ModelFileError, export_onnx, fit_source
from plstream.monitoring import DriftTracker, Monitor

from .forge import put_together, take_apart

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 30)).cumsum(axis=1) + 20
Y = X[:, 3] - X[:, 10]
AXIS = np.arange(30) * 2.0 + 1000

OURS_AND_SKLEARN = [
    StandardScaler(),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False),
    MinMaxScaler(),
    MinMaxScaler(feature_range=(-1, 1), clip=True),
    MaxAbsScaler(),
    Normalizer(),
    Normalizer("l1"),
    Normalizer("max"),
    FrozenEstimator(StandardScaler().fit(X[:20])),
    "passthrough",
]
NOT_IN_GRAPHS = [Binarizer(threshold=20.0), CCIPCA(5), VIPSelector(n_features_to_select=10), None]


def forged(path, change):
    """Write a file again, with the right hashes, after a change of its document."""
    document, tensors = take_apart(path.read_bytes())
    change(document)
    path.write_bytes(put_together(document, tensors))


def of_chemotools(name, *, module, **parameters):
    """Return a case that is made when chemotools is there."""
    return pytest.param((f"chemotools.{module}", name, parameters), id=f"{name}({','.join(parameters)})")


CHEMOTOOLS = [
    of_chemotools("StandardNormalVariate", module="scatter"),
    of_chemotools("MultiplicativeScatterCorrection", module="scatter"),
    of_chemotools("MultiplicativeScatterCorrection", module="scatter", reference=X[0].copy(), weights=np.ones(30)),
    of_chemotools("SavitzkyGolay", module="derivative", window_length=7, polyorder=2, deriv=2),
    of_chemotools("SavitzkyGolay", module="derivative", window_length=5, polyorder=3, deriv=1, mode="interp"),
    of_chemotools("NorrisWilliams", module="derivative"),
    of_chemotools("MeanFilter", module="smooth"),
    of_chemotools("SavitzkyGolayFilter", module="smooth", window_length=5, polyorder=2),
    of_chemotools("LinearCorrection", module="baseline"),
    of_chemotools("ConstantBaselineCorrection", module="baseline", start=2, end=6),
    of_chemotools("ConstantBaselineCorrection", module="baseline", start=1004, end=1010, x_axis=AXIS),
    of_chemotools("PolynomialCorrection", module="baseline", order=2),
    of_chemotools("PolynomialCorrection", module="baseline", order=2, indices=[0, 10, 20, 29]),
    of_chemotools("SubtractReference", module="baseline", reference=X[1].copy()),
    of_chemotools("RangeCut", module="feature_selection", start=4, end=20),
    of_chemotools("RangeCut", module="feature_selection", start=1008, end=1040, x_axis=AXIS),
    of_chemotools("IndexSelector", module="feature_selection", features=[1, 4, 5, 9]),
    of_chemotools("IndexSelector", module="feature_selection", features=np.array([1008.0, 1012.0]), x_axis=AXIS),
]
CHEMOTOOLS_NOT_IN_GRAPHS = [
    of_chemotools("SubtractReference", module="baseline", reference=X[1].copy(), scale_reference=True),
    of_chemotools("NormScaler", module="scale"),
    of_chemotools("MinMaxScaler", module="scale"),
    of_chemotools("PointScaler", module="scale", point=4),
]


def pipeline_with(step):
    if isinstance(step, tuple):
        pytest.importorskip("chemotools", reason="needs chemotools (plstream[spectra])")
        module, name, parameters = step
        step = getattr(pytest.importorskip(module), name)(**parameters)
    step = step if isinstance(step, str | None) else clone(step)
    return StreamingPipeline([("step", step), ("pls", IncrementalPLS(2, solver="gram"))])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [*OURS_AND_SKLEARN, *NOT_IN_GRAPHS, *CHEMOTOOLS, *CHEMOTOOLS_NOT_IN_GRAPHS], ids=str)
def test_files(step, dtype, tmp_path):
    rows, model = X.astype(dtype), pipeline_with(step)
    path = tmp_path / "model.plstream"
    save(model, path)
    assert repr(load(path)) == repr(model)
    model.fit(rows, Y)
    save(model, path)
    twin = load(path)
    assert_array_equal(twin.predict(rows), model.predict(rows))
    content = path.read_bytes()
    save(twin, path)
    assert path.read_bytes() == content
    for each in (model, twin):
        each.partial_fit(rows[:10] + 1, Y[:10])
    assert_array_equal(twin.predict(rows), model.predict(rows))


def run_graph(model, rows, path):
    pytest.importorskip("onnx", reason="needs onnx, to export")
    runtime = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime, to run what was exported")
    export_onnx(model, path, dtype=rows.dtype)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["scores", "prediction"], {"X": rows})


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("step", [*OURS_AND_SKLEARN, *CHEMOTOOLS], ids=str)
def test_graphs(step, dtype, tolerance, tmp_path):
    rows = X.astype(dtype)
    model = pipeline_with(step).fit(rows, Y)
    scores, prediction = run_graph(model, rows, tmp_path / "model.onnx")
    assert_allclose(prediction, model.predict(rows), atol=tolerance * np.ptp(Y))
    assert_allclose(scores, model.transform(rows), atol=tolerance * np.ptp(model.transform(rows)))


def test_a_treated_spectrum_in_every_form(tmp_path):
    """SNV, second derivative and PLS: file and graph take raw spectra."""
    scatter, derivative = (
        pytest.importorskip(f"chemotools.{module}", reason="needs chemotools (plstream[spectra])")
        for module in ("scatter", "derivative")
    )
    steps = [
        ("snv", scatter.StandardNormalVariate()),
        ("second", derivative.SavitzkyGolay(window_length=7, polyorder=3, deriv=2)),
        ("pls", IncrementalPLS(3, scale=False)),
    ]
    model = StreamingPipeline(steps).partial_fit(X[:30], Y[:30])
    save(model, tmp_path / "model.plstream")
    model = load(tmp_path / "model.plstream").partial_fit(X[30:], Y[30:])
    second = derivative.SavitzkyGolay(window_length=7, polyorder=3, deriv=2)
    treated = second.fit_transform(scatter.StandardNormalVariate().fit_transform(X))
    expected = IncrementalPLS(3, scale=False).fit(treated, Y).predict(treated)
    assert_allclose(model.predict(X), expected, atol=1e-9)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-4)):
        _, prediction = run_graph(model, X.astype(dtype), tmp_path / "model.onnx")
        assert_allclose(prediction, expected, atol=tolerance * np.ptp(Y))


@pytest.mark.parametrize(
    "step",
    [FunctionTransformer(np.log), QuantileTransformer(n_quantiles=9), StreamingPipeline([("x", StandardScaler())])],
)
def test_steps_that_are_not_saved(step, tmp_path):
    path = tmp_path / "model.plstream"
    path.write_text("as it was")
    model = StreamingPipeline([("own", step), ("pls", IncrementalPLS())]).fit(X, Y)
    name = type(step).__name__
    with pytest.raises(ValueError, match=rf"cannot be saved.* model.steps.0.1 is of the class {name}, which"):
        save(model, path)
    assert path.read_text() == "as it was"
    pytest.importorskip("onnx", reason="needs onnx, to export")
    with pytest.raises(ValueError, match=rf"Step 'own' \({name}\) cannot be part of an ONNX graph"):
        export_onnx(model, path)
    assert path.read_text() == "as it was"


@pytest.mark.parametrize(
    "name", ["sklearn.FunctionTransformer", "os.system", "StreamingPipeline", "IncrementalPLSX", 3]
)
def test_classes_that_are_not_loaded(name, tmp_path):
    path = tmp_path / "model.plstream"
    save(StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLS())]).fit(X, Y), path)

    def renamed(document):
        document["model"]["parameters"]["steps"][0][1]["class"] = name

    forged(path, renamed)
    with pytest.raises(ModelFileError, match=r"model.steps.0.1 is not of a class that is supported for steps"):
        load(path)


def test_caches_are_neither_saved_nor_loaded(tmp_path):
    # What joblib finds in the folder of a cache, it unpickles: a file must not choose that folder.
    path = tmp_path / "model.plstream"
    model = StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLS())]).fit(X, Y)
    save(model, path)

    def cached(document):
        document["model"]["parameters"]["memory"] = str(tmp_path / "cache")

    forged(path, cached)
    with pytest.raises(ModelFileError, match=r"model\.memory is not None"):
        load(path)
    with pytest.raises(ValueError, match=r"cannot be saved: model\.memory is not None"):
        save(model.set_params(memory=str(tmp_path / "cache")), path)


def test_sizes_that_are_not_loaded(tmp_path):
    path = tmp_path / "model.plstream"
    save(StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLS())]).fit(X, Y), path)

    def larger(document):
        document["model"]["parameters"]["steps"][0][1]["fields"]["n_features_in_"] = 10**12

    forged(path, larger)
    with pytest.raises(ModelFileError, match="n_features_in_ is not an integer from 1 to 1048576"):
        load(path)


def test_without_chemotools(tmp_path, monkeypatch):
    scatter = pytest.importorskip("chemotools.scatter", reason="needs chemotools (plstream[spectra])")
    path = tmp_path / "model.plstream"
    save(StreamingPipeline([("snv", scatter.StandardNormalVariate()), ("pls", IncrementalPLS())]), path)
    for module in [name for name in sys.modules if name.partition(".")[0] == "chemotools"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"requires the package chemotools: pip install 'plstream\[spectra\]'"):
        load(path)


def test_monitors_and_trackers(tmp_path):
    path = tmp_path / "model.plstream"
    model = StreamingPipeline([("scale", StandardScaler()), ("pls", IncrementalPLS(2))]).partial_fit(X, Y)
    monitor = Monitor(model)
    save(monitor, path)
    assert_array_equal(load(path).q(X), monitor.q(X))

    def of_another_size(document):
        document["model"]["fields"]["model"]["parameters"]["steps"].pop()

    forged(path, of_another_size)
    with pytest.raises(ModelFileError):
        load(path)
    tracker = DriftTracker(model)
    for start in range(0, 60, 6):
        tracker.partial_fit(X[start : start + 6], Y[start : start + 6])
    save(tracker, path)
    twin = load(path)
    for each in (tracker, twin):
        each.partial_fit(X[:6], Y[:6])
    assert str(twin.history_) == str(tracker.history_)


def test_checkpoints_are_for_single_models():
    from plstream import open_source

    with pytest.raises(TypeError, match="fit_source does not support pipelines: call fit or partial_fit"):
        fit_source(StreamingPipeline([("pls", IncrementalPLS())]), open_source(X, target=Y))
