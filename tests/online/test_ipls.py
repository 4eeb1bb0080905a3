"""IPLS against PLS and its formulas, and on difficult data."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression

from plstream import IPLS
from plstream.online.ipls import pls_weights, released_weights

from ..checks import fed
from ..oracles import dense_pls, regression_data, relative_error
from .principal import constant, cosines, gaussian_factors, plain_ccipca, schedule
from .recursions import plain_released_directions, plain_released_weights

few_components = pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning")


def exact_weights(X, y, n_components):
    """The weights that IPLS finds if its principal components are exact."""
    centred = X - X.mean(axis=0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    return pls_weights(((y - y.mean()) @ centred)[None], directions, values**2, n_components)[0].T


def plain_ipls(X, y, n_components, n_directions, amnesia):
    """The weights by the formulas: S = sum of lambda a a', and an orthonormal basis of X'y, S X'y, S^2 X'y, ..."""
    vectors = plain_ccipca(X, n_directions, amnesia)
    S = sum(np.outer(v, v) / np.linalg.norm(v) for v in vectors)
    krylov = [(X - X.mean(axis=0)).T @ (y - y.mean())]
    for _ in range(n_components - 1):
        krylov.append(S @ krylov[-1] / np.linalg.norm(krylov[-1]))
    return np.linalg.qr(np.array(krylov).T)[0]


@pytest.mark.parametrize(("n", "m", "n_components"), [(200, 6, 6), (200, 12, 5), (20, 50, 6), (500, 30, 8)])
def test_is_pls_if_principal_components_are_exact(n, m, n_components):
    X, y = regression_data(n, m)
    W = exact_weights(X, y, n_components)
    oracle = dense_pls(X, y, n_components, scale=False)[1]
    reference = PLSRegression(n_components, scale=False).fit(X, y).x_weights_
    assert relative_error(np.abs(W), np.abs(oracle)) < 1e-10
    assert relative_error(np.abs(W), np.abs(reference)) < 1e-10
    assert relative_error(W.T @ W, np.eye(n_components)) < 1e-14


def test_columns_past_the_rank_are_zero():
    X, y = regression_data(200, 3)
    W = exact_weights(X, y, 7)
    assert relative_error(W[:, :3].T @ W[:, :3], np.eye(3)) < 1e-14
    assert not W[:, 3:].any()
    assert not pls_weights(np.zeros((1, 4)), np.eye(4), np.ones(4), 2).any()
    # Equal variances: S X'y is X'y again.
    np.testing.assert_array_equal(pls_weights(np.array([[3.0, 4.0]]), np.eye(2), np.ones(2), 2), [[[0.6, 0.8], [0, 0]]])
    # None of the principal components has a part in X'y.
    np.testing.assert_array_equal(pls_weights(np.array([[2.0, 0.0]]), np.eye(2)[1:], np.ones(1), 2), [np.diag([1, 0])])
    # Components past the rank take no time, however many a model or a file requests.
    many = pls_weights(np.array([[3.0, 4.0]]), np.eye(2), np.array([2.0, 1.0]), 1_000_000)
    np.testing.assert_allclose(many[0, :2] @ many[0, :2].T, np.eye(2), atol=1e-12)
    assert not many[0, 2:].any()


def test_one_more_component_than_directions():
    X, y = regression_data(100, 8)
    with pytest.warns(UserWarning, match=r"only 4 of 6 components?"):
        model = IPLS(6, n_pca_components=3).fit(X, y)
    assert model.n_components_ == 4
    assert model.x_weights_.shape == (8, 6)
    W = model.x_weights_[:, :4]
    assert relative_error(W.T @ W, np.eye(4)) < 1e-14
    assert not model.x_weights_[:, 4:].any()


def test_approaches_pls():
    for seed in range(4):
        X, y = gaussian_factors(seed)
        W = dense_pls(X, y, 4, scale=False)[1]
        assert cosines(IPLS(4, n_pca_components=12).fit(X, y).x_weights_, W).min() > 0.999
        few = cosines(IPLS(4, n_pca_components=4).fit(X, y).x_weights_, W)
        assert (few > [1 - 1e-12, 0.997, 0.98, 0.93]).all()


@pytest.mark.parametrize("sizes", [[300], [1], [7], [1, 298, 1], [2, 100]], ids=str)
@pytest.mark.parametrize(
    ("amnesic", "amnesia"), [(2.0, constant(2)), ((5, 40, 100), schedule(5, 40, 100))], ids=["constant", "schedule"]
)
def test_equals_the_formulas(amnesic, amnesia, sizes):
    X, y = regression_data(300, 9, seed=1)
    expected = plain_ipls(X, y, 4, 5, amnesia)
    model = fed(IPLS(4, n_pca_components=5, amnesic=amnesic), X, y, sizes)
    assert relative_error(np.abs(model.x_weights_), np.abs(expected)) < 1e-10
    assert (model.x_weights_.max(axis=0) == np.abs(model.x_weights_).max(axis=0)).all()
    assert relative_error(model.x_mean_, X.mean(axis=0)) < 1e-12
    assert relative_error(model.transform(X), (X - X.mean(axis=0)) @ model.x_weights_) < 1e-10
    vectors = plain_ccipca(X, 5, amnesia)
    assert relative_error(model.pca_explained_variance_, np.linalg.norm(vectors, axis=1)) < 1e-10
    assert cosines(model.pca_components_.T, vectors.T).min() > 1 - 1e-12


@pytest.mark.parametrize("n_components", [1, 2])
def test_first_component_is_exact_in_any_order(n_components):
    X, y = regression_data(200, 9)
    w = (X - X.mean(axis=0)).T @ (y - y.mean())
    w /= w[np.abs(w).argmax()] / np.abs(w).max() * np.linalg.norm(w)
    for seed, sizes in enumerate(([200], [1], [3, 50])):
        order = np.random.default_rng(seed).permutation(200)
        for offset in (0.0, 1e6):
            model = fed(IPLS(n_components), X[order] + offset, y[order] - offset, sizes)
            assert relative_error(model.x_weights_[:, 0], w) < (1e-10 if not offset else 1e-7)


def test_one_component_needs_no_principal_components():
    X, y = regression_data(50, 6)
    model = IPLS(1).fit(X, y)
    assert model.pca_components_.shape == (0, 6)
    np.testing.assert_array_equal(model.x_weights_, IPLS(2).fit(X, y).x_weights_[:, :1])


def test_two_classes_are_minus_and_plus_one():
    X, y = regression_data(100, 6)
    signs = np.where(y > np.median(y), 1.0, -1.0)
    labels = np.where(signs > 0, "yes", "no")
    model = IPLS(3).fit(X, labels)
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_array_equal(model.x_weights_, IPLS(3).fit(X, signs).x_weights_)


def test_each_column_has_its_own_components():
    X, Y = regression_data(100, 6, 3)
    model = IPLS(2).fit(X, Y)
    alone = [IPLS(2).fit(X, y) for y in Y.T]
    assert model.transform(X).shape == (100, 6)
    assert model.n_components_ == 6
    assert list(model.get_feature_names_out()) == [f"ipls{i}" for i in range(6)]
    assert relative_error(model.x_weights_, np.hstack([one.x_weights_ for one in alone])) < 1e-12
    assert not hasattr(model, "classes_")


def test_three_classes_are_one_column_each():
    X, y = regression_data(120, 6)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = fed(IPLS(2), X, labels, [40])
    columns = np.where(labels[:, None] == [0, 1, 2], 1.0, -1.0)
    assert relative_error(model.x_weights_, IPLS(2).fit(X, columns).x_weights_) < 1e-10
    assert IPLS(2, target="values").fit(X, labels).x_weights_.shape == (6, 2)


@few_components
def test_classes_one_after_the_other():
    X, y = regression_data(90, 6)
    labels = np.sort(np.digitize(y, np.quantile(y, [0.3, 0.6])))
    model = IPLS(2)
    for start in range(0, 90, 9):
        model.partial_fit(X[start : start + 9], labels[start : start + 9], classes=[0, 1, 2])
        assert np.isfinite(model.transform(X)).all()
        if labels[start + 8] == 0:
            assert model.n_components_ == 0
            assert not model.transform(X).any()
    assert relative_error(model.x_weights_, IPLS(2).fit(X, labels).x_weights_) < 1e-10


def test_a_class_that_never_comes_has_no_components():
    X, y = regression_data(90, 6)
    model = IPLS(2).partial_fit(X, (y > y.mean()).astype(int), classes=[0, 1, 2])
    with pytest.warns(UserWarning, match="only 4 of 6"):
        scores = model.transform(X)
    assert not scores[:, 4:].any()


def test_y_that_has_nothing_to_do_with_x():
    """A full factorial design, and its interaction: what rounding leaves of X'y is no direction."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    X = (signs[:, :3] * [0.1, 0.3, 0.7])[np.random.default_rng(0).permutation(32)] + 0.1
    y = np.sign(X - 0.1).prod(axis=1) / 3
    with pytest.warns(UserWarning, match="only 0 of 2"):
        assert not IPLS().fit(X, y).transform(X).any()


@few_components
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_rank_is_found(rank, offset):
    rng = np.random.default_rng(0)
    X = (rng.integers(-9, 10, size=(500, rank)) @ rng.integers(-9, 10, size=(rank, 8))).astype(np.float64)
    y = X @ rng.normal(size=8) + rng.normal(size=500)
    model = IPLS(5).fit(X + offset, y)
    assert model.n_components_ == rank
    assert not model.transform(X)[:, rank:].any()
    exact = dense_pls(X, y, rank, scale=False)[1]
    # The same space, whatever the principal components are.
    assert relative_error(model.x_weights_[:, :rank] @ model.x_weights_[:, :rank].T, exact @ exact.T) < 1e-9


@few_components
def test_degenerate_data():
    X, y = regression_data(30, 4)
    cases = {
        "one row": (X[:1], y[:1], 0),
        "constant X": (np.full((30, 4), 0.1), y, 0),
        "constant y": (X, np.full(30, 0.1), 0),
        "duplicate rows": (np.repeat(X[:1], 30, axis=0), y, 0),
        "two rows": (X[:2], y[:2], 1),
        "two rows, often": (X[[0, 1] * 15], y[[0, 1] * 15], 1),
        "one column": (X[:, :1], y, 1),
        "rank one": (np.outer(y, [1.0, 2.0, 3.0, 4.0]), y, 1),
        "more columns than rows": (X.T, y[:4], 2),
    }
    for name, (rows, target, n_components) in cases.items():
        with np.errstate(all="raise"):
            model = IPLS().fit(rows, target)
            scores = model.transform(rows)
        assert model.n_components_ == n_components, name
        assert np.isfinite(scores).all(), name
        assert not scores[:, n_components:].any(), name


def test_constant_columns_do_not_take_part():
    X, y = regression_data(50, 6)
    padded = np.column_stack([np.full(50, 0.1), X, np.zeros(50), np.full(50, 1e8)])
    model = IPLS(3).fit(padded, y)
    assert relative_error(model.x_weights_[1:7], IPLS(3, n_pca_components=9).fit(X, y).x_weights_) < 1e-9
    assert not model.x_weights_[[0, 7, 8]].any()


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e150, 1e150), (1e-150, 1e150), (1e150, 1e-150), (1e-150, 1e-150)])
def test_units_do_not_matter(x_unit, y_unit):
    X, y = regression_data(100, 5)
    model, expected = IPLS(3).fit(X * x_unit, y * y_unit), IPLS(3).fit(X, y)
    assert relative_error(model.x_weights_, expected.x_weights_) < 1e-9
    assert relative_error(model.transform(X * x_unit) / x_unit, expected.transform(X)) < 1e-9
    assert relative_error(model.pca_explained_variance_ / x_unit / x_unit, expected.pca_explained_variance_) < 1e-9


def test_far_from_zero():
    X, y = regression_data(300, 5)
    X, y = np.round(X * 2**20) / 2**20, np.round(y * 2**20) / 2**20  # So that adding the offset loses nothing.
    expected = IPLS(3).fit(X, y)
    assert relative_error(IPLS(3).fit(X + 1e8, y - 1e8).x_weights_, expected.x_weights_) < 1e-9


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_equals_dense(container):
    X, y = regression_data(80, 7)
    X = np.where(np.abs(X) > 5, X, 0)
    dense, model = IPLS(3).fit(X, y), IPLS(3).fit(container(X), y)
    assert relative_error(model.x_weights_, dense.x_weights_) < 1e-10
    assert relative_error(model.transform(container(X)), dense.transform(X)) < 1e-10


@pytest.mark.parametrize("n_components", [1, 2])
def test_overflow_is_an_error_and_changes_nothing(n_components):
    X, y = regression_data(20, 3)
    model = IPLS(n_components).fit(X, y)
    before = model.transform(X)
    for huge in (1e200, 1e300):
        with pytest.raises(ValueError, match="Component 1 is no longer finite"):
            model.partial_fit(X[:2] * huge, y[:2])
        with pytest.raises(ValueError, match="Component 1 is no longer finite"):
            model.partial_fit(X[:2], y[:2] * huge)
    if n_components == 2:
        with pytest.raises(ValueError, match="Component 2 is no longer finite"):
            model.partial_fit(X[:2] * 1e100, y[:2])
    np.testing.assert_array_equal(model.transform(X), before)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_pca_components": 0},
        {"n_pca_components": 1.5},
        {"amnesic": -1.0},
        {"amnesic": (200, 20, 2000)},
        {"target": "numbers"},
    ],
    ids=str,
)
def test_bad_parameters(parameters):
    X, y = regression_data(30, 4)
    model = IPLS(**parameters)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"{next(iter(parameters))}.* must be"):
            method(X, y)
    assert not hasattr(model, "n_features_in_")


def test_parameters_cannot_change_during_a_stream():
    X, y = regression_data(30, 4)
    model = IPLS().partial_fit(X, y)
    for parameters in ({"n_components": 3}, {"n_pca_components": 3}, {"amnesic": 1.0}, {"target": "labels"}):
        changed = IPLS().partial_fit(X, y).set_params(**parameters)
        with pytest.raises(ValueError, match=f"{next(iter(parameters))} cannot change during a stream"):
            changed.partial_fit(X, y)
        np.testing.assert_array_equal(changed.set_params(**model.get_params()).transform(X), model.transform(X))


def test_bad_targets():
    X, y = regression_data(30, 4)
    labels = (y > y.mean()).astype(int)
    model = IPLS().partial_fit(X, labels)
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, labels + 1)
    with pytest.raises(ValueError, match="only one class"):
        IPLS().fit(X, np.zeros(30, dtype=int))
    with pytest.raises(ValueError, match=r"y has 2 targets"):
        IPLS().partial_fit(X, y).partial_fit(X, np.column_stack([y, y]))


# --------------------------------------------------------------------------------------------------------- as released


@pytest.mark.parametrize("sizes", [[200], [1], [7], [1, 150, 49]], ids=str)
@pytest.mark.parametrize("amnesic", [2.0, 0.0])
def test_released_equals_plain_loop(sizes, amnesic):
    X, y = regression_data(200, 9)
    y = np.sign(y - np.median(y))
    cross, V = plain_released_directions(X, y, 4, amnesic)
    model = fed(IPLS(2, n_pca_components=4, amnesic=amnesic, variant="released"), X, y, sizes)
    covariances = model._state.recursion
    assert relative_error(covariances.cross[0], cross) < 1e-10
    for actual, expected in zip(covariances.principal.V, V, strict=True):
        assert relative_error(actual, expected) < 1e-8
    assert relative_error(covariances.principal.V, V) < 1e-10
    W = plain_released_weights(cross, V, 2).T
    assert relative_error(np.abs(model.x_weights_), np.abs(W)) < 1e-10
    scores = (X - X.mean(axis=0)) @ W
    assert relative_error(np.abs(model.transform(X)), np.abs(scores)) < 1e-10


def test_released_weights_equal_plain_loop():
    rng = np.random.default_rng(0)
    V, starts = rng.normal(size=(6, 9)) * np.geomspace(4, 1, 6)[:, None], rng.normal(size=(3, 9))
    lengths = np.linalg.norm(V, axis=1)
    weights = released_weights(starts, V / lengths[:, None], lengths, 4)
    for actual, start in zip(weights, starts, strict=True):
        assert relative_error(actual, plain_released_weights(start, V, 4)) < 1e-10
    # Responses that the directions have no part in, that are zero, and that all directions have the same part in.
    starts = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    weights = released_weights(starts, np.eye(3)[:2], np.ones(2), 3)
    np.testing.assert_allclose(weights[:, 0], [[0, 0, 1], [0, 0, 0], [0.6, 0.8, 0]], atol=1e-15)
    assert not weights[:, 1:].any()


def test_released_principal_components_are_the_last_row():
    X, y = gaussian_factors(0)
    model = IPLS(3, variant="released").fit(X, y)
    last = (X[-1] - X.mean(axis=0))[:, None]
    assert cosines(model.pca_components_[:1].T, last) > 0.999
    W = dense_pls(X, y, 3, scale=False)[1]
    near = cosines(model.x_weights_, W)
    assert near[0] > 1 - 1e-12
    assert near[1] < 0.9
    assert cosines(IPLS(3).fit(X, y).x_weights_, W)[1] > 0.99


@few_components
@pytest.mark.parametrize("unit", [1.0, 1e-150, 1e60])
def test_released_with_degenerate_data(unit):
    X, y = regression_data(30, 4)
    cases = {
        "one row": (X[:1], y[:1], 0),
        "constant X": (np.full((30, 4), 0.5), y, 0),
        "zeros": (np.zeros((30, 4)), y, 0),
        "constant y": (X, np.full(30, 0.5), 0),
        "two rows": (X[:2], y[:2], None),
        "one column": (X[:, :1], y, 1),
        "rank one": (np.outer(y, [1.0, 2.0, 3.0, 4.0]), y, 1),
        "more columns than rows": (X.T, y[:4], None),
    }
    for name, (rows, target, n_components) in cases.items():
        model = IPLS(3, n_pca_components=6, variant="released").fit(rows * unit, target)
        assert np.isfinite(model.transform(rows * unit)).all(), name
        assert np.isfinite(model.x_weights_).all(), name
        assert n_components in {None, model.n_components_}, name


def test_released_overflow_and_parameters():
    X, y = regression_data(20, 3)
    model = IPLS(2, variant="released").fit(X, y)
    before = model.transform(X)
    with pytest.raises(ValueError, match="Component 2 is no longer finite"):
        model.partial_fit(X[:2] * 1e100, y[:2])
    np.testing.assert_array_equal(model.transform(X), before)
    with pytest.raises(ValueError, match="set it to one number"):
        IPLS(variant="released", amnesic=(20, 200, 2000)).fit(X, y)
    with pytest.raises(ValueError, match="'variant' parameter"):
        IPLS(variant="published").fit(X, y)
    with pytest.raises(ValueError, match="variant cannot change"):
        model.set_params(variant="corrected").partial_fit(X, y)
