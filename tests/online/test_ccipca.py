"""CCIPCA against its formulas and PCA, and on difficult data."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from plstream import CCIPCA
from plstream.online.ccipca import ccipca

from ..checks import fed
from ..oracles import regression_data, relative_error
from .principal import constant, cosines, gaussian_factors, plain_ccipca, schedule

WENG = (20, 200, 2000)
few_components = pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning")


@pytest.mark.parametrize("sizes", [[300], [1], [7], [1, 298, 1], [2, 100]], ids=str)
@pytest.mark.parametrize(
    ("amnesic", "amnesia"),
    [(0.0, constant(0)), (2.0, constant(2)), (3, constant(3)), ((5, 40, 100), schedule(5, 40, 100))],
    ids=["none", "two", "three", "schedule"],
)
def test_equals_the_formulas(amnesic, amnesia, sizes):
    X, y = regression_data(300, 9, seed=1)
    vectors = plain_ccipca(X, 4, amnesia)
    variances = np.linalg.norm(vectors, axis=1)
    model = fed(CCIPCA(4, amnesic=amnesic), X, y, sizes)
    assert relative_error(model.explained_variance_, variances) < 1e-10
    assert relative_error(np.abs(model.components_), np.abs(vectors / variances[:, None])) < 1e-10
    assert relative_error(model.mean_, X.mean(axis=0)) < 1e-12
    assert (model.components_.max(axis=1) == np.abs(model.components_).max(axis=1)).all()
    assert relative_error(model.transform(X), (X - X.mean(axis=0)) @ model.components_.T) < 1e-10


def test_many_tiles_are_one_stream():
    """Rows are taken in tiles of half a megabyte: here there are several, of less and less rows."""
    for m in (3, 4000, 50_000):
        X, y = regression_data(60 if m > 3 else 50_000, m)
        assert relative_error(CCIPCA(2).fit(X).components_, fed(CCIPCA(2), X, y, [17, 9001]).components_) < 1e-10


@few_components
def test_by_hand():
    model = CCIPCA(2, amnesic=0.0).fit([[0.0, 0.0]])
    assert not model.components_.any()
    assert not model.explained_variance_ratio_.any()
    # u = (1, 0) begins the first component as |u| u.
    model.partial_fit([[2.0, 0.0]])
    np.testing.assert_allclose(model.components_, [[1, 0], [0, 0]])
    np.testing.assert_allclose(model.explained_variance_, [1, 0])
    np.testing.assert_allclose(model.explained_variance_ratio_, [1, 0])
    # u = (2, 2): v = (1, 0)/2 + 2 u/2, |v|^2 = 10.25; (-8, 10)/41 is left, and |v| = 4/41 for the second.
    model.partial_fit([[4.0, 3.0]])
    np.testing.assert_allclose(model.mean_, [2, 1])
    np.testing.assert_allclose(model.explained_variance_, [np.sqrt(10.25), 4 / 41], rtol=1e-12)
    np.testing.assert_allclose(model.explained_variance_ratio_, [np.sqrt(10.25) / 4.5, 4 / 41 / 4.5], rtol=1e-12)
    np.testing.assert_allclose(
        model.components_, [[2.5 / np.sqrt(10.25), 2 / np.sqrt(10.25)], [-4 / np.sqrt(41), 5 / np.sqrt(41)]], rtol=1e-12
    )


def test_amnesia_by_hand():
    """With l = 2 the second row of a component weighs 3/4, for l is at most half of the rows before it."""
    model = CCIPCA(1, amnesic=2.0).fit([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0]])
    v = np.array([1, 0]) / 4 + 3 / 4 * 2 * np.array([2, 2])
    np.testing.assert_allclose(model.explained_variance_, np.linalg.norm(v), rtol=1e-12)
    np.testing.assert_allclose(model.components_[0], v / np.linalg.norm(v), rtol=1e-12)


@pytest.mark.parametrize("amnesic", [WENG, 2.0], ids=str)
def test_approaches_pca(amnesic):
    ratios = []
    for seed in range(6):
        X, _ = gaussian_factors(seed)
        exact = PCA(5).fit(X)
        model = CCIPCA(5, amnesic=amnesic).fit(X)
        assert cosines(model.components_.T, exact.components_.T).min() > 0.999
        assert model.explained_variance_ratio_.sum() == pytest.approx(exact.explained_variance_ratio_.sum(), abs=0.01)
        assert np.abs(model.components_ @ model.components_.T - np.eye(5)).max() < 0.05
        ratios.append(model.explained_variance_ / exact.explained_variance_)
    # Amnesic averages are those of fewer rows: a variance has a deviation of 2 to 3 %.
    assert 0.95 < ratios[0].min() < ratios[0].max() < 1.03
    assert np.abs(np.mean(ratios) - 1) < 0.01
    assert np.abs(np.array(ratios) - 1).max() < 0.1


def test_schedule_follows_a_change():
    rng = np.random.default_rng(0)
    before = rng.normal(size=(20_000, 3)) * [5, 1, 1]
    after = rng.normal(size=(20_000, 3)) * [1, 1, 5]
    X = np.vstack([before, after])
    components = {amnesic: CCIPCA(1, amnesic=amnesic).fit(X).components_[0] for amnesic in (0.0, (20, 200, 500))}
    assert components[20, 200, 500][2] > 0.99
    assert components[0.0][2] < 0.9


def test_order_is_that_of_variances():
    """A component that began with the larger rows need not come first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)) * [1, 2, 3, 4]
    X[:50] = rng.normal(size=(50, 4)) * [4, 3, 2, 1]
    model = CCIPCA(4, amnesic=0.0).fit(X)
    assert (np.diff(model.explained_variance_) < 0).all()


@few_components
@pytest.mark.parametrize("offset", [0.0, 1e8, 1e11])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_rank_is_found(rank, offset):
    rng = np.random.default_rng(0)
    X = (rng.integers(-9, 10, size=(500, rank)) @ rng.integers(-9, 10, size=(rank, 8))).astype(np.float64)
    model = CCIPCA(6).fit(X + offset)
    assert model.n_components_ == rank
    assert not model.components_[rank:].any()
    assert not model.explained_variance_[rank:].any()
    assert not model.transform(X)[:, rank:].any()
    exact = PCA(rank).fit(X)
    assert cosines(model.components_[:rank].T, exact.components_.T).min() > 0.99
    # One line is known for sure; otherwise what passes between components that have not converged is lost.
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-12 if rank == 1 else 0.02)


@few_components
def test_more_components_than_features():
    X, _ = regression_data(100, 3)
    model = CCIPCA(5).fit(X)
    assert model.n_components_ == 3
    assert model.transform(X).shape == (100, 5)
    np.testing.assert_array_equal(model.components_[:3], CCIPCA(3).fit(X).components_)


@few_components
def test_a_line_with_an_outlier_has_one_component():
    """The mean keeps rounding errors of the size of the outlier: they are not a direction."""
    rng = np.random.default_rng(0)
    places = 1 + 1e-5 * rng.normal(size=2000)
    places[0] = 1e3
    model = CCIPCA(2).fit(np.outer(places, rng.normal(size=8)))
    assert model.n_components_ == 1
    np.testing.assert_allclose(model.explained_variance_ratio_, [1, 0], atol=1e-9)


@few_components
def test_degenerate_data():
    X, _ = regression_data(30, 4)
    cases = {
        "one row": (X[:1], 0),
        "constant": (np.full((30, 4), 0.1), 0),
        "duplicate rows": (np.repeat(X[:1], 30, axis=0), 0),
        "two rows": (X[:2], 1),
        "two rows, often": (X[[0, 1] * 15], 1),
        "one column": (X[:, :1], 1),
        "zeros": (np.zeros((5, 3)), 0),
    }
    for name, (rows, n_components) in cases.items():
        with np.errstate(all="raise"):
            model = CCIPCA(2).fit(rows)
            scores = model.transform(rows)
        assert model.n_components_ == n_components, name
        assert np.isfinite(scores).all(), name
        assert not scores[:, n_components:].any(), name
        ratio = 1.0 if n_components else 0.0
        assert model.explained_variance_ratio_.sum() == pytest.approx(ratio), name


def test_constant_columns_do_not_take_part():
    X, _ = regression_data(50, 6)
    padded = np.column_stack([np.full(50, 0.1), X, np.zeros(50), np.full(50, 1e8)])
    model, expected = CCIPCA(3).fit(padded), CCIPCA(3).fit(X)
    assert relative_error(model.components_[:, 1:7], expected.components_) < 1e-10
    assert not model.components_[:, [0, 7, 8]].any()


def test_constant_prefix_is_no_obstacle():
    X, _ = regression_data(200, 5)
    prefix = np.repeat(X[:1], 100, axis=0)
    model = CCIPCA(2).fit(np.vstack([prefix, X]))
    assert cosines(model.components_.T, CCIPCA(2).fit(X).components_.T).min() > 0.95


@pytest.mark.parametrize("unit", [1e150, 1e-150, 3e-5])
def test_units_do_not_matter(unit):
    X, _ = regression_data(100, 5)
    model, expected = CCIPCA(3).fit(X * unit), CCIPCA(3).fit(X)
    for name in ("components_", "explained_variance_ratio_"):
        assert relative_error(getattr(model, name), getattr(expected, name)) < 1e-10, name
    assert relative_error(model.explained_variance_ / unit / unit, expected.explained_variance_) < 1e-10
    assert relative_error(model.transform(X * unit) / unit, expected.transform(X)) < 1e-10


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_variances_that_no_number_can_hold(unit):
    X, _ = regression_data(100, 5)
    model = CCIPCA(3).fit(X * unit)
    assert model.n_components_ == 3
    assert (model.explained_variance_ == (np.inf if unit > 1 else 0)).all()
    assert relative_error(model.components_, CCIPCA(3).fit(X).components_) < 1e-10


def test_far_from_zero():
    X, _ = regression_data(300, 5)
    X = np.round(X * 2**20) / 2**20  # So that adding the offset loses nothing.
    expected = CCIPCA(3).fit(X)
    assert relative_error(CCIPCA(3).fit(X + 1e8).components_, expected.components_) < 1e-10


def test_rows_that_are_explained_count():
    """Rows without a part in a component's direction make its variance smaller."""
    V, squares, ages, row_squares = np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(2)
    U = np.array([[1.0, 0.0], [0.0, 1.0]] + [[1.0, 0.0]] * 8)
    assert ccipca(U, V, squares, ages, row_squares, np.zeros(4)) == -1
    np.testing.assert_array_equal(ages, [10, 9])
    np.testing.assert_allclose(V, [[0.9, 0], [0, 1 / 9]])
    np.testing.assert_allclose(squares, [0.81, 1 / 81])
    np.testing.assert_allclose(row_squares, [1, 1])


def test_a_component_that_has_died_out_starts_again():
    """Under a schedule what is old fades by a constant factor: after a long silence nothing is left of it."""
    V, squares, ages, row_squares = np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(2)
    U = np.array([[1.0, 0.0], [0.0, 3.0]] + [[1.0, 0.0]] * 2000)
    amnesic = np.array([0.0, 0.0, 1.0, 1.0])
    assert ccipca(U, V, squares, ages, row_squares, amnesic) == -1
    assert squares[1] == 0
    assert ccipca(np.array([[0.0, 2.0]]), V, squares, ages, row_squares, amnesic) == -1
    np.testing.assert_array_equal(V[1], [0, 4])
    assert ages[1] == 1


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e170])
def test_kernel_sees_what_is_not_finite(bad):
    for row, component in (([bad, 1.0, 1.0], 0), ([bad, bad, bad], 0)):
        U = np.array([[1.0, 0, 0], [0, 1, 0], row])
        state = np.zeros((2, 3)), np.zeros(2), np.zeros(2), np.zeros(2)
        assert ccipca(U, *state, np.array([2.0, 0, 0, 0])) == component


@few_components
def test_overflow_is_an_error_and_changes_nothing():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    model = CCIPCA(2).fit(X)
    before = model.transform(X)
    for huge in (1e90, 1e160, 1e300):
        with pytest.raises(ValueError, match="Component 1 is no longer finite"):
            model.partial_fit([[huge, huge]])
        np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == 3


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": 1.5},
        {"amnesic": -1.0},
        {"amnesic": np.nan},
        {"amnesic": "fast"},
        {"amnesic": (20, 200)},
        {"amnesic": (200, 20, 2000)},
        {"amnesic": (-1, 20, 2000)},
        {"amnesic": (20, 200, 0)},
        {"amnesic": (20, 200, np.nan)},
        {"amnesic": ("a", "b", "c")},
    ],
    ids=str,
)
def test_bad_parameters(parameters):
    X, _ = regression_data(30, 4)
    model = CCIPCA(**parameters)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"{next(iter(parameters))}.* must be"):
            method(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("parameters", [{"n_components": 3}, {"amnesic": 1.0}, {"amnesic": WENG}], ids=str)
def test_parameters_cannot_change_during_a_stream(parameters):
    X, _ = regression_data(30, 4)
    model = CCIPCA(2).partial_fit(X)
    before = model.transform(X)
    model.set_params(**parameters)
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} cannot change during a stream"):
        model.partial_fit(X)
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.fit(X).n_samples_seen_ == 30
