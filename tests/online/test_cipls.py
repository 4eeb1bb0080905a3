"""CIPLS against batch PLS and its formulas, and on difficult data."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalPLS
from plstream._core.progress import listening

from ..checks import fed
from ..oracles import dense_pls, regression_data, relative_error
from ..real_data import real_data
from .principal import cosines
from .recursions import gaussian_data, plain_normalized, plain_paper, plain_released

CHUNKS = ([200], [1], [7], [1, 150, 49])

variants = pytest.mark.parametrize("variant", ["normalized", "paper", "released"])
few_components = pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning")


def recursion(model):
    return model._state.recursion


def pls_weights(X, y, c):
    return dense_pls(X, y, c, scale=False)[1]


@pytest.mark.parametrize("sizes", CHUNKS)
@pytest.mark.parametrize(("variant", "plain"), [("paper", plain_paper), ("released", plain_released)])
def test_literal_variants_equal_plain_loops(variant, plain, sizes):
    X, y = regression_data(200, 9)
    y = np.sign(y - np.median(y))
    state = recursion(fed(CIPLS(4, variant=variant), X, y, sizes))
    for actual, expected in zip((state.W[0], state.P[0], state.Q[0]), plain(X, y, 4), strict=True):
        for one, other in zip(actual, expected, strict=True):
            assert relative_error(one, other) < 1e-10


@pytest.mark.parametrize("sizes", CHUNKS)
@pytest.mark.parametrize("amnesic", [0.0, 0.7])
def test_normalized_equals_plain_loop(amnesic, sizes):
    X, y = gaussian_data(200)
    X += 3.0
    model = fed(CIPLS(4, amnesic=amnesic), X, y, sizes)
    C, G = plain_normalized(X, y, 4, amnesic)
    x_unit, y_unit = model._state.x.unit, model._state.y.unit
    assert relative_error(recursion(model).cross[0] / x_unit / y_unit, C) < 1e-10
    for actual, expected in zip(recursion(model).actions[0] / x_unit**2, G, strict=True):
        assert relative_error(actual, expected) < 1e-10


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_scores_are_products_with_unit_directions(variant):
    X, y = regression_data(100, 6)
    W = (plain_paper if variant == "paper" else plain_released)(X, y, 2)[0]
    unit = (W / np.linalg.norm(W, axis=1, keepdims=True)).T
    unit *= np.sign(unit[np.abs(unit).argmax(axis=0), [0, 1]])
    scores = CIPLS(variant=variant).fit(X, y).transform(X)
    assert relative_error(scores, (X - X.mean(axis=0)) @ unit) < 1e-10


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("variant", ["normalized", "released"])
def test_first_component_is_exact_in_any_order_and_chunks(variant, seed, sizes):
    X, y = regression_data(60, 7)
    order = np.random.default_rng(seed).permutation(60)
    first = fed(CIPLS(1, variant=variant), X[order], y[order], sizes).x_weights_[:, 0]
    cross = (X - X.mean(axis=0)).T @ (y - y.mean())
    cross *= np.sign(cross[np.abs(cross).argmax()]) / np.linalg.norm(cross)
    assert relative_error(first, cross) < 1e-10


def test_normalized_tends_to_pls():
    near = {}
    for n in (1000, 5000, 50_000):
        X, y = gaussian_data(n)
        near[n] = cosines(CIPLS(4).fit(X, y).x_weights_, pls_weights(X, y, 4))
    assert (near[5000][:3] >= [1 - 1e-9, 0.99, 0.9]).all()
    assert (near[50_000] >= 0.998).all()
    assert near[1000][:3].min() < near[50_000][:3].min()


@pytest.mark.parametrize("seed", range(6))
def test_directions_of_the_literal_variants_are_not_those_of_pls(seed):
    X, y = gaussian_data(20_000, seed)
    W = pls_weights(X, y, 3)
    assert (cosines(CIPLS(3).fit(X, y).x_weights_, W)[1:] > [0.99, 0.9]).all()
    for variant in ("paper", "released"):
        literal = CIPLS(3, variant=variant).fit(X, y).x_weights_
        assert cosines(literal[:, :1], W[:, :1]) > 0.999
        assert (cosines(literal, W)[1:] < 0.6).all()
        # Instead, they are near copies of the first.
        assert cosines(literal[:, 1:2], literal[:, :1]) > 0.8


def test_amnesia_helps_with_many_rows():
    X, y = gaussian_data(5000, seed=2)
    W = pls_weights(X, y, 4)
    plain, amnesic = (cosines(CIPLS(4, amnesic=amnesic).fit(X, y).x_weights_, W) for amnesic in (0.0, 1.0))
    assert amnesic[2] > plain[2] + 0.1


def test_predictions_are_near_those_of_pls():
    X, y = gaussian_data(5000)
    model, reference = CIPLS(3).fit(X, y), PLSRegression(3, scale=False).fit(X, y)
    residual = np.mean((y - model.predict(X)) ** 2)
    assert residual < 1.05 * np.mean((y - reference.predict(X)) ** 2)
    np.testing.assert_allclose(model.predict(X), (X - model.x_mean_) @ model.coef_[0] + model.intercept_)
    np.testing.assert_allclose(model.coef_, (model.x_rotations_ @ model.y_loadings_.T).T)


def test_more_components_do_not_spoil_predictions():
    rng = np.random.default_rng(0)
    peaks = np.exp(-(((np.linspace(0, 1, 100) - rng.random((8, 1))) / 0.08) ** 2))
    amounts = rng.random((5000, 8))
    spectra = amounts @ peaks + 0.001 * rng.normal(size=(5000, 100))
    y = amounts[:, 0] - amounts[:, 3] + 0.5 * amounts[:, 5] + 0.01 * rng.normal(size=5000)
    errors = [np.mean((y - CIPLS(c).fit(spectra, y).predict(spectra)) ** 2) for c in (2, 4, 8, 20)]
    assert (np.diff(errors) < 0.06 * np.var(y)).all()
    assert errors[-1] < 0.2 * np.var(y)


@pytest.mark.parametrize("seed", [150, *range(20)])
def test_more_components_do_not_spoil_predictions_of_low_rank(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 20)) + 0.1 * rng.normal(size=(200, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=200)
    few, many = (np.mean((CIPLS(c).fit(X, y).predict(X) - y) ** 2) for c in (1, 5))
    assert many < 1.5 * few


@pytest.mark.parametrize(("m", "c"), [(1, 2), (2, 3), (2, 5), (4, 6), (5, 12)])
def test_more_components_than_features(m, c):
    X, y = regression_data(100, m)
    with pytest.warns(UserWarning, match=rf"only {m} of {c} components?"):
        model = CIPLS(c).fit(X, y)
    assert model.n_components_ == m
    assert not model.x_weights_[:, m:].any()
    assert not model.x_rotations_[:, m:].any()
    scores = CIPLS(m).fit(X, y).transform(X)
    np.testing.assert_allclose(model.transform(X)[:, :m], scores, atol=1e-12 * np.abs(scores).max())


def test_rows_before_y_varies_count():
    X = np.random.default_rng(0).normal(size=(10_000, 5))
    y = np.where(np.arange(10_000) < 9000, 0.0, X[:, 0] + X[:, 1])
    exact = PLSRegression(1, scale=False).fit(X, y).coef_
    assert relative_error(CIPLS(1).fit(X, y).coef_, exact) < 0.03


def test_scores_are_those_of_the_recursion():
    X, y = gaussian_data(2000)
    model = CIPLS(4).fit(X, y)
    C, G = plain_normalized(X, y, 4)
    rows, w = X - X.mean(axis=0), C
    for i in range(4):
        unit = w / np.linalg.norm(w)
        p = G[i] / (G[i] @ unit)
        t = rows @ unit
        score = model.transform(X)[:, i]
        assert relative_error(score * np.sign(score @ t), t) < 1e-9
        assert relative_error(np.abs(model.x_loadings_[:, i]), np.abs(p)) < 1e-9
        rows, w = rows - np.outer(t, p), w - np.linalg.norm(w) * p


def test_weights_are_orthonormal_and_span_what_the_rotations_do():
    X, y = gaussian_data(2000)
    model = CIPLS(4).fit(X, y)
    W, R = model.x_weights_, model.x_rotations_
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(W @ (W.T @ R), R, atol=1e-10)
    # Peaks are positive, but for weights that were turned a little to be orthogonal.
    assert (W[np.abs(W).argmax(axis=0), range(4)] > 0).all()


@few_components
@pytest.mark.parametrize("rank", [1, 2])
def test_low_rank(rank):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, rank)) @ rng.normal(size=(rank, 6)) + 2.0
    y = X[:, 0]
    model = CIPLS(4).fit(X, y)
    assert model.n_components_ >= 1
    if rank == 1:
        assert model.n_components_ == 1
        assert not model.x_weights_[:, 1:].any()
        np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    assert np.isfinite(model.transform(X)).all()


def test_face_verification():
    data = real_data("lfw/vgg16_conv5_64px.npz")
    features, pairs, same, folds = data["F"], data["pairs"], data["same"].astype(int), data["fold"]
    X = np.abs(features[pairs[:, 0]].astype(np.float32) - features[pairs[:, 1]].astype(np.float32))

    def accuracy(model, fold):
        train = np.random.default_rng(int(fold)).permutation(np.flatnonzero(folds != fold))
        test = folds == fold
        model = clone(model).fit(X[train], same[train])
        classifier = LinearSVC(C=0.1, random_state=1227, dual=False).fit(model.transform(X[train]), same[train])
        return classifier.score(model.transform(X[test]), same[test])

    def mean_accuracy(model):
        with ThreadPoolExecutor(2) as pool:
            return 100 * np.mean(list(pool.map(lambda fold: accuracy(model, fold), np.unique(folds))))

    assert abs(mean_accuracy(CIPLS(2)) - mean_accuracy(IncrementalPLS(2, scale=False))) <= 0.2
    normalized = mean_accuracy(CIPLS(4))
    assert mean_accuracy(IncrementalPLS(4, scale=False)) - normalized <= 0.8
    for variant in ("paper", "released"):
        assert normalized >= mean_accuracy(CIPLS(4, variant=variant)) + 1.0


def test_units_change_the_released_variant_alone():
    X, y = gaussian_data(500)
    for variant in ("normalized", "paper"):
        W = CIPLS(3, variant=variant).fit(X, y).x_weights_
        small = CIPLS(3, variant=variant).fit(1e-3 * X, y * 1e3).x_weights_
        assert relative_error(small, W) < 1e-8
    large, small = (CIPLS(2, variant="released").fit(X * unit, y) for unit in (1.0, 1e-3))
    assert relative_error(small.x_weights_[:, 0], large.x_weights_[:, 0]) < 1e-10
    assert relative_error(small.x_weights_[:, 1], large.x_weights_[:, 1]) > 0.01


def test_order_changes_the_released_variant():
    X, y = gaussian_data(400)
    order = np.random.default_rng(1).permutation(400)
    one, other = (CIPLS(2, variant="released").fit(X[rows], y[rows]).x_weights_ for rows in (slice(None), order))
    assert relative_error(one[:, 0], other[:, 0]) < 1e-10
    assert relative_error(one[:, 1], other[:, 1]) > 1e-3


def test_overflow_names_the_component_and_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 300))
    y = np.sign(X[:, 0] + rng.normal(size=900))
    model = CIPLS(4, variant="released").partial_fit(X[:5], y[:5])
    before = model.transform(X)
    with pytest.raises(ValueError, match=r"Component \d+ is no longer finite: scale .*fewer.*variant='normalized'"):
        model.partial_fit(1e8 * X[5:], y[5:])
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == 5
    with pytest.raises(ValueError, match="no longer finite"):
        CIPLS(10, variant="released").fit(X, y)
    assert np.isfinite(CIPLS(10).fit(X, y).transform(X)).all()


@pytest.mark.slow
def test_many_components_and_a_million_rows_do_not_overflow():
    X, y = regression_data(20_000, 60)
    model = CIPLS(50)
    for _ in range(50):
        model.partial_fit(X, y)
    assert model.n_samples_seen_ == 10**6
    assert np.isfinite(model.transform(X)).all()
    assert np.abs(model.transform(X)).max() < 1e4


@few_components
@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_extreme_units(unit):
    X, y = gaussian_data(300)
    expected = CIPLS(3).fit(X, y)
    model = CIPLS(3).fit(X * unit, y)
    np.testing.assert_allclose(model.x_weights_, expected.x_weights_, atol=1e-9)
    np.testing.assert_allclose(model.predict(X * unit), expected.predict(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(CIPLS(3).fit(X, y * unit).predict(X) / unit, expected.predict(X), rtol=1e-8, atol=1e-8)


def test_large_means_lose_nothing():
    X, y = gaussian_data(300)
    X, shift = np.round(X, 3), 2.0**27
    shifted = CIPLS(3).fit((X + shift), y + shift)
    # What the shift rounds off is no more in the data.
    expected = CIPLS(3).fit((X + shift) - shift, (y + shift) - shift)
    np.testing.assert_allclose(shifted.x_weights_, expected.x_weights_, atol=1e-10)


@few_components
@variants
def test_hostile_rows(variant):
    X, y = regression_data(40, 6)
    X[:, 2] = 7.0
    constant = CIPLS(2, variant=variant).fit(X, y)
    assert not constant.x_weights_[2].any()
    repeated = CIPLS(2, variant=variant).fit(np.repeat(X[:1], 5, axis=0), np.arange(5.0))
    assert not repeated.transform(X).any()
    assert repeated.n_components_ == 0
    wide, target = regression_data(10, 200)
    assert np.isfinite(CIPLS(2, variant=variant).fit(wide, target).transform(wide)).all()
    one = CIPLS(2, variant=variant).fit(X[:1], y[:1])
    assert not one.transform(X).any()
    assert not one.vip_.any()


@variants
def test_vip(variant):
    X, y = gaussian_data(500)
    model = CIPLS(3, variant=variant).fit(X, y)
    np.testing.assert_allclose(np.mean(model.vip_**2), 1.0)
    one = CIPLS(1, variant=variant).fit(X, y)
    np.testing.assert_allclose(one.vip_, np.sqrt(12) * np.abs(one.x_weights_[:, 0]))


def test_vip_of_paper_weighs_by_squares_of_loadings():
    X, y = gaussian_data(300)
    W, _, q = plain_paper(X, y, 3)
    shares = q**2 / (q**2).sum()
    expected = np.sqrt(12 * (shares[:, None] * W**2 / (W**2).sum(axis=1, keepdims=True)).sum(axis=0))
    np.testing.assert_allclose(CIPLS(3, variant="paper").fit(X, y).vip_, expected, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1e150, 1e153])
def test_vip_does_not_depend_on_units(unit):
    X, y = gaussian_data(300)
    np.testing.assert_allclose(CIPLS(2).fit(X * unit, y).vip_, CIPLS(2).fit(X, y).vip_, rtol=1e-9)


def test_vip_is_near_that_of_pls():
    X, y = gaussian_data(50_000)
    expected = IncrementalPLS(3, scale=False).fit(X, y).vip_
    np.testing.assert_allclose(CIPLS(3).fit(X, y).vip_, expected, atol=0.02)


@variants
def test_two_classes_are_one_response(variant):
    X, y = regression_data(100, 5)
    labels = np.where(y > np.median(y), "b", "a")
    signs = np.where(labels == "b", 1.0, -1.0)
    model = CIPLS(2, variant=variant).fit(X, labels)
    assert list(model.classes_) == ["a", "b"]
    np.testing.assert_array_equal(model.transform(X), CIPLS(2, variant=variant).fit(X, signs).transform(X))


@variants
@pytest.mark.parametrize("threads", [False, True])
def test_several_classes_are_concatenated_models(variant, threads, monkeypatch):
    if threads:
        monkeypatch.setattr("plstream.online.state._WORK_WORTH_THREADS", 0)
    X, y = regression_data(120, 5)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = CIPLS(2, variant=variant).fit(X, labels)
    parts = [CIPLS(2, variant=variant).fit(X, np.where(labels == k, 1.0, -1.0)) for k in range(3)]
    np.testing.assert_allclose(model.transform(X), np.hstack([part.transform(X) for part in parts]), rtol=1e-12)
    assert model.x_weights_.shape == (5, 6)
    assert model.y_loadings_.shape == (3, 6)
    np.testing.assert_allclose(model.coef_, np.vstack([part.coef_ for part in parts]), rtol=1e-10)
    np.testing.assert_allclose(np.mean(model.vip_**2), 1.0)
    assert list(model.get_feature_names_out()) == [f"cipls{i}" for i in range(6)]


def test_several_responses():
    X, Y = regression_data(120, 5, 3)
    model = CIPLS(2).fit(X, Y)
    parts = [CIPLS(2).fit(X, Y[:, k]) for k in range(3)]
    # They are in units of their own, which differ.
    np.testing.assert_allclose(model.predict(X), np.column_stack([part.predict(X) for part in parts]), rtol=1e-9)
    assert model.transform(X).shape == (120, 6)


def test_prediction_of_labels():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(4, 8))
    index = rng.integers(4, size=2000)
    names = np.array(["ash", "beech", "cedar", "dogwood"])
    X = centres[index] + rng.normal(size=(2000, 8))
    model = CIPLS(3).fit(X, names[index])
    assert np.mean(model.predict(X) == names[index]) > 0.9
    two = CIPLS(1).fit(X, index < 2)
    assert two.predict(X).dtype == bool


def test_no_prediction_from_literal_variants():
    X, y = regression_data(30, 5)
    model = CIPLS(variant="paper").fit(X, y)
    assert not hasattr(model, "predict")
    with pytest.raises(AttributeError) as error:
        model.predict(X)
    assert "use variant='normalized'" in str(error.value.__cause__)


@few_components
def test_one_class_first():
    rng = np.random.default_rng(0)
    X, y = gaussian_data(3000, seed=1)
    labels = np.where(y > 0, 1, 0)
    zeros, rest = np.flatnonzero(labels == 0)[:500], np.setdiff1d(np.arange(3000), np.flatnonzero(labels == 0)[:500])
    rest = rng.permutation(rest)
    model = CIPLS(3).partial_fit(X[zeros], labels[zeros], classes=[0, 1])
    assert model.n_components_ == 0
    assert not model.transform(X).any()
    model.partial_fit(X[rest], labels[rest])
    assert (cosines(model.x_weights_, pls_weights(X, 2.0 * labels - 1, 3)) > 0.95).all()


def test_amnesia_is_for_the_normalized_variant():
    X, y = regression_data(30, 5)
    with pytest.raises(ValueError, match="amnesic=1 requires variant='normalized'"):
        CIPLS(variant="paper", amnesic=1).fit(X, y)


def test_parameters_cannot_change_during_a_stream():
    X, y = regression_data(30, 5)
    model = CIPLS(2).fit(X, y)
    with pytest.raises(ValueError, match="n_components cannot change during a stream: set it back to 2"):
        model.set_params(n_components=3).partial_fit(X, y)
    assert model.transform(X).shape == (30, 2)
    assert model.fit(X, y).transform(X).shape == (30, 3)


def test_parameters_set_after_learning_change_nothing():
    X, y = regression_data(30, 5)
    for model in (CIPLS(2), IPLS(2), SGDPLS(1), OLPLS(2), CCIPCA(2)):
        expected = clone(model).fit(X, y).transform(X)
        changed = clone(model).partial_fit(X, y).set_params(n_components=4)
        np.testing.assert_array_equal(changed.transform(X), expected)


def test_scores_that_are_not_finite_are_an_error():
    X, y = regression_data(30, 5)
    model = CIPLS(2).fit(X, y)
    with pytest.raises(ValueError, match="so large that results are not finite in float32"):
        model.transform(np.full((1, 5), 3e38, dtype=np.float32))


def test_long_work_tells_its_progress():
    X, _ = regression_data(5000, 100)
    steps = []
    with listening(steps.append):
        CIPLS(10).fit(X, np.arange(5000) % 100)
    assert len(steps) > 2
    assert steps[-1].finished


def test_kernels_are_compiled_once():
    from plstream.online.cipls import cipls_normalized
    from plstream.online.cipls_paper import cipls_paper, cipls_released

    X, y = regression_data(50, 4)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    read_only = y.copy()
    read_only.flags.writeable = False
    kernels = {"normalized": cipls_normalized, "paper": cipls_paper, "released": cipls_released}
    for variant, kernel in kernels.items():
        for target in (y, read_only, labels, np.column_stack([y, y])):
            CIPLS(2, variant=variant).fit(X, target)
            CIPLS(2, variant=variant).fit(X.astype(np.float32), target)
        assert len(kernel.dispatcher.signatures) == 1


def test_in_a_pipeline_and_a_grid_search():
    X, y = gaussian_data(400)
    labels = (y > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), CIPLS(), LinearSVC())
    search = GridSearchCV(pipeline, {"cipls__n_components": [1, 3], "cipls__variant": ["normalized", "paper"]}, cv=3)
    assert search.fit(X, labels).best_score_ > 0.9


@few_components
def test_no_component_of_rounding_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.normal(size=200)
    y -= np.column_stack([X, np.ones(200)]) @ np.linalg.lstsq(np.column_stack([X, np.ones(200)]), y, rcond=None)[0]
    assert CIPLS(2).fit(X, y).n_components_ == 0
