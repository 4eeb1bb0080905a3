"""All commands except fit: the results of the library, in files and on standard output."""

import csv
import io
import json
import sys

import numpy as np
import pytest
from sklearn.metrics import r2_score, root_mean_squared_error

import plstream
from plstream import CIPLS, IncrementalPLS, IncrementalPLSClassifier, InfFSS, VIPSelector, load, open_source, save
from plstream._core.metrics import RegressionMetrics
from plstream.monitoring import DriftTracker, Monitor


@pytest.fixture
def classifier(folder):
    model = CIPLS(2).fit(open_source("data.csv", target="kind", exclude="y"))
    save(model, folder / "labels.plstream")
    return model


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("method", ["transform", "predict"])
def test_npy_is_that_of_the_library(model, done, method):
    # Other columns are left alone.
    assert done(method, "model.plstream", "data.csv", "-o", "out.npy") == ""
    expected = getattr(model, method)(open_source("data.csv", columns=list("abcde")))
    found = np.load("out.npy")
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csv_reads_back(folder, done, arrays, dtype):
    np.save("rows.npy", arrays.X.astype(dtype))
    model = IncrementalPLS(2).fit(arrays.X.astype(dtype), arrays.y)
    save(model, "model.plstream")
    out = done("transform", "model.plstream", "rows.npy")
    done("transform", "model.plstream", "rows.npy", "-o", "out.csv")
    assert (folder / "out.csv").read_text() == out
    assert out.startswith("incrementalpls0,incrementalpls1\n")
    found = np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1).astype(dtype)
    assert np.array_equal(found, model.transform(arrays.X.astype(dtype)))


@pytest.mark.usefixtures("model")
def test_parquet(classifier, done):
    parquet = pytest.importorskip("pyarrow.parquet")
    done("predict", "labels.plstream", "data.csv", "-o", "out.parquet")
    table = parquet.read_table("out.parquet")
    assert table.column_names == ["prediction"]
    expected = classifier.predict(open_source("data.csv", columns=list("abcde")))
    assert table["prediction"].to_pylist() == expected.tolist()


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_several_blocks_and_targets(folder, done, arrays, monkeypatch, ending):
    pytest.importorskip("pyarrow") if ending == "parquet" else None
    model = IncrementalPLS(2).fit(arrays.X, np.column_stack([arrays.y, arrays.X[:, 4]]))
    save(model, "model.plstream")
    monkeypatch.setattr(plstream.data.source, "default_rows", lambda *_: 70)
    done("predict", "model.plstream", "X.npy", "-o", f"out.{ending}")
    expected = model.predict(arrays.X)
    if ending == "csv":
        assert list(read_csv((folder / "out.csv").read_text())[0]) == ["prediction0", "prediction1"]
    source = open_source(f"out.{ending}")
    found = np.concatenate([X for X, _ in source.blocks()])
    assert np.allclose(found, expected, rtol=1e-14)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("patience", [1e-4, 100.0])
def test_from_standard_input(done, folder, monkeypatch, patience):
    # Blocks of a pipe end where it pauses, also if the machine is busy, and products of fewer rows may round otherwise.
    monkeypatch.setattr("plstream.data.reading.PATIENCE_SECONDS", patience)
    out = done("predict", "model.plstream", "-", "--format", "csv", stdin=(folder / "data.csv").read_bytes())
    values = [
        np.loadtxt(io.StringIO(text), skiprows=1) for text in (out, done("predict", "model.plstream", "data.csv"))
    ]
    np.testing.assert_allclose(*values, rtol=1e-13)


def test_columns_without_names(model, run):
    result = run("predict", "model.plstream", "X.npy")
    assert result.code == 0
    assert result.err.startswith("plstream: warning: ")
    assert np.allclose(
        np.loadtxt(io.StringIO(result.out), skiprows=1),
        model.predict(open_source("data.csv", columns=list("abcde"))),
        rtol=1e-14,
    )


@pytest.mark.usefixtures("model")
def test_outputs_are_kept_or_replaced_as_a_whole(done, refused, folder):
    (folder / "out.csv").write_text("mine")
    assert "--force" in refused("predict", "model.plstream", "data.csv", "-o", "out.csv")
    bad = (folder / "data.csv").read_text().replace("\n", "\nnan,", 1)
    (folder / "bad.csv").write_text(bad)
    refused("predict", "model.plstream", "bad.csv", "-o", "out.csv", "--force")
    assert (folder / "out.csv").read_text() == "mine"
    done("predict", "model.plstream", "data.csv", "-o", "out.csv", "--force")
    assert len((folder / "out.csv").read_text().splitlines()) == 301
    assert not list(folder.glob(".plstream-*"))


@pytest.mark.usefixtures("model")
def test_wrong_applications(refused, folder, arrays):
    np.save("narrow.npy", arrays.X[:, :3])
    assert "must end in .npy, .csv, .parquet" in refused("predict", "model.plstream", "data.csv", "-o", "out.txt")
    assert "is not a model file" in refused("predict", "data.csv", "data.csv")
    assert "There is no file none.plstream" in refused("predict", "none.plstream", "data.csv")
    assert "3 features" in refused("predict", "model.plstream", "narrow.npy").split("warning")[-1]
    (folder / "part.csv").write_text("a,b\n1,2\n")
    assert "There is no column 'c'" in refused("predict", "model.plstream", "part.csv")
    save(plstream.CCIPCA().fit(arrays.X), "pca.plstream")
    assert "CCIPCA makes no predictions" in refused("predict", "pca.plstream", "X.npy")
    assert "makes no predictions" in refused("evaluate", "pca.plstream", "X.npy", "-t", "y.npy")


def test_evaluate_values(model, done, arrays):
    (row,) = read_csv(done("evaluate", "model.plstream", "data.csv", "--target", "y"))
    predicted = model.predict(open_source("data.csv", columns=list("abcde")))
    assert (row["target"], row["rows"]) == ("y", "300")
    assert float(row["r2"]) == pytest.approx(r2_score(arrays.y, predicted), rel=1e-5)
    assert float(row["rmse"]) == pytest.approx(root_mean_squared_error(arrays.y, predicted), rel=1e-5)


def test_evaluate_labels(classifier, done, refused, arrays):
    (row,) = read_csv(done("evaluate", "labels.plstream", "data.csv", "--target", "kind"))
    right = classifier.predict(open_source("data.csv", columns=list("abcde"))) == arrays.labels
    assert float(row["accuracy"]) == pytest.approx(right.mean(), rel=1e-5)
    assert "labels of the model are strings" in refused("evaluate", "labels.plstream", "data.csv", "--target", "y")


@pytest.mark.usefixtures("model")
def test_evaluate_refuses(refused):
    assert "--target" in refused("evaluate", "model.plstream", "data.csv")
    assert "predicts numbers" in refused("evaluate", "model.plstream", "data.csv", "-t", "kind")
    assert "both a feature and a target" in refused("evaluate", "model.plstream", "data.csv", "-t", "y,e")


@pytest.mark.parametrize(("size", "mean"), [(1.0, 0.0), (1.0, 1e8), (1e150, 0.0), (1e200, 0.0), (1e-150, 0.0)])
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_scores_of_blocks_are_those_of_all_rows(size, mean, chunk):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(100, 2)) + mean
    predicted = y + rng.normal(size=(100, 2))
    score = RegressionMetrics(y[:chunk] * size)
    for start in range(0, 100, chunk):
        score.add(y[start : start + chunk] * size, predicted[start : start + chunk] * size)
    for row, true, guess in zip(score.table(["a", "b"]), y.T, predicted.T, strict=True):
        assert row["r2"] == pytest.approx(r2_score(true, guess), rel=1e-6)
        assert row["rmse"] == pytest.approx(root_mean_squared_error(true, guess) * size, rel=1e-6)


def test_scores_of_a_constant():
    for predicted, expected in ((3.0, 1.0), (4.0, 0.0)):
        score = RegressionMetrics(np.full((5, 1), 3.0))
        score.add(np.full(5, 3.0), np.full(5, predicted))
        assert score.table(["y"])[0]["r2"] == expected


@pytest.mark.usefixtures("folder")
def test_select_by_importance(done, arrays):
    rows = read_csv(done("select", "data.csv", "--target", "y", "--exclude", "kind", "--keep", "0.4", "-c", 3))
    expected = VIPSelector(IncrementalPLS(3), n_features_to_select=0.4).fit(arrays.X, arrays.y)
    assert [row["feature"] for row in rows] == ["b", "a"]
    assert [float(row["score"]) for row in rows] == pytest.approx(expected.scores_[[1, 0]], rel=1e-5)


def test_select_of_labels_and_streams(folder, done):
    content = (folder / "data.csv").read_bytes()
    call = "--format", "csv", "--target", "kind", "--exclude", "y", "--model", "cipls", "--keep", "2"
    rows = read_csv(done("select", "-", *call, stdin=content))
    assert [row["column"] for row in rows] == ["1", "0"]


def test_select_of_labels_by_the_exact_model(folder, done, refused):
    by_labels = ("select", "data.csv", "--target", "kind", "--exclude", "y", "-c", "2")
    assert "for labels, use incremental-pls-classifier" in refused(*by_labels)
    source = open_source(folder / "data.csv", target="kind", exclude="y")
    model = IncrementalPLSClassifier(2).fit(source)
    printed = done(*by_labels, "--keep", "3", "--model", "incremental-pls-classifier").splitlines()[1:]
    best = np.argsort(-model.vip_)[:3]
    assert [line.split(",")[0] for line in printed] == [source.feature_names[k] for k in best]


@pytest.mark.parametrize("method", ["inffs", "inffs-u", "inffs-s", "ilfs"])
def test_select_in_memory(folder, done, method, arrays):
    done("select", "X.npy", "--target", "labels.npy", "--method", method, "--keep", 3, "-o", "kept.json")
    rows = json.loads((folder / "kept.json").read_text())
    scores = [row["score"] for row in rows]
    assert len(rows) == 3
    assert scores == sorted(scores, reverse=True)
    if method == "inffs-s":
        expected = InfFSS(3).fit(arrays.X, arrays.labels)
        assert {row["column"] for row in rows} == set(expected.get_support(indices=True))
        text = done("select", "data.csv", "--target", "kind", "--exclude", "y", "--method", method, "--keep", 3)
        assert [row["column"] for row in read_csv(text)] == [str(row["column"]) for row in rows]


@pytest.mark.parametrize("keep", ["0", "-1", "1.5", "some", "0.0"])
@pytest.mark.usefixtures("folder")
def test_select_refuses(refused, keep):
    assert "--keep" in refused("select", "X.npy", "-t", "y.npy", f"--keep={keep}")
    assert "requires --target" in refused("select", "X.npy", "--method", "ilfs")


@pytest.mark.usefixtures("model", "classifier")
def test_info(done, refused, folder):
    out = done("info", "model.plstream")
    assert "class:      IncrementalPLS\n" in out
    assert "features:   a, b, c, d, e\n" in out
    assert "classes:    high, low\n" in done("info", "labels.plstream")
    (folder / "renamed").write_bytes((folder / "model.plstream").read_bytes())
    assert done("info", "renamed") == out
    save(IncrementalPLS(), "new.plstream")
    assert "IncrementalPLS" in done("info", "new.plstream")
    save(VIPSelector(IncrementalPLS()).fit(np.load("X.npy"), np.load("y.npy")), "vip.plstream")
    assert "VIPSelector" in done("info", "vip.plstream")
    assert "rows:      300\n" in done("info", "data.csv", "-t", "kind")
    assert "features:  5 of float64\n" in done("info", "X.npy")
    assert "no file" in refused("info", "missing.csv")


STEERING = "a\x1b]0;owned\x07\x9b2J\u202e"
SHOWN = r"a\x1b]0;owned\x07\x9b2J\u202e"


def test_names_do_not_steer_a_terminal(folder, run, done, arrays, monkeypatch):
    (folder / "odd.csv").write_text(f"{STEERING},b,y\n" + "".join(f"{i},{i * i},{i}\n" for i in range(20)))
    assert run("fit", "odd.csv", "-t", "y").code == 0
    for out in (done("info", "odd.csv", "-t", "y"), done("info", "model.plstream")):
        assert SHOWN in out
        assert all(line.isprintable() for line in out.splitlines())
    labels = np.where(arrays.labels == "high", STEERING, "low")
    save(IncrementalPLSClassifier().fit(arrays.X, labels), "labels.plstream")
    # What is piped is data.
    assert STEERING in done("predict", "labels.plstream", "X.npy")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
    for command in (["predict", "labels.plstream", "X.npy"], ["select", "odd.csv", "-t", "y", "--keep", "2"]):
        out = run(*command).out
        assert SHOWN in out
        assert all(line.isprintable() for line in out.splitlines())


@pytest.mark.usefixtures("model")
def test_export(done, refused, folder):
    pytest.importorskip("onnx")
    assert done("export", "model.plstream") == ""
    assert (folder / "model.onnx").exists()
    assert "--force" in refused("export", "model.plstream", "-o", "model.onnx")
    done("export", "model.plstream", "--force", "--method", "predict", "--dtype", "float64")
    assert load("model.plstream").n_components == 2


def test_info_of_data_with_text(done, folder):
    out = done("info", "data.csv", "-t", "y")
    assert "text:       kind\n" in out
    assert "no numbers: pass --exclude kind\n" in out
    assert "--exclude" not in done("info", "data.csv", "-t", "kind")
    assert "--exclude" not in done("info", "data.csv", "--exclude", "kind")
    (folder / "odd.csv").write_text('a,"b, ""c""",day\n1,red,2024-01-02\n2,blue,2024-01-03 10:30\n')
    out = done("info", "odd.csv")
    assert "date:       day\n" in out
    assert """pass --exclude '"b, ""c\""",day'\n""" in out
    # As it says.
    assert "features:  1 of float64\n" in done("info", "odd.csv", "--exclude", '"b, ""c""",day')


def test_monitors_and_trackers_are_used_as_their_models(folder, done, arrays):
    model = IncrementalPLS(2).partial_fit(arrays.X, arrays.y)
    save(model, "model.plstream")
    save(Monitor(model).partial_fit(arrays.X), "monitor.plstream")
    save(DriftTracker(model), "tracker.plstream")
    for name in ("monitor", "tracker"):
        done("predict", f"{name}.plstream", "X.npy", "-o", f"{name}.npy")
        np.testing.assert_array_equal(np.load(folder / f"{name}.npy"), model.predict(arrays.X))
        assert done("evaluate", f"{name}.plstream", "X.npy", "-t", "y.npy") == done(
            "evaluate", "model.plstream", "X.npy", "-t", "y.npy"
        )
        assert "IncrementalPLS, 2 components of 5 features, 300 rows" in done("info", f"{name}.plstream")
    assert "0.99, with 300 reference rows" in done("info", "monitor.plstream")
    assert "0, with 0 alarms" in done("info", "tracker.plstream")
