"""Cross-validation of data that can be read again, by every method, against a loop of fits."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from plstream import (
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    load,
    open_source,
    save,
)
from plstream.estimators import cv_exact
from plstream.rows import ArrayRows
from plstream.solvers import FoldReads, MultipassGram, Scaling, solve_jointly, solve_scaled
from tests.oracles import regression_data, relative_error

WAYS = ["gram", "held", "reads"]
ways = pytest.mark.parametrize("way", WAYS)


def take(way, monkeypatch):
    """Let all data take one way: Gram matrices, rows that are held in memory, or reads in blocks."""
    monkeypatch.setattr(cv_exact, "_SLOWER_IN_READS", (1e9, 1e9) if way == "gram" else (0.0, 0.0))
    monkeypatch.setattr(cv_exact, "_LARGEST_ROUNDING", 1e-3)
    if way == "reads":
        monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)


@pytest.fixture
def patch():
    """Return what lets a whole run of hypothesis take one way."""
    with pytest.MonkeyPatch.context() as context:
        yield context


def loop_rmse(X, Y, folds, c, weight=None, **params):
    """Return the errors (F, c, q) of a loop of fits."""
    errors = []
    for fold in np.unique(folds):
        test, train = folds == fold, folds != fold
        share = None if weight is None else weight[train]
        most = min(c, train.sum() if weight is None else np.count_nonzero(share), X.shape[1])
        model = IncrementalPLS(most, **params).fit(X[train], Y[train], share)
        counts = np.ones(test.sum()) if weight is None else weight[test]
        found = [
            np.sqrt(counts @ ((model.predict(X[test], n_components=min(k, most)) - Y[test]) ** 2) / counts.sum())
            for k in range(1, c + 1)
        ]
        errors.append(np.reshape(found, (c, -1)))
    return np.array(errors)


def split_rmse(model):
    table = model.cv_results_
    n_folds = sum(name.endswith("_test_rmse") for name in table) - 1
    return np.array([table[f"split{i}_test_rmse"].reshape(len(table["n_components"]), -1) for i in range(n_folds)])


@ways
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(8, 40),
    m=st.integers(1, 30),
    q=st.integers(1, 3),
    c=st.integers(1, 7),
    n_folds=st.integers(2, 6),
    scale=st.booleans(),
    weighted=st.booleans(),
    kind=st.sampled_from(["float64", "float32", "fortran", "sparse", "csc"]),
    seed=st.integers(0, 10**6),
)
@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
def test_equals_a_loop_of_fits(way, n, m, q, c, n_folds, scale, weighted, kind, seed):
    X, Y = regression_data(n, m, q, seed)
    rng = np.random.default_rng(seed)
    folds = rng.permutation(n) % n_folds
    weight = rng.uniform(0.2, 3.0, n) if weighted else None
    if kind == "float32":
        X = X.astype(np.float32)
    rows = {"fortran": np.asfortranarray, "sparse": sparse.csr_matrix, "csc": sparse.csc_array}.get(kind, np.asarray)(X)
    with pytest.MonkeyPatch.context() as context:
        take(way, context)
        model = IncrementalPLSCV(c, cv=n_folds, scale=scale, batch_size=7 if way == "reads" else None)
        model.fit(rows, Y, weight, folds=folds)
        assert model.solver_ in ({"gram", "multipass"} if way == "gram" else {"multipass"})
    # Directions with hardly any variance are known less well to both.
    exact = loop_rmse(X, Y, folds, c, weight, scale=scale)
    np.testing.assert_allclose(split_rmse(model), exact, rtol=1e-6, atol=1e-9 * np.abs(Y).max())
    chosen = IncrementalPLS(model.n_components_, scale=scale).fit(X, Y, weight)
    assert relative_error(model.coef_, chosen.coef_) < 1e-7


@ways
def test_large_folds(way, monkeypatch):
    X, Y = regression_data(5000, 5, 3)
    rng = np.random.default_rng(0)
    folds, weight = rng.integers(2, size=5000), rng.uniform(0.2, 3.0, 5000)
    take(way, monkeypatch)
    model = IncrementalPLSCV(4, cv=2).fit(X, Y, weight, folds=folds)
    np.testing.assert_allclose(split_rmse(model), loop_rmse(X, Y, folds, 4, weight), rtol=1e-9)


def hostile(kind, n=48, m=12):  # noqa: C901
    X, y = regression_data(n, m, seed=3)
    rng = np.random.default_rng(0)
    folds = np.arange(n) % 4
    if kind == "far":
        X, y = X + 1e8, y - 1e8
    elif kind == "units":
        X, y = X * 1e150, y * 1e-150
    elif kind == "small units":
        X, y = X * 1e-150, y * 1e150
    elif kind == "one column large":
        X[:, 3] *= 1e12
    elif kind == "rank one":
        X = np.outer(X[:, 0], X[0])
    elif kind == "duplicates":
        X, y = np.repeat(X[:12], 4, axis=0), np.repeat(y[:12], 4)
    elif kind == "constant":
        X[:, [2, 5]] = 7.3
    elif kind == "constant but in one fold":
        X[:, 2] = 1.7
        X[folds == 1, 2] += rng.normal(size=12)
    elif kind == "an outlier in one fold":
        X[5, 4] = 1e14
    elif kind == "folds far apart":
        X += 1e6 * folds[:, None]
    elif kind == "wide":
        X = np.hstack([X, rng.normal(size=(n, 100))])
    return X, y, folds


@ways
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(
    "kind",
    [
        "far",
        "units",
        "small units",
        "one column large",
        "rank one",
        "duplicates",
        "constant",
        "constant but in one fold",
        "an outlier in one fold",
        "folds far apart",
        "wide",
    ],
)
@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
def test_hostile_data(way, kind, scale, monkeypatch):
    X, y, folds = hostile(kind)
    take(way, monkeypatch)
    # In earnest: Gram matrices are left where they would not do.
    monkeypatch.setattr(cv_exact, "_LARGEST_ROUNDING", 1e-9)
    model = IncrementalPLSCV(5, cv=4, scale=scale).fit(X, y, folds=folds)
    exact = loop_rmse(X, y, folds, 5, scale=scale)
    np.testing.assert_allclose(split_rmse(model), exact, rtol=1e-6)


@pytest.mark.parametrize("scale", [True, False])
def test_squares_close_to_overflow(scale):
    X, y = regression_data(60, 5)
    X /= [1, 1e3, 1e3, 1e3, 1e3]
    expected = IncrementalPLSCV(3, cv=3, scale=scale).fit(X, y)
    factor = np.sqrt(1.2e308 / ((X[:, 0] - X[:, 0].mean()) ** 2).sum())
    model = IncrementalPLSCV(3, cv=3, scale=scale).fit(X * factor, y)
    np.testing.assert_allclose(split_rmse(model), split_rmse(expected), rtol=1e-6)
    single = IncrementalPLS(3, scale=scale).fit(X * factor, y)
    np.testing.assert_allclose(single.coef_ * factor, IncrementalPLS(3, scale=scale).fit(X, y).coef_, rtol=1e-6)


def test_differences_of_rows_that_overflow():
    X, y = regression_data(60, 5)
    X[:, 3] = 1.7e308
    X[7, 3] = -1.7e308
    with pytest.raises(ValueError, match="too large: weighted squares overflow"):
        IncrementalPLSCV(3, cv=3).fit(X, y)


@pytest.mark.parametrize("n_folds", [2, 3])
def test_few_folds_far_apart(n_folds, monkeypatch):
    X, y = regression_data(30, 5)
    folds = np.arange(30) % n_folds
    X = X + 1e9 * folds[:, None] ** 2
    for way in WAYS:
        with monkeypatch.context() as context:
            take(way, context)
            model = IncrementalPLSCV(3, cv=n_folds).fit(X, y, folds=folds)
        np.testing.assert_allclose(split_rmse(model), loop_rmse(X, y, folds, 3), rtol=1e-5)


@ways
def test_labels(way, monkeypatch):
    """Expected accuracies do not depend on the way, and predictions are those of a loop."""
    X, Y = regression_data(90, 15, 2)
    y = np.array(["oats", "rye", "wheat"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))]
    folds = np.random.default_rng(0).permutation(90) % 4
    # One fold has all rows of a class: the model of the others does not know it.
    folds[y == "rye"] = np.where(folds[y == "rye"] == 2, 2, 2)
    expected = IncrementalPLSClassifierCV(6, cv=4).partial_fit(X, y, folds=folds)
    take(way, monkeypatch)
    model = IncrementalPLSClassifierCV(6, cv=4).fit(X, y, folds=folds)
    for name, values in expected.cv_results_.items():
        np.testing.assert_allclose(model.cv_results_[name], values, rtol=1e-8, atol=1e-10, err_msg=name)
    assert model.n_components_ == expected.n_components_
    for c in (1, 4):
        predicted = model.predict_held_out(X, c, folds=folds)
        for fold in range(4):
            test = folds == fold
            again = IncrementalPLSClassifier(c).fit(X[~test], y[~test])
            np.testing.assert_array_equal(predicted[test], again.predict(X[test]))


@ways
@pytest.mark.filterwarnings("ignore:fit keeps only:UserWarning")
def test_held_out_rows_and_later_rows(way, monkeypatch, tmp_path):
    X, y = regression_data(60, 8, noise=1.0)
    take(way, monkeypatch)
    model = IncrementalPLSCV(5).fit(X[:40], y[:40])
    predicted = model.predict_held_out(X[:40], 3)
    streamed = IncrementalPLSCV(5).partial_fit(X[:40], y[:40])
    np.testing.assert_allclose(predicted, streamed.predict_held_out(X[:40], 3), rtol=1e-9)
    save(model, tmp_path / "model.plstream")
    expected = streamed.partial_fit(X[40:], y[40:])
    for again in (model, load(tmp_path / "model.plstream"), pickle.loads(pickle.dumps(model))):  # noqa: S301
        np.testing.assert_array_equal(again.predict_held_out(X[:40], 3), predicted)
        table = {name: values.copy() for name, values in again.cv_results_.items()}
        more = clone(again)
        vars(more).update(vars(again))
        more.partial_fit(X[40:], y[40:])
        assert more.n_samples_seen_ == 60
        # A seeded sketch knows five directions of eight.
        close = {"rtol": 0.2} if way == "reads" else {"rtol": 1e-9}
        np.testing.assert_allclose(more.cv_results_["mean_test_rmse"], expected.cv_results_["mean_test_rmse"], **close)
        for name, values in again.cv_results_.items():
            np.testing.assert_array_equal(values, table[name])


@ways
@pytest.mark.filterwarnings("ignore:fit keeps only:UserWarning")
def test_merge_after_a_fit(way, monkeypatch):
    X, y = regression_data(80, 8, noise=1.0)
    folds = np.arange(80) % 4
    whole = IncrementalPLSCV(4, cv=4).partial_fit(X, y, folds=folds)
    parts = [IncrementalPLSCV(4, cv=4).partial_fit(X[50:], y[50:], folds=folds[50:])]
    with monkeypatch.context() as context:
        take(way, context)
        parts += [IncrementalPLSCV(4, cv=4).fit(X[:50], y[:50], folds=folds[:50]) for _ in range(2)]
    for first, second in (
        (parts[1], parts[0]),
        (clone(parts[0]).partial_fit(X[50:], y[50:], folds=folds[50:]), parts[2]),
    ):
        merged = first.merge(second)
        assert merged.n_samples_seen_ == 80
        close = {"rtol": 0.2} if way == "reads" else {"rtol": 1e-9}
        np.testing.assert_allclose(merged.cv_results_["mean_test_rmse"], whole.cv_results_["mean_test_rmse"], **close)


def test_seeds_act_on_the_rotations_as_the_rows_of_the_fold_do(monkeypatch):
    X, y = regression_data(70, 10)
    X[:, 4] = 2.0
    take("reads", monkeypatch)
    model = IncrementalPLSCV(3).fit(X, y, sample_weight=np.random.default_rng(0).uniform(0.5, 2, 70))
    remains = model._fitted.remains
    fold, R = remains.folds[1], remains.rotations
    assert all(len(rows) == 3 for rows in remains.rows)
    from plstream.estimators.cv_folds import folds_of_rows

    held = folds_of_rows(0, 70, 5) == 1
    weight = np.random.default_rng(0).uniform(0.5, 2, 70)[held]
    centred = (X[held] - np.average(X[held], axis=0, weights=weight)) * np.sqrt(weight)[:, None]
    assert fold.n_rows == held.sum()
    np.testing.assert_allclose(
        remains.rows[1].T @ (remains.rows[1] @ R), centred.T @ (centred @ R), rtol=1e-9, atol=1e-12
    )


@ways
def test_folds_without_rows(way, monkeypatch):
    X, y = regression_data(40, 6)
    folds = np.where(np.arange(40) % 3 == 0, 1, 3)
    take(way, monkeypatch)
    model = IncrementalPLSCV(3, cv=5).fit(X, y, folds=folds)
    errors = split_rmse(model)
    assert np.isnan(errors[[0, 2, 4]]).all()
    np.testing.assert_allclose(errors[[1, 3]], loop_rmse(X, y, folds, 3), rtol=1e-9)
    assert len(model.partial_fit(X, y, folds=np.zeros(40, int)).cv_results_) > 3


def test_sources_and_memory_maps(tmp_path, monkeypatch):
    X, y = regression_data(60, 9)
    expected = IncrementalPLSCV(4).fit(X, y).cv_results_
    np.save(tmp_path / "X.npy", X.astype(np.float32).astype(float))
    np.save(tmp_path / "y.npy", y)
    take("reads", monkeypatch)
    mapped = IncrementalPLSCV(4).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y).cv_results_
    source = open_source(tmp_path / "X.npy", target=tmp_path / "y.npy", batch_size=11)
    for table in (mapped, IncrementalPLSCV(4).fit(source).cv_results_):
        for name, values in expected.items():
            np.testing.assert_allclose(table[name], values, rtol=1e-5, err_msg=name)


def test_many_sets_are_solved_in_parts(monkeypatch):
    X, y = regression_data(40, 6)
    expected = split_rmse(IncrementalPLSCV(3, cv=40).fit(X, y, folds=np.arange(40)))
    for way in WAYS:
        with monkeypatch.context() as context:
            take(way, context)
            context.setattr("plstream.solvers.joint._NUMBERS_AT_A_TIME", 1000)
            np.testing.assert_allclose(
                split_rmse(IncrementalPLSCV(3, cv=40).fit(X, y, folds=np.arange(40))), expected, rtol=1e-9, atol=1e-12
            )


def test_gram_matrices_are_left_where_rounding_counts():
    X, y = regression_data(400, 6, noise=0.1)
    assert IncrementalPLSCV(5).fit(X, y).solver_ == "gram"
    ill = X @ np.diag([1.0, 1, 1, 1, 1, 1e-7])
    model = IncrementalPLSCV(6, scale=False).fit(ill, y)
    assert model.solver_ == "multipass"
    from plstream.estimators.cv_folds import folds_of_rows

    folds = folds_of_rows(0, 400, 5)
    np.testing.assert_allclose(split_rmse(model), loop_rmse(ill, y, folds, 6, scale=False), rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    q=st.integers(1, 4),
    m=st.integers(1, 12),
    scale=st.booleans(),
    rank=st.integers(1, 12),
    seed=st.integers(0, 10**6),
)
def test_solving_together_is_solving_one_by_one(q, m, scale, rank, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, rank)) @ rng.normal(size=(rank, m)) + rng.normal(size=m)
    Y = X @ rng.normal(size=(m, q)) + rng.normal(size=(30, q))
    folds = np.arange(30) % 3
    reads = FoldReads(ArrayRows(X, Y), lambda first, n: folds[first : first + n], 3, 1).read_folds()
    scalings = [Scaling.of(moments, scale=scale) for moments in reads.training]
    found = solve_jointly(reads.training, reads, range(4), scalings, 5)
    for fold, factors in enumerate(found):
        gram = MultipassGram(ArrayRows(X[folds != fold], Y[folds != fold])).read_moments()
        alone = solve_scaled(gram.moments, gram, Scaling.of(gram.moments, scale=scale), 5, quiet=True)
        assert factors.n_components == alone.n_components
        assert relative_error(factors.coefficients(), alone.coefficients()) < 1e-8


@pytest.mark.parametrize("seed", range(20))
def test_blocks_with_large_means_stop_at_the_rank(seed, monkeypatch):
    """Their products are centred, so rounding errors grow with the means."""
    take("reads", monkeypatch)
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(40, 2))
    X = scores @ rng.normal(size=(2, 20)) + 300
    model = IncrementalPLSCV(5, cv=4).fit(X, scores @ rng.normal(size=2))
    errors = model.cv_results_["mean_test_rmse"]
    assert errors[-1] < 1e-9
