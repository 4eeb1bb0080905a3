"""IncrementalPLS with a sketch: parameters, estimated errors, and real data."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import LinearSVC

from plstream import IncrementalPLS, load, save
from plstream.states import Gram
from tests.oracles import precise_pls, regression_data, relative_error
from tests.real_data import real_data
from tests.states.test_sketch import smallest_cosine, spectrum_data


def test_auto_depends_on_the_number_of_features():
    X, y = regression_data(10, 2049)
    assert IncrementalPLS(2).partial_fit(X[:, :2048], y).solver_ == "gram"
    assert IncrementalPLS(2).partial_fit(X, y).solver_ == "sketch"
    assert IncrementalPLS(2, solver="gram").partial_fit(X, y).solver_ == "gram"
    assert IncrementalPLS(2).fit(X, y).solver_ == "multipass"
    assert IncrementalPLS(2, solver="sketch").fit(X[:, :5], y).solver_ == "sketch"


@pytest.mark.parametrize(("n_components", "sketch_size", "rows"), [(2, None, 128), (8, None, 192), (8, 50, 50)])
def test_size(n_components, sketch_size, rows):
    X, y = regression_data(20, 30)
    model = IncrementalPLS(n_components, solver="sketch", sketch_size=sketch_size).partial_fit(X, y)
    assert model._fitted.stream.state.size == rows


def subspace_angle(model, exact, c):
    W, V = model.x_weights_[:, :c], exact.x_weights_[:, :c]
    return np.linalg.norm(W - V @ (V.T @ W), ord=2)


def test_sketch_must_have_room_for_the_components():
    X, y = regression_data(20, 30)
    with pytest.raises(ValueError, match="sketch_size=4 must be more than n_components=4"):
        IncrementalPLS(4, solver="sketch", sketch_size=4).partial_fit(X, y)


def test_exact_solvers_lose_nothing(solver):
    X, y = regression_data(100, 8)
    model = IncrementalPLS(3, solver=solver).fit(X, y)
    assert model.retained_variance_ == 1.0
    assert (model.subspace_error_ == 0).all()


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize("scale", [True, False])
def test_discarded_variance_is_reported(scale):
    X, Y = spectrum_data(2000, 200, 0.25)
    exact = IncrementalPLS(4, scale=scale).fit(X, Y)
    retained, errors = [], []
    for size in (10, 20, 60, 150, 200):
        model = IncrementalPLS(4, scale=scale, solver="sketch", sketch_size=size).partial_fit(X, Y)
        retained.append(model.retained_variance_)
        errors.append(model.subspace_error_[-1])
        for c in (2, 3, 4):
            true = np.sqrt(1 - min(1.0, smallest_cosine(model.x_weights_[:, :c], exact.x_weights_[:, :c])) ** 2)
            estimated = model.subspace_error_[c - 1]
            assert estimated / 5 - 1e-6 < true < 3 * estimated + 1e-6
        assert model.subspace_error_[0] == 0
    assert retained == sorted(retained)
    assert 0.1 < retained[0] < 0.3
    assert retained[-1] == 1.0
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == 0.0


def few_factors(seed, n=5000, m=500, k=5):
    """Rows of a few factors and noise: the deflated cross-covariance is small beside the first."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, k))
    X = F @ rng.normal(size=(k, m)) + rng.normal(size=(n, m))
    return X, F @ rng.normal(size=k) + rng.normal(size=n)


def clusters(seed, n=5000, m=500, k=8, noise=1.0):
    rng = np.random.default_rng(seed)
    centres, cluster = rng.normal(size=(k, m)), rng.integers(0, k, n)
    return centres[cluster] + noise * rng.normal(size=(n, m)), np.where(cluster < k // 2, 1.0, -1.0)


@pytest.mark.parametrize("seed", [0, 2])
def test_few_factors_and_noise(seed):
    X, y = few_factors(seed)
    exact = IncrementalPLS(4, scale=False).fit(X, y)
    model = IncrementalPLS(4, scale=False, solver="sketch", sketch_size=64).fit(X, y)
    assert subspace_angle(model, exact, 4) < 0.01
    assert relative_error(model.predict(X), exact.predict(X)) < 0.005


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize(("scale", "n_parts"), [(True, 1), (False, 1), (False, 4)])
@pytest.mark.parametrize(
    "data",
    [
        lambda: few_factors(1),
        lambda: few_factors(3, n=2500, m=800, k=12),
        lambda: clusters(0),
        lambda: clusters(1, noise=3.0),
        lambda: spectrum_data(4000, 400, 0.25),
        lambda: spectrum_data(4000, 400, 0.5),
    ],
    ids=["few factors", "more factors", "clusters", "wide clusters", "flat spectrum", "falling spectrum"],
)
def test_estimated_error_is_that_of_the_data(data, scale, n_parts):
    """Never several times too small, and not so large that it says nothing."""
    X, y = data()
    exact = IncrementalPLS(6, scale=scale).fit(X, y)
    parts = [
        IncrementalPLS(6, scale=scale, solver="sketch", sketch_size=64).partial_fit(X[rows], y[rows])
        for rows in np.array_split(np.arange(len(X)), n_parts)
    ]
    model = parts[0]
    for part in parts[1:]:
        model.merge(part)
    for c in range(2, 7):
        true, estimated = subspace_angle(model, exact, c), model.subspace_error_[c - 1]
        assert true / 3 < estimated < 5 * true + 1e-3


def test_components_that_were_not_preserved_are_not_trusted():
    X, y = few_factors(0, n=1000, m=200)
    model = IncrementalPLS(2, solver="sketch", sketch_size=40).partial_fit(X, y)
    assert model.subspace_error_.max() < 0.3
    model.set_params(n_components=4)
    with pytest.warns(UserWarning, match="only the first 2 of 4 components"):
        errors = model.partial_fit(X[:1], y[:1]).subspace_error_
    assert errors[:2].max() < 0.3
    assert (errors[2:] == 1.0).all()


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
def test_estimated_error_with_rare_columns():
    """Their deviations, and so the units of the sketch, change with every row in which they are not zero."""
    X, Y = spectrum_data(3000, 150, 0.25)
    X[:, 100:] *= np.random.default_rng(0).random((3000, 50)) < 0.003
    exact = IncrementalPLS(3).fit(X, Y)
    model = IncrementalPLS(3, solver="sketch", sketch_size=40).partial_fit(X, Y)
    true = np.sqrt(1 - smallest_cosine(model.x_weights_, exact.x_weights_) ** 2)
    assert true / 3 < model.subspace_error_[-1] < 5 * true


def test_warning_names_the_callers_line():
    X, Y = spectrum_data(500, 200, 0.25)
    model = IncrementalPLS(4, solver="sketch", sketch_size=10).partial_fit(X, Y)
    with pytest.warns(UserWarning, match="sketch_size") as caught:
        model.predict(X)
    assert caught[0].filename == __file__


def peak_bytes(run):
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize(
    ("solver", "shape", "q", "scale"),
    [
        ("sketch", (700, 2500), 1, True),
        ("sketch", (700, 2500), 5, False),
        ("sketch", (700, 5000), 1, True),
        ("gram", (3000, 800), 1, True),
        ("gram", (3000, 200), 4, False),
        ("sketch", (700, 50), 1, True),
        ("sketch", (700, 30), 300, True),
    ],
)
def test_memory_is_as_stated(solver, shape, q, scale):
    X, Y = regression_data(*shape, q)
    model = IncrementalPLS(3, solver=solver, sketch_size=40, scale=scale)
    stated = model.memory_usage(shape[1], q)

    def feed():
        for start in range(0, len(X), 30):
            model.partial_fit(X[start : start + 30], Y[start : start + 30])
        model.n_components_  # noqa: B018

    assert stated / 4 < peak_bytes(feed) <= stated
    assert model._fitted.stream.nbytes < stated / 2


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize("density", [0.0002, 0.02, 1.0])
def test_memory_of_sparse_rows_is_as_stated(density):
    """Whatever their number: blocks of sparse rows have as many numbers as dense ones."""
    X = sparse.random(6000 if density < 1 else 400, 3000, density=density, format="csr", random_state=0)
    y = X @ np.ones(3000)
    model = IncrementalPLS(3, solver="sketch", sketch_size=40)

    def feed():
        for start in range(0, len(y), 50):
            model.partial_fit(X[start : start + 50], y[start : start + 50])
        model.n_components_  # noqa: B018

    assert peak_bytes(feed) <= model.memory_usage(3000)
    assert (model._fitted.stream.n_waiting > 40) == (density < 1)


def test_training_after_exact_reads_takes_the_memory_of_a_sketch():
    assert IncrementalPLS(solver="multipass").memory_usage(800) == IncrementalPLS(solver="sketch").memory_usage(800)


def test_merge_needs_the_same_sketch():
    X, y = regression_data(60, 10)
    one = IncrementalPLS(2, solver="sketch").partial_fit(X, y)
    with pytest.raises(ValueError, match="sketch_size is 128 here, 20 there"):
        one.merge(IncrementalPLS(2, solver="sketch", sketch_size=20).partial_fit(X, y))
    with pytest.raises(ValueError, match="solver_ is sketch here, gram there"):
        one.merge(IncrementalPLS(2, solver="gram").partial_fit(X, y))


def test_parameters_may_change_during_training():
    """Compressions preserve the solution of the current parameters, from the next row on."""
    X, Y = spectrum_data(3000, 200, 0.5)
    model = IncrementalPLS(1, scale=False, solver="sketch", sketch_size=60).partial_fit(X[:10], Y[:10])
    model.set_params(n_components=4, scale=True).partial_fit(X[10:], Y[10:])
    from_the_start = IncrementalPLS(4, solver="sketch", sketch_size=60).partial_fit(X, Y)
    assert smallest_cosine(model.x_weights_, from_the_start.x_weights_) > 1 - 1e-6


def test_parameters_that_may_not_change():
    X, y = regression_data(100, 30)
    model = IncrementalPLS(2, solver="sketch", sketch_size=20).partial_fit(X, y)
    with pytest.raises(ValueError, match="sketch_size cannot change during a stream: set it back to 20"):
        model.set_params(sketch_size=30).partial_fit(X, y)
    with pytest.raises(ValueError, match="n_components=20 is too many for a sketch of 20 rows"):
        model.set_params(sketch_size=20, n_components=20).partial_fit(X, y)
    assert model.n_samples_seen_ == 100
    assert model.x_weights_.shape == (30, 2)


@pytest.mark.filterwarnings("ignore:(sketch_size|X and y have only):UserWarning")
@pytest.mark.parametrize(("x_unit", "y_unit"), [(1, 0), (1e150, 1e150), (1e-150, 1e-150), (1e150, 1e-150), (1e-100, 1)])
def test_estimated_error_in_any_units(x_unit, y_unit):
    X, Y = spectrum_data(500, 60, 0.5)
    expected = IncrementalPLS(3, scale=False, solver="sketch", sketch_size=20).partial_fit(X, Y).subspace_error_
    model = IncrementalPLS(3, scale=False, solver="sketch", sketch_size=20).partial_fit(X * x_unit, Y * y_unit)
    expected = expected if y_unit else np.zeros(3)
    np.testing.assert_allclose(model.subspace_error_, expected, rtol=1e-3)


@pytest.mark.parametrize("weight", [1 / 500, 1e6, 1e-300, 1e280])
def test_estimated_error_with_weights_in_any_unit(weight):
    X, Y = spectrum_data(500, 60, 0.5)
    expected = IncrementalPLS(3, solver="sketch", sketch_size=20).partial_fit(X, Y).subspace_error_
    model = IncrementalPLS(3, solver="sketch", sketch_size=20).partial_fit(X, Y, np.full(500, weight))
    np.testing.assert_allclose(model.subspace_error_, expected, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_give_what_dense_ones_give(container):
    X, Y = spectrum_data(800, 100, 0.25)
    X[np.abs(X) < 0.5] = 0.0
    dense = IncrementalPLS(3, solver="sketch", sketch_size=40).fit(X, Y)
    model = IncrementalPLS(3, solver="sketch", sketch_size=40)
    for start in range(0, 800, 90):
        model.partial_fit(container(X[start : start + 90]), Y[start : start + 90])
    np.testing.assert_array_equal(model.x_weights_, dense.x_weights_)


def test_interrupt_changes_nothing(monkeypatch):
    X, Y = spectrum_data(400, 50, 0.25)
    model = IncrementalPLS(2, solver="sketch", sketch_size=20).partial_fit(X, Y)
    before = model.coef_
    monkeypatch.setattr("plstream.states.sketch.solve_pls", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X, Y)
    monkeypatch.undo()
    assert model.n_samples_seen_ == 400
    np.testing.assert_array_equal(model.coef_, before)
    model._solved = None
    np.testing.assert_array_equal(model.coef_, before)
    twin = IncrementalPLS(2, solver="sketch", sketch_size=20).partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(model.partial_fit(X, Y).coef_, twin.coef_)


def test_several_responses():
    X, _ = spectrum_data(3000, 200, 0.25)
    Y = X[:, :10] + X[:, 10:20] + 0.3 * np.random.default_rng(0).normal(size=(3000, 10))
    exact = IncrementalPLS(5).fit(X, Y)
    model = IncrementalPLS(5, solver="sketch", sketch_size=64).fit(X, Y)
    assert smallest_cosine(model.x_weights_, exact.x_weights_) > 0.99
    assert relative_error(model.predict(X), exact.predict(X)) < 0.05


@pytest.mark.parametrize(("n_components", "bound"), [(2, 0.9999), (4, 0.999), (8, 0.99)])
def test_faces(n_components, bound):
    """Pairs of faces, 8,192 features of VGG16: the subspace and the accuracy of a fit that reads again and again."""
    data = real_data("lfw/vgg16_conv5_64px.npz")
    pairs, y = data["pairs"], np.where(data["same"] > 0, 1.0, -1.0)
    X = np.abs(data["F"][pairs[:, 0]].astype(np.float32) - data["F"][pairs[:, 1]])
    held_out = data["fold"] == data["fold"].max()
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~held_out))
    exact = IncrementalPLS(n_components, scale=False).fit(X[rows], y[rows])
    model = IncrementalPLS(n_components, scale=False)
    for part in np.array_split(rows, 20):
        model.partial_fit(X[part], y[part])
    assert model.solver_ == "sketch"
    assert smallest_cosine(model.x_weights_, exact.x_weights_) > bound
    accuracy = [
        LinearSVC().fit(one.transform(X[rows]), y[rows]).score(one.transform(X[held_out]), y[held_out])
        for one in (exact, model)
    ]
    assert abs(accuracy[0] - accuracy[1]) < 0.01


def ill_conditioned(n, m, kind, size):
    """Return rows of condition number ``size``, or with a trend of that size that all columns share, and a response."""
    rng = np.random.default_rng(0)
    if kind == "trend":
        X = rng.normal(size=(n, m))
        y = X[:, :5].sum(axis=1) + 0.1 * rng.normal(size=n)
        return X + size * (np.linspace(-1, 1, n) + 0.1 * rng.normal(size=n))[:, None], y
    k = min(n, m)
    U, V = (np.linalg.qr(rng.normal(size=(length, k)))[0] for length in (n, m))
    values = np.concatenate([np.geomspace(1, 1 / size, 6), np.full(k - 6, 0.1 / size)])
    return U * values @ V.T, U[:, :6].sum(axis=1) + 1e-3 * rng.normal(size=n)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs extended precision")
@pytest.mark.parametrize("shape", [(100, 30), (300, 500), (350, 60)])
@pytest.mark.parametrize(("kind", "size"), [("trend", 1e6), ("trend", 1e8), ("spectrum", 1e10), ("spectrum", 1e12)])
@pytest.mark.parametrize("scale", [True, False])
def test_rows_that_fit_into_the_sketch_are_solved_as_by_multipass(shape, kind, size, scale, tmp_path):
    X, y = ill_conditioned(*shape, kind, size)
    expected = precise_pls(X, y, 5, scale=scale)
    multipass = IncrementalPLS(5, scale=scale).fit(X, y)
    model = IncrementalPLS(5, scale=scale, solver="sketch")
    parts = [clone(model).partial_fit(X[i : i + 17], y[i : i + 17]) for i in range(0, len(X), 17)]
    for part in parts[1:]:
        parts[0].merge(part)
    save(parts[0], tmp_path / "model")
    bound = max(5 * relative_error(multipass.coef_[0], expected), 1e-15 * size)
    assert bound < 100 * 2.0**-52 * size
    for sketch in (clone(model).fit(X, y), parts[0], load(tmp_path / "model")):
        assert sketch.n_components_ == multipass.n_components_ == 5
        assert relative_error(sketch.coef_[0], expected) < bound
        assert sketch.retained_variance_ == 1.0


def test_a_compression_costs_resolution(tmp_path):
    """Its rows come from products, so small directions are known no better than from a Gram matrix."""
    X, y = regression_data(200, 12)
    rows = IncrementalPLS(2, solver="sketch", sketch_size=20).partial_fit(X[:30], y[:30])
    combined = clone(rows).partial_fit(X, y)
    save(combined, tmp_path / "model")
    for model in (combined, load(tmp_path / "model"), clone(rows).partial_fit(X[:30], y[:30]).merge(combined)):
        assert model._fitted.stream.current().variance_resolution == Gram.variance_resolution
    assert rows._fitted.stream.current().variance_resolution < Gram.variance_resolution**1.9
