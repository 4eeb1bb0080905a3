"""Plots: artists have the numbers of the model, labels stay inside, and thinning keeps the extremes."""

import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plstream import CIPLS, IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSCV
from plstream.monitoring import Monitor
from plstream.monitoring.limits import t2_limit
from plstream.plots import (
    CoefficientsDisplay,
    ContributionsDisplay,
    CrossValidationDisplay,
    ExplainedVarianceDisplay,
    LoadingsDisplay,
    MonitoringDisplay,
    PredictionDisplay,
    ScoresDisplay,
    VIPDisplay,
)
from plstream.plots.features import apart
from plstream.plots.names import positions
from plstream.plots.scores import are_values, groups_of
from plstream.plots.thinning import MOST_POINTS, sample, thin

from ..oracles import regression_data

matplotlib = pytest.importorskip("matplotlib", reason="plots need plstream[plot]")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def data():
    return regression_data(80, 60)


@pytest.fixture(scope="module")
def model(data):
    return IncrementalPLS(4).partial_fit(*data)


def drawn(display):
    """Draw everything as a file would have it, and return the display."""
    display.figure_.canvas.draw()
    return display


def by_gid(ax, gid):
    (artist,) = [artist for artist in ax.get_children() if artist.get_gid() == gid]
    return artist


def points_of(ax):
    return np.concatenate([np.asarray(artist.get_offsets()) for artist in ax.collections])


def n_labels(ax):
    axes = (ax.xaxis, ax.yaxis)
    return max(len([text for text in axis.get_ticklabels() if text.get_text()]) for axis in axes)


@pytest.mark.parametrize("kind", ["loadings", "weights", "rotations"])
def test_loadings_are_lines(model, kind):
    display = drawn(LoadingsDisplay.from_estimator(model, kind=kind, components=[1, 4]))
    lines = display.ax_.lines[1:]
    np.testing.assert_array_equal(lines[0].get_ydata(), getattr(model, f"x_{kind}_")[:, 0])
    np.testing.assert_array_equal(lines[1].get_ydata(), getattr(model, f"x_{kind}_")[:, 3])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["component 1", "component 4"]
    assert display.ax_.get_ylabel() == kind.capitalize()
    assert display.figure_ is display.ax_.figure


def test_coefficients(data, model):
    display = CoefficientsDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.ax_.lines[1].get_ydata(), model.coef_[0])
    assert display.ax_.get_legend() is None
    scaled = CoefficientsDisplay.from_estimator(model, scaled=True)
    expected = model.coef_[0] * model.x_scale_ / model.y_scale_[0]
    np.testing.assert_allclose(scaled.ax_.lines[1].get_ydata(), expected)
    X, y = data
    several = IncrementalPLS(2).fit(X, np.c_[y, -y])
    display = CoefficientsDisplay.from_estimator(several, targets=["fat", "water"])
    assert [line.get_label() for line in display.ax_.lines[1:]] == ["fat", "water"]


def test_few_features_are_bars_with_names():
    pandas = pytest.importorskip("pandas")
    X, y = regression_data(50, 5)
    X[:, 2] = 1.0
    names = ["a", "$b", "constant", "d" * 50 + "1", "e"]
    model = IncrementalPLS(2).fit(pandas.DataFrame(X, columns=names), y)
    display = drawn(LoadingsDisplay.from_estimator(model))
    long = "d" * 12 + "…" + "d" * 10 + "1"
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a", r"\$b", "constant", long, "e"]
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_array_equal(widths, model.x_loadings_.T.ravel())
    display = drawn(VIPDisplay.from_estimator(model))
    assert [bar.get_width() for bar in display.ax_.patches] == sorted(model.vip_, reverse=True)
    assert display.ax_.get_yticklabels()[-1].get_text() == "constant"
    assert by_gid(display.ax_, "threshold").get_xdata() == [1.0, 1.0]


def test_numbers_in_names_are_wavelengths():
    pandas = pytest.importorskip("pandas")
    X, y = regression_data(50, 40)
    model = IncrementalPLS(2).fit(pandas.DataFrame(X, columns=[f"{900 + 2 * i} nm" for i in range(40)]), y)
    display = drawn(VIPDisplay.from_estimator(model, n_named=3))
    line = display.ax_.lines[1]
    np.testing.assert_array_equal(line.get_xdata(), 900 + 2 * np.arange(40))
    np.testing.assert_array_equal(line.get_ydata(), model.vip_)
    assert display.ax_.get_xlabel() == "Wavelength, nm"
    named = [text.get_text() for text in display.ax_.texts]
    assert f"{900 + 2 * model.vip_.argmax()} nm" in named
    assert len([text for text in named if text.endswith("nm")]) <= 3
    assert f"{(model.vip_ > 1).sum()} of 40 above 1" in named
    display = LoadingsDisplay.from_estimator(model, xlabel="Shift", title="Of a title")
    assert (display.ax_.get_xlabel(), display.ax_.get_title(loc="left")) == ("Shift", "Of a title")


@pytest.mark.parametrize(
    ("names", "label", "at"),
    [
        (["1", "2", "4"], "Wavelength", [1, 2, 4]),
        (["4000 cm-1", "3990 cm-1"], "Wavenumber, cm-1", [4000, 3990]),
        (["0", "1", "2"], "", [0, 1, 2]),
        (["3", "1", "2"], "", [0, 1, 2]),
        (["1e3", "1.5e3"], "Wavelength", [1000, 1500]),
        (["a1", "a2"], "", [0, 1]),
        (["nan", "inf"], "", [0, 1]),
        (["7"], "", [0]),
    ],
)
def test_positions(names, label, at):
    found, places = positions(np.array(names, dtype=object))
    assert found == label
    assert list(places) == at


def test_many_features_are_thinned_out(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 100_000))
    X[:, 54_321] *= 30
    model = IncrementalPLS(2, scale=False).fit(X, X[:, 54_321])
    for display in (
        LoadingsDisplay.from_estimator(model, kind="weights"),
        VIPDisplay.from_estimator(model),
        CoefficientsDisplay.from_estimator(model),
    ):
        drawn(display)
        line = display.ax_.lines[1] if len(display.ax_.lines[0].get_xdata()) == 2 else display.ax_.lines[0]
        assert len(line.get_xdata()) <= 4000
        assert 54_321 in line.get_xdata()
        assert n_labels(display.ax_) < 15
        display.figure_.savefig(tmp_path / "picture.svg")
        assert (tmp_path / "picture.svg").stat().st_size < 1_000_000
    values = model.x_weights_[:, 0]
    line = LoadingsDisplay.from_estimator(model, kind="weights").ax_.lines[1]
    assert (line.get_ydata().min(), line.get_ydata().max()) == (values.min(), values.max())


@given(
    st.lists(st.sampled_from([-2.0, 0.0, 1.0, 7.5]) | st.floats(-1e9, 1e9), min_size=1, max_size=80), st.integers(1, 9)
)
def test_thinning_keeps_the_extremes_of_every_bin(values, n_bins):
    y = np.array(values)
    x, thinned = thin(np.arange(len(y)), y, n_bins)
    np.testing.assert_array_equal(y[x], thinned)
    assert (np.diff(x) > 0).all()
    assert len(x) <= max(2 * n_bins, len(y) if len(y) <= 2 * n_bins else 0)
    edges = np.linspace(0, len(y), n_bins, endpoint=False).astype(int)
    for start, end in zip(edges, [*edges[1:], len(y)], strict=True):
        kept = thinned[(x >= start) & (x < end)]
        if end > start:
            assert (kept.min(), kept.max()) == (y[start:end].min(), y[start:end].max())


def test_samples_keep_the_outermost():
    distances = np.random.default_rng(0).exponential(size=50_000)
    chosen = sample(distances, 1000)
    assert len(np.unique(chosen)) == 1000
    assert (np.diff(chosen) > 0).all()
    assert set(np.argsort(distances)[-5:]) <= set(chosen)
    np.testing.assert_array_equal(sample(distances[:1000], 1000), np.arange(1000))


def test_names_have_room():
    at = np.arange(100.0)
    assert list(apart(np.array([50, 51, 49, 10, 99]), at, 3)) == [50, 10, 99]


def test_scores_and_their_ellipse(data, model):
    X, y = data
    display = drawn(ScoresDisplay.from_estimator(model, X, y, components=[3, 1], level=0.99, ylabel="fat"))
    scores = model.transform(X)[:, [2, 0]]
    np.testing.assert_allclose(points_of(display.ax_), scores)
    np.testing.assert_allclose(display.ax_.collections[0].get_array(), y)
    share = 100 * model.x_explained_variance_ratio_[2]
    assert display.ax_.get_xlabel() == f"Component 3 ({share:.3g} % of X)"
    outline = np.array(by_gid(display.ax_, "ellipse").get_xydata())
    t2 = np.sum(outline**2 / scores.var(axis=0, ddof=1), axis=1)
    np.testing.assert_allclose(t2, t2_limit(0.99, 2, 80), rtol=1e-6)
    assert display.figure_.axes[1].get_ylabel() == "fat"


def test_the_ellipse_is_of_the_training_rows_after_an_exact_fit_and_else_of_the_rows_drawn(data):
    X, y = data
    exact = IncrementalPLS(4).fit(X, y)
    outline = np.array(by_gid(ScoresDisplay.from_estimator(exact, X + 1).ax_, "ellipse").get_xydata())
    t2 = np.sum(outline**2 / exact.transform(X)[:, :2].var(axis=0, ddof=1), axis=1)
    np.testing.assert_allclose(t2, t2_limit(0.95, 2, 80), rtol=1e-6)
    scores = exact.transform(X + 1)[:, :2]
    display = ScoresDisplay(scores).plot()
    outline = np.array(by_gid(display.ax_, "ellipse").get_xydata()) - scores.mean(axis=0)
    t2 = np.einsum("ij,ij->i", outline @ np.linalg.inv(np.cov(scores.T)), outline)
    np.testing.assert_allclose(t2, t2_limit(0.95, 2, 80), rtol=1e-6)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.tile(["b", "a"], 40), ["a", "b"]),
        (np.tile([True, False], 40), ["False", "True"]),
        (np.tile([10, 9, 2, 1], 20), ["1", "2", "9", "10"]),
        (np.tile(np.array(["a", None, "b", np.nan], dtype=object), 20), ["a", "b", "no value"]),
        (np.array(["only"] * 80), ["only"]),
    ],
)
def test_classes_have_colours_and_names(data, model, y, expected):
    display = drawn(ScoresDisplay.from_estimator(model, data[0], y))
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == [*expected, "95 % of rows"]
    assert len(points_of(display.ax_)) == 80
    looks = {artist.get_facecolor().tobytes() for artist in display.ax_.collections}
    assert len(looks) == len(expected)


def test_many_classes_share_a_colour():
    y = np.repeat(np.arange(100), np.arange(1, 101)).astype(str)
    groups = groups_of(y)
    assert len(groups) == 10
    assert np.sum([*groups.values()]) == len(y)
    assert "99" in groups
    assert groups["others"].sum() == sum(range(1, 92))


def test_kinds_of_values():
    assert are_values(np.array([0.5, 1.0]))
    assert not are_values(np.array(["a"]))
    assert not are_values(np.array([None, "a"], dtype=object))
    assert are_values(np.arange(50))
    assert not are_values(np.array([True]))


def test_values_that_are_missing(data, model):
    X, y = data
    y = y.copy()
    y[:10] = np.nan
    display = drawn(ScoresDisplay.from_estimator(model, X, y))
    assert len(points_of(display.ax_)) == 80
    assert display.ax_.get_legend().get_texts()[0].get_text() == "no value"


def test_one_component_is_drawn_over_rows(data):
    X, y = data
    model = IncrementalPLS(1).partial_fit(X, y)
    display = drawn(ScoresDisplay.from_estimator(model, X, y))
    np.testing.assert_allclose(points_of(display.ax_), np.c_[np.arange(80), model.transform(X)])
    assert display.ax_.get_xlabel() == "Row"
    bounds = [line.get_ydata()[0] for line in display.ax_.lines]
    limit = np.sqrt(t2_limit(0.95, 1, 80) * model.transform(X).var(ddof=1))
    assert sorted(bounds) == pytest.approx([-limit, limit])


@pytest.mark.filterwarnings("ignore:.*component")
def test_few_or_equal_rows():
    X, y = regression_data(30, 5)
    model = IncrementalPLS(2).fit(X, y)
    for rows in (X[:1], X[:2], np.repeat(X[:1], 5, axis=0)):
        drawn(ScoresDisplay.from_estimator(model, rows))
        drawn(PredictionDisplay.from_estimator(model, rows, np.ones(len(rows))))
    constant = IncrementalPLS(2).partial_fit(np.ones((30, 5)), y)
    for display in (LoadingsDisplay, CoefficientsDisplay, VIPDisplay, ExplainedVarianceDisplay):
        drawn(display.from_estimator(constant))
    drawn(ScoresDisplay.from_estimator(constant, X))
    drawn(MonitoringDisplay.from_estimator(constant, X))


def test_many_rows_are_sampled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 3))
    X[77_777] = 50
    y = X @ [1.0, 2.0, 3.0]
    model = IncrementalPLS(2).partial_fit(X, y)
    display = drawn(ScoresDisplay.from_estimator(model, X, title="All"))
    assert len(points_of(display.ax_)) == MOST_POINTS
    assert display.ax_.collections[0].get_rasterized()
    assert display.ax_.get_title(loc="left") == "All\n10,000 of 200,000 rows drawn"
    assert np.any(np.all(np.isclose(points_of(display.ax_), model.transform(X[77_777:77_778])), axis=1))
    display = PredictionDisplay.from_estimator(model, X, y)
    assert len(points_of(display.ax_)) == MOST_POINTS
    display = drawn(MonitoringDisplay.from_estimator(model, X, kind="time"))
    t2 = Monitor(model).t2(X)
    line = display.ax_.lines[0]
    assert len(line.get_xdata()) <= 4000
    assert 77_777 in line.get_xdata()
    assert line.get_ydata().max() == pytest.approx(t2.max() / Monitor(model).t2_limit_)
    assert len(points_of(MonitoringDisplay.from_estimator(model, X).ax_)) == MOST_POINTS


def test_explained_variance(model):
    display = drawn(ExplainedVarianceDisplay.from_estimator(model))
    x, y = display.ax_.lines
    np.testing.assert_allclose(x.get_ydata(), 100 * np.cumsum(model.x_explained_variance_ratio_))
    np.testing.assert_allclose(y.get_ydata(), 100 * np.cumsum(model.y_explained_variance_ratio_))
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_allclose(heights[:4], 100 * model.x_explained_variance_ratio_)
    many = drawn(ExplainedVarianceDisplay(np.full(300, 1 / 300), np.full(300, 1 / 300)).plot())
    assert n_labels(many.ax_) < 15


class Validated:
    """What a cross-validated model has, of two responses."""

    n_components_ = 2
    cv_results_: ClassVar = {
        "n_components": np.array([1, 2, 3]),
        "mean_test_score": np.array([0.5, 0.8, 0.7]),
        "se_test_score": np.array([0.1, 0.05, 0.06]),
        "mean_test_rmse": np.array([[3.0, 30], [1, 10], [2, 20]]),
        "split0_test_rmse": np.array([[4.0, 30], [1, 10], [2, 20]]),
        "split1_test_rmse": np.array([[2.0, 30], [1, 10], [2, 20]]),
    }


def test_cross_validation():
    display = drawn(CrossValidationDisplay.from_estimator(Validated()))
    line = by_gid(display.ax_, "error")
    np.testing.assert_array_equal(line.get_xydata(), [[1, 3], [2, 1], [3, 2]])
    np.testing.assert_allclose(display.std_error, [1, 0, 0])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["folds", "all rows", "chosen: 2", "standard error"]
    assert display.ax_.get_ylabel() == "Cross-validated RMSE"
    other = CrossValidationDisplay.from_estimator(Validated(), target=1)
    np.testing.assert_array_equal(other.error, [30, 10, 20])
    scores = CrossValidationDisplay.from_estimator(Validated(), metric="score")
    np.testing.assert_array_equal(scores.std_error, [0.1, 0.05, 0.06])
    assert scores.folds is None
    with pytest.raises(ValueError, match="metric must be one of rmse, score, not 'r2'"):
        CrossValidationDisplay.from_estimator(Validated(), metric="r2")


def test_predictions(data, model):
    X, y = data
    display = drawn(PredictionDisplay.from_estimator(model, X, y + 1, name="fat"))
    errors = model.predict(X) - y - 1
    np.testing.assert_allclose(points_of(display.ax_), np.c_[y + 1, model.predict(X)])
    assert display.rmse_ == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert display.bias_ == pytest.approx(-1)
    assert display.r2_ == pytest.approx(model.score(X, y + 1))
    (note,) = display.ax_.texts
    assert note.get_text() == f"RMSE {display.rmse_:.3g}\nR² {display.r2_:.3f}\nbias -1"
    assert display.ax_.get_xlim() == display.ax_.get_ylim()
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Measured fat", "Predicted fat")
    second = PredictionDisplay.from_estimator(IncrementalPLS(2).fit(X, np.c_[y, 2 * y]), X, np.c_[y, 2 * y], target=1)
    np.testing.assert_array_equal(second.y_true, 2 * y)
    with pytest.raises(ValueError, match="3 measured but 2 predicted"):
        PredictionDisplay([1, 2, 3], [1, 2])


def test_monitoring(data, model):
    X = data[0].copy()
    X[7] += 100
    monitor = Monitor(model, level=0.95)
    display = drawn(MonitoringDisplay.from_estimator(monitor, X))
    checked = monitor.check(X)
    found = points_of(display.ax_)
    np.testing.assert_allclose(np.sort(found[:, 0]), np.sort(checked.t2))
    assert by_gid(display.ax_, "t2 limit").get_xdata() == [monitor.t2_limit_] * 2
    assert by_gid(display.ax_, "q limit").get_ydata() == [monitor.q_limit_] * 2
    assert len(display.ax_.collections[1].get_offsets()) == checked.alarm.sum()
    assert display.ax_.get_title(loc="left") == f"{checked.alarm.sum()} of 80 rows above a limit"
    assert display.ax_.get_yscale() == "log"
    over_time = drawn(MonitoringDisplay.from_estimator(model, X, kind="time"))
    np.testing.assert_allclose(over_time.ax_.lines[0].get_ydata(), checked.t2 / Monitor(model).t2_limit_)
    assert by_gid(over_time.ax_, "limit").get_ydata() == [1, 1]


def test_pipelines_are_drawn_as_their_last_step(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(10 + 3 * X, columns=[f"sensor {i}" for i in range(60)])
    pipeline = make_pipeline(StandardScaler(), IncrementalPLS(3, solver="gram")).fit(frame, y)
    rows, last = StandardScaler().fit_transform(frame), pipeline[-1]
    for display in (LoadingsDisplay, CoefficientsDisplay, VIPDisplay):
        actual, expected = display.from_estimator(pipeline), display.from_estimator(last)
        for name, values in expected.values.items():
            np.testing.assert_array_equal(actual.values[name], values)
        assert list(actual.feature_names) == list(frame.columns)
        assert list(expected.feature_names) == [f"x{i}" for i in range(60)]
    explained = ExplainedVarianceDisplay.from_estimator(pipeline)
    np.testing.assert_array_equal(explained.x_ratio, last.x_explained_variance_ratio_)
    scores = ScoresDisplay.from_estimator(pipeline, frame, y)
    np.testing.assert_allclose(scores.scores, last.transform(rows)[:, :2])
    assert scores.ellipse[2] == len(X)
    found = MonitoringDisplay.from_estimator(pipeline, frame)
    np.testing.assert_allclose(found.q, Monitor(last).q(rows))
    predicted = PredictionDisplay.from_estimator(pipeline, frame, y)
    np.testing.assert_allclose(predicted.y_pred, last.predict(rows))
    validated = make_pipeline(StandardScaler(), IncrementalPLSCV(3)).fit(frame, y)
    assert CrossValidationDisplay.from_estimator(validated).chosen == validated[-1].n_components_
    plt.close("all")


def test_axes_that_are_given_are_used_and_nothing_else_is_touched(data, model):
    X, y = data
    before = dict(matplotlib.rcParams)
    figure, axes = plt.subplots(2, 4)
    displays = [
        ScoresDisplay.from_estimator(model, X, y > 0, ax=axes[0, 0]),
        LoadingsDisplay.from_estimator(model, ax=axes[0, 1]),
        CoefficientsDisplay.from_estimator(model, ax=axes[0, 2]),
        VIPDisplay.from_estimator(model, ax=axes[0, 3]),
        ExplainedVarianceDisplay.from_estimator(model, ax=axes[1, 0]),
        CrossValidationDisplay.from_estimator(Validated(), ax=axes[1, 1]),
        PredictionDisplay.from_estimator(model, X, y, ax=axes[1, 2]),
        MonitoringDisplay.from_estimator(model, X, ax=axes[1, 3]),
    ]
    assert [display.ax_ for display in displays] == list(axes.ravel())
    assert plt.get_fignums() == [figure.number]
    assert dict(matplotlib.rcParams) == before
    assert displays[0].plot().figure_ is not figure


@pytest.mark.parametrize(("paper", "light"), [("black", True), ("white", False), ("none", False)])
def test_text_around_axes_is_legible(data, model, paper, light):
    plt = pytest.importorskip("matplotlib.pyplot")
    colors = pytest.importorskip("matplotlib.colors")
    X, y = data
    figure, ax = plt.subplots(facecolor=paper)
    display = ScoresDisplay.from_estimator(model, X, y, ax=ax)
    written = [ax.xaxis.label, ax.yaxis.label, ax.get_xticklabels()[0], figure.axes[1].yaxis.label]
    assert [min(colors.to_rgb(text.get_color())) > 0.5 for text in written] == [light] * 4
    assert display.ax_.get_legend().get_frame_on() == light
    plt.close(figure)


def test_coefficients_of_many_classes_say_how_many_are_drawn(data):
    X, _ = data
    display = CoefficientsDisplay.from_estimator(
        IncrementalPLS(2, solver="gram").fit(X, np.eye(12)[np.arange(len(X)) % 12])
    )
    assert "(the first 10 of 12)" in display.ax_.get_xlabel() + display.ax_.get_ylabel()


def test_bad_calls(data, model):
    with pytest.raises(ValueError, match="kind must be 'loadings', 'weights' or 'rotations', not 'w'"):
        LoadingsDisplay.from_estimator(model, kind="w")
    with pytest.raises(ValueError, match="components must be from 1 to 4"):
        LoadingsDisplay.from_estimator(model, components=[0])
    with pytest.raises(ValueError, match="components must be from 1 to 4"):
        ScoresDisplay.from_estimator(model, data[0], components=[1, 5])
    with pytest.raises(ValueError, match="kind must be 'chart' or 'time', not 'bars'"):
        MonitoringDisplay.from_estimator(model, data[0], kind="bars")
    X, y = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ScoresDisplay.from_estimator(model, X, y[:5])
    with pytest.raises(TypeError, match="IncrementalPLS has not been cross-validated"):
        CrossValidationDisplay.from_estimator(model)
    labels = y > 0
    with pytest.raises(TypeError, match="CIPLS does not scale features"):
        CoefficientsDisplay.from_estimator(CIPLS(2).fit(X, labels), scaled=True)
    classifier = IncrementalPLSClassifier(2).fit(X, labels)
    with pytest.raises(TypeError, match="predicts labels: use scikit-learn's ConfusionMatrixDisplay"):
        PredictionDisplay.from_estimator(classifier, X, labels)


def test_without_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from plstream.plots import PredictionDisplay\n"
        "try: PredictionDisplay([1, 2], [1, 2]).plot()\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert result.stdout.strip() == "A plot requires the package matplotlib: pip install 'plstream[plot]'."


def test_contributions_and_an_axis():
    X = np.random.default_rng(0).normal(size=(60, 40))
    model = IncrementalPLS(2).partial_fit(X, X[:, 0])
    axis = np.linspace(1100.5, 1200.5, 40)
    display = ContributionsDisplay.from_estimator(Monitor(model), X[:2], statistic="t2", x=axis)
    np.testing.assert_array_equal(display.positions, axis)
    np.testing.assert_allclose(sum(display.values["row 1"]), Monitor(model).t2(X[1:2])[0])
    np.testing.assert_array_equal(display.ax_.lines[1].get_xdata(), axis)
    for kind in (LoadingsDisplay, CoefficientsDisplay, VIPDisplay):
        np.testing.assert_array_equal(kind.from_estimator(model, x=axis).positions, axis)
    with pytest.raises(ValueError, match="x must have one entry for each of the 40 features"):
        VIPDisplay.from_estimator(model, x=axis[1:])
