"""Classifiers and cross-validation on Dask: the same models as in one process, for any chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from plstream import (
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    VIPSelector,
    open_source,
)
from plstream.distributed import OnWorkers
from tests.estimators.test_classifier import spectra
from tests.estimators.test_cv import assert_same_table
from tests.oracles import regression_data, relative_error

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")
dd = pytest.importorskip("dask.dataframe", reason="needs Dask's dataframes")
pandas = pytest.importorskip("pandas")

N, M = 240, 8
X, NUMBERS = spectra(N, M)
NAMES = np.array(["barley", "oats", "rye", "wheat"])
# Sorted, so that no chunk has all classes.
ORDER = np.argsort(NUMBERS, kind="stable")
X, NUMBERS = X[ORDER], NUMBERS[ORDER]
Y = NAMES[NUMBERS]
VALUES = regression_data(N, M)[1]
WEIGHT = np.random.default_rng(0).integers(0, 3, N).astype(float)

solvers = pytest.mark.parametrize("solver", ["auto", "gram"])


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


def array(rows, chunks=41):
    return da.from_array(rows, chunks=(chunks, *((-1,) * (np.ndim(rows) - 1))))


def frame(rows):
    return dd.from_pandas(pandas.DataFrame(rows, columns=[f"c{i}" for i in range(rows.shape[1])]), npartitions=5)


def series(values):
    return dd.from_pandas(pandas.Series(values, name="y"), npartitions=5)


def delayed(rows, size=41):
    return [dask.delayed(rows[start : start + size]) for start in range(0, len(rows), size)]


def files(folder, y):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return OnWorkers(open_source(folder / "X.npy", target=folder / "y.npy", batch_size=30))


def assert_same(model, expected):
    assert model.classes_.tolist() == expected.classes_.tolist()
    assert model.classes_.dtype.kind == expected.classes_.dtype.kind
    assert model.n_samples_seen_ == expected.n_samples_seen_
    assert model.solver_ == expected.solver_
    assert relative_error(model.coef_, expected.coef_) < 1e-9
    for method in ("predict_proba", "decision_function"):
        assert relative_error(getattr(model, method)(X), getattr(expected, method)(X)) < 1e-9
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


# IncrementalPLSClassifier.


@solvers
@pytest.mark.parametrize("y", [Y, NUMBERS, Y == "rye"], ids=["text", "numbers", "truth"])
@pytest.mark.parametrize("class_weight", [None, "balanced", "dict"])
def test_arrays_of_labels(solver, y, class_weight):
    if class_weight == "dict":
        class_weight = {label: 1.0 + i for i, label in enumerate(np.unique(y).tolist())}
    model = IncrementalPLSClassifier(3, solver=solver, class_weight=class_weight)
    expected = clone(model).fit(X, y, WEIGHT)
    assert_same(clone(model).fit(array(X), array(y, 50), array(WEIGHT)), expected)
    assert_same(clone(model).fit(array(X), y, WEIGHT), expected)


@solvers
def test_other_collections_of_labels(solver, tmp_path):
    expected = IncrementalPLSClassifier(3, solver=solver).fit(X, Y)
    model = IncrementalPLSClassifier(3, solver=solver)
    assert_same(clone(model).fit(delayed(X), delayed(Y)), expected)
    assert_same(clone(model).fit(files(tmp_path, Y)), expected)
    thin = array(X).map_blocks(sparse.csr_matrix, dtype=float, meta=sparse.csr_matrix((0, 0)))
    assert_same(clone(model).fit(thin, array(Y)), expected)
    for y in (Y, Y.astype(object), pandas.Categorical(Y)):
        fitted = clone(model).fit(frame(X), series(y))
        assert list(fitted.feature_names_in_) == [f"c{i}" for i in range(M)]
        assert relative_error(fitted.coef_, expected.coef_) < 1e-9
        np.testing.assert_array_equal(fitted.predict(frame(X)).compute(), expected.predict(X))


def test_rows_without_weight():
    """They are absent in the first call too, but for classes that it gives."""
    none = array(np.zeros(N))
    for classes in ({}, {"classes": NAMES}):
        for model in (IncrementalPLSClassifier(3), IncrementalPLSClassifierCV(3)):
            expected = clone(model).partial_fit(X, Y)
            model.partial_fit(array(X), array(Y), sample_weight=none, **classes)
            with pytest.raises(NotFittedError):
                model.predict(X)
            model.partial_fit(array(X), array(Y)).partial_fit(array(X), array(Y), sample_weight=none)
            assert_same(model, expected)
            assert vars(model).keys() == vars(expected).keys()
            with pytest.raises(ValueError, match="no row with a positive weight"):
                clone(model).fit(array(X), array(Y), sample_weight=none)
    values = IncrementalPLS(3).partial_fit(array(X), array(VALUES), sample_weight=none)
    values.partial_fit(array(X), array(VALUES))
    assert relative_error(values.coef_, IncrementalPLS(3).partial_fit(X, VALUES).coef_) < 1e-9


def test_partial_fit_of_labels(tmp_path):
    expected = IncrementalPLSClassifier(3, solver="gram").fit(X, Y)
    half = N // 2
    model = IncrementalPLSClassifier(3).partial_fit(X[:half], Y[:half], classes=NAMES)
    assert_same(model.partial_fit(array(X[half:]), array(Y[half:])), expected)
    model = IncrementalPLSClassifier(3).partial_fit(array(X[:half]), array(Y[:half]), classes=NAMES)
    assert_same(model.partial_fit(X[half:], Y[half:]), expected)
    assert_same(IncrementalPLSClassifier(3).partial_fit(array(X), array(Y)), expected)
    assert_same(IncrementalPLSClassifier(3).partial_fit(files(tmp_path, Y)), expected)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="emmer is not among the classes"):
        model.partial_fit(array(X[:3]), array(np.array(["rye", "emmer", "rye"])))
    assert vars(model) == before


@pytest.mark.parametrize(
    "model", [IncrementalPLSClassifier(3), IncrementalPLSClassifierCV(4)], ids=lambda model: type(model).__name__
)
def test_results_of_labels_are_lazy(model):
    model.fit(X, Y)
    for method in ("predict", "predict_proba", "decision_function", "predict_log_proba", "transform"):
        # Chunk by chunk: the kernels of BLAS may round the last row of an odd number in another way.
        lazy, chunks = getattr(model, method)(array(X)), np.split(X, range(41, N, 41))
        expected = np.concatenate([getattr(model, method)(chunk) for chunk in chunks])
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == array(X).chunks[0]
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(), expected)
        parts = dask.compute(*getattr(model, method)(delayed(X)))
        np.testing.assert_array_equal(np.concatenate(parts), expected)
    assert model.predict(array(X)[array(X)[:, 0] > np.inf]).compute().shape == (0,)


@pytest.mark.parametrize(
    ("model", "y"),
    [(IncrementalPLSClassifier(2), Y), (IncrementalPLSCV(3), VALUES), (IncrementalPLSClassifierCV(3), Y)],
    ids=["classifier", "values", "labels"],
)
def test_selectors(model, y):
    selector = VIPSelector(model, n_features_to_select=3).fit(array(X), array(y))
    expected = VIPSelector(model, n_features_to_select=3).fit(X, y)
    np.testing.assert_allclose(selector.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_array_equal(selector.transform(array(X)).compute(), expected.transform(X))
    parts = VIPSelector(model).partial_fit(array(X), array(y))
    np.testing.assert_allclose(parts.scores_, expected.scores_, rtol=1e-9)


@pytest.mark.parametrize("unknown", [False, True])
def test_rows_are_not_read_for_labels_or_numbers(unknown):
    made = []

    def count(block):
        made.append(len(block))
        return block

    counted, y = array(X).map_blocks(count, dtype=X.dtype, meta=X[:0]), array(Y)
    if unknown:
        y = y[da.ones(N, chunks=41, dtype=bool)]
        counted = counted[da.ones(N, chunks=41, dtype=bool)]
    IncrementalPLSClassifierCV(3).fit(counted, y)
    assert sum(made) == N
    made.clear()
    IncrementalPLSClassifier(3, solver="gram").fit(counted, y)
    assert sum(made) == N


# IncrementalPLSCV.


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=30).filter(lambda sizes: sum(sizes) > 9),
    st.sampled_from([1, 1, 4]),
    st.sampled_from([IncrementalPLSCV, IncrementalPLSClassifierCV]),
    st.booleans(),
    st.booleans(),
)
def test_folds_do_not_depend_on_chunks(sizes, block_length, method, unknown, weighted):
    n = min(sum(sizes), N)
    rows = np.random.default_rng(0).permutation(N)[:n]
    y = NUMBERS[rows]
    y[:2] = [0, 1]
    cuts = np.diff(np.minimum(np.cumsum([0, *sizes]), n)).tolist()
    parts = [da.from_array(each, chunks=(tuple(cuts), *each.shape[1:])) for each in (X[rows], y, WEIGHT[rows] + 0.0)]
    weight = WEIGHT[rows] if weighted else None
    if unknown:
        every = da.ones(n, chunks=(tuple(cuts),), dtype=bool)
        parts = [each[every] for each in parts]
    model = method(3, cv=3, block_length=block_length)
    try:
        expected = clone(model).partial_fit(X[rows], y, sample_weight=weight)
    except ValueError:
        return
    actual = clone(model).partial_fit(parts[0], parts[1], sample_weight=parts[2] if weighted else None)
    assert actual.n_samples_seen_ == expected.n_samples_seen_
    assert_same_table(actual.cv_results_, expected.cv_results_)
    assert [fold.n_rows for fold in actual._fitted.stream.streams] == [
        fold.n_rows for fold in expected._fitted.stream.streams
    ]


@pytest.mark.parametrize("y", [VALUES, np.column_stack([VALUES, X[:, 0]]), Y], ids=["value", "values", "labels"])
def test_cross_validation(y, tmp_path):
    model = (IncrementalPLSClassifierCV if y is Y else IncrementalPLSCV)(4, cv=4)
    expected = clone(model).fit(X, y, WEIGHT)
    weighted = clone(model).fit(array(X), array(y, 30), array(WEIGHT))
    assert_same_table(weighted.cv_results_, expected.cv_results_)
    plain = clone(model).fit(X, y)
    collections = [(array(X), array(y)), (delayed(X), delayed(y)), (frame(X), frame(y) if y.ndim == 2 else series(y))]
    for rows, target in [*collections, (files(tmp_path, y), None)]:
        actual = clone(model).fit(rows, target)
        assert_same_table(actual.cv_results_, plain.cv_results_)
        assert actual.n_components_ == plain.n_components_
        assert relative_error(actual.coef_, plain.coef_) < 1e-9
    assert vars(actual).keys() == vars(plain).keys()
    assert actual.get_params() == model.get_params()


def test_groups_and_folds():
    rng = np.random.default_rng(0)
    groups, folds = rng.integers(0, 30, N), rng.integers(0, 4, N)
    names = np.char.add("site ", groups.astype(str))
    for columns in ({"groups": groups}, {"groups": names}, {"folds": folds}):
        expected = IncrementalPLSCV(4, cv=4).fit(X, VALUES, **columns)
        [(name, column)] = columns.items()
        for given_column in (column, array(column, 17)):
            actual = IncrementalPLSCV(4, cv=4).fit(array(X), array(VALUES), **{name: given_column})
            assert_same_table(actual.cv_results_, expected.cv_results_)
        in_series = IncrementalPLSCV(4, cv=4).fit(frame(X), series(VALUES), **{name: series(column)})
        assert_same_table(in_series.cv_results_, expected.cv_results_)


def test_groups_are_known_by_their_value():
    """Chunks that hold ids in other types, and ids in a list that an array of NumPy would not hold."""
    ids = (2**53 + np.random.default_rng(0).integers(0, 30, N)).tolist()
    expected = IncrementalPLSCV(4, cv=4).fit(X, VALUES, groups=ids).cv_results_
    halves = [array(np.array(ids[:100]), 20), array(np.array(ids[100:], object), 20)]
    for groups in (ids, [*map(str, ids[:9]), *ids[9:]], [float(2**53), *ids[1:]], da.concatenate(halves)):
        if groups is not ids and isinstance(groups, list):
            ids_again = [int(group) for group in groups]
            expected_again = IncrementalPLSCV(4, cv=4).fit(X, VALUES, groups=ids_again).cv_results_
        else:
            expected_again = expected
        actual = IncrementalPLSCV(4, cv=4).fit(array(X), array(VALUES), groups=groups)
        assert_same_table(actual.cv_results_, expected_again)
    in_series = dd.from_pandas(pandas.Series(ids, dtype="Int64"), npartitions=5)
    assert_same_table(IncrementalPLSCV(4, cv=4).fit(frame(X), series(VALUES), groups=in_series).cv_results_, expected)


def test_groups_that_are_missing():
    ids = np.arange(N) % 30
    hole = np.arange(N) == 77
    masked = np.ma.array(ids, mask=hole)
    names = np.where(hole, None, ids.astype(str))
    for groups in (masked, da.from_array(masked, chunks=41), names, array(names), array(np.where(hole, np.nan, ids))):
        with pytest.raises(ValueError, match="groups has no value for row"):
            IncrementalPLSCV(4, cv=4).fit(array(X), array(VALUES), groups=groups)
    nullable = pandas.Series(ids, dtype="Int64").mask(hole)
    for column in (nullable, nullable.astype("category"), pandas.Series(names)):
        with pytest.raises(ValueError, match="groups has no value for row"):
            IncrementalPLSCV(4, cv=4).fit(
                frame(X), series(VALUES), groups=dd.from_pandas(column.rename("id"), npartitions=5)
            )


@pytest.mark.parametrize("y", [VALUES, Y], ids=["values", "labels"])
def test_cross_validation_continues(y):
    method = IncrementalPLSClassifierCV if y is Y else IncrementalPLSCV
    expected = method(4).partial_fit(X, y)
    cuts = [(0, 70), (70, 150), (150, N)]
    known = {"classes": NAMES} if y is Y else {}
    for lazily in ((0, 1, 0), (1, 0, 1), (1, 1, 1)):
        model = method(4)
        for (start, stop), is_lazy in zip(cuts, lazily, strict=True):
            rows, target = X[start:stop], y[start:stop]
            model.partial_fit(*((array(rows, 13), array(target, 13)) if is_lazy else (rows, target)), **known)
        assert_same_table(model.cv_results_, expected.cv_results_)
    model.set_params(rule="one-se").partial_fit(array(X), array(y))
    once = method(4, rule="one-se").partial_fit(X, y).partial_fit(X, y)
    assert_same_table(model.cv_results_, once.cv_results_)
    assert model.n_components_ == once.n_components_


def test_mismatched_inputs_are_refused():
    folds = np.arange(N) % 5
    model = IncrementalPLSCV(3).fit(X, VALUES)
    before = vars(model).copy()
    for columns, message in [
        ({"folds": array(folds)}, "assigned to folds by"),
        ({"folds": array(folds), "groups": array(folds)}, "pass only one of them"),
        ({"y": array(Y)}, "In block .* must hold numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(array(X), **{"y": array(VALUES), **columns})
        assert vars(model) == before
    with pytest.raises(ValueError, match="from 0 to 4"):
        IncrementalPLSCV(3).fit(array(X), array(VALUES), folds=array(folds + 1))
    with pytest.raises(ValueError, match="in one fold"):
        IncrementalPLSCV(3).fit(array(X), array(VALUES), folds=array(0 * folds))
    with pytest.raises(ValueError, match="set cv to a number"):
        IncrementalPLSCV(3, cv=np.arange(N) % 2).fit(array(X), array(VALUES))
    with pytest.raises(TypeError, match="pass arrays"):
        model.predict_held_out(array(X))
    with pytest.raises(ValueError, match="only one class"):
        IncrementalPLSClassifierCV(3).fit(array(X[:20]), array(np.full(20, "rye")))
