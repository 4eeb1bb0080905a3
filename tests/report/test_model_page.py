"""Reports of models: scikit-learn's numbers, warnings where they apply, and names that cannot become markup."""

import json
import re
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_score,
    r2_score,
    recall_score,
    root_mean_squared_error,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plstream import (
    CCIPCA,
    CIPLS,
    ILFS,
    IPLS,
    OLPLS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    InfFS,
    VIPSelector,
    open_source,
)
from plstream.monitoring import DriftTracker
from plstream.plots import LoadingsDisplay, palette
from plstream.report import html, model_report

from ..browser import Tab, check_page
from ..real_data import real_data
from .test_report import HOSTILE, contrast, luminance

DRAWING = "/* what draws the figures */"


@pytest.fixture(autouse=True)
def _light(monkeypatch, request):
    """Omit the Plotly library from reports whose text is tested, which is faster."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(html, "scripts", lambda: (DRAWING,))


@pytest.fixture
def drawn():
    pytest.importorskip("plotly", reason="figures need plstream[report]")


def make_data(n=300, m=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, m)) + 0.3 * rng.normal(size=(n, m)) + 5
    return X, X[:, 0] - 2 * X[:, 1] + 0.2 * rng.normal(size=n)


def make_model(n_components=2, n=300, m=8, **options):
    X, y = make_data(n, m)
    return IncrementalPLS(n_components, **{"solver": "gram", **options}).fit(X, y)


def read(page):
    return check_page(page.html(), (DRAWING,))


def text_of(page):
    return " ".join(" ".join(read(page).texts).split())


def figures_of(page):
    """Return the views of all figures, by the description of the figure."""
    html = page.html()
    pattern = r"aria-label='([^']*)' data-views='([^']*)'"
    found = {}
    for description, name in re.findall(pattern, html):
        (data,) = re.findall(rf"<script type='application/json' id='{name}'>(.*?)</script>", html, re.DOTALL)
        found[description] = json.loads(data)
    return found


def figure_of(page, words):
    (views,) = [views for description, views in figures_of(page).items() if words in description]
    return views


def rows_of(page):
    """Return the rows of all tables."""
    rows = re.findall(r"<tr(?: class=strong)?>(.*?)</tr>", page.html())
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_values_are_scored_as_by_scikit_learn():
    X, y = make_data(400)
    Y = np.column_stack([y, X[:, 3] + 1])
    model = IncrementalPLS(2).fit(X[:300], Y[:300])
    X, Y = X[300:], Y[300:]
    page = model_report(model, X, Y)
    guess = model.predict(X)
    for k in range(2):
        r2, rmse = r2_score(Y[:, k], guess[:, k]), root_mean_squared_error(Y[:, k], guess[:, k])
        error = guess[:, k] - Y[:, k]
        slope = np.polyfit(Y[:, k], guess[:, k], 1)[0]
        sep, deviation = error.std(ddof=1), Y[:, k].std(ddof=1)
        values = rmse, sep, error.mean(), slope, deviation / sep, Y[:, k].std()
        assert [f"y{k}", f"{r2:.4f}", *(f"{value:.4g}" for value in values)] in rows_of(page)
        assert (
            f"y{k} with an RMSE of {rmse:.4g}, compared with {Y[:, k].std():.4g} for the mean (R2 {r2:.4f})"
            in page.lead[1]
        )
    view = figure_of(page, "Predicted against measured")[1]
    assert view["name"] == "y1"
    points = view["data"][0]
    assert points["customdata"] == list(range(100))
    assert np.allclose(points["x"], Y[:, 1], rtol=1e-5)
    assert np.allclose(points["y"], guess[:, 1], rtol=1e-5)


@pytest.mark.parametrize("make", [CIPLS, IncrementalLDA])
def test_labels_are_scored_as_by_scikit_learn(make):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = make(n_components=2).fit(X[::2], names[::2])
    page = model_report(model, X[1::2], names[1::2])
    true, guess = names[1::2], model.predict(X[1::2])
    text = text_of(page)
    assert f"{accuracy_score(true, guess):.2%}" in text
    assert f"{balanced_accuracy_score(true, guess):.2%}" in text
    (view,) = figure_of(page, "Confusion matrix")
    assert view["data"][0]["text"] == confusion_matrix(true, guess).tolist()
    for label in np.unique(true):
        recall = recall_score(true, guess, labels=[label], average=None)[0]
        precision = precision_score(true, guess, labels=[label], average=None)[0]
        assert [label, "25", f"{recall:.1%}", f"{precision:.1%}"] in rows_of(page)


def test_a_model_alone():
    model = make_model(3)
    page = model_report(model)
    assert f"It explains {model.y_explained_variance_ratio_.sum():.1%}" in page.lead[1]
    assert "This estimate is optimistic" in page.lead[1]
    assert [
        "2",
        *(
            f"{v:.2%}"
            for r in (model.x_explained_variance_ratio_, model.y_explained_variance_ratio_)
            for v in (r[1], r[:2].sum())
        ),
    ] in rows_of(page)
    best = int(np.argmax(model.vip_))
    assert [row[0] for row in rows_of(page) if row[1:2] == [f"{model.vip_[best]:.4g}"]] == [f"x{best}"]
    (view,) = figure_of(page, "VIP of all 8")
    assert np.allclose(view["data"][0]["y"], model.vip_, rtol=1e-5)
    scaled, plain = figure_of(page, "Coefficients of all")
    assert np.allclose(plain["data"][0]["y"], model.coef_[0], rtol=1e-5)
    assert np.allclose(scaled["data"][0]["y"], model.coef_[0] * model.x_scale_, rtol=1e-5)
    loadings, weights = figure_of(page, "Loadings and Weights")
    assert np.allclose(loadings["data"][2]["y"], model.x_loadings_[:, 2], rtol=1e-5)
    assert np.allclose(weights["data"][1]["y"], model.x_weights_[:, 1], rtol=1e-5)


def test_the_page_does_not_depend_on_blocks():
    model, (X, y) = make_model(), make_data(2500, seed=1)
    pages = []
    for batch_size in (7, 2500):
        source = open_source(X, target=y, batch_size=batch_size)
        pages.append(figures_of(model_report(model, source)))
    assert pages[0].keys() == pages[1].keys()
    for name in pages[0]:
        first, second = (page[name][0]["data"][0] for page in pages)
        assert np.array_equal(first.get("customdata"), second.get("customdata"))
        assert np.allclose(np.array(first["y"], float), np.array(second["y"], float), rtol=1e-5, atol=1e-9)


def test_many_rows_are_sampled_and_the_page_says_so():
    model, (X, y) = make_model(), make_data(20_000, seed=1)
    X[12_345, 3] += 50
    page = model_report(model, X, y)
    assert "The plot shows a random sample of 2,000 of 20,000 rows." in text_of(page)
    scores = figure_of(page, "Scores of rows")[0]["data"]
    assert len(scores[0]["x"]) == 2000
    # What stands out is drawn in any case, and named with the feature at fault.
    (view,) = figure_of(page, "T2 and Q")
    assert 12_345 in [row for trace in view["data"] for row in trace.get("customdata", [])]
    first = next(row for row in rows_of(page) if row[0] == "12345")
    assert "x3" in first[-1]
    assert len(page.html()) < 600_000


def test_many_features_are_thinned_and_the_page_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 100_000)).astype(np.float32)
    model = IncrementalPLS(4, solver="sketch").fit(X, X[:, 5] + X[:, 70_000])
    page = model_report(model, X[:5], X[:5, 5] + X[:5, 70_000])
    assert len(page.html()) < 4_000_000
    assert "minimum and maximum of every interval" in text_of(page)
    (view,) = figure_of(page, "VIP of all")
    drawn = view["data"][0]
    assert len(drawn["y"]) <= 16_000
    assert max(drawn["y"]) == pytest.approx(model.vip_.max(), rel=1e-5)
    assert drawn["text"][int(np.argmax(drawn["y"]))] == f"x{np.argmax(model.vip_)}"


def test_wavelengths_are_an_axis():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    names = [f"{1100.5 - 2 * k}" for k in range(8)]
    model = IncrementalPLS(2).fit(pandas.DataFrame(X, columns=names), y)
    (view,) = figure_of(model_report(model), "VIP of all")
    assert view["data"][0]["x"] == [float(name) for name in names]
    assert view["layout"]["xaxis"]["autorange"] == "reversed"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_name_is_never_markup():
    hostile = [
        "</script><img src=x onerror=document.title='ran'>",
        "<b>bold</b>",
        "%{x}",
        "&lt;i&gt;",
        "a\u2028b\x00c\ud800",
        "__proto__",
        "x" * 500,
        HOSTILE,
    ]
    X, y = make_data()
    model = make_model()
    model.feature_names_in_ = np.array(list("abcdefgh"), dtype=object)
    plain = read(model_report(model, X, y, title="plain"))
    model.feature_names_in_ = np.array(hostile, dtype=object)
    page = model_report(model, X, y, title=HOSTILE)
    found = read(page)
    assert found.tags == plain.tags
    (view,) = figure_of(page, "VIP of all")
    texts = view["data"][0]["text"]
    assert texts[1] == "&lt;b&gt;bold&lt;/b&gt;"
    assert texts[3] == "&amp;lt;i&amp;gt;"
    assert not any("<" in text for text in texts)
    assert max(map(len, texts)) < 300
    assert "</script><img" not in page.html()


def test_labels_are_never_markup():
    X, y = make_data()
    labels = np.where(y > y.mean(), "</script><img src=x onerror=alert(1)>", "%{x}<br>")
    model = CIPLS(2).fit(X, labels)
    page = model_report(model, X, labels)
    assert "img" not in read(page).tags
    names = [trace["name"] for trace in figure_of(page, "Scores of rows")[0]["data"]]
    assert names[:2] == ["%{x}&lt;br&gt;", "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"]
    assert not any("<img" in trace["hovertemplate"] for trace in figure_of(page, "Scores of rows")[0]["data"][:2])


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (IncrementalPLS(1), False),
        (IncrementalPLS(3), False),
        (IncrementalPLS(3, solver="gram", scale=False), False),
        (IncrementalPLS(3, solver="sketch", sketch_size=6), False),
        (CIPLS(2), False),
        (CIPLS(2), True),
        (IPLS(2), True),
        (OLPLS(2), False),
        (SGDPLS(2), True),
        (CCIPCA(3), False),
        (IncrementalLDA(), True),
        (VIPSelector(), False),
        (InfFS(), False),
        (ILFS(), True),
    ],
    ids=lambda value: str(value)[:60],
)
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_model_has_a_page(model, labels):
    X, y = make_data()
    target = np.digitize(y, np.quantile(y, [0.3, 0.6])) if labels else y
    model.fit(X, target)
    assert type(model).__name__ in text_of(model_report(model))
    if hasattr(model, "support_"):
        assert "yes" in [row[-1] for row in rows_of(model_report(model))]
        with pytest.raises(ValueError, match="leave out the data"):
            model_report(model, X)
        return
    for y_or_none in (target, None):
        page = model_report(model, X, y_or_none)
        assert ("how-well-it-predicts" in read(page).values("id")) == (
            y_or_none is not None and hasattr(model, "predict")
        )
        assert figure_of(page, "Scores of rows")


class Validated(IncrementalPLS):
    """A model with the results of a cross-validation."""

    best_score_ = 0.875
    cv_results_ = {  # noqa: RUF012
        "n_components": np.arange(1, 4),
        "mean_test_score": np.array([0.5, 0.875, 0.75]),
        "se_test_score": np.array([0.1, 0.05, np.nan]),
        "mean_test_rmse": np.array([[3.0, 4.0], [1.0, 2.0], [2.0, 3.0]]),
    }


def test_cross_validation_is_drawn():
    page = model_report(Validated(2).fit(*make_data()))
    assert "87.5%" in page.lead[1]
    (view,) = figure_of(page, "Cross-validated")
    line, chosen = view["data"]
    assert line["y"] == [0.5, 0.875, 0.75]
    assert line["error_y"]["array"] == [0.1, 0.05, None]
    assert (chosen["x"], chosen["y"]) == ([2], [0.875])
    assert ["2", "0.875", "1", "2"] in rows_of(page)
    assert "Largest number of components." not in text_of(page)
    page = model_report(Validated(3).fit(*make_data()))
    assert caution(page, "Largest number of components.")[0] == "partly"


def cautions_of(page):
    return re.findall(r"<li class='(\w+)'>.*?<strong>(.*?)</strong> (.*?)</span>", page.html())


def caution(page, words):
    (found,) = [(verdict, text) for verdict, name, text in cautions_of(page) if name == words]
    return found


def test_no_problems_found():
    X, y = make_data(2000, seed=0)
    model = IncrementalPLS(3, solver="gram").fit(X[:1000], y[:1000])
    page = model_report(model, X[1000:], y[1000:])
    assert {verdict for verdict, *_ in cautions_of(page)} == {"yes"}
    assert "found no problems" in page.lead[2]


@pytest.mark.filterwarnings("ignore:X and y have only 2")
def test_few_rows_and_components():
    X, y = make_data(12)
    X[:, 2:] = X[:, :1]
    page = model_report(IncrementalPLS(4).fit(X, y))
    assert caution(page, "Few rows.")[0] == "partly"
    assert "12 rows" in caution(page, "Few rows.")[1]
    assert "only 2" in caution(page, "Fewer components.")[1]


@pytest.mark.filterwarnings("ignore:sketch_size")
def test_a_sketch_that_is_too_small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 60))
    y = X @ rng.normal(size=60) + 20 * rng.normal(size=3000)
    model = IncrementalPLS(5, solver="sketch", sketch_size=8).fit(X, y)
    assert model.subspace_error_.max() > 0.3
    verdict, text = caution(model_report(model), "Sketch.")
    assert verdict == "no"
    assert f"{model.retained_variance_:.1%}" in text


def test_features_that_are_constant():
    X, y = make_data()
    X[:, [2, 5]] = 7
    model = IncrementalPLS(2, solver="gram").fit(X, y)
    assert "2 of 8" in caution(model_report(model), "Unused features.")[1]
    later = X.copy()
    later[:, 3] = 1
    verdict, text = caution(model_report(model, later, y), "Constant features.")
    assert verdict == "partly"
    assert text.endswith("x3.")


def test_drift_unusual_rows_and_bias():
    X, y = make_data(2000)
    model = IncrementalPLS(2, solver="gram").fit(X[:1000], y[:1000])
    later = X[1000:].copy()
    later[:, 4] += 3 * X[:, 4].std()
    page = model_report(model, later, y[1000:] + 5)
    assert "x4 (+3" in caution(page, "Drift.")[1]
    assert caution(page, "Drift.")[0] == caution(page, "Unusual rows.")[0] == "partly"
    assert caution(model_report(model, later), "Unusual rows.")[0] == "no"
    assert "too low by" in caution(page, "Bias.")[1]
    assert len(page.lead) == 3


def test_a_cross_validated_model_of_labels_has_an_accuracy():
    X, y = load_iris(return_X_y=True)
    model = IncrementalPLSClassifierCV(4).fit(X, y)
    page = model_report(model)
    assert f"expected to classify {model.best_score_:.1%} of held-out rows" in page.lead[1]
    model = IncrementalPLSCV(4).fit(*make_data(m=4))
    assert "of the variance of held-out rows" in model_report(model).lead[1]
    # There are no more to try.
    assert model.n_components_ == 4
    assert "Largest number of components." not in text_of(model_report(model))


def test_responses_have_the_names_of_y():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X, y = make_data()
    assert "it predicts octane with" in model_report(make_model(), X, pandas.Series(y, name="octane")).lead[1]
    assert "it predicts y with" in model_report(make_model(), X, pandas.Series(y)).lead[1]
    frame = pandas.DataFrame({"fat": y, "water": -y})
    model = IncrementalPLS(2).fit(X, frame)
    assert re.search("predicts fat with .* and water with", model_report(model, X, frame).lead[1])


def test_unusual_rows_that_are_predicted_as_well_as_others():
    """Of something new in X that says nothing of y, the target tells that it does no harm."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(1200, 2))
    X = factors @ rng.normal(size=(2, 30)) + 0.1 * rng.normal(size=(1200, 30))
    X[:, 29] = rng.normal(size=1200)
    y = factors[:, 0] + rng.normal(size=1200)
    model = IncrementalPLS(2, scale=False, solver="gram").fit(X[:1000], y[:1000])
    later = X[1000:].copy()
    later[::3, 29] += 10
    verdict, text = caution(model_report(model, later, y[1000:]), "Unusual rows.")
    assert verdict == "partly"
    assert "not much worse: the RMSE of y is" in text
    assert caution(model_report(model, later), "Unusual rows.")[0] == "no"
    worse = y[1000:].copy()
    worse[::3] += 20 * rng.normal(size=67)
    verdict, text = caution(model_report(model, later, worse), "Unusual rows.")
    assert verdict == "no"
    assert "are worse" in text


def test_spectra_that_are_predicted_well_are_no_cause_for_alarm():
    """The last of these spectra are unlike those before, and predicted with an R2 of 0.98."""
    arrays = real_data("spectra/pls_gasoline.npz")
    X, y = arrays["NIR"], arrays["octane"]
    model = IncrementalPLS(4, solver="gram").fit(X[:40], y[:40])
    page = model_report(model, X[40:], y[40:])
    verdict, text = caution(page, "Unusual rows.")
    assert verdict == caution(page, "Drift.")[0] == "partly"
    assert "14 of 20" in text
    assert "only 40 rows are too narrow" in text
    assert "not much worse" in text
    arrays = real_data("spectra/tecator.npz")
    X, y = arrays["X"], arrays["Y_water_fat_protein"][:, 1]
    order = np.random.default_rng(0).permutation(len(X))
    model = IncrementalPLS(8, solver="gram").fit(X[order[:144]], y[order[:144]])
    verdict, text = caution(model_report(model, X[order[144:]], y[order[144:]]), "Unusual rows.")
    assert verdict == "yes"
    assert text.endswith("common for measured data.")


def test_predictions_that_are_no_better_than_guessing():
    X, y = make_data()
    page = model_report(make_model(), X, -y)
    assert caution(page, "No better than the mean.")[0] == "no"
    labels = np.where(y > y.mean(), "b", "a")
    model = CIPLS(2).fit(X, labels)
    page = model_report(model, X, np.where(labels == "a", "b", "a"))
    assert caution(page, "No better than guessing.")[0] == "no"


def test_labels_that_are_new():
    X, y = make_data()
    labels = np.where(y > y.mean(), "b", "a")
    model = CIPLS(2).fit(X, labels)
    labels = labels.astype("U9")
    labels[:3] = "zebra"
    page = model_report(model, X, labels)
    assert "zebra" in caution(page, "New labels.")[1]
    (view,) = figure_of(page, "Confusion matrix")
    assert np.array(view["data"][0]["text"]).shape == (3, 3)
    assert ["zebra", "3", "0.0%", "–"] in rows_of(page)  # noqa: RUF001


def test_limits_come_from_the_model_after_any_fit():
    X, y = make_data()
    model = IncrementalPLS(2).fit(X, y)
    page = model_report(model, X, y)
    assert caution(page, "Unusual rows.")[0] == "yes"
    assert "computed from these rows" not in text_of(page)
    assert caution(model_report(model, open_source(iter([(X, y)]))), "Unusual rows.")[0] == "yes"


@pytest.mark.parametrize("solver", ["multipass", "gram"])
def test_a_single_row_of_data(solver):
    X, y = make_data()
    page = model_report(make_model(solver=solver), X[:1], y[:1])
    assert caution(page, "One row.")[0] == "partly"
    assert "R2" not in page.lead[1]


def test_more_classes_than_colours():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 60)), np.arange(400) % 50
    X[np.arange(400), labels] += 6
    page = model_report(CIPLS(1).fit(X, labels), X, labels)
    names = [trace["name"] for trace in figure_of(page, "Scores of rows")[0]["data"]]
    assert len(names) == 21
    assert names[-2] == "others"
    assert not [name for name in figures_of(page) if "which label" in name]
    assert "All 50 labels" in text_of(page)


@pytest.mark.parametrize("size", [1e-150, 1e8, 1e150])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_any_size(size, order):
    X, y = make_data()
    X = np.array(X * size, order=order)
    X.flags.writeable = False
    model = IncrementalPLS(2, solver="gram").fit(X[:200], y[:200] * size)
    page = model_report(model, X[200:], y[200:] * size)
    r2 = r2_score(y[200:], model.predict(X[200:]) / size)
    assert f"(R2 {r2:.4f})" in page.lead[1]
    read(page)


def test_sparse_rows_and_single_precision():
    X, y = make_data()
    model = make_model()
    expected = model_report(model, X, y).lead
    assert model_report(model, sparse.csr_array(X), y).lead == expected
    assert model_report(model, X.astype(np.float32), y).lead[1][:60] == expected[1][:60]


def test_invalid_calls_are_refused():
    X, y = make_data()
    model = make_model()
    with pytest.raises(NotFittedError):
        model_report(IncrementalPLS())
    with pytest.raises(TypeError, match="not list"):
        model_report([])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model_report(model, X, y[1:])
    with pytest.raises(ValueError, match="expecting 8 features"):
        model_report(model, X[:, 1:], y)
    with pytest.raises(ValueError, match="y cannot be passed with a source"):
        model_report(model, open_source(X, target=y), y)
    with pytest.raises(ValueError, match="holds strings"):
        model_report(model, X, np.where(y > 0, "a", "b"))
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model_report(model, X, y)


def test_a_pipeline_is_a_page_about_its_last_step():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(1000 + 5 * X, columns=[f"sensor {i}" for i in range(X.shape[1])])
    pipeline = make_pipeline(StandardScaler(), "passthrough", IncrementalPLS(2, solver="gram")).fit(frame, y)
    page = model_report(pipeline, frame, y)
    inner = model_report(pipeline[-1], StandardScaler().fit_transform(frame), y)
    assert page.lead[0] == inner.lead[0].removesuffix(".") + ", after StandardScaler."
    assert "2 components" in page.lead[0]
    assert f"{len(X)} rows" in page.lead[0]
    assert page.lead[1:] == inner.lead[1:]
    text = text_of(page)
    # Arrays have no names, but the step that returned them knows them.
    assert "sensor 1" in text
    assert "x1" not in text.split()
    alone = model_report(make_pipeline(IncrementalPLS(2)).fit(X, y)).lead
    assert alone == model_report(IncrementalPLS(2).fit(X, y)).lead


def test_pipelines_that_are_refused():
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), IncrementalPLS(2))
    with pytest.raises(NotFittedError):
        model_report(pipeline)
    pipeline.fit(X, y)
    with pytest.raises(TypeError, match=r"take rows in memory, not \w+: use a StreamingPipeline"):
        model_report(pipeline, open_source(X, target=y))
    with pytest.raises(TypeError, match="of plstream, not Ridge"):
        model_report(make_pipeline(StandardScaler(), Ridge()).fit(X, y))
    with pytest.raises(TypeError, match="of plstream, not PLSRegression"):
        model_report(PLSRegression().fit(X, y))
    with pytest.raises(TypeError, match="not GridSearchCV: pass its best_estimator_"):
        model_report(GridSearchCV(IncrementalPLS(), {"n_components": [1, 2]}, cv=2).fit(X, y))
    with pytest.raises(TypeError, match="not DriftTracker: pass its model"):
        model_report(DriftTracker(IncrementalPLS()))


def test_without_plotly(monkeypatch):
    monkeypatch.undo()
    html.scripts.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"requires the package plotly: pip install 'plstream\[report\]'"):
        model_report(make_model()).html()
    html.scripts.cache_clear()


def test_colours_of_plots_have_contrast_in_light_and_in_dark():
    for theme in (palette.LIGHT, palette.DARK):
        colours = [colour for name, colour in theme.items() if re.fullmatch(r"--[cs]\d", name)]
        assert len(colours) == len(palette.CLASSES) + len(palette.SCALE)
        for colour in colours:
            # What WCAG asks of figures; the lighter end of a scale is near it.
            assert contrast(luminance(colour), luminance(theme["--paper"])) > 2.8, colour


@pytest.mark.usefixtures("drawn")
def test_only_known_scripts_may_run():
    text = model_report(make_model()).html()
    page = check_page(text, html.scripts())
    (allowed,) = [value for value in page.values("content") if "default-src" in value]
    assert "script-src 'sha256-" in allowed
    assert "unsafe-eval" not in allowed
    assert allowed.count("sha256-") == 2
    assert text.isascii() or text.encode()


PLACE = """(() => {
  const plot = [...document.querySelectorAll('.drawing')].find(plot => plot.getAttribute('aria-label').includes(%s))
  plot.scrollIntoView({block: 'center'})
  const {x, y} = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout, trace = plot._fullData[%d]
  return [x + xaxis._offset + xaxis.d2p(trace.x[%d]), y + yaxis._offset + yaxis.d2p(trace.y[%d])]
})()"""
HOVERED = "[...document.querySelectorAll('.hovertext')].map(text => text.textContent).join()"


def place(tab, words, trace, point):
    return tab.run(PLACE % (json.dumps(words), trace, point, point))


def hover(tab, words, trace=0, point=0):
    x, y = place(tab, words, trace, point)
    # Within bars, too.
    tab.point_at(x - 3, y + 2)
    tab.point_at(x, y + 2)
    return tab.wait_for(HOVERED)


def middle(tab, selector):
    return tab.run(f"""(() => {{
      const part = {selector}
      part.scrollIntoView({{block: 'center'}})
      const box = part.getBoundingClientRect()
      return [box.x + Math.min(box.width, 60) / 2, box.y + box.height / 2]
    }})()""")


@pytest.fixture
def page_file(tmp_path):
    X, y = make_data(400)
    names = ["</script><img src=x onerror=document.title='ran'>", "<b>&amp;</b>", *(f"%{{x}} {k}" for k in range(6))]
    model = IncrementalPLS(4, solver="gram").fit(X[:300], y[:300])
    model.feature_names_in_ = np.array(names, dtype=object)
    return model_report(model, X[300:], y[300:], title="plain").write(tmp_path / "page.html")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.usefixtures("drawn")
def test_in_a_browser_on_a_desk(page_file, tmp_path):
    with Tab(page_file, tmp_path, 1280, 900) as tab:
        tab.wait_for("document.querySelector('html.drawn') !== null")
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
        # Points show their row numbers, and features their names.
        measured, rows = tab.run(
            "(({x, customdata}) => [x, customdata])(document.querySelector('.drawing')._fullData[0])"
        )
        last = int(np.argmax(measured))
        assert f"row {rows[last]}measured {measured[last]:.4g}" in hover(tab, "Predicted against", 0, last)
        assert "</script><img src=x onerror=document.title='ran'>" in hover(tab, "VIP of all", 0, 0)
        tab.point_at(0, 0)
        tab.wait_for(f"!{HOVERED}")
        assert "<b>&amp;</b>" in hover(tab, "VIP of all", 0, 1)
        # A click on a name in the legend hides the line.
        legend = "[...document.querySelectorAll('.drawing')].at(-1)"
        assert tab.run(f"{legend}._fullData[1].visible") is True
        tab.click(*middle(tab, f"{legend}.querySelectorAll('.legendtoggle')[1]"))
        tab.wait_for(f"{legend}._fullData[1].visible === 'legendonly'")
        # Another view, chosen with the keyboard.
        tab.run("document.querySelectorAll('select')[0].focus()")
        before = tab.run(
            "[...document.querySelectorAll('.drawing')].find(p => p.ariaLabel.includes('Scores')).textContent"
        )
        tab.press("ArrowDown")
        tab.wait_for(
            "[...document.querySelectorAll('.drawing')].find(p => p.ariaLabel.includes('Scores')).textContent !== "
            + json.dumps(before)
        )
        # What is folded opens by a click, and by the keyboard.
        tab.click(*middle(tab, "document.querySelectorAll('summary')[0]"))
        tab.wait_for("document.querySelectorAll('details')[0].open")
        tab.run("document.querySelectorAll('summary')[0].focus()")
        tab.press("Enter")
        tab.wait_for("!document.querySelectorAll('details')[0].open")
        # Figures follow the colours of the page, and are light on paper.
        paper = "document.querySelector('.drawing')._fullLayout.paper_bgcolor"
        assert tab.run(paper) == "#ffffff"
        tab.prefer(dark=True)
        tab.wait_for(f"{paper} === '#16191d'")
        tab.run("dispatchEvent(new Event('beforeprint'))")
        tab.wait_for(f"{paper} === '#ffffff'")
        tab.run("dispatchEvent(new Event('afterprint'))")
        tab.wait_for(f"{paper} === '#16191d'")
        # Nothing ran that was not meant to, and nothing went wrong.
        assert tab.run("document.title") == "plain"
        assert tab.messages == []


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.usefixtures("drawn")
def test_in_a_browser_on_a_phone(page_file, tmp_path):
    with Tab(page_file, tmp_path, 360, 740, touch=True, dark=True) as tab:
        tab.wait_for("document.querySelector('html.drawn') !== null")
        tab.run("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert tab.run("document.documentElement.scrollWidth <= 360")
        # Only tables are wider, and scroll in their frames.
        beyond = "e => e.getBoundingClientRect().right > 361 && !e.closest('.wide, svg')"
        assert tab.run(f"[...document.querySelectorAll('main *')].filter({beyond}).length") == 0
        assert tab.run("document.querySelector('.drawing')._fullLayout.dragmode") is False
        assert tab.messages == []


@pytest.mark.usefixtures("drawn")
def test_no_other_script_runs(tmp_path):
    html = model_report(make_model(), title="plain").html()
    html = html.replace(
        "<main>", "<main><img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
    )
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    with Tab(path, tmp_path) as tab:
        tab.wait_for("document.querySelector('html.drawn') !== null")
        assert tab.run("document.title") == "plain"
        assert any("Content Security Policy" in message for message in tab.messages)


def test_rounding_errors_are_not_shown_as_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) + 1e6
    X -= X.mean(axis=0)
    y = 1e8 + X[:, 0] + rng.normal(size=200)
    text = model_report(IncrementalPLS(3).fit(X, y), X, y).html()
    assert not re.search(r"<td>-?[\d.]+e-(0[7-9]|1\d)</td>", text)


@pytest.mark.parametrize(
    ("names", "mode", "is_spectrum"),
    [
        ([f"{wavelength} nm" for wavelength in range(1100, 1140)], "lines", True),
        ([f"sensor {k * 7 % 40}" for k in range(40)], "markers", False),
        ([f"x{k}" for k in range(40)], "lines", False),
    ],
)
def test_lines_and_words_of_spectra_only_where_features_follow_each_other(names, mode, is_spectrum):
    X = np.random.default_rng(0).normal(size=(60, 40))
    display = LoadingsDisplay({"component 1": X[0]}, names, "Loadings")
    assert display.plotly().data[0]["mode"] == mode
    pytest.importorskip("matplotlib")
    has_line = display.plot().ax_.lines[1].get_linestyle() != "None"
    assert has_line is (mode == "lines")
    frame = pytest.importorskip("pandas").DataFrame(X, columns=names)
    text = model_report(IncrementalPLS(2).fit(frame, X[:, 0]), frame, X[:, 0]).html()
    assert ("chemistry or physics" in text) is is_spectrum


def test_responses_that_are_not_drawn_are_reported():
    X = np.random.default_rng(0).normal(size=(60, 12))
    text = model_report(IncrementalPLS(2).fit(X, X), X, X).html()
    assert "The plot shows the first 10 of 12 responses." in text
    assert "with the coefficients of the first 4 of 12 responses" in text
    assert "The first 3 of 10 are shown at first." in text
