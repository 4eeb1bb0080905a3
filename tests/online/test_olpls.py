"""OLPLS against a plain loop, its gradient against finite differences, and its weights against PLS."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.base import clone

from plstream import OLPLS

from ..checks import fed
from ..oracles import dense_pls, regression_data, relative_error
from .recursions import plain_released_olpls

RELEASED = {"variant": "released", "forgetting": 0.2, "eta": 0.01, "eta_loading": 0.01}


def linear_data(seed, n, m=12, *, noise=0.5):
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(m, m)))[0]
    X = rng.normal(size=(n, m)) * np.geomspace(2.0, 0.4, m) @ axes
    return X, X @ rng.normal(size=m) + noise * rng.normal(size=n)


def climbed(s, w):
    return (s @ w) ** 2 / (w @ w)


def gradient(s, w):
    """Half of that of ``climbed``."""
    return (s @ w) * s / (w @ w) - (s @ w) ** 2 * w / (w @ w) ** 2


def plain_loop(X, y, c, *, forgetting, eta, eta_loading):
    """Return the weights and loadings, one component a row, and the scores of the rows with the final model."""
    m = X.shape[1]
    S, W, P, C = np.zeros((c, m)), np.zeros((c, m)), np.zeros((c, m)), np.zeros(c)
    scores_before = [[] for _ in range(c)]  # Squared, with their present weights.
    for n in range(1, len(X) + 1):
        x, v = X[n - 1] - X[:n].mean(axis=0), y[n - 1] - y[:n].mean()
        length = np.linalg.norm(x)
        for i in range(c):
            if np.linalg.norm(x) <= 1e-13 * length:
                break
            S[i] = forgetting * S[i] + (1 - forgetting) * v * x
            if not W[i].any():
                if not S[i].any():
                    break
                W[i] = S[i] / np.linalg.norm(S[i])
            W[i] += eta * gradient(S[i], W[i]) / (S[i] @ S[i])
            W[i] /= np.linalg.norm(W[i])
            t = x @ W[i]
            scores_before[i] = [(1 - eta_loading) * square for square in scores_before[i]] + [eta_loading * t**2]
            gain = eta_loading * t / sum(scores_before[i])
            P[i] += gain * (x - t * P[i])
            C[i] += gain * (v - t * C[i])
            x, v = x - t * P[i], v - t * C[i]
    return W, P, C, deflated_scores(X - X.mean(axis=0), W, P)


def deflated_scores(E, W, P):
    E, T = E.copy(), []
    for w, p in zip(W, P, strict=True):
        T.append(E @ w)
        E -= np.outer(T[-1], p)
    return np.array(T).T


def signs_of(W):
    return np.array([1.0 if w[np.abs(w).argmax()] >= 0 else -1.0 for w in W])


def cosines(model, X, y):
    W = dense_pls(X, y, model.n_components, scale=False)[1]
    return np.abs((W * model.x_weights_).sum(axis=0))


@pytest.mark.parametrize("sizes", [[1], [7], [1, 59, 1], [120]])
def test_equals_a_plain_loop(sizes):
    X, y = regression_data(120, 9)
    settings = {"forgetting": 0.95, "eta": 0.2, "eta_loading": 0.05}
    W, P, C, T = plain_loop(X, y, 4, **settings)
    signs = signs_of(W)
    model = fed(OLPLS(4, **settings), X, y, sizes)
    tolerance = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(model.x_weights_, (W * signs[:, None]).T, **tolerance)
    np.testing.assert_allclose(model.x_loadings_, (P * signs[:, None]).T, **tolerance)
    np.testing.assert_allclose(model.y_loadings_, [C * signs], **tolerance)
    np.testing.assert_allclose(model.transform(X), T * signs, rtol=0, atol=1e-10 * np.abs(T).max())
    np.testing.assert_allclose(model.transform(X), (X - model.x_mean_) @ model.x_rotations_, rtol=0, atol=1e-10)


def test_gradient():
    rng = np.random.default_rng(1)
    s, w = rng.normal(size=(2, 6))
    differences = [(climbed(s, w + d) - climbed(s, w - d)) / 2e-6 for d in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(2 * gradient(s, w), differences, atol=1e-8)
    assert abs(gradient(s, w) @ w) < 1e-12


@pytest.mark.parametrize(
    ("forgetting", "least"), [(0.99, (0.98, 0.8, 0.6)), (0.999, (0.998, 0.997, 0.99)), (0.9999, (0.999, 0.998, 0.99))]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_approaches_pls(forgetting, least, seed):
    X, y = linear_data(seed, 20_000)
    model = OLPLS(3, forgetting=forgetting).fit(X, y)
    assert (cosines(model, X, y) >= least).all()


def test_first_component_of_all_rows_is_that_of_pls():
    X, y = linear_data(3, 20_000)
    model = OLPLS(1, forgetting=1.0, eta=1.0).fit(X, y)
    assert cosines(model, X, y)[0] > 0.99999


def test_weights_have_unit_length_and_positive_peaks():
    X, y = linear_data(0, 500)
    W = OLPLS(4).fit(X, y).x_weights_
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, rtol=1e-12)
    assert (W[np.abs(W).argmax(axis=0), range(4)] > 0).all()


@pytest.mark.parametrize(("a", "b"), [(2.0**-40, 2.0**30), (1e3, -1e-5), (1e150, 1e-150), (1e-150, 1e150)])
def test_units_do_not_matter(a, b):
    X, y = linear_data(0, 300)
    expected, model = OLPLS(3).fit(X, y), OLPLS(3).fit(a * X, b * y)
    np.testing.assert_allclose(model.x_weights_, expected.x_weights_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.x_loadings_, expected.x_loadings_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.y_loadings_ / b * a, expected.y_loadings_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.transform(a * X) / a, expected.transform(X), rtol=0, atol=1e-9)


def test_a_large_mean_does_not_matter():
    X, y = linear_data(0, 300)
    X, y = np.round(X * 2**10) / 2**10, np.round(y * 2**10) / 2**10
    expected, model = OLPLS(3).fit(X, y), OLPLS(3).fit(X + 2.0**27, y - 2.0**27)
    np.testing.assert_allclose(model.x_weights_, expected.x_weights_, rtol=0, atol=1e-10)


def test_follows_a_stream_that_changes():
    X, y = linear_data(0, 6_000)
    changed_X, changed_y = linear_data(7, 6_000)
    model = OLPLS(2, forgetting=0.999).fit(np.vstack([X, changed_X]), np.append(y, changed_y))
    assert (cosines(model, changed_X, changed_y) > 0.98).all()
    stubborn = OLPLS(2, forgetting=1.0).fit(np.vstack([X, changed_X]), np.append(y, changed_y))
    assert cosines(stubborn, changed_X, changed_y).min() < 0.95


def test_columns_have_separate_models():
    X, Y = regression_data(200, 6, 3)
    model = OLPLS(2).fit(X, Y)
    parts = [OLPLS(2).fit(X, Y[:, j]) for j in range(3)]
    for name in ("x_weights_", "x_loadings_", "x_rotations_"):
        side_by_side = np.hstack([getattr(part, name) for part in parts])
        np.testing.assert_allclose(getattr(model, name), side_by_side, rtol=0, atol=1e-12)
    of_all = linalg.block_diag(*(part.y_loadings_ for part in parts))
    np.testing.assert_allclose(model.y_loadings_, of_all, rtol=0, atol=1e-12)
    assert model.transform(X).shape == (200, 6)
    assert model.n_components_ == 6
    assert len(model.get_feature_names_out()) == 6


def test_labels():
    X, y = linear_data(0, 400)
    two = np.where(y > 0, "yes", "no")
    model = OLPLS(2).fit(X, two)
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    expected = OLPLS(2).fit(X, np.where(y > 0, 1.0, -1.0))
    np.testing.assert_array_equal(model.x_weights_, expected.x_weights_)
    three = np.digitize(y, [-1, 1])
    model = OLPLS(2).fit(X, three)
    expected = OLPLS(2).fit(X, np.where(three[:, None] == np.arange(3), 1.0, -1.0))
    np.testing.assert_array_equal(model.x_weights_, expected.x_weights_)
    assert not hasattr(expected, "classes_")


def test_one_class_prefix():
    X, y = linear_data(0, 400)
    labels = (y > 0).astype(int)
    order = np.argsort(labels, kind="stable")
    n_first = (labels == 0).sum()
    model = OLPLS(2).partial_fit(X[order[:n_first]], labels[order[:n_first]], classes=[0, 1])
    with pytest.warns(UserWarning, match="only 0 of 2 component"):
        assert not model.transform(X).any()
    model.partial_fit(X[order[n_first:]], labels[order[n_first:]])
    assert np.isfinite(model.transform(X)).all()
    assert model.n_components_ == 2


@pytest.mark.filterwarnings("ignore:The rows so far have only")
@pytest.mark.parametrize(
    "kind", ["constant", "rank one", "wide", "duplicates", "one row", "constant y", "zero columns"]
)
def test_hostile_data(kind):
    X, y = linear_data(0, 60)
    rank = {"constant": 0, "rank one": 1, "one row": 0, "constant y": 0}.get(kind, 3)
    if kind == "constant":
        X = np.full_like(X, 3.0)
    elif kind == "rank one":
        X = np.outer(np.round(64 * X[:, 0]), np.arange(1.0, 13)) + 1e8
    elif kind == "wide":
        X, y = regression_data(20, 300)
    elif kind == "duplicates":
        X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    elif kind == "one row":
        X, y = X[:1], y[:1]
    elif kind == "constant y":
        y = np.full(60, 7.0)
    else:
        X[:, ::2] = -1e8
    model = OLPLS(3).fit(X, y)
    assert model.n_components_ == rank
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.x_loadings_).all()


def test_outliers_do_not_destabilise_the_loadings():
    X, y = linear_data(0, 4_000)
    X[1000:1010] *= 1e6
    model = OLPLS(3, eta_loading=0.5).fit(X, y)
    assert np.abs(model.x_loadings_).max() < 10


def test_overflow_leaves_the_model_unchanged():
    X, y = linear_data(0, 100)
    model = OLPLS(2).fit(X, y)
    before = model.x_weights_.copy()
    with pytest.raises(ValueError, match=r"Component \d is no longer finite"):
        model.partial_fit(X * 1e200, y)
    np.testing.assert_array_equal(model.x_weights_, before)
    assert model.n_samples_seen_ == 100


@pytest.mark.parametrize("settings", [{"forgetting": 0.0}, {"forgetting": 1.1}, {"eta": 0.0}, {"eta_loading": 1.0}])
def test_bad_parameters(settings):
    X, y = linear_data(0, 10)
    with pytest.raises(ValueError, match=next(iter(settings))):
        OLPLS(**settings).fit(X, y)


def test_parameters_cannot_change_during_a_stream():
    X, y = linear_data(0, 100)
    model = clone(OLPLS(2)).partial_fit(X, y)
    with pytest.raises(ValueError, match="forgetting cannot change"):
        model.set_params(forgetting=0.9).partial_fit(X, y)


def test_no_more_components_than_features():
    X, y = regression_data(500, 2)
    with pytest.warns(UserWarning, match=r"only 2 of 5 components?"):
        model = OLPLS(5).fit(X, y)
    assert model.n_components_ == 2
    assert not model.transform(X)[:, 2:].any()


# --------------------------------------------------------------------------------------------------------- as released


@pytest.mark.parametrize("sizes", [[200], [1], [7], [1, 150, 49]])
def test_released_equals_plain_loop(sizes):
    X, y = regression_data(200, 9)
    X, y = X / 10, np.sign(y - np.median(y))
    W, P, C = plain_released_olpls(X, y, 3)
    state = fed(OLPLS(3, **RELEASED), X, y, sizes)._state.recursion
    for actual, expected in ((state.W[0], W), (state.P[0], P), (state.C[0], C)):
        for one, other in zip(actual, expected, strict=True):
            assert relative_error(one, other) < 1e-10
    model = OLPLS(3, **RELEASED).fit(X, y)
    # Neither rows nor scores are centred.
    assert relative_error(np.abs(model.transform(X)), np.abs(X @ W.T)) < 1e-10
    assert not model.x_mean_.any()


def test_released_weights_are_the_first_row():
    X, y = linear_data(0, 500)
    model = OLPLS(3, variant="released").fit(X / 10, y)
    first = X[0] / np.linalg.norm(X[0])
    np.testing.assert_allclose(np.abs(model.x_weights_.T @ first), 1, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(model.x_weights_, axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(model.vip_, np.sqrt(12) * np.abs(first), rtol=1e-10)
    assert np.linalg.matrix_rank(model.transform(X)) == 1
    labels = np.digitize(y, [-1, 1])
    assert OLPLS(2, variant="released").fit(X / 10, labels).transform(X).shape == (500, 6)


def test_released_begins_with_the_first_row_that_is_not_zero():
    X, y = linear_data(0, 50)
    X = X / 10
    expected = OLPLS(2, **RELEASED).fit(X, y)
    nothing, no_y = np.zeros((2, 12)), np.array([1.0, 0.0])
    model = OLPLS(2, **RELEASED).fit(np.vstack([nothing, X[:1], X]), [1.0, 2.0, 0.0, *y])
    np.testing.assert_array_equal(model.x_rotations_, expected.x_rotations_)
    with pytest.warns(UserWarning, match="only 0 of 2 component"):
        assert not OLPLS(2, **RELEASED).fit(nothing, no_y).transform(X).any()
    # Each component begins with half of what the one before has: some are nothing any more.
    many = OLPLS(1024, **RELEASED).partial_fit(X[:1], y[:1])
    assert np.isfinite(many.partial_fit(X[1:], y[1:])._state.recursion.W).all()


def test_released_overflow():
    X, y = linear_data(0, 400)
    model = OLPLS(2, **RELEASED).fit(X / 10, y)
    before = model.transform(X)
    for unit in (1e2, 1e100, 1e200, 1e300):
        with pytest.raises(ValueError, match=r"Component \d is no longer finite.*or a smaller eta"):
            model.partial_fit(X * unit, y)
        np.testing.assert_array_equal(model.transform(X), before)


@pytest.mark.filterwarnings("ignore:The rows so far have only")
@pytest.mark.parametrize("unit", [1.0, 1e-150])
def test_released_with_hostile_data(unit):
    X, y = linear_data(0, 60)
    for rows in (np.full_like(X, 0.3), np.outer(X[:, 0], np.arange(1.0, 13)) / 10, X[:1], np.repeat(X[:2], 9, axis=0)):
        model = OLPLS(3, variant="released", eta=1e-3, eta_loading=1e-4).fit(rows * unit, y[: len(rows)])
        assert np.isfinite(model.transform(rows * unit)).all()
        assert np.isfinite(model.x_loadings_).all()
        assert np.isfinite(model.vip_).all()
