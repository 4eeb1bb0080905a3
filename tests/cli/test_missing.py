"""Missing values on the command line: the model of ``fit --missing`` completes rows in every other command."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from plstream import (
    CIPLS,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    load,
    open_source,
)

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture
def gaps(folder, arrays):
    """Rows with gaps in X and in y, as a table and as arrays."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random(arrays.X.shape) < 0.1, np.nan, arrays.X)
    y = np.where(rng.random(300) < 0.1, np.nan, arrays.y)
    lines = [",".join([*arrays.names, "y", "kind", "plant"])]
    for i in range(300):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in (*X[i], y[i])]
        lines.append(",".join([*cells, arrays.labels[i], f"p{i % 17}"]))
    (folder / "gaps.csv").write_text("\n".join(lines) + "\n")
    np.save("gaps.npy", np.column_stack([X, y]))
    return X, y


def test_fit(gaps, done, refused):
    X, y = gaps
    assert "--missing 'model'" in refused("fit", "gaps.npy", "-t", 5, "-o", "m")
    out = done("fit", "gaps.csv", "-t", "y", "--exclude", "kind,plant", "-c", 2, "--missing", "model")
    found, expected = load("model.plstream"), IncrementalPLS(2, missing="model").fit(X, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    labelled = ~np.isnan(y)
    assert f"{labelled.sum()} rows with {np.isnan(X[labelled]).sum()} missing values completed" in out
    done("fit", "gaps.npy", "-t", 5, "-c", 2, "--missing", "model", "--one-pass", "-o", "stream")
    streamed = IncrementalPLS(2, missing="model").partial_fit(X, y)
    np.testing.assert_allclose(load("stream").coef_, streamed.coef_, rtol=1e-8)


def test_components_by_cross_validation(gaps, done):
    X, y = gaps
    done("fit", "gaps.csv", "-t", "y", "--exclude", "kind,plant", "-c", "auto", "--missing", "model")
    found, expected = load("model.plstream"), IncrementalPLSCV(5, missing="model").fit(X, y)
    assert found.n_components_ == expected.n_components_
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    by_groups = ("--groups", "plant", "-o", "groups")
    done("fit", "gaps.csv", "-t", "y", "--exclude", "kind", "-c", "auto", "--missing", "model", *by_groups)
    assert load("groups").n_samples_seen_ == np.count_nonzero(~np.isnan(y))


@pytest.mark.parametrize("components", [2, "auto"])
def test_labels(gaps, arrays, done, components):
    X, _ = gaps
    method = ("--method", "incremental-pls-classifier", "--missing", "model", "-c", components, "-o", "labels")
    done("fit", "gaps.csv", "-t", "kind", "--exclude", "y,plant", *method)
    expected = (
        IncrementalPLSClassifierCV(5, missing="model").fit(X, arrays.labels)
        if components == "auto"
        else IncrementalPLSClassifier(2, missing="model").fit(X, arrays.labels)
    )
    np.testing.assert_array_equal(load("labels").predict(X), expected.predict(X))
    table = json.loads(done("evaluate", "labels", "gaps.csv", "-t", "kind", "--json"))["targets"]
    assert table[0]["accuracy"] == pytest.approx(expected.score(X, arrays.labels))


def test_methods_that_learn_row_after_row(gaps, done, refused):
    X, y = gaps
    np.save("X2.npy", X)
    np.save("y2.npy", np.nan_to_num(y))
    done("fit", "X2.npy", "-t", "y2.npy", "--method", "cipls", "-c", 2, "--missing", "mean", "-o", "cipls")
    expected = CIPLS(2, missing="mean").fit(X, np.nan_to_num(y))
    np.testing.assert_allclose(load("cipls").x_weights_, expected.x_weights_)
    message = refused("fit", "X2.npy", "-t", "y2.npy", "--method", "cipls", "--missing", "model", "-o", "m")
    assert "--method cipls supports only --missing mean, not model." in message
    message = refused("fit", "X2.npy", "-t", "y2.npy", "--missing", "mean", "-o", "m")
    assert "supports only --missing model" in message


def test_commands_that_use_the_model(gaps, done, run):
    X, y = gaps
    done("fit", "gaps.csv", "-t", "y", "--exclude", "kind,plant", "-c", 2, "--missing", "model")
    model = load("model.plstream")
    table = list(csv.DictReader(io.StringIO(done("predict", "model.plstream", "gaps.csv", "--keep", "kind,plant"))))
    np.testing.assert_allclose([float(row["prediction"]) for row in table], model.predict(X), rtol=1e-5)
    assert table[0]["plant"] == "p0"
    done("predict", "model.plstream", "gaps.csv", "--t2", "--q", "--interval", 0.9, "-o", "all.csv")
    rows = list(csv.DictReader(io.StringIO(Path("all.csv").read_text(encoding="utf-8"))))
    assert all(np.isfinite([float(value) for value in row.values()]).all() for row in rows)
    done("transform", "model.plstream", "gaps.csv", "-o", "scores.npy")
    np.testing.assert_allclose(np.load("scores.npy"), model.transform(X), rtol=1e-8)
    table = json.loads(done("evaluate", "model.plstream", "gaps.csv", "-t", "y", "--json"))["targets"][0]
    known = ~np.isnan(y)
    assert table["rows"] == known.sum()
    residual = model.predict(X[known]) - y[known]
    assert table["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert table["sep"] == pytest.approx(residual.std(ddof=1))
    found = run("monitor", "model.plstream", "gaps.csv", "--json")
    assert found.code in {0, 3}
    assert json.loads(found.out)["rows"] == 300
    done("update", "model.plstream", "gaps.csv", "-t", "y", "-o", "more")
    assert load("more").n_samples_seen_ == 2 * known.sum()
    done("report", "model.plstream", "gaps.csv", "-t", "y", "-o", "report.html")
    assert "missing='model'" in done("info", "model.plstream")


def test_rows_from_a_pipe_and_checkpoints(gaps, done, folder):
    X, y = gaps
    text = (folder / "gaps.csv").read_bytes()
    how = ("-t", "y", "--exclude", "kind,plant", "-c", 2, "--missing", "model")
    done("fit", "-", "--format", "csv", *how, "-o", "pipe", stdin=text)
    np.testing.assert_allclose(
        load("pipe").coef_, IncrementalPLS(2, missing="model").partial_fit(X, y).coef_, rtol=1e-8
    )
    done("fit", "gaps.csv", *how, "--checkpoint", "place", "--every-rows", 50, "-o", "checked")
    source = open_source("gaps.csv", target="y", exclude=["kind", "plant"])
    expected = IncrementalPLS(2, missing="model").fit(source)
    np.testing.assert_allclose(load("checked").coef_, expected.coef_, rtol=1e-8)


@pytest.mark.usefixtures("gaps")
def test_targets_that_are_all_missing(done, refused, folder):
    done("fit", "gaps.csv", "-t", "y", "--exclude", "kind,plant", "-c", 2, "--missing", "model")
    (folder / "none.csv").write_text("a,b,c,d,e,y\n1,2,3,4,5,\n1,2,,4,5,\n")
    assert "No row of none.csv has a value for every target" in refused(
        "evaluate", "model.plstream", "none.csv", "-t", "y"
    )
