"""plstream report: an HTML report in a file, complete or not written at all."""

import sys

import numpy as np
import pytest
from sklearn.metrics import r2_score, root_mean_squared_error

import plstream
from plstream import CIPLS, IncrementalPLS, VIPSelector, load, open_source, save
from plstream.report import html, model_report

from ..browser import check_page


@pytest.fixture(autouse=True)
def _needs_plotly():
    pytest.importorskip("plotly", reason="pages of models need plstream[report]")


@pytest.fixture
def model(folder):
    model = IncrementalPLS(2, solver="gram").fit(open_source("data.csv", target="y", exclude="kind"))
    save(model, folder / "model.plstream")
    return model


def test_a_model_and_data(model, folder, done, arrays, monkeypatch):
    monkeypatch.setattr(plstream.data.source, "default_rows", lambda *_: 70)
    assert done("report", "model.plstream", "data.csv", "--target", "y", "-o", "page.html") == ""
    page = (folder / "page.html").read_text(encoding="utf-8")
    text = " ".join(check_page(page, html.scripts()).texts)
    guess = model.predict(open_source("data.csv", columns=list("abcde")))
    assert f"y with an RMSE of {root_mean_squared_error(arrays.y, guess):.4g}" in text
    assert f"(R2 {r2_score(arrays.y, guess):.4f})" in text
    assert "On data.csv, 300 rows" in text
    assert "model.plstream" in text


@pytest.mark.usefixtures("model")
def test_a_model_alone(folder, done):
    done("report", "model.plstream")
    assert (folder / "report.html").read_text(encoding="utf-8") == model_report(
        load("model.plstream"), title="model.plstream"
    ).html()


@pytest.mark.usefixtures("folder")
def test_labels(done, arrays):
    save(CIPLS(2).fit(open_source("data.csv", target="kind", exclude="y")), "labels.plstream")
    model = load("labels.plstream")
    done("report", "labels.plstream", "data.csv", "-t", "kind", "-o", "page.html")
    share = np.mean(model.predict(open_source("data.csv", columns=list("abcde"))) == arrays.labels)
    with open("page.html", encoding="utf-8") as file:  # noqa: PTH123
        assert f"{share:.1%} of its labels are correct" in file.read()


@pytest.mark.usefixtures("model")
def test_standard_input(folder, done):
    content = (folder / "data.csv").read_bytes()
    done("report", "model.plstream", "-", "--format", "csv", "-t", "y", "-o", "page.html", stdin=content)
    assert "On standard input, 300 rows" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("model")
def test_a_page_is_replaced_only_by_force(folder, done, refused):
    path = folder / "page.html"
    path.write_text("mine")
    assert "exists already" in refused("report", "model.plstream", "-o", "page.html")
    assert path.read_text() == "mine"
    done("report", "model.plstream", "-o", "page.html", "--force")
    assert "<!DOCTYPE html>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "-"], "Name the report with --output"),
        (["-o", "page.pdf"], "must end in .html"),
        (["-o", "nowhere/page.html"], "no folder"),
        (["--target", "y"], "--target applies to data"),
        (["--format", "csv"], "--format applies to data"),
        (["missing.csv", "-t", "y"], "missing.csv"),
        (["data.csv", "-t", "kind"], "holds strings"),
        (["data.csv", "-t", "nothing"], "nothing"),
        (["data.csv", "--columns", "a,b"], "2 features"),
    ],
)
@pytest.mark.usefixtures("model")
def test_invalid_calls_are_refused(folder, refused, arguments, message):
    assert message in refused("report", "model.plstream", *arguments)
    assert not [path.name for path in folder.iterdir() if path.suffix in {".html", ".tmp"}]


@pytest.mark.usefixtures("folder")
def test_a_selector_has_a_page_but_no_data(done, refused, arrays):
    save(VIPSelector().fit(arrays.X, arrays.y), "selector.plstream")
    done("report", "selector.plstream", "-o", "page.html")
    assert "leave out the data" in refused("report", "selector.plstream", "X.npy", "-o", "other.html")


@pytest.mark.usefixtures("model")
def test_without_plotly(refused, monkeypatch):
    html.scripts.cache_clear()
    for name in ("plotly", "plotly.offline"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'plstream[report]'" in refused("report", "model.plstream")
