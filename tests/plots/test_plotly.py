"""Plotly figures have the numbers of the display and plain names, and load neither matplotlib nor Plotly."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from plstream import CCIPCA, IncrementalLDA, IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSCV
from plstream.monitoring import Monitor
from plstream.plots import (
    CoefficientsDisplay,
    CrossValidationDisplay,
    ExplainedVarianceDisplay,
    LoadingsDisplay,
    MonitoringDisplay,
    PredictionDisplay,
    ScoresDisplay,
    VIPDisplay,
)
from plstream.plots.interactive import colour, symbol
from plstream.plots.thinning import INTERACTIVE_POINTS, MOST_POINTS

from ..oracles import regression_data


@pytest.fixture(scope="module")
def data():
    return regression_data(80, 60)


@pytest.fixture(scope="module")
def model(data):
    return IncrementalPLS(4).partial_fit(*data)


def close(drawn, values):
    np.testing.assert_allclose(np.array(drawn, dtype=float), values, rtol=1e-5, atol=1e-12)


def test_features(model):
    display = LoadingsDisplay.from_estimator(model, kind="weights", components=range(1, 5), draw=False)
    figure = display.plotly()
    for k, trace in enumerate(figure.data):
        close(trace["y"], model.x_weights_[:, k])
        assert trace["text"][7] == "x7"
    assert [trace["visible"] for trace in figure.data] == [True, True, True, "legendonly"]
    (line,) = CoefficientsDisplay.from_estimator(model, scaled="features", draw=False).plotly().data
    close(line["y"], model.coef_[0] * model.x_scale_)
    vip, threshold = VIPDisplay.from_estimator(model, draw=False).plotly().data
    close(vip["y"], model.vip_)
    assert (threshold["name"], threshold["y"]) == ("VIP of 1", [1.0, 1.0])
    kept = VIPDisplay(model.vip_, np.arange(60), name="Score", kept=model.vip_ > 1).plotly(threshold=None).data[1]
    close(kept["y"], model.vip_[model.vip_ > 1])


def test_directions_of_methods_without_weights(data):
    X, _ = data
    model = CCIPCA(2).fit(X)
    display = LoadingsDisplay.from_estimator(model, kind="weights", draw=False)
    np.testing.assert_array_equal(display.values["component 2"], model.components_[1])
    np.testing.assert_array_equal(
        ExplainedVarianceDisplay.from_estimator(model, draw=False).x_ratio, model.explained_variance_ratio_
    )
    lda = IncrementalLDA().fit(*load_iris(return_X_y=True))
    explained = ExplainedVarianceDisplay.from_estimator(lda, draw=False)
    assert list(explained.ratios) == ["between classes"]
    bars, line = explained.plotly().data
    close(bars["y"], lda.explained_variance_ratio_)
    close(line["y"], np.cumsum(lda.explained_variance_ratio_))


def test_a_coefficient_of_two_classes_is_of_the_second(data):
    X, y = data
    model = IncrementalPLSClassifier(2).fit(X, np.where(y > 0, "high", "low"))
    display = CoefficientsDisplay.from_estimator(model, draw=False)
    assert list(display.values) == [str(name) for name in model.classes_][-len(model.coef_) :]
    assert display.ylabel == "Coefficient"


def test_cross_validation(data):
    model = IncrementalPLSCV(4, cv=3).fit(*data)
    display = CrossValidationDisplay.from_estimator(model, metric="score", draw=False)
    line, chosen, *folds = display.plotly().data
    close(line["y"], model.cv_results_["mean_test_score"])
    assert chosen["x"] == [model.n_components_]
    for k, fold in enumerate(folds):
        close(fold["y"], model.cv_results_[f"split{k}_test_score"])


@pytest.mark.parametrize("n_classes", [3, 15, 40])
def test_scores_of_classes(n_classes):
    scores = np.random.default_rng(0).normal(size=(400, 2))
    labels = np.arange(400) % n_classes
    figure = ScoresDisplay(scores, labels, has_values=False).plotly()
    *groups, ellipse = figure.data
    assert len(groups) == min(n_classes, 20)
    assert ellipse["name"] == "95 % of rows"
    for trace in groups:
        close(np.column_stack([trace["x"], trace["y"]]), scores[trace["customdata"]])
        if trace["name"] != "others":
            assert {*labels[trace["customdata"]]} == {int(trace["name"])}
    assert sorted(row for trace in groups for row in trace["customdata"]) == list(range(400))
    assert len({(colour(i), symbol(i)) for i in range(100)}) == 100


def test_scores_of_values_and_rows(data, model):
    X, y = data
    y = y.copy()
    y[:5] = np.nan
    display = ScoresDisplay(model.transform(X)[:, :1], y, rows=1000 + np.arange(80))
    missing, points, first, second = display.plotly(ylabel="fat").data
    assert missing["customdata"] == list(range(1000, 1005))
    assert (points["x"], points["meta"]) == (list(range(1005, 1080)), "fat")
    close(points["marker"]["color"], y[5:])
    assert first["y"][0] == pytest.approx(-second["y"][0], rel=1e-5)
    assert [line["showlegend"] for line in (first, second)] == [True, False]


def test_predictions_and_monitoring(data, model):
    X, y = data
    points, identity = PredictionDisplay.from_estimator(model, X, y, name="<fat>", draw=False).plotly().data
    close(points["x"], y)
    close(points["y"], model.predict(X))
    assert identity["x"] == identity["y"]
    figure = PredictionDisplay(y, y, name="<fat>").plotly()
    assert figure.layout["xaxis"]["title"] == "Measured &lt;fat&gt;"
    X = X.copy()
    X[7] += 100
    monitor = Monitor(model)
    checked = monitor.check(X)
    within, beyond, *_ = (figure := MonitoringDisplay.from_estimator(monitor, X, draw=False).plotly()).data
    assert beyond["customdata"] == np.flatnonzero(checked.alarm).tolist()
    close(within["x"], checked.t2[~checked.alarm])
    assert figure.layout["yaxis"]["type"] == "log"


def test_many_are_thinned():
    rng = np.random.default_rng(0)
    display = LoadingsDisplay({"a": rng.normal(size=50_000), "b": np.zeros(50_000)}, np.arange(50_000), "Loadings")
    assert display.is_thinned
    assert sum(len(trace["x"]) for trace in display.plotly().data) <= INTERACTIVE_POINTS
    assert max(display.plotly().data[0]["y"]) == pytest.approx(display.values["a"].max(), rel=1e-5)
    assert len(ScoresDisplay(rng.normal(size=(20_000, 2))).plotly().data[0]["x"]) == MOST_POINTS


def test_neither_library_is_loaded():
    code = (
        "import sys, numpy as np\n"
        "from plstream import IncrementalPLS\n"
        "from plstream.plots import VIPDisplay\n"
        "from plstream.report import model_report\n"
        "X = np.random.default_rng(0).normal(size=(50, 4))\n"
        "model = IncrementalPLS(2).fit(X, X[:, 0])\n"
        "VIPDisplay.from_estimator(model, draw=False).plotly()\n"
        "model_report(model, X, X[:, 0])\n"
        "print(*(name for name in ('matplotlib', 'plotly') if name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert result.stdout.strip() == ""
